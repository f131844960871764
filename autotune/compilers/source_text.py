"""Read kernel sources: inline their includes, prepend macros, hash the text.

Compilers get one text: a kernel in any folder finds `portable.h` without an include path. `#line` directives
make error messages point at the user's file.

Binaries and trials are known by the text. If a compiler also reads files that are not in the text, the text
gets a random mark at its end: then no binary and no trial of an earlier run is taken for it.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

from autotune.compilers.cuda_headers import FOR_DEVICES, is_cuda_header
from autotune.compilers.hidden_reads import INCLUDES, forced_by_variables, hidden_read
from autotune.core.escapes import c_string
from autotune.core.packaged import packaged_folder
from autotune.core.records import Value
from autotune.core.text import nearest
from autotune.errors import InputError
from autotune.sources.bare_code import without_comments
from autotune.sources.files import decoded, unwrapped
from autotune.sources.macros import UNDEFINED, MacroTable
from autotune.sources.preprocessor import IfCondition, SourceLine, compiled_lines

_TEMPLATE = re.compile(r"\btemplate\s*<((?:(?!\btemplate\b)[^{};()])*?)>")  # each letter is read once
_DECLARED = re.compile(r"\w\s+(\w+)\s*(?:=[^,]*)?(?:,|$)")
_WORD = re.compile(r"\w+")


class _NarrowType(NamedTuple):
    """A type that CUDA C++ has in a header of its toolkit only, and how a source uses it."""

    name: str
    use: re.Pattern[str]
    own_header: str
    toolkit_header: str


_NARROW = (
    _NarrowType(
        "half",
        re.compile(r"\bhalf\s*[*)]|\bhalf\s+\w+\s*[=;,)\[]"),  # the type, not a word in a comment
        "half.h",
        "cuda_fp16.h",
    ),
    _NarrowType("__nv_bfloat16", re.compile(r"\b__nv_bfloat16\b"), "bfloat16.h", "cuda_bf16.h"),
)
_HAS_NARROW = re.compile(r"#\s*include\s*[<\"](?:cuda_fp16|cuda_bf16|cuda_fp8|mma\.h|cub/|thrust/|cuda/)")
_MAY_HAVE_NARROW = re.compile(  # where the toolkit is installed
    rf"#\s*include\s*[<\"](?:cooperative_groups|(?:{'|'.join(FOR_DEVICES)})[>\"])"
)
# Pairs of halves, which OpenCL has and CUDA's toolkit defines; a source may define its own.
_PAIRS = re.compile(r"\bhalf2\s*[*&)]|\bhalf2\s+\w+\s*[=;,()\[]")
_OWN_PAIRS = re.compile(
    r"\b(?:struct|union|class|using)\s+half2\b|\}\s*half2\s*;|\btypedef\b(?:(?!\btypedef\b)[^;{}])*\bhalf2\s*;|"
    r"#[ \t]*define[ \t]+half2\b"
)
_PAIRS_HEADER = "#ifndef __OPENCL_VERSION__\n#include <cuda_fp16.h>\n#endif\n"
_PORTABLE = ("portable.h", "portable_reduce.h")
_HEADER = r'(?:"([^"\n]+)"|<([^>\n]+)>)'
_HAS_INCLUDE = re.compile(rf"\b__has_include[ \t]*\([ \t]*{_HEADER}[ \t]*\)")
_KEEPS_ORDER = re.compile(r"cluster|sub_group|grid_group")
# A comment is read in one way only, and what was read is not tried again: the time is linear.
_GUARD = re.compile(
    r"\A(?:\s|//[^\n]*+|(?>/\*.*?\*/))*+#[ \t]*ifndef[ \t]+(\w+)\s*\n[ \t]*#[ \t]*define[ \t]+\1\b",
    re.DOTALL,
)
_ONCE = re.compile(r"^[ \t]*#[ \t]*pragma[ \t]+once\b[^\n]*$", re.MULTILINE)
_READS = re.compile("include|import|embed|incbin")  # a word of every line for which a file may be read
_CONDITION = re.compile(r"^[ \t]*(?:#|%:|\?\?=)[ \t]*if", re.MULTILINE)


@dataclass(frozen=True)
class SourceText:
    """A source file with its includes resolved; `sha256` is of that text.

    `hidden` names something that a compiler reads besides the text, and `mark` is then the random end of the
    text; both are empty if there is nothing.
    """

    path: Path
    text: str
    sha256: str
    hidden: str = ""
    mark: str = ""

    @cached_property
    def template_parameters(self) -> frozenset[str]:
        """The names that its templates declare."""
        lists = _TEMPLATE.findall(without_comments(self.text))
        return frozenset(name for parameters in lists for name in _DECLARED.findall(parameters))

    @cached_property
    def words(self) -> frozenset[str] | None:
        """The names and numbers of its code; None if a compiler reads more than this text."""
        words = frozenset(_WORD.findall(without_comments(self.text)))
        return None if self.hidden or words & INCLUDES else words

    @cached_property
    def narrow_types(self) -> Mapping[str, str]:
        """The text that defines each narrow type for this source, by the type's name."""
        if _HAS_NARROW.search(self.text):
            return {narrow.name: f"#include <{narrow.toolkit_header}>\n" for narrow in _NARROW}
        own = {narrow.name: _own_header(narrow.own_header) for narrow in _NARROW}
        if _MAY_HAVE_NARROW.search(self.text):
            include = "#if __has_include(<{0}>)\n#include <{0}>\n#endif\n"
            own = {
                narrow.name: include.format(narrow.toolkit_header) + own[narrow.name] for narrow in _NARROW
            }
        return {**own, "half": _PAIRS_HEADER + own["half"]} if self._has_pairs else own

    @cached_property
    def used_narrow_types(self) -> frozenset[str]:
        """The names of the narrow types that it uses."""
        used = {narrow.name for narrow in _NARROW if narrow.use.search(self.text)}
        return frozenset(used | {"half"} if self._has_pairs else used)

    @property
    def _has_pairs(self) -> bool:
        """True if it uses its language's pairs of halves."""
        return _PAIRS.search(self.text) is not None and not _OWN_PAIRS.search(self.text)

    @cached_property
    def is_triton(self) -> bool:
        """True if it has kernels in Triton."""
        if self.path.suffix != ".py":
            return False
        from autotune.sources.triton_module import is_triton

        return is_triton(self.text)


def packaged(folder: str) -> Path:
    """A data folder that comes with autotune: kernels, spaces or cache."""
    return Path(packaged_folder(folder))


def source_of_text(text: str, name: str, mark: str = "") -> SourceText:
    """A source that is not a file, but has the name of one; its includes are searched in the current folder.

    `mark` is that of another configuration's text, with which it was read. Raises InputError for a missing
    include.
    """
    reader = _Reader()
    if not name.endswith(".py"):
        text = reader.place(text, Path(name))
        reader.require_all()
    return _source(Path(name), text, reader.hidden, mark)


def include_dir() -> str:
    """The folder of `portable.h`, for the include path of a production build."""
    return packaged_folder("kernels")


def read_source(path: Path, include_dirs: Sequence[Path] = ()) -> SourceText:
    """Read a kernel file and inline what it includes from its own folder or from `include_dirs`.

    Raises InputError when it or one of its includes cannot be read, and when it is empty.
    """
    if not source_text(path).strip():
        raise InputError(
            f"{path}: the file is empty; write the kernel in it, or name another file as the source"
        )
    reader = _Reader((*include_dirs,))
    text = reader.read(path)
    reader.require_all()
    return _source(path, text, reader.hidden)


def _source(path: Path, text: str, hidden: str, mark: str = "") -> SourceText:
    """A source by its resolved text, with a mark at its end if a compiler reads more than that."""
    comment, digest = "//", ""
    if path.suffix == ".py":
        from autotune.core.own_modules import own_modules

        imported = own_modules(text, path)
        comment, hidden, digest = "#", imported.hidden, imported.digest
    if hidden:
        mark = mark or f"\n{comment} read as {os.urandom(16).hex()}\n"
    else:
        mark = f"\n{comment} with modules {digest}\n" if digest else ""
    text += mark
    return SourceText(path, text, hashlib.sha256(text.encode()).hexdigest(), hidden, mark)


def missing_headers(path: Path, include_dirs: Sequence[Path] = ()) -> tuple[str, ...]:
    """The headers that a kernel file includes and that neither its folders nor a CUDA compiler has."""
    reader = _Reader((*include_dirs,))
    reader.read(path)
    return tuple(dict.fromkeys(include.name for include in reader.missing))


class _Missing(NamedTuple):
    """An include of a header that is nowhere."""

    name: str
    is_quoted: bool
    file: Path
    line: int


class _Reader:
    """Inlines includes: a file once, at its first include that is compiled for certain.

    Compilers' own headers stay. So do headers that are not found, which are `missing`, and includes that are
    never compiled. `hidden` is something that a compiler reads besides what is inlined.
    """

    def __init__(self, folders: tuple[Path, ...] = ()) -> None:
        self.missing: list[_Missing] = []
        self._folders = folders
        self.hidden = next(forced_by_variables(), "")
        self._macros = MacroTable({}, is_whole=False)
        self._put_off: list[tuple[str, str, IfCondition | None]] = []  # guard, code, and what it is within
        self._placed: set[Path] = set()
        self._open: list[Path] = []

    def read(self, path: Path, within: IfCondition | None = None) -> str:
        text = source_text(path)
        if path.suffix == ".py":
            from autotune.sources.triton_module import is_triton, triton_part

            return triton_part(text, path, self._folders) if is_triton(text) else text
        return self.place(text, path, within)

    def place(self, text: str, path: Path, within: IfCondition | None = None) -> str:
        text = _HAS_INCLUDE.sub(lambda match: self._has_include(match, path), text)
        code = without_comments(text)
        guard = _GUARD.search(text) if within is None else None
        self._open.append(path.resolve())
        if within is None:
            self._placed.add(path.resolve())
        parts = [f"{_line_directive(1, path)}\n"]
        copied = 0  # so much of the text
        stated_in = within  # the branch of the last `#line`, which counts only if that branch is compiled
        for line in self._lines(code, guard[1] if guard else "", within):
            body = None
            begin = code.rfind("\n", 0, line.place) + 1
            if stated_in is not within and all(branch is not stated_in for branch in _around(line)):
                directive = _line_directive(text.count("\n", 0, begin) + 1, path)
                parts += [text[copied:begin], f"{directive}\n"]
                stated_in, copied = line.condition, begin
            if line.directive == "include":
                body = self._included(line, path, text.count("\n", 0, line.place) + 1)
            if body is None:
                self.hidden = self.hidden or hidden_read(line)
                continue
            end = code.find("\n", line.place)
            parts += [text[copied:begin], body]
            copied = end if end >= 0 else len(text)
            stated_in = line.condition
        placed = "".join((*parts, text[copied:]))
        self._open.pop()
        return _guarded(placed) if self._open and _ONCE.search(placed) else placed

    def _lines(self, code: str, guard: str, within: IfCondition | None) -> Iterator[SourceLine]:
        """The lines that are compiled, up to the last one for which a file may be read.

        The rest tells only of macros. It is put off until these count: in most sources no condition decides
        about an include, and no parser is needed.
        """
        reads = [match.end() for match in _READS.finditer(code)]
        end = f"{code}\n".index("\n", reads[-1]) if reads else 0
        if _CONDITION.search(code, 0, end):
            end = len(code)
            self._put_off.append((guard, "", None))
            self._catch_up()
        for line in compiled_lines(code[:end], self._macros, within):
            is_plain = line.directive == "include" and line.rest.startswith(('"', "<"))
            if line.directive and not is_plain:
                self._catch_up()
            yield line
        self._put_off.append((guard, code[end:], within))

    def _catch_up(self) -> None:
        """Follow the macros of what was put off."""
        for guard, code, within in self._put_off:
            if guard:
                self._macros.setdefault(guard, UNDEFINED)
            for _ in compiled_lines(code, self._macros, within):
                pass
        self._put_off.clear()

    def _included(self, line: SourceLine, path: Path, number: int) -> str | None:
        """The text in place of an include; None for one that is left to the compiler."""
        macro = self._macros.get(line.rest.strip())
        written = macro.bodies[0] if macro is not None and macro.is_sure else line.rest
        header = re.match(_HEADER, written)
        if header is None:
            return None
        name, is_quoted = header[1] or header[2], header[1] is not None
        target = self._find(name, path, is_quoted=is_quoted)
        if target is None:
            if line.is_certain and not is_cuda_header(name):
                self.missing.append(_Missing(name, is_quoted, path, number))
            if macro is None:
                return None
            self.hidden = self.hidden or hidden_read(line._replace(rest=written))
            return f"#include {header[0]}"
        is_there = target.resolve() in {*self._placed, *self._open}
        body = "" if is_there else self.read(target, None if line.is_certain else line.condition)
        return f"{body}\n{_line_directive(number + 1, path)}"

    def _has_include(self, match: re.Match[str], path: Path) -> str:
        """The value of `__has_include` of a header; a compiler's own header is left to it."""
        name, is_quoted = match[1] or match[2], match[1] is not None
        is_found = self._find(name, path, is_quoted=is_quoted) is not None
        return match[0] if is_cuda_header(name) and not is_found else str(int(is_found))

    def require_all(self) -> None:
        """Raise InputError for a missing header in quotes; one in angle brackets may be the compiler's."""
        for name, is_quoted, file, line in self.missing:
            if is_quoted:
                places = (*self._folders, packaged("kernels"))
                near = nearest(name, (other.name for folder in places for other in folder.glob("*.h*")))
                raise InputError(
                    f'{file}:{line}: #include "{name}": no such file in {file.parent} or '
                    f"{' or '.join(map(str, places))}{near}; {'otherwise ' if near else ''}"
                    "add the header's folder to include_dirs in the space file, or name it to `autotune new` "
                    "with --include"
                )

    def _find(self, name: str, including: Path, *, is_quoted: bool) -> Path | None:
        folders = (including.parent, *self._folders, packaged("kernels")) if is_quoted else self._folders
        return next((folder / name for folder in folders if (folder / name).is_file()), None)


def source_text(path: Path) -> str:
    """The text of a kernel file; raises InputError where there is none."""
    try:
        text = decoded(path.read_bytes())
    except OSError as error:
        near = nearest(path.name, (file.name for file in path.parent.glob("*.c[ul]")))
        raise InputError(
            f"{path}: cannot be read: {error.strerror}; expected a kernel source{near}"
        ) from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: is not a text file; expected a kernel source") from None
    return text if path.suffix == ".py" else unwrapped(text)


def _around(line: SourceLine) -> Iterator[IfCondition]:
    """The branches that a line is in."""
    inner = line.condition
    while inner is not None:
        yield inner
        inner = inner.outer


def _guarded(text: str) -> str:
    """Replace `#pragma once`, which has no effect on inlined text, by an include guard."""
    name = f"AUTOTUNE_ONCE_{hashlib.sha256(text.encode()).hexdigest()[:12]}"
    return f"#ifndef {name}\n#define {name}\n{_ONCE.sub('', text)}\n#endif"


def _line_directive(number: int, path: Path) -> str:
    """Tells a compiler that the next line is that line of a file."""
    return f"#line {number} {c_string(path.name)}"


def render(source: SourceText, macros: Mapping[str, Value]) -> str:
    """The text a compiler gets: a definition per macro, narrow types where they are used, then the source.

    A source in Triton stays as it is: its kernels take the values as constants.

    A macro with the name of a template parameter of the source is left out: it would replace that parameter,
    whose value the launch plan's entry gives. A macro that nothing reads is left out as well: configurations
    that differ in their launches alone are then compiled once.
    """
    if source.is_triton:
        return source.text
    if source.path.suffix == ".py":
        values = {name: value if value in macros else repr(value) for name, value in macros.items()}
        head = "".join(f"{name} = {value}\n" for name, value in values.items())
    else:
        used = {*source.used_narrow_types, macros.get("DTYPE")}
        types = "".join(source.narrow_types[narrow.name] for narrow in _NARROW if narrow.name in used)
        left_out = source.template_parameters | (set() if types else _unread(source, macros))
        head = "".join(f"#define {name} {value}\n" for name, value in macros.items() if name not in left_out)
        head += types
    return head + source.text


def _unread(source: SourceText, macros: Mapping[str, Value]) -> set[str]:
    """The macros that neither the source nor another macro reads; reserved names are left to the compiler."""
    if source.words is None:
        return set()
    words = source.words.union(*(_WORD.findall(str(value)) for value in macros.values()))
    unnamed = (name for name in macros if name not in words and not name.startswith("_"))
    return {name for name in unnamed if not _can_be_pasted(name, words)}


def _can_be_pasted(name: str, words: frozenset[str]) -> bool:
    """True if a name is several words in a row, from which `##` can make it; any number is a word."""
    ends = [0]
    for end in range(1, len(name) + 1):
        parts = (name[begin:end] for begin in ends)
        if any(part in words or part.isdigit() for part in parts):
            ends.append(end)
    return ends[-1] == len(name)


def perturbed(text: str, seed: int) -> str:
    """The rendered text of a CUDA or OpenCL source, with blocks and threads in another order: see perturb.h.

    Threads and blocks keep their places, and only wait, in a source whose threads form groups by them; what
    `portable.h` makes of its words is its own business.
    """
    own_words = text
    for name in _PORTABLE:
        own_words = own_words.replace(_own_header(name), "")
    order = int(_KEEPS_ORDER.search(own_words) is None)
    head = f"#define AUTOTUNE_PERTURB {seed}\n#define AUTOTUNE_PERTURB_ORDER {order}\n"
    return head + _own_header("perturb.h") + text


def _own_header(name: str) -> str:
    """The text of a header that comes with autotune."""
    return _Reader().read(packaged("kernels") / name) + "\n"
