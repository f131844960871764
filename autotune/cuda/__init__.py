"""NVIDIA's driver through ctypes: programs, launches, memory, streams, graphs. It decides nothing."""
