"""The HTML report and figures. This package renders and computes no results."""
