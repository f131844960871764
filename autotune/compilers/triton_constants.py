"""The constants of a Triton kernel as it takes them; needs Triton for element types only."""

from __future__ import annotations

import linecache
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def typed(function: Any, constants: Mapping[str, Any]) -> dict[str, Any]:
    """The constants of a kernel; the name of an element type is that type where the kernel uses it as one."""
    names = {name for name, value in constants.items() if isinstance(value, str)}
    if not names:
        return {**constants}
    import triton.language

    from autotune.sources.triton import element_types

    file = function.fn.__code__.co_filename
    names &= element_types("".join(linecache.getlines(file)), Path(file), function.__name__)
    return {
        name: getattr(triton.language, value, value) if name in names else value
        for name, value in constants.items()
    }
