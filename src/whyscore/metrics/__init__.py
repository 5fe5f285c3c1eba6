"""Metrics by family: lexical, matching, mee, learned; and those that wrap others or bring their own scores."""
