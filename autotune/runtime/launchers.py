"""What a loaded kernel needs of a GPU package, given the arrays that a program holds.

One module per interface, imported when the first array of its kind is seen. Memory and streams stay the
program's own: nothing is copied, and the work is only put into the stream or queue.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from autotune.core.records import DeviceInfo, Launch
from autotune.errors import InputError, MissingExtra

# By the first word of the module of an array's type; any other may still speak CUDA's array interface.
_MODULES = {"pyopencl": ("autotune.runtime.opencl", "pyopencl", None)}
_CUDA = ("autotune.runtime.cuda", "cuda.core", "cuda")


class View(NamedTuple):
    """An array as a launch takes it; dtype and shape None: raw memory, of which only the size is known."""

    handle: Any
    dtype: str | None
    shape: tuple[int, ...] | None
    size_bytes: int


class Launcher(Protocol):
    """One device with the stream or queue of one call."""

    dialect: str  # of the device's compiler
    device: DeviceInfo
    place: object  # programs compiled for equal places are interchangeable

    def view(self, array: Any) -> View:
        """What an array is; raises ValueError with the reason when it cannot be passed to a kernel."""
        ...

    def compiler(self, kind: str) -> str:
        """The compiler's name and version, as results have them; `kind` is the record's."""
        ...

    def compile(self, source: str, options: Sequence[str], kind: str, names: Sequence[str]) -> Any:
        """A program with kernels of these names in C++; raises CompileError with the compiler's log."""
        ...

    def scratch(self, size_bytes: int) -> Any:
        """Device memory that lasts until the work of this call is done."""
        ...

    def launch(self, program: Any, step: Launch, arguments: Mapping[str, Any]) -> None:
        """Put one launch into the stream or queue; raises LaunchError."""
        ...

    def finish(self) -> Any:
        """Give the scratch memory back, in the order of the stream; an event, where the package has them."""
        ...


def open_launcher(arrays: Sequence[object], stream: Any) -> Launcher:
    """The launcher for these arrays; raises InputError for arrays of no known kind, MissingExtra."""
    for array in arrays:
        root = type(array).__module__.partition(".")[0]
        if root in _MODULES or root == "cuda" or hasattr(array, "__cuda_array_interface__"):
            module, package, extra = _MODULES.get(root, _CUDA)
            try:
                opened = importlib.import_module(module).open_launcher(arrays, stream)
            except ImportError:
                raise MissingExtra(package, extra) from None
            return cast(Launcher, opened)
    raise InputError(
        "expected arrays on a GPU: of cupy, torch, pycuda, cuda.core or pyopencl; found "
        + (", ".join(sorted({type(array).__qualname__ for array in arrays})) or "none")
    )
