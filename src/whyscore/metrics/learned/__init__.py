"""Metrics trained on human judgements, read from their own checkpoints."""
