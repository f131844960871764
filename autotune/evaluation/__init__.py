"""Compile, verify and time one configuration at a time, and write each result to the journal.

The evaluator and the worker run in the parent process, `device_process` runs in the child.
"""
