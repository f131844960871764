"""What bounds a configuration, and what a device can reach."""
