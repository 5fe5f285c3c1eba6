"""The way from segments to numbers: deduplication, store, batches, executors."""
