"""The text of a source file, whatever its encoding, what stands in raw strings of it, and files around."""

from __future__ import annotations

import os
import re
from itertools import pairwise
from pathlib import Path

from autotune.sources.bare_code import blank, without_comments

_LEVELS = 5  # of folders above a source
_MOST_FILES = 20_000  # that are looked through
_RAW = re.compile(  # where a raw string of C++ begins, or one over several lines that a script turns into C
    r'\bu?8?R"(?P<mark>[^ ()\\\t\n]{0,16})\(|=[ \t]*"[ \t]*$', re.MULTILINE
)
_END = re.compile(r'(?:\\n)?";')  # of the second
_RAW_ENDS = re.compile(
    r'R"[^ ()\\\t\n]{0,16}\(|\)[^ ()\\\t\n]{0,16}"'
)  # what is left of one without its content

_BETWEEN = re.compile(  # two raw strings that are one
    r'\)[^ ()"]*"(?:\s+|//[^\n]*\n|/\*.*?\*/)*+(?:u8?)?R"[^ ()"]*\(', re.DOTALL
)


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


def _by_raw_strings(text: str) -> list[str]:
    """The parts of a text outside and inside of raw strings of C++, by turns; the first is outside."""
    edges, place = [0], 0
    while (opening := _RAW.search(text, place)) is not None:
        is_raw = opening["mark"] is not None
        ending = re.compile(re.escape(f'){opening["mark"]}"')) if is_raw else _END
        end = ending.search(text, opening.end())
        if end is None:
            break
        edges += [opening.end(), end.start()]
        place = end.end()
    return [text[begin:end] for begin, end in pairwise([*edges, len(text)])]


def unwrapped(text: str) -> str:
    """A source in raw strings of C++, without what is around them; lines stay.

    Only texts with kernels count, each of one string or of several that a compiler joins, unless the file has
    nothing but strings. A source with kernels outside of them stays as it is.
    """
    parts = _by_raw_strings(text)
    if len(parts) == 1:
        return text
    from autotune.sources.dialects import INTRODUCER  # few sources are in strings

    joined: list[list[int]] = []  # the places of the strings of each text
    for place in range(1, len(parts), 2):
        if joined and _BETWEEN.fullmatch(parts[place - 1]):
            joined[-1].append(place)
        else:
            joined.append([place])
    kept = {
        place for line in joined for place in line if any(INTRODUCER.search(parts[each]) for each in line)
    }
    outside = "".join(part if place % 2 == 0 else blank(part) for place, part in enumerate(parts))
    code = without_comments(outside)
    if not kept and not _RAW_ENDS.sub("", code).strip():
        kept = {*range(1, len(parts), 2)}
    if not kept or INTRODUCER.search(code):
        return text
    return "".join(part if place in kept else blank(part) for place, part in enumerate(parts))


def files_around(path: Path) -> list[Path]:
    """The files of the repository of a source, or of a few folders around it; none where there are many."""
    here = path.resolve().parent
    roots = [here, *here.parents][:_LEVELS]
    top = next((root for root in roots if (root / ".git").exists()), roots[-1])
    files: list[Path] = []
    for folder, inside, names in os.walk(top):
        inside[:] = [one for one in inside if one[0] != "."]
        files += (Path(folder, name) for name in names)
        if len(files) > _MOST_FILES:
            return []
    return files
