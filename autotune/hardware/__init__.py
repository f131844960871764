"""Which device is meant: its name, its architecture, a live object of some package, the CUDA driver.

Standard library only.
"""
