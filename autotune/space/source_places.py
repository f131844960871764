"""Where in the files of a source something stands, as `FILE:LINE`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from autotune.sources.bare_code import bare_lines
from autotune.space.space import ValidSpace

_LINE = re.compile(r'[ \t]*#[ \t]*line[ \t]+(\d+)[ \t]+"(.*)"')


def source_place(space: ValidSpace, source: str, word: str, after: str = "") -> str:
    """Where a source first has a word, as `FILE:LINE`; the `#line` of an included file counts.

    The file alone where its code does not have the word. With `after`, the word counts from the line on that
    has this other word.
    """
    is_after = not after
    for place, bare in _placed_lines(space.spec.source, source):
        is_after = is_after or re.search(rf"\b{after}\b", bare) is not None
        if is_after and re.search(rf"\b{word}\b", bare):
            return place
    return str(space.spec.source)


def _placed_lines(own: Path, source: str) -> Iterator[tuple[str, str]]:
    """Each line of a source without comments and strings behind its place, as `FILE:LINE`.

    `own` is the file, whose name is given in full; of other files, `#line` directives say the name.
    """
    file, line = own.name, 0
    code = bare_lines(source, is_python=own.suffix == ".py")
    for raw, bare in zip(source.split("\n"), code, strict=True):
        line += 1
        if marked := _LINE.match(raw):
            file, line = marked[2], int(marked[1]) - 1
        else:
            yield f"{own if file == own.name else file}:{line}", bare


def place_at(own: Path, source: str, at: int) -> str:
    """Where a letter of a source stands, as `FILE:LINE`."""
    before = sum(not _LINE.match(line) for line in source[:at].split("\n")[:-1])
    return [place for place, _ in _placed_lines(own, source)][before]
