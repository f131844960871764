"""Say in a line where a compiler refuses a default, which guesses lead there, and what helps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from autotune.compilers.base import undefined_names
from autotune.compilers.source_text import missing_headers, source_text
from autotune.core.launch_plan import TRITON_TYPES
from autotune.core.text import first_error
from autotune.drafting.missing_definitions import what_helps
from autotune.scaffold import Scaffold
from autotune.scaffold.triton_guesses import TritonGuess
from autotune.scaffold.types import KnownTypes
from autotune.sources.bare_code import WORD
from autotune.sources.macros import words_behind
from autotune.sources.preprocessor import compiled_lines
from autotune.sources.triton_places import Place

_OF_TYPES = {"dtype", "type", "types", "pointer", *TRITON_TYPES, *TRITON_TYPES.values()}
_OF_THE_SOURCE = ("NameError", "AttributeError", "TypeError")
_SHOWN = 4


def refused_triton(said: str, place: Place | None, guess: TritonGuess, space: str) -> str:
    """What Triton says in a line, with its place and what to do; `space` is the file of the guesses."""
    if place is None:
        return said
    line = f"{place}: {place.said}"
    if "; " in place.reason:  # it has advice already
        return line
    if guessed := _guessed(place, guess):
        return f"{line}; {guessed} guessed: give what your program passes, in {space}, or correct the line"
    return f"{line}; correct that line, or install the Triton that it was written for"


def _guessed(place: Place, guess: TritonGuess) -> str:
    """The guesses that a line depends on, as the subject of a sentence; empty without one."""
    reached, reason = place.parameters(guess.kernel.entry), place.reason
    if not _OF_TYPES.isdisjoint(WORD.findall(reason)):
        arrays = sorted(reached & guess.kernel.roles.keys() - guess.kernel.made.keys())
        return f"the dtype of {_listed(arrays)} is" if arrays else ""
    if reason.startswith(_OF_THE_SOURCE):
        return ""
    known = {**guess.sizes, **guess.default}
    names = {*guess.unsure, *guess.fixed}
    values = [f"{name}={known[name]}" for name in sorted(reached & names & known.keys())]
    return f"{_listed(values)} {'are' if values[1:] else 'is'}" if values else ""


def _listed(names: Iterable[str]) -> str:
    """Names for a sentence, the first few of many."""
    *others, last = [*names][:_SHOWN]
    return f"{', '.join(others)} and {last}" if others else last


def refused_c(made: Scaffold, path: Path, folders: Sequence[Path]) -> str:
    """What a compiler says of a source in C, without what only follows from that; empty if it takes it."""
    source, complaint = made.source, first_error(made.complaint)
    if not complaint:
        return ""
    missed = {*made.kernel.types, *undefined_names(made.complaint)}  # other structures are the toolkit's
    structures = [one for one in KnownTypes.of(source.read).unknown_structures if one in missed]
    if structures:  # an error about what stands in for them says nothing
        complaint = f"nothing defines the {'types' if structures[1:] else 'type'} {', '.join(structures[:3])}"
    helps = what_helps(made.complaint, path, source.read.original, source.dialect, structures)
    complaint += helps or _guesses_there(complaint, made, path)
    headers = missing_headers(path, folders)
    if headers and "include_dirs" not in complaint:
        complaint += f"; not found: {', '.join(headers[:3])}: name the folder with --include"
    return complaint


def _guesses_there(complaint: str, made: Scaffold, path: Path) -> str:
    """The guessed macros and types behind the line of a complaint, or the conditions around it."""
    named = re.match(rf"{re.escape(path.name)}[:(](\d+)", complaint)
    text = source_text(path)
    lines = text.splitlines(keepends=True)
    if named is None or not 0 < int(named[1]) <= len(lines):
        return ""
    line = lines[int(named[1]) - 1]
    place = sum(map(len, lines[: int(named[1]) - 1]))
    words = WORD.findall(line)
    around = next(
        (one.condition for one in compiled_lines(text) if place <= one.place < place + len(line)), None
    )
    while around is not None:
        words += WORD.findall(around.rest)
        around = around.outer
    values = {**made.guess.launch.default, **made.kernel.types}
    guessed = {*made.kernel.types, *(macro.name for macro in made.source.macros)} & values.keys()
    behind = sorted(words_behind(words, made.source.read.code.macros) & guessed)
    are = "is a guess" if len(behind) == 1 else "are guesses"
    there = ", ".join(f"{name}={values[name]}" for name in behind)
    return f"; {there} {are}: give what your program defines, with --define" if there else ""
