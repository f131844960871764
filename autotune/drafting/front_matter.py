"""Write what a host program puts in front of a source: its neighbours tell what that may be."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterator, Set
from dataclasses import replace
from pathlib import Path

from autotune.compilers.base import undefined_names
from autotune.compilers.source_text import source_text
from autotune.core.text import first_error
from autotune.drafting.compiled_draft import UNLIMITED, Deadlines, compiled_scaffold
from autotune.drafting.missing_definitions import defining_files
from autotune.drafting.space_draft import KernelFile
from autotune.errors import InputError
from autotune.interop.files import write_text
from autotune.scaffold import Scaffold
from autotune.scaffold.types import KnownTypes
from autotune.sources.bare_code import definitions
from autotune.sources.branches import wanted_by
from autotune.sources.dialects import INTRODUCER, OPENCL
from autotune.sources.kernel_source import KernelSource, read_kernel_source
from autotune.sources.preprocessor import IfCondition, compiled_lines
from autotune.sources.type_layouts import UNKNOWN

_ROUNDS = 6  # of compilations: each finds what the one before was stopped by
_CONVERSION = re.compile(r"CONVERT_(\w+)")


def with_front(
    kernel: KernelFile, made: Scaffold, front: Path, deadlines: Deadlines = UNLIMITED
) -> tuple[KernelFile, Scaffold] | None:
    """Draft a space for a file `front` that has definitions and includes a source; None without any that fit.

    Each word that the source leaves to its host is what a file next to it says.
    Raises WriteError if the file cannot be written.
    """
    lines: dict[str, str] = {}
    refused: set[str] = set()
    best = None
    for _ in range(_ROUNDS):
        fresh = dict(_definitions(kernel.path, made, front, lines.keys(), refused))
        if not fresh or deadlines.tried.is_over:
            break
        lines = fresh | lines  # what another definition needs stands before it
        own = replace(kernel, path=front, front=_text(kernel.path, lines))
        write_text(front, own.front)
        try:
            made = compiled_scaffold(own, deadlines=deadlines)
        except InputError:  # of a neighbour that cannot be included
            refused |= {*fresh.values()}
            lines = {word: line for word, line in lines.items() if word not in fresh}
            continue
        if not made.complaint:
            return own, made
        if first_error(made.complaint).startswith(f"{kernel.path.name}:"):  # not of what is put before it
            best = own, made
    if best is not None:
        write_text(front, best[0].front)
    return best


def _text(source: Path, found: dict[str, str]) -> str:
    lines = dict.fromkeys(line for text in found.values() for line in text.split("\n"))
    return "\n".join(
        (
            f"// What the host program of {source.name} may put in front of it, guessed: check each line.",
            *sorted(lines, key=lambda line: "#include" in line),
            f'#include "{source.name}"\n',
        )
    )


def _definitions(
    source: Path, made: Scaffold, front: Path, known: Set[str], refused: Container[str]
) -> Iterator[tuple[str, str]]:
    """The words that nothing defines, each with a line that may define it and is not `refused`."""
    unknown = KnownTypes.of(made.source.read).unknown_structures
    functions = made.source.read.device_functions
    called = {name: count for function in functions for name, count in function.called.items()}
    missing = dict.fromkeys((*unknown, *undefined_names(made.complaint)))
    if "DTYPE" in made.source.read.types.declared and "DTYPE" not in known:  # which a space defines, too
        yield "DTYPE", "#undef DTYPE"
    for word in missing:
        if word in known or not (word in called or word in unknown):
            continue
        lines = [*_includes(word, missing.keys(), source, front, made.source.read)]
        if word in called:
            lines += _macro(word, called[word], made)
        if line := next((one for one in lines if one not in refused), ""):
            yield word, line


def _includes(word: str, missing: Set[str], source: Path, front: Path, read: KernelSource) -> Iterator[str]:
    """Includes of files next to a source that define a word, and the most of all that is missing.

    If a file does so under a condition, what that asks for is defined, as an option of a compiler does. Of
    several files, those count that have functions for what `read`, the source, passes.
    """
    candidates: dict[Path, tuple[int, IfCondition | None]] = {}
    for file in defining_files(word, source):
        text = source_text(file)
        lines = [*compiled_lines(text)]
        if file != front and not any(INTRODUCER.search(line.rest) for line in lines if not line.directive):
            parts: dict[IfCondition | None, str] = {None: ""}
            for line in lines:
                directive = f"#{line.directive} " if line.directive else ""
                parts[line.condition] = f"{parts.get(line.condition, '')}{directive}{line.rest}\n"
            own = {inner: missing & definitions(part) for inner, part in parts.items()}
            best = max(own, key=lambda inner: (word in own[inner], len(own[inner]), -len(wanted_by(inner))))
            candidates[file] = len(missing & definitions(text)), best
    most = max((count for count, _ in candidates.values()), default=0)
    chosen = [(file, inner) for file, (count, inner) in candidates.items() if count == most]
    if len(chosen) > 1:
        chosen = [(file, inner) for file, inner in chosen if _fits(source_text(file), inner, read)]
    for file, inner in chosen:
        asked = (f"#define {name} {value}" for name, value in _asked(inner).items())
        name = Path(os.path.relpath(file, source.parent)).as_posix()
        yield "\n".join((*asked, f'#include "{name}"'))


def _asked(inner: IfCondition | None) -> dict[str, str]:
    return {name: value or "1" for name, value in wanted_by(inner).items()}


def _fits(text: str, inner: IfCondition | None, read: KernelSource) -> bool:
    """True if a source calls functions of a text as they are declared, whose types it uses, too."""
    called = {name: count for function in read.device_functions for name, count in function.called.items()}
    types, used = KnownTypes.of(read), {name for function in read.device_functions for name in function.types}
    functions = [
        function
        for function in read_kernel_source(text, _asked(inner), OPENCL).functions
        if function.name in called
    ]
    return bool(functions) and all(
        len(function.parameters) == called[function.name]
        and all(
            parameter.type in used or types.layout(parameter.type)[0] != UNKNOWN
            for parameter in function.parameters
        )
        for function in functions
    )


def _macro(word: str, arguments: int, made: Scaffold) -> list[str]:
    """A macro in the place of a function in capitals: a conversion of OpenCL, else a sum; none otherwise."""
    if not (word.isupper() and arguments and made.source.dialect == OPENCL):
        return []
    if (named := _CONVERSION.fullmatch(word)) and arguments == 1:
        kind = made.kernel.types.get(named[1], named[1].lower())
        if KnownTypes.of(made.source.read).layout(kind)[0] != UNKNOWN:
            return [f"#define {word}(value) convert_{kind}(value)"]
    names = [f"value{number}" for number in range(arguments)]
    return [f"#define {word}({', '.join(names)}) ({' + '.join(f'({name})' for name in names)})"]
