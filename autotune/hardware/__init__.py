"""Identifies devices: by name, by architecture, by an object of a GPU package, or through the CUDA driver.

Uses the standard library only.
"""
