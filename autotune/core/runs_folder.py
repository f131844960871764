"""The folder for journals and profiles of runs, and problems in the names of its files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

RUNS = Path("runs")  # of the current folder


def problem_in_name(sizes: Mapping[str, int], dtype: str, data: str) -> str:
    """A problem for a file's name, without empty parts: `k64-n1000.float32.sorted`."""
    in_order = "-".join(f"{name}{size}" for name, size in sorted(sizes.items()))
    return ".".join(filter(None, (in_order, dtype, data)))
