"""`load_kernel`: a tuned kernel as a callable on arrays of the caller."""
