"""Files that a compiler reads beyond a source's text: their changes go unnoticed.

Most includes are part of the text. The others are in the compiler's own folders, or have a name that only the
compiler can work out, or come from the environment.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from autotune.compilers.cuda_headers import include_dirs, is_cuda_header
from autotune.core.launch_plan import reads_files
from autotune.sources.preprocessor import SourceLine

_NAME = re.compile(r'\s*+\(?\s*+(?:"([^"]+)"|<([^>]+)>)')
INCLUDES = {"include", "include_next", "import", "embed"}
_ASKS = re.compile(r"\b__has_(?:include|include_next|embed)\b(?=\s*\()")
_ASSEMBLER = re.compile(r"\.incbin\b")
_FOLDER_OPTION = re.compile(r"(?:-I|--include-path[= ]|-i(?:system|quote|dirafter)[= ]?)\s*([^\s,]+)")
# Variables with a compiler's options, and with its folders of headers.
_OPTIONS = {
    "nvcc": re.compile(r"NVCC_(?:PREPEND|APPEND)_FLAGS"),
    "opencl": re.compile(
        r"POCL_EXTRA_BUILD_FLAGS|POCL_WORK_GROUP_METHOD|AMD_OCL_BUILD_OPTIONS(?:_APPEND)?|CL_CONFIG_\w+"
    ),
}
HEADER_FOLDERS = ("CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH")


def variables_text(kind: str) -> str:
    """The environment variables that change what a compiler makes; empty but for opencl and nvcc."""
    variables = dict(_options_of_variables(kind)) if kind in _OPTIONS else {}
    if kind == "nvcc":
        variables |= {name: os.environ[name] for name in HEADER_FOLDERS if os.environ.get(name)}
    return " ".join(f"{name}={value}" for name, value in sorted(variables.items()))


def hidden_read(line: SourceLine) -> str:
    """The part of a line of C for which a compiler may read another file; empty if there is none.

    The line is compiled, certainly or perhaps, and is no include that is put in its place.
    """
    if line.directive in INCLUDES:
        return "" if _is_of_compiler(line.rest) else f"#{line.directive} {line.rest.strip()}"
    for asked in _ASKS.finditer(line.rest):
        if not _is_of_compiler(line.rest[asked.end() :]):
            return f"{asked[0]}{line.rest[asked.end() :].strip()}"
    return ".incbin" if _ASSEMBLER.search(line.rest) else ""


def _is_of_compiler(text: str) -> bool:
    """True if a header belongs to a compiler, whose version is known, and no other folder has its name."""
    header = _NAME.match(text)
    name = header and (header[1] or header[2])
    if not name or not is_cuda_header(name):
        return False
    others = {Path(), *_folders_of_variables()} - {*include_dirs()}
    return not any((folder / name).exists() for folder in others)


def _folders_of_variables() -> Iterator[Path]:
    for name in HEADER_FOLDERS:
        yield from (Path(folder) for folder in os.environ.get(name, "").split(os.pathsep) if folder)
    for _, value in _options_of_variables():
        yield from (Path(folder) for folder in _FOLDER_OPTION.findall(value))


def forced_by_variables() -> Iterator[str]:
    """Files that options in a variable name, whatever the source includes."""
    for name, value in _options_of_variables():
        left = _FOLDER_OPTION.sub(" ", value)
        if any(map(reads_files, re.split(r"[\s,]+", left))):
            yield f"{name}={value}"


def _options_of_variables(kind: str = "") -> Iterator[tuple[str, str]]:
    """The variables with options of one kind of compiler, or of all."""
    patterns = [_OPTIONS[kind]] if kind else _OPTIONS.values()
    for name, value in os.environ.items():
        if value and any(pattern.fullmatch(name) for pattern in patterns):
            yield name, value
