"""What programs tune as they run: noted by `autotune record`, read by `search` and `export`."""
