"""Pure statistics on numpy arrays, usable alone."""
