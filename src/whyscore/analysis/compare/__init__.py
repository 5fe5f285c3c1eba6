"""Is A better than B? Tests between systems, clusters, power."""
