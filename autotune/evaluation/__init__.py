"""One configuration: compiled, verified, timed and written to the journal.

The evaluator and the worker run in the parent process; `device_process` is what runs in the child.
"""
