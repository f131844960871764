"""Plots as SVG. This package renders and computes no results."""
