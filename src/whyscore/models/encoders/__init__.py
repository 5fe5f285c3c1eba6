"""Encoders, which turn texts into vectors: embedded, static, transformers and sentence-transformers."""
