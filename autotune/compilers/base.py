"""The interface of a compiler."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from autotune.core.records import DeviceInfo
from autotune.core.trials import Binary
from autotune.errors import MissingExtra

TRITON_MODULE = "autotune.compilers.triton_compiler"
_VERSION = re.compile(r"^__version__ = (['\"])([^'\"]+)\1\s*(?:#|$)", re.MULTILINE)
_UNDEFINED = re.compile(  # but for what an absolute path names before, a header of a CUDA toolkit
    r'^(?!/).*identifier "(\w+)" is undefined|'
    r"use of undeclared identifier '(\w+)'|unknown type name '(\w+)'|"
    r"name '(\w+)' is not defined|implicit declaration of function '(\w+)'|"
    r"Symbols not found: \[ (\w+)|[Uu]nresolved extern function '(\w+)'|"
    r"Undefined reference to '(\w+)'",
    re.MULTILINE,
)


def driver_compiler(device: DeviceInfo) -> str:
    """The name of a compiler that is part of a driver, as OpenCL's are, for stored results."""
    return f"{device.runtime}, driver {device.driver}"


class Compiler(Protocol):
    """Compiles source text for one device, without touching device memory.

    `identity` names everything besides source and options that a binary depends on: the compiler, its version
    and its target. It is None if a binary depends on more than that, and so must not be cached.
    """

    @property
    def identity(self) -> str | None: ...  # noqa: D102 - above

    def compile(self, source: str, options: Sequence[str], names: Sequence[str] = ()) -> Binary:
        """Compile for the compiler's device; raises CompileError with the log.

        Raises LaunchError where the compiler finds out that no launch is possible.

        `names` will be looked up in the binary: of C++, kernels, instances of templates and variables; of
        Triton, kernels with what they are compiled for. A compiler of another language ignores them.
        """


def triton_name() -> str:
    """Triton's name and version; raises MissingExtra.

    The import takes a second: it is done only where the module's text does not show its version.
    """
    module = find_spec("triton")
    if module is None or module.origin is None:
        raise MissingExtra("triton", "triton")
    literal = _VERSION.search(Path(module.origin).read_text(encoding="utf-8"))
    return f"Triton {literal[2] if literal else import_module('triton').__version__}"


def undefined_names(log: str) -> list[str]:
    """The names that a compiler, or Python, does not know, in the order of its log."""
    words = (word for match in _UNDEFINED.findall(log) for word in match if word)
    return list(dict.fromkeys(map(_demangled, words)))


def _demangled(symbol: str) -> str:
    """The name in a symbol of C++ such as `_Z5twicef`, without its namespaces."""
    name, rest = symbol, re.sub("^_ZN?K?", "", symbol) if symbol.startswith("_Z") else ""
    while mangled := re.match(r"(\d+)(\w+)", rest):
        name, rest = mangled[2][: int(mangled[1])], mangled[2][int(mangled[1]) :]
    return name
