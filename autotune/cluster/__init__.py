"""Devices elsewhere as slots of the evaluator, through Dask."""
