"""Explainers that mask words and watch the score: erasure, LIME, SHAP, partition, greedy search, random."""
