"""The cubins of a binary, whichever compiler made it, and what a launch needs of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property

from autotune.compilers.resource_usage import Resources, read_resources
from autotune.compilers.triton_binary import TritonBinary, completed, scratch_bytes, unpack
from autotune.core.records import Launch
from autotune.core.trials import Binary
from autotune.errors import LaunchError

_ONLY = ""  # the key of a cubin that has all kernels


class Cubins:
    """A binary's cubins by keys: Triton makes one for each entry of its launches, other compilers one."""

    def __init__(self, binary: Binary) -> None:
        self._binary = binary
        self._triton = unpack(binary)
        triton = {entry: kernel.cubin for entry, kernel in self._triton.items()}
        self.contents = triton or {_ONLY: binary.data}

    def key(self, entry: str) -> str:
        """The key of the cubin that has a kernel or a variable."""
        return entry if self._triton else _ONLY

    def symbol(self, name: str) -> bytes:
        """A kernel's or a variable's name in its cubin, as the driver takes it."""
        return self._binary.symbol(name).encode()

    @cached_property
    def _plain_kernels(self) -> dict[str, Resources]:
        return read_resources(self._binary.data)

    def resources(self, entry: str) -> Resources:
        """The resources of the kernel that a launch names; raises LaunchError if there is none."""
        if self._triton:
            return self._triton_kernel(entry).resources
        name = self._binary.symbol(entry)
        if name not in self._plain_kernels:
            known = ", ".join(sorted(self._plain_kernels))
            raise LaunchError(f"no such kernel: {entry}; the source has {known}")
        return self._plain_kernels[name]

    def has(self, names: Iterable[str]) -> bool:
        """True if the binary has all these kernels and variables, as far as names tell.

        A plain identifier may be a name of C, which binaries do not list.
        """
        known = self._triton.keys() or self._binary.symbols.keys()
        return all(name in known or (name.isidentifier() and not self._triton) for name in names)

    def completed(self, step: Launch) -> Launch:
        """A launch with what Triton's compiler decided; of other compilers as it is. Raises LaunchError."""
        if not self._triton:
            return step
        return completed(step, self._triton_kernel(step.entry))

    def scratch_bytes(self, step: Launch) -> int:
        """The size of the scratch memory that a launch needs in addition to its plan's."""
        return scratch_bytes(step, self._triton[step.entry]) if step.entry in self._triton else 0

    def _triton_kernel(self, entry: str) -> TritonBinary:
        if entry not in self._triton:
            known = "; ".join(self._triton)
            raise LaunchError(f"the binary was not compiled for {entry}; it has {known}")
        return self._triton[entry]
