"""Evaluates configurations: compiles, verifies and times them, and writes each result to the journal.

The evaluator and the worker run in the parent process, `device_process` in the child.
"""
