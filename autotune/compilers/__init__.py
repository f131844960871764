"""Compile kernels, and read which resources of a multiprocessor a binary uses."""
