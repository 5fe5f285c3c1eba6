"""A run: texts in, one folder out, which holds everything that a report shows."""
