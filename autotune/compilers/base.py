"""What a compiler provides: source text to a binary, without touching device memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from autotune.core.records import DeviceInfo
from autotune.core.trials import Binary


def driver_compiler(device: DeviceInfo) -> str:
    """What results call the compiler of a driver that brings its own, as OpenCL's do."""
    return f"{device.runtime}, driver {device.driver}"


class Compiler(Protocol):
    """Source text to binary, without touching device memory.

    `identity` is all that decides a binary besides source and options: the compiler, its version, what it
    compiles for. None: its binaries must not be kept.
    """

    @property
    def identity(self) -> str | None: ...  # noqa: D102 - above

    def compile(self, source: str, options: Sequence[str], names: Sequence[str] = ()) -> Binary:
        """Compile for the compiler's device; raises CompileError with the log.

        `names` are those of C++ that will be looked up in the binary: kernels, instances of templates,
        variables. A compiler of another language ignores them.
        """
        ...
