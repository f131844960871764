"""Bottlenecks of configurations, and the limits of devices."""
