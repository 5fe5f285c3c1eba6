"""Explainers: which probes to ask, and what the scores say of each word."""
