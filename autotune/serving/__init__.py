"""The cache, and what `best_config` serves from it.

Standard library only: production code imports nothing else of autotune.
"""
