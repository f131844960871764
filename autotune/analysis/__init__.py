"""Analyses of results, across devices and parameters."""
