"""From source text to a binary, and what the binary uses of a multiprocessor."""
