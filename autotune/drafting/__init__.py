"""The first space of a kernel: drafted from its source, loaded, compiled, run, and only then called good."""
