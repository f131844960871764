"""The text of a source file, whatever its encoding, and what stands in raw strings of it."""

from __future__ import annotations

import re

from autotune.sources.dialects import INTRODUCER
from autotune.sources.preprocessor import blank, without_comments

_RAW = re.compile(r'R"(\w{0,16})\((.*?)\)\1"', re.DOTALL)


def decoded(data: bytes) -> str:
    """The text of a source: UTF-8, with or without a byte-order mark, else Latin-1; lines end as in Unix.

    Raises UnicodeDecodeError for what is no text.
    """
    if b"\0" in data:
        raise UnicodeDecodeError("utf-8", data, data.index(b"\0"), data.index(b"\0") + 1, "a zero byte")
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = data.decode("latin-1")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def unwrapped(text: str) -> str:
    """A source whose kernels stand in raw strings of C++, without what is around them; lines stay.

    A source with kernels outside of such strings stays as it is.
    """
    if 'R"' not in text:
        return text
    strings = [found for found in _RAW.finditer(text) if INTRODUCER.search(found[2])]
    outside = _RAW.sub(lambda found: blank(found[0]), text)
    if not strings or INTRODUCER.search(without_comments(outside)):
        return text
    kept, place = "", 0
    for found in strings:
        kept += blank(text[place : found.start(2)]) + found[2]
        place = found.end(2)
    return kept + blank(text[place:])
