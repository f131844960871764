"""What PoCL's header of built-in functions declares for one source; all of it takes longer than most kernels.

PoCL reads its 18,000 lines twice for every program, unless the header's guard is defined. With the guard
defined, the declarations that the source needs are put before it; the machine code is the same.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path

GUARD = "_OPENCL_H_"
_PACKAGE = "pocl_binary_distribution"
_VERSION = "3.0"  # of which the machine code was compared
_PLATFORM = re.compile(r"\bPoCL 3\.0(-rc\d+)? .*\bRELOC\b")
_BASE = "opencl-c-base.h"  # types and constants, which the header includes
_WORD = re.compile(r"\w+")
_LEFT_OUT = (  # comments, and the ends of lines within a directive or a declaration
    (re.compile(r"\\\n"), " "),  # first: it may end a comment's line, too
    (re.compile(r"/\*.*?\*/", re.DOTALL), " "),
    (re.compile(r"//.*"), ""),
    (re.compile(r"(?<=[,(])\s*\n"), " "),
)
# what PoCL's own headers do after this one, and the number of the source's first line in messages
_AFTERWARDS = """\
#undef FP_ILOGBNAN
#define FP_ILOGBNAN INT_MIN
#pragma OPENCL EXTENSION all : disable
#line 1
"""


class PoclHeader:
    """The header's directives, and its functions by name."""

    def __init__(self, text: str) -> None:
        """`text` is the header's, without comments."""
        lines = [line for line in map(str.strip, text.splitlines()) if line]
        self._lines = [(line, _function(line)) for line in lines]

    def prepended(self, source: str, options: Sequence[str] = ()) -> str:
        """Put the declarations of functions named here before the source; compile it with `GUARD` defined."""
        words = set(_WORD.findall(" ".join((source, *options))))
        kept: list[str] = []
        for line, function in self._lines:
            if line.startswith("#endif") and kept[-1].startswith("#if"):
                kept.pop()  # nothing is left between the two
            elif function is None or function in words:
                kept.append(line)
        return "\n".join((*kept, _AFTERWARDS)) + source


@cache
def pocl_header(platform: str) -> PoclHeader | None:
    """The header of PoCL's wheel; None for a platform of another version, whose header may differ."""
    package = find_spec(_PACKAGE)
    if package is None or package.origin is None or not _PLATFORM.search(platform):
        return None
    if metadata.version(_PACKAGE) != _VERSION:
        return None
    folder = Path(package.origin).parent / ".libs" / "share" / "pocl" / "include"
    try:
        text = f"#undef {GUARD}\n{(folder / 'opencl-c.h').read_text()}"
    except OSError:
        return None
    for pattern, replacement in _LEFT_OUT:
        text = pattern.sub(replacement, text)
    return PoclHeader(text.replace(f'"{_BASE}"', f'"{folder / _BASE}"'))


def _function(line: str) -> str | None:
    """The function that a line declares, or None."""
    return line[: line.rfind("(")].split()[-1] if line.endswith(");") else None
