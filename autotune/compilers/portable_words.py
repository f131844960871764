"""The words of `portable.h`, and which of them stand for words of CUDA and OpenCL."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from autotune.core.packaged import packaged_folder

_DEFINITION = re.compile(r"^#define (\w+)(\([^)\n]*\))?[ \t]*(.*)$", re.MULTILINE)
_WHOLE_INDEX = "BLOCK_INDEX(x) * BLOCK_EXTENT(x) + THREAD_INDEX(x)"


def portable_for(word: str) -> str:
    """The portable form of a word of CUDA or OpenCL: `THREAD_INDEX(x) for threadIdx.x`; empty if nothing."""
    if word == "get_global_id":
        return f"{_WHOLE_INDEX} for get_global_id(0)"
    for name, parameters, body in _definitions():
        if match := re.search(rf"(?<!\w){word}(\.axis| void)?(?!\w)", body):
            return f"{name}{parameters} for {match[0]}".replace("axis", "x")
    return ""


@cache
def _definitions() -> list[tuple[str, str, str]]:
    """The name, the parameters in brackets and the body of each macro, in the order of the file."""
    text = (Path(packaged_folder("kernels")) / "portable.h").read_text(encoding="utf-8")
    return _DEFINITION.findall(text)
