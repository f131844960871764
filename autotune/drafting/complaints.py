"""Say in a line where a compiler refuses a default, which guesses lead there, and what helps."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.compilers.base import undefined_names
from autotune.compilers.nvidia_tools import find_tool
from autotune.compilers.source_text import missing_headers, read_source, source_text
from autotune.core.launch_plan import TRITON_TYPES
from autotune.core.text import first_error
from autotune.drafting.missing_definitions import other_definition, what_helps
from autotune.scaffold import Scaffold
from autotune.scaffold.triton_guesses import TritonGuess
from autotune.scaffold.types import KnownTypes
from autotune.sources.bare_code import WORD
from autotune.sources.dialects import CUDA
from autotune.sources.macros import words_behind
from autotune.sources.preprocessor import IfCondition, compiled_lines
from autotune.sources.triton_places import Place

_OF_TYPES = {"dtype", "type", "types", "pointer", *TRITON_TYPES, *TRITON_TYPES.values()}
_OF_THE_SOURCE = ("NameError", "AttributeError", "TypeError")
_OF_HOST = {"std", "thrust"}  # namespaces, of which kernels have parts
_SCOPE = re.compile(r"namespace|qualified name")
_SHOWN = 4
_TOO_LONG = "the compiler took more than"  # as a pool of compilers says it
_NAMED = re.compile(r"(?:error: )?([^\s:()]+)[:(](\d+)")  # the file and line of an error
_STATED = re.compile(r'^#line (\d+) "(.*)"$', re.MULTILINE)
_NEXT = re.compile(r"^\S.*\berror\b.*:", re.MULTILINE)
_INSTANCE = re.compile(r'instantiation of "[^"(\n]*?\b(\w+)[<(][^"\n]*\[with ([^\]"\n]*)\]"')


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
    helps = what_helps(made.complaint, path, read_source(path, folders).text, source.dialect, structures)
    if not helps and complaint.startswith(_TOO_LONG):
        helps = "; give all steps more time with --time SECONDS"
    complaint += helps or _remedy(made, path)
    headers = missing_headers(path, folders)
    if headers and "include_dirs" not in complaint:
        complaint += f"; not found: {', '.join(headers[:3])}: name the folder with --include"
    return complaint


def _remedy(made: Scaffold, path: Path) -> str:
    """What to do about an error of a source, by its place, as the end of a sentence; empty without one."""
    place = _place(made, path)
    if place is None:
        return ""
    compiler = (
        "" if find_tool("nvcc") else f", or write `compiler: nvcc` into {made.name}.yaml if nvcc takes it"
    )
    if not _OF_HOST.isdisjoint(WORD.findall(place.text)):
        if place.include:
            return (
                f"; {place.include} leads there, to the host's library: move the kernel into a file that "
                f"does without{compiler}"
            )
        if _SCOPE.search(first_error(made.complaint)):
            return f"; kernels do not have all of the host's library: write that line without it{compiler}"
    remedy = other_definition(made.complaint, place.text, path)
    if remedy := remedy or _template_guesses(made) or _guesses_at(place, made):
        return remedy
    if not place.include:
        return f"; correct that line{compiler if made.source.dialect == CUDA else ''}"
    return f"; {place.include} leads there: correct it, or move the kernel into a file that does without"


@dataclass(frozen=True)
class _Place:
    """A line of a source with what it includes, and the conditions around it."""

    text: str
    include: str  # the line of the source that leads to the file, as `k.cu:3`; empty for its own
    condition: IfCondition | None


def _place(made: Scaffold, path: Path) -> _Place | None:
    """Where the first error of a complaint is; None if that is not known."""
    named = _NAMED.match(first_error(made.complaint))
    whole = made.source.read.original
    if not _STATED.search(whole):  # it includes nothing
        whole = f'#line 1 "{path.name}"\n{source_text(path)}'
    files: list[tuple[str, int]] = []  # that are open, with the number of the next line
    begin, found = 0, None
    for line in whole.splitlines(keepends=True):
        begin += len(line)
        if stated := _STATED.match(line):
            file, number = stated[2], int(stated[1])
            if found is not None and file == files[0][0]:  # behind the include that leads there
                return replace(found, include=f"{file}:{number - 1}")
            while number > 1 and files and files[-1][0] != file:
                files.pop()
            files = [*(files[:-1] if number > 1 else files), (file, number)]
        elif files:
            file, number = files[-1]
            files[-1] = file, number + 1
            if found is None and named and (file, number) == (named[1], int(named[2])):
                around = (
                    one.condition for one in compiled_lines(whole) if begin - len(line) <= one.place < begin
                )
                found = _Place(line, "", next(around, None))
                if len(files) == 1:
                    break
    return found


def _template_guesses(made: Scaffold) -> str:
    """What was guessed for the kernel's template, if its first error is of this instance."""
    error = first_error(made.complaint)
    block = made.complaint[made.complaint.index(error) + len(error) :]
    following = _NEXT.search(block)
    instances = _INSTANCE.findall(block[: following.start()] if following else block)
    values = next((values for name, values in instances if name == made.kernel.name), "")
    if not values:
        return ""
    are = "are guesses" if "," in values else "is a guess"
    return f"; {values} {are}: give what your program passes, in {made.name}.yaml"


def _guesses_at(place: _Place, made: Scaffold) -> str:
    """The guessed macros and types behind a line, or the conditions around it."""
    words, around = WORD.findall(place.text), place.condition
    while around is not None:
        words += WORD.findall(around.rest)
        around = around.outer
    values = {**made.guess.launch.default, **made.kernel.types}
    guessed = {*made.kernel.types, *(macro.name for macro in made.source.macros)} & values.keys()
    behind = sorted(words_behind(words, made.source.read.code.macros) & guessed)
    are = "is a guess" if len(behind) == 1 else "are guesses"
    there = ", ".join(f"{name}={values[name]}" for name in behind)
    return f"; {there} {are}: give what your program defines, with --define" if there else ""
