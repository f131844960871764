"""Runs that find mistakes which verified results do not show: under sanitizers, and beyond 2^31 elements."""
