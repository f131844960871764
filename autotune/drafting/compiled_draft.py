"""A first space whose default compiles.

What a source leaves to its user is found by compiling: what the compiler does not know becomes a parameter or
a type of the space.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from math import floor, prod
from pathlib import Path

from autotune.compilers.base import undefined_names
from autotune.compilers.binary_cache import default_folder
from autotune.compilers.host_code import device_part
from autotune.compilers.known_compilers import cuda_compiler
from autotune.compilers.nvidia_tools import find_tool
from autotune.compilers.source_text import SourceText, read_source, render, source_text
from autotune.core.launch_plan import entry_name, macros
from autotune.core.records import Parameter
from autotune.core.text import first_error
from autotune.core.trials import Failure
from autotune.devices import Address
from autotune.devices.listing import find_devices
from autotune.drafting.missing_definitions import what_helps
from autotune.drafting.space_draft import ARCHITECTURE, KernelFile
from autotune.errors import InputError, MissingExtra
from autotune.evaluation.compiler_pool import CompilerPool, CompilerSetting, cuda_setting, device_setting
from autotune.processes.deadline import Deadline
from autotune.scaffold import Assumptions, Scaffold, scaffold
from autotune.scaffold.reading import USUAL
from autotune.sources.bare_code import WORD
from autotune.sources.branches import wanted_by
from autotune.sources.dialects import CUDA, INTRODUCER, OPENCL, dialect_of
from autotune.sources.kernel_source import KernelSource, read_kernel_source
from autotune.sources.macros import words_behind
from autotune.sources.preprocessor import compiled_lines

_ATTEMPTS = 4  # to find what the source leaves to its user
_BRANCHES, _SWITCHES = 8, 2  # that are read, and that are compiled
_NEWER = {  # options for variables in global memory and functions of groups, and for concepts
    OPENCL: "-cl-std=CL2.0",
    CUDA: "--std=c++20",
}
_ERROR = "error:"
_TIMEOUT_S, _LEAST_S = 120.0, 1.0
_MOST_CONFIGURATIONS = 1_000_000  # before constraints
_PORTABLE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*[\"<]portable\.h", re.MULTILINE)


@dataclass(frozen=True)
class Deadlines:
    """When no further guess is tried any more, and when a compiler is stopped."""

    tried: Deadline
    compiled: Deadline

    @property
    def compiler_s(self) -> float:
        """The time limit of a compiler that starts now."""
        return max(_LEAST_S, floor(self.compiled.left_s(_TIMEOUT_S)))


UNLIMITED = Deadlines(Deadline(), Deadline())


def compiled_scaffold(
    kernel: KernelFile, assumed: Assumptions = USUAL, deadlines: Deadlines = UNLIMITED
) -> Scaffold:
    """Write a space whose default compiles; the complaint is empty without a compiler, too.

    A template that no floating-point type fits is tried with whole numbers, and a word that a branch of the
    source defines which is left out with that branch. Raises InputError if it is no kernel's source or an
    include is missing.
    """
    assumed = replace(assumed, defined=kernel.definitions)
    made = _without_unknown_words(kernel, assumed, deadlines)
    if not made.complaint:
        return made
    others = [replace(assumed, generic="int")] if "DTYPE" in made.kernel.entry else []
    others += [replace(assumed, defined=(*assumed.defined, *switch)) for switch in _switches(made)]
    if any(item.default == 1 for item in made.guess.launch.parameters):
        others.append(replace(assumed, is_large=True))
    for assumption in others:
        if deadlines.tried.is_over:
            break
        with suppress(InputError):  # with these definitions it has no kernel
            other_made = _without_unknown_words(kernel, assumption, deadlines)
            if not other_made.complaint:
                return other_made
    return made


def with_nvcc(kernel: KernelFile, made: Scaffold, deadline: Deadline) -> Scaffold:
    """A space for nvcc, which has the host's headers, if it compiles the default, or says more than NVRTC.

    That is more of an error in a header, which may only need the host's library, and of one in the source,
    of which NVRTC may have got a part. What was assumed for NVRTC counts only where nvcc does not take the
    source as it is.
    """
    is_of_toolkit = "pip install" in made.complaint  # a header that nvcc would lack, too
    if made.source.dialect != CUDA or is_of_toolkit or find_tool("nvcc") is None:
        return made
    plain = plain_scaffold(kernel, replace(USUAL, defined=kernel.definitions))
    other = made
    for draft in (plain, made):
        limit_s = floor(deadline.left_s(_TIMEOUT_S))
        if limit_s < _LEAST_S:
            break
        other = replace(draft, compiler="nvcc")
        other = replace(other, complaint=_complaint(other, _source(kernel), limit_s))
        if not other.complaint or draft.space == made.space:
            break
    said, other_said = first_error(made.complaint), first_error(other.complaint)
    is_own, other_is_own = (text.startswith(kernel.path.name) for text in (said, other_said))
    says_more = "error" not in said or ("error" in other_said and (other_is_own or not is_own))
    return other if says_more or not other.complaint else made


def _switches(made: Scaffold) -> Iterator[tuple[tuple[str, str], ...]]:
    """Macros without which headers end in an `#error`, and those that define words which are open."""
    read, branches = made.source.read, made.source.branches
    asked = {name: value or "1" for name, value in branches.required.items()}
    if left_out := tuple(item for item in asked.items() if item[0] not in made.guess.launch.values):
        yield left_out
    open_words = {*undefined_names(made.complaint), *made.guess.launch.values, *made.kernel.types}
    left = words_behind(open_words, read.code.macros)
    own = {name: value or "1" for name, value in made.kernel.wanted.items() if name in open_words}
    named: dict[tuple[tuple[str, str], ...], set[str]] = {}
    for line in compiled_lines(read.original):
        if words := left & {*WORD.findall(line.rest)} if line.condition else set():
            wanted = tuple((name, value or "1") for name, value in wanted_by(line.condition).items())
            named.setdefault(wanted, set()).update(words)
    named.pop((), None)
    yielded = 0
    for wanted in sorted(named, key=lambda one: -len(named[one]))[:_BRANCHES]:
        values = own | dict(wanted)
        again = read_kernel_source(read.original, values, read.dialect)
        fresh = _known(again) - (_known(read) - open_words) - values.keys()
        if named[wanted] & fresh and yielded < _SWITCHES:
            yielded += 1
            yield tuple(values.items())


def _known(read: KernelSource) -> set[str]:
    """The names that a source declares anywhere."""
    functions = read.device_functions
    local = (name for function in functions for name in function.declared)
    passed = (parameter.name for function in functions for parameter in function.parameters)
    return {*read.declared_names, *read.types.declared, *read.code.macros, *local, *passed}


def _without_unknown_words(kernel: KernelFile, assumed: Assumptions, deadlines: Deadlines) -> Scaffold:
    """Write a space in which what the compiler does not know is a parameter or a type.

    A default that takes too much shared memory gives way to one that takes little, and a language to a newer
    version with fewer errors.
    """
    for attempt in range(_ATTEMPTS):
        made = plain_scaffold(kernel, assumed)
        source = _source(kernel)
        made = replace(made, complaint=_complaint(made, source, deadlines.compiler_s))
        option = _NEWER.get(made.source.dialect, "")
        if _ERROR in made.complaint and attempt == 0 and option and not deadlines.tried.is_over:
            newer = replace(made, option=option)
            newer = replace(newer, complaint=_complaint(newer, source, deadlines.compiler_s))
            if newer.complaint.count(_ERROR) < made.complaint.count(_ERROR):
                made, assumed = newer, replace(assumed, option=option)
        called = {name for function in made.source.read.device_functions for name in function.called}
        known = {*assumed.undefined, *called, *_known(made.source.read)}  # these follow from other errors
        fresh = [word for word in _unknown_words(made.complaint, source.text) if word not in known]
        if fresh:
            better = replace(assumed, undefined=(*assumed.undefined, *dict.fromkeys(fresh)))
        else:
            better = replace(assumed, is_small=assumed.is_small or "shared" in made.complaint)
        if better == assumed or deadlines.tried.is_over:
            break
        assumed = better
    return made


@lru_cache(maxsize=1)
def plain_scaffold(kernel: KernelFile, assumed: Assumptions) -> Scaffold:
    """Write a space without compiling it, by default for the first kernel.

    Raises InputError if it is no kernel's source.
    """
    text, own, host = _texts(kernel.path, _source(kernel).text)
    made = scaffold(
        *(kernel.path.name, kernel.name, text, kernel.entry, assumed),
        own=own,
        host=host,
        include_dirs=kernel.include_dirs,
    )
    return _narrowed(made)


def _narrowed(made: Scaffold) -> Scaffold:
    """A space that can be counted in a moment: the longest lists give up values far from their defaults."""
    launch = made.guess.launch
    lists = {item.name: list(item.values) for item in launch.parameters}
    while prod(map(len, lists.values())) > _MOST_CONFIGURATIONS:
        name = max(lists, key=lambda name: len(lists[name]))
        values = lists[name]
        values.pop(0 if values[-1] == launch.default[name] else -1)
    parameters = tuple(replace(item, values=tuple(lists[item.name])) for item in launch.parameters)
    return replace(made, guess=replace(made.guess, launch=replace(launch, parameters=parameters)))


@lru_cache(maxsize=1)
def _source(kernel: KernelFile) -> SourceText:
    return read_source(kernel.path, [kernel.path.parent / folder for folder in kernel.include_dirs])


def _texts(path: Path, whole: str) -> tuple[str, str, str]:
    """The text for the device with headers other than portable.h, the file's own, and the host's program.

    The file's own is empty if it has no kernel.
    """
    file = source_text(path)
    host = file if "<<<" in file else ""
    own = device_part(file) if "__global__" in file else file
    if not INTRODUCER.search(own):
        own = ""
    if own and (whole.endswith(file) or _PORTABLE.search(own)):  # it includes nothing else
        return own, own, host
    return device_part(whole) if "__global__" in whole else whole, own, host


def has_host_code(path: Path) -> bool:
    """True if a source has code that is left out where the kernels are compiled."""
    text = source_text(path)
    return device_part(text) != text


def _unknown_words(complaint: str, text: str) -> list[str]:
    """The words that a compiler does not know and that may be macros or types.

    Others are functions, and variables that are unknown because the type is that they are declared with.
    """
    unknown = [word for word in undefined_names(complaint) if not re.search(rf"\b{word}\s*\(", text)]
    types = "|".join(unknown)
    return [word for word in unknown if not re.search(rf"\b(?:{types})\s+\**\s*{word}\s*[=;,)\[]", text)]


def _complaint(made: Scaffold, source: SourceText, timeout_s: float = _TIMEOUT_S) -> str:
    """A compiler's complaint about the default configuration; empty without one, or without a compiler."""
    parameters = [Parameter(item.name, item.values) for item in made.guess.launch.parameters]
    config = made.guess.launch.default
    symbols = [item.symbol for item in made.kernel.arguments if item.symbol]
    names = (entry_name(made.kernel.entry, {"DTYPE": "float32", **config}), *symbols)
    types = made.kernel.types.items()
    options = tuple(f"-D{name}={meaning}" for name, meaning in types)
    options += (made.option,) if made.option else ()
    text = render(source, macros(parameters, config, "float32"))
    setting = cuda_setting(ARCHITECTURE, made.compiler) if made.compiler else _setting(made.source.dialect)
    return _refused(setting, text, options, names, timeout_s)


def why_unread(kernel: KernelFile) -> tuple[str, str]:
    """Why a compiler refuses a source as it is, and what helps; empty if it does not, or without one."""
    source = _source(kernel)
    dialect = dialect_of(source.text)
    said = _refused(_setting(dialect), render(source, dict(kernel.definitions)), (), ())
    return first_error(said), what_helps(said, kernel.path, source.text, dialect)


def _refused(
    setting: CompilerSetting | None,
    text: str,
    options: tuple[str, ...],
    names: tuple[str, ...],
    timeout_s: float = _TIMEOUT_S,
) -> str:
    if setting is None:
        return ""
    pool = CompilerPool(setting, size=1, timeout_s=timeout_s, binaries=default_folder())
    try:
        compiled = pool.compile_source(text, options, names).result()
    finally:
        pool.close()
    return compiled.detail if isinstance(compiled, Failure) else ""


@cache
def _setting(dialect: str) -> CompilerSetting | None:
    """The compiler that tells what a source leaves open; None if this machine has none for its dialect."""
    if dialect == "cuda" and has_nvrtc():
        return cuda_setting(ARCHITECTURE)
    if dialect == "opencl" and find_devices(["opencl"]):
        return device_setting(Address("opencl", 0))
    return None


def has_nvrtc() -> bool:
    """True if NVRTC is installed."""
    try:
        cuda_compiler(ARCHITECTURE)
    except MissingExtra:
        return False
    return True
