"""Damaged files of every kind, by the thousand: `python -m tests.fuzz` is the long form."""
