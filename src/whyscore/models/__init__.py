"""Neural models: loading them, and asking them in batches."""
