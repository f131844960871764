"""The interface between a loaded kernel and the GPU package of a program's arrays.

Each package has a module, imported at the first array of its kind. Memory and streams stay the program's own:
nothing is copied, and work is only queued.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

from autotune.core.records import DeviceInfo, Launch
from autotune.errors import InputError, MissingExtra

# By the top-level package of an array's type; arrays of any other may have the CUDA array interface.
_MODULES = {"pyopencl": ("autotune.runtime.opencl", "pyopencl", None)}
_CUDA = ("autotune.runtime.cuda", "cuda.core", "cuda")


class View(NamedTuple):
    """An array as a launch takes it; dtype and shape are None for raw memory."""

    handle: Any
    dtype: str | None
    shape: tuple[int, ...] | None
    size_bytes: int


class Launcher(Protocol):
    """One device with the stream or queue of one call."""

    dialect: str  # of the device's compiler
    device: DeviceInfo
    place: object  # identifies device and context: a program runs wherever this is equal

    def view(self, array: Any) -> View:
        """View an array; raises ValueError with the reason when it cannot be passed to a kernel."""
        ...

    def compiler(self, kind: str) -> str:
        """The compiler's name and version, as in results; `kind` is the record's."""
        ...

    def compile(self, source: str, options: Sequence[str], kind: str, names: Sequence[str]) -> Any:
        """Compile a program with kernels of these C++ names; raises CompileError with the compiler's log."""
        ...

    def scratch(self, size_bytes: int) -> Any:
        """Allocate device memory that lasts until the work of this call is done."""
        ...

    def set_variable(self, program: Any, name: str, content: Any, size_bytes: int) -> None:
        """Queue a copy of `content` to a variable of the program; raises LaunchError."""
        ...

    def launch(self, program: Any, step: Launch, arguments: Mapping[str, Any]) -> None:
        """Queue one launch; raises LaunchError."""
        ...

    def finish(self) -> Any:
        """Free the scratch memory in stream order; return an event, for packages that have them."""
        ...


def open_launcher(arrays: Sequence[object], stream: Any) -> Launcher:
    """Open the launcher for these arrays; raises InputError for unknown kinds of arrays, and MissingExtra."""
    for array in arrays:
        root = type(array).__module__.partition(".")[0]
        if root in _MODULES or root == "cuda" or hasattr(array, "__cuda_array_interface__"):
            module, package, extra = _MODULES.get(root, _CUDA)
            try:
                opened = importlib.import_module(module).open_launcher(arrays, stream)
            except ImportError:
                raise MissingExtra(package, extra) from None
            return cast(Launcher, opened)
    if any(type(array).__module__.partition(".")[0] == "numpy" for array in arrays):
        raise InputError(
            "numpy arrays need a CPU device, through pyopencl: pass pyopencl.array.to_device(queue, array); "
            "for a GPU, copy them with cupy.asarray or torch.as_tensor"
        )
    raise InputError(
        "expected arrays on a GPU: of cupy, torch, pycuda, cuda.core or pyopencl; found "
        + (", ".join(sorted({type(array).__qualname__ for array in arrays})) or "none")
    )
