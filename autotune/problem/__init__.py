"""One problem of a kernel: its arrays and launches as numbers, its inputs, and its expected results."""
