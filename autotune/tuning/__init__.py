"""One tuning run, from what the user names to a cached result."""
