"""A folder for `PYTHONPATH`: its file begins to record in every Python of a program."""
