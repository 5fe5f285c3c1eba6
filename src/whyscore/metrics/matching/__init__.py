"""Metrics that match vectors of two texts: greedily (BERTScore, XBERTScore) or by optimal transport (MoverScore)."""
