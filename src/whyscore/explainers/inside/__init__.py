"""Explainers that look inside the network of a metric: attention and gradients."""
