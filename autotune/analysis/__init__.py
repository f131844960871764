"""Analyses of results, across devices and parameters, and of a kernel for its first space."""
