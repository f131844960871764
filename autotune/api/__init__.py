"""The Python interface: the same engine as the command line, for scripts and notebooks."""
