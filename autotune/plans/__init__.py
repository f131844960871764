"""Many searches: plans of several problems, sweeps of sizes, and stored results that are checked again."""
