"""Read formulas of whole numbers without their casts."""

from __future__ import annotations

import re

_TYPE = r"(?:u?int(?:\d+_t)?|u?long|u?short|unsigned|(?:std::)?size_t)"
_WHOLE = rf"(?:const\s+)?(?:unsigned\s+|signed\s+|long\s+)*{_TYPE}"
_CAST = re.compile(rf"(?<!sizeof)\(\s*{_WHOLE}\s*\)|\bstatic_cast\s*<\s*{_WHOLE}\s*>")


def without_casts(text: str) -> str:
    """A text in C without its casts to whole numbers."""
    return _CAST.sub("", text)
