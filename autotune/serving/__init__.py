"""The cache, and `best_config`, which serves results from it.

Standard library only: production code imports nothing else of autotune.
"""
