"""Kernel Tuner's interface to this tuner: change the import, keep the script."""
