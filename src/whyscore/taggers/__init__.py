"""Linguistic features of texts: rules and word lists, files with tags, and models."""
