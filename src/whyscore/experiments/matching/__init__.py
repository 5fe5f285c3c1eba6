"""Experiments about token matching: what unrelated texts score, and which layer agrees with human judgements."""
