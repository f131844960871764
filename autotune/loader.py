"""`best_config`: which of the cached configurations to serve, with every fallback declared.

This module owns the tiers and their order, and the memo that makes a repeated look-up cheap. It reads
cache files only: no space file, no device.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import hypot, log2
from typing import Any

from autotune import cache as files
from autotune.best import Best, check, require_sizes, size_text
from autotune.cache import Folder
from autotune.errors import ExpressionError, InputError, NoConfig
from autotune.model import Config, DeviceInfo, Entry, KernelRecord, Match, Sizes, Tier
from autotune.plan import C_TYPES

Device = str | DeviceInfo | None
_Stamp = tuple[int, int, int] | None  # of a file as it was when it was read; None: there was none
_MEMO_LIMIT = 10_000  # a program with ever new sizes must not grow without bound

_memo: dict[tuple[Any, ...], tuple[tuple[tuple[str, _Stamp], ...], Best]] = {}
_parsed: dict[str, tuple[_Stamp, Any]] = {}


def best_config(
    kernel: str,
    device: Device = None,
    *,
    dtype: str | None = None,
    strict: bool = False,
    cache: Folder | None = None,
    **sizes: int,
) -> Best:
    """Serve the best known configuration of a kernel for a device and a problem; `match` says how well it fits.

    `device` is a name, a slug or a DeviceInfo; None: the only one with results for this kernel. `dtype` None:
    the first one recorded, in alphabetical order. No sizes: those of the device's only result. The tiers are
    EXACT (this device, these sizes), NEAREST_SIZE (this device, the nearest sizes in log2 space per
    dimension) and DEFAULT (the space's default); whatever is served satisfies the kernel's constraints for the
    device and the sizes asked for. `strict` serves EXACT only.

    Raises NoConfig, listing what exists, when nothing may be served; InputError for unknown or missing sizes
    or an unknown dtype; CacheError for a damaged file.
    """
    key = (kernel, device, dtype, strict, cache, os.environ.get(files.VARIABLE), *sizes.items())
    try:
        known = _memo.get(key)
    except TypeError:
        raise InputError(f"kernel, device, dtype and sizes: expected plain values, found {key!r}") from None
    if known is not None:
        for path, stamp in known[0]:
            if _stamp(path) != stamp:
                break
        else:
            return known[1]
    shelf = _Shelf()
    best = _look_up(shelf, kernel, device, dtype, strict, cache, sizes)
    if len(_memo) >= _MEMO_LIMIT:
        _memo.clear()
    _memo[key] = (tuple(shelf.stamps.items()), best)
    return best


def _stamp(path: str) -> _Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
