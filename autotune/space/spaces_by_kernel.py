"""Finds the space file of a kernel among others, without reading them whole."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_KERNEL = re.compile(r"""^kernel:\s*["']?(\w+)""", re.MULTILINE)


def spaces_by_kernel(spaces: Iterable[Path]) -> dict[str, Path]:
    """Space files by the kernel that they name; the first of several for one kernel."""
    by_kernel: dict[str, Path] = {}
    for path in spaces:
        with suppress(OSError, UnicodeDecodeError):
            if match := _KERNEL.search(path.read_text(encoding="utf-8")):
                by_kernel.setdefault(match[1], path)
    return by_kernel
