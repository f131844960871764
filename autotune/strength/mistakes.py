"""A mistake that can be planted into a kernel's source, and the choice of those to plant."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.compilers.source_text import SourceText
from autotune.core import frozen
from autotune.core.records import Config
from autotune.sources.edits import TextEdit, edited
from autotune.space import place_at

BARRIER = "barrier dropped"
OFF_BY_ONE = "off by one"
GUARD = "guard dropped"
TAIL = "tail dropped"
SWAPPED = "indices swapped"
NARROW = "narrower index"
IDENTITY = "wrong initial value"
ACCUMULATION = "narrower sum"
RESET = "reset dropped"
NEIGHBOUR = "neighbour read"
PADDING = "wrong padding"
TICKET = "stale ticket"
STAGE = "wrong stage"
KINDS = (
    *(BARRIER, OFF_BY_ONE, GUARD, TAIL, SWAPPED, NARROW, IDENTITY, ACCUMULATION, RESET, NEIGHBOUR, PADDING),
    *(TICKET, STAGE),
)

# What replaces a comparison of a place with a bound: one more, and one less, is inside.
WRONG_BOUNDS = {"<": ("<=", "+ 1 <"), "<=": ("<", "<= 1 +"), ">": (">=", "> 1 +"), ">=": (">", "+ 1 >=")}


@dataclass(frozen=True)
class Mistake:
    """A mistake of one kind: `edits` of the source put it in, and `configs` compile the code with it."""

    kind: str
    edits: tuple[TextEdit, ...]
    configs: tuple[Config, ...] = ()

    def planted(self, source: SourceText) -> SourceText:
        """The source with the mistake."""
        text = edited(source.text, self.edits)
        return frozen.replace(source, text=text, sha256=hashlib.sha256(text.encode()).hexdigest())

    def place(self, source: SourceText) -> str:
        """The file and the line that it is in; the `#line` of an included file counts."""
        before = source.text[: min(self.edits).begin + 1].rstrip()
        return place_at(Path(source.path.name), source.text, len(before))

    def lines(self, source: SourceText) -> tuple[str, str]:
        """The source code that the mistake changes, and the code that replaces it."""
        start, last = min(self.edits).begin, max(edit.end for edit in self.edits)
        begin = source.text.rfind("\n", 0, start) + 1
        tail = len(source.text) - (source.text + "\n").index("\n", last)
        changed = self.planted(source).text
        whole = source.text[begin : len(source.text) - tail], changed[begin : len(changed) - tail]
        return " ".join(whole[0].split()), " ".join(whole[1].split())


def other_value(old: str) -> str:
    """A wrong value in place of a right one, which is `{0}` in it."""
    is_limit = old.startswith("-") or any(word in old for word in ("INF", "MAX", "MIN", "inf"))
    return "0" if is_limit else "1 + ({0})"


def merged(by_config: Iterable[tuple[Config, Iterable[Mistake]]]) -> list[Mistake]:
    """The mistakes of several configurations, each once, with the configurations that have it."""
    configs: dict[Mistake, list[Config]] = {}
    for config, mistakes in by_config:
        for mistake in mistakes:
            configs.setdefault(mistake, []).append(config)
    return [replace(mistake, configs=(*having,)) for mistake, having in configs.items()]


def in_turns(mistakes: Sequence[Mistake], seed: int, most: int) -> list[Mistake]:
    """At most a given number of each kind, drawn with a seed, the kinds in turns."""
    drawn = random.Random(seed).sample(mistakes, len(mistakes))
    by_kind = [[mistake for mistake in drawn if mistake.kind == kind][:most] for kind in KINDS]
    turns = range(max(map(len, by_kind), default=0))
    return [of[turn] for turn in turns for of in by_kind if turn < len(of)]
