"""The ceilings of a device, from the caches that are read."""

from __future__ import annotations

from pathlib import Path

from autotune.hardware.ceilings import Ceiling, read_ceilings
from autotune.serving.cache import read_roots


def known_ceilings(folder: str, cache: Path | None) -> dict[str, Ceiling]:
    """What the device of a cache folder was measured to reach; the first cache that has a figure counts."""
    found: dict[str, Ceiling] = {}
    for root in reversed(read_roots(cache)):
        found |= read_ceilings(Path(root) / folder)
    return found
