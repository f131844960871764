"""Say what to do about a function or type that a source lacks: another file or device may have it."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from autotune.compilers.base import undefined_names
from autotune.compilers.host_code import device_part
from autotune.core.c_types import SCALARS
from autotune.core.text import first_error
from autotune.sources.bare_code import bare_code, definitions
from autotune.sources.branches import wanted_by
from autotune.sources.dialects import OPENCL
from autotune.sources.files import files_around
from autotune.sources.macros import definition
from autotune.sources.preprocessor import compiled_lines

_SOURCES = frozenset((".c", ".cl", ".clh", ".cu", ".cuh", ".h", ".hpp", ".inc", ".opencl"))
_MAX_BYTES = 1_000_000  # of a file that is searched
_EXTENSIONS = (  # of OpenCL, by what compilers say of a device without them
    (re.compile(r"'intel_\w+'"), "the extension of Intel that has it"),
    (re.compile(r"\b(?:get_)?(?:intel_)?sub_group_|\bget_\w*sub_group|cl_\w+_subgroups"), "cl_khr_subgroups"),
    (re.compile(r"cl_khr_fp16"), "cl_khr_fp16"),
    (
        re.compile(r"cl_khr_int64_base_atomics|\batom_(?:add|sub|xchg|inc|dec|cmpxchg)\b"),
        "cl_khr_int64_base_atomics",
    ),
    (
        re.compile(r"cl_khr_int64_extended_atomics|\batom_(?:min|max|and|or|xor)\b"),
        "cl_khr_int64_extended_atomics",
    ),
)
_OF_A_VENDOR = re.compile(r"unsupported OpenCL extension '(cl_(?!khr|ext)\w+)'")
_OF_HOST = re.compile(r'calling a (?:constexpr )?__host__ function\("?([^"(]+)')
_OTHER_ARGUMENTS = re.compile(r"too (?:few|many) arguments|no instance of")
_LINKED = re.compile("[Uu]nresolved extern|Undefined reference")
_CALLED = re.compile(r"(\w+)\s*\(")
_ASSEMBLY = re.compile(r"\bin asm\b|'asm'")


def what_helps(complaint: str, source: Path, text: str, dialect: str, types: Sequence[str] = ()) -> str:
    """The remedy for a compiler's complaint, as the end of a sentence; empty if unknown.

    `text` is the source with what it includes, and `types` are names of structures that it does not define.
    """
    if complaint.startswith("the compiler crashed"):
        return "; a fault of this device's compiler: name another device with --device of autotune search"
    if dialect == OPENCL and (extension := _extension(complaint)):
        return f"; it needs a device with {extension}: name one with --device of autotune search"
    if "cudaDeviceSynchronize" in undefined_names(complaint):
        return (
            "; since CUDA 12 no kernel waits for those that it launches: leave that out, and launch what has "
            "to come after them into cudaStreamTailLaunch"
        )
    if of_host := _OF_HOST.search(first_error(complaint)):
        return f"; kernels cannot call {of_host[1]}: write __device__ before it, or call another function"
    if _ASSEMBLY.search(first_error(complaint)):
        return "; it is in the assembly of another device: search on that one, or write it in C"
    code = bare_code(text)
    unknown = undefined_names(first_error(complaint))  # others may follow from the first error
    called = [word for word in unknown if re.search(rf"\b{word}\s*\(", code)]
    missing = next((word for word in (*types, *called) if word not in SCALARS), "")
    if missing and (asked := _asked_for(missing, text)):
        return f"; {missing} is there with {' '.join(f'--define {definition}' for definition in asked)}"
    if includer := next((file for file in _neighbours(source) if _includes(file, source)), None):
        name = os.path.relpath(includer, source.parent)
        return f"; {name} includes it, so it may define what is missing: give that to autotune new"
    if not missing:
        return f"; if the host defines {unknown[0]}: --define {unknown[0]}=VALUE" if unknown else ""
    place = f"at the top of {source.name}"
    names = [os.path.relpath(file, source.parent) for file in defining_files(missing, source)]
    if len(names) > 1:
        return f"; {' and '.join(names[:3])} define {missing}: write an #include of the right one {place}"
    if names:
        return f'; {names[0]} defines {missing}: write #include "{names[0]}" {place}'
    if missing in called and missing in definitions(text):
        if _LINKED.search(first_error(complaint)):  # a part of a type
            return f"; another file has code of {missing}: write #include of that {place}"
        if dialect == OPENCL or missing in definitions(device_part(text)):
            return (
                f"; {missing} is defined below that line or in a namespace: declare it above, or write the "
                "namespace before it"
            )
        return (
            f"; {missing} is a function of the host: write __device__ before it, or leave out what calls it"
        )
    nowhere = f"; no file around {source.name} defines {missing}"
    if missing in called and missing.isupper():
        return f"{nowhere}, which the host may give: write #define {missing}(...) {place}"
    return f"{nowhere}: write it, or #include the file that does, {place}"


def other_definition(complaint: str, line: str, source: Path) -> str:
    """The remedy for a call with other arguments than its function has, by a neighbour with one of its name.

    `line` is that of the complaint; the remedy is the end of a sentence, and empty without such a neighbour.
    """
    for word in _CALLED.findall(line) if _OTHER_ARGUMENTS.search(first_error(complaint)) else ():
        if files := defining_files(word, source):
            name = os.path.relpath(files[0], source.parent)
            return f'; {name} defines {word}, too: write #include "{name}" at the top of {source.name}'
    return ""


def _asked_for(name: str, text: str) -> list[str]:
    """What conditions around a definition in a source ask of its host, as NAME=VALUE; empty without one."""
    for line in compiled_lines(text):
        defined = definition(line.rest) if line.directive == "define" else None
        if defined is not None and defined[0] == name and (asked := wanted_by(line.condition)):
            return [f"{macro}={value or '1'}" for macro, value in asked.items()]
    return []


def _includes(file: Path, source: Path) -> bool:
    """True if a file includes a source, other than the one that was written for that."""
    text = _text(file) if file.stem != f"{source.stem}_front" else ""
    lines = compiled_lines(text) if source.name in text else ()
    return any(
        line.directive == "include" and Path(line.rest.strip().strip('"<>')).name == source.name
        for line in lines
    )


def defining_files(name: str, source: Path) -> list[Path]:
    """The files next to a source which define a word; if none does, those of the same kind further away."""
    near = [file for file in _neighbours(source) if _defines(name, file)]
    further = (file for file in _of_its_kind(source) if not near and _defines(name, file))
    return near or [*further]


@cache
def _of_its_kind(source: Path) -> tuple[Path, ...]:
    files = (file for file in files_around(source) if file.suffix == source.suffix)
    return tuple(file for file in files if file != source.resolve() and _is_readable(file))


def _extension(complaint: str) -> str:
    """The extension that a device lacks, by the first error or, if it names none, by any; empty without."""
    for text in (first_error(complaint), complaint):
        for words, extension in _EXTENSIONS:
            if words.search(text):
                return extension
    unsupported = _OF_A_VENDOR.search(complaint)
    return unsupported[1] if unsupported else ""


def _neighbours(source: Path) -> list[Path]:
    """The other sources in the folder of a source, in folders of that, and in the one around it."""
    files = (file for pattern in ("*", "*/*", "../*") for file in sorted(source.parent.glob(pattern)))
    return [file for file in files if file != source and file.suffix in _SOURCES and _is_readable(file)]


def _is_readable(file: Path) -> bool:
    return file.is_file() and file.stat().st_size <= _MAX_BYTES


def _defines(name: str, file: Path) -> bool:
    """True if a file defines a function, a macro or a type; one that cannot be read defines none."""
    text = _text(file)
    return name in text and name in definitions(text)


@cache
def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
