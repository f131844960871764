"""The HTML report, and plots as SVG. This package renders and computes no results."""
