"""One tuning run, from the user's target to a cached result."""
