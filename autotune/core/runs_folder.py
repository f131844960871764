"""The folder in which runs leave journals and profiles, and sizes as the names of its files have them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

RUNS = Path("runs")  # of the current folder


def sizes_in_name(sizes: Mapping[str, int]) -> str:
    """Sizes for a file's name: `k64-n1000`."""
    return "-".join(f"{name}{size}" for name, size in sorted(sizes.items()))
