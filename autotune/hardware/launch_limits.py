"""Launches that a device accepts: one rule for searches, served results and exported headers.

The rule consists of expressions: a search enumerates with them, `best_config` evaluates them, and an exported
header has them in C.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from autotune.core.frozen import dataclass
from autotune.core.launch_plan import MAX_REPEAT
from autotune.core.records import DeviceInfo, LaunchSpec
from autotune.hardware.architectures import MAX_BLOCK, MAX_CLUSTER, MAX_GRID

_NOT_CUDA = ("opencl",)  # backends without the limits and attributes of CUDA's launches; others have them


@dataclass(frozen=True)
class Amount:
    """A whole number of a launch with its bounds."""

    name: str  # in messages
    text: str  # the number, as an expression that can be compared
    least: int  # on every device
    most: str = ""  # on this device, as an expression; empty without a bound

    @property
    def bounds(self) -> Iterator[str]:
        """The bounds as conditions."""
        yield f"{self.text} >= {self.least}"
        if self.most:
            yield f"{self.text} <= {self.most}"


def amounts(step: LaunchSpec, device: DeviceInfo | None, registers: int | None = None) -> Iterator[Amount]:
    """The whole numbers of a launch, with the bounds of a device; what is None is unknown."""
    deepest, grids = _extent_limits(device)
    threads = _product(step.block)
    of_device = "device.{}".format if device is not None else lambda name: ""
    yield Amount("threads a block", threads, 1, of_device("max_threads_per_block"))
    for axis, text in zip("xyz", step.block, strict=False):
        yield Amount(f"threads in {axis}", operand(text), 1, deepest if axis == "z" else "")
    if registers and device is not None and device.registers_per_block is not None:
        yield Amount("registers a block", f"{threads} * {registers}", 1, of_device("registers_per_block"))
    if step.shared_bytes != "0":
        most = of_device("shared_bytes_per_block")
        yield Amount("bytes of shared memory a block", operand(step.shared_bytes), 0, most)
    for axis, text, most in zip("xyz", step.grid, grids, strict=False):
        yield Amount(f"blocks in {axis}", operand(text), 1, most)
    for axis, text in zip("xyz", step.cluster, strict=False):
        yield Amount(f"blocks in {axis} of a cluster", operand(text), 1)
    if step.cluster:
        yield Amount("blocks of a cluster", _product(step.cluster), 1, str(MAX_CLUSTER))
    if step.repeat:
        yield Amount("repetitions", operand(step.repeat), 0, str(MAX_REPEAT))


def conditions(step: LaunchSpec, device: DeviceInfo | None) -> Iterator[str]:
    """Further conditions on a launch: whole clusters, and nothing that only CUDA has on another device."""
    for blocks, cluster in zip(step.grid, step.cluster, strict=False):
        yield f"{operand(blocks)} % {operand(cluster)} == 0"
    yield from (f"{operand(cluster)} == 1" for cluster in step.cluster[len(step.grid) :])
    if device is not None and device.backend in _NOT_CUDA:
        for_cuda = (step.cooperative, step.programmatic)
        yield from (f"not {operand(text)}" for text in for_cuda if text)
        yield from (f"{operand(text)} == 1" for text in step.cluster)


def happens(step: LaunchSpec) -> str:
    """The condition under which a step launches anything."""
    return f"({step.when}) and {operand(step.repeat)} > 0" if step.repeat else step.when


def _product(texts: Iterable[str]) -> str:
    return " * ".join(map(operand, texts))


def operand(text: str) -> str:
    """An expression in parentheses where it needs them as an operand."""
    return text if text.isalnum() or text.isidentifier() else f"({text})"


def _extent_limits(device: DeviceInfo | None) -> tuple[str, tuple[str, str, str]]:
    """The most threads in z and the most blocks in each dimension.

    OpenCL has no limit of blocks; on NVIDIA's OpenCL, CUDA's limit of threads applies.
    """
    if device is None:
        return "", ("", "", "")
    is_cuda = device.backend not in _NOT_CUDA
    deepest = str(MAX_BLOCK[2]) if is_cuda or "nvidia" in device.vendor.lower() else ""
    x, y, z = MAX_GRID
    return deepest, (str(x), str(y), str(z)) if is_cuda else ("", "", "")
