"""How many times as fast a kernel is on each GPU as on the fastest CPU."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

from autotune.analysis.compare import DeviceResult


@dataclass(frozen=True)
class AgainstCpu:
    """A result of a GPU beside one of a CPU: of the same problem, or else of other sizes."""

    gpu: DeviceResult
    cpu: DeviceResult

    @property
    def is_same_problem(self) -> bool:
        """Whether both are of the same sizes, element type and data."""
        return self.gpu.entry.problem == self.cpu.entry.problem

    @property
    def ratio(self) -> float | None:
        """The ratio of times, or of rates at different sizes; None if the space does not state the work."""
        gpu, cpu = self.gpu, self.cpu
        if self.is_same_problem:
            return cpu.entry.time_ms / gpu.entry.time_ms
        if gpu.flops_per_s and cpu.flops_per_s:
            return gpu.flops_per_s / cpu.flops_per_s
        return gpu.bytes_per_s / cpu.bytes_per_s if gpu.bytes_per_s and cpu.bytes_per_s else None


def against_cpus(results: Sequence[DeviceResult]) -> Iterator[AgainstCpu]:
    """One pair for each GPU: of the largest problem that a CPU has, too, else of the largest of each.

    Args:
        results: All that is known of the kernel, on all devices and of all sizes.
    """
    timed = [result for result in results if result.entry.time_ms > 0]
    cpus = [result for result in timed if result.device.kind == "cpu"]
    gpus = [result for result in timed if result.device.kind != "cpu"]
    for folder in dict.fromkeys(result.folder for result in gpus):
        pairs = [
            AgainstCpu(gpu, cpu)
            for gpu in gpus
            for cpu in cpus
            if gpu.folder == folder and gpu.entry.dtype == cpu.entry.dtype
        ]
        if pairs:
            yield max(pairs, key=_rank)


def _rank(pair: AgainstCpu) -> tuple[bool, int, int, float]:
    gpu, cpu = pair.gpu.entry, pair.cpu.entry
    return pair.is_same_problem, prod(gpu.sizes.values()), prod(cpu.sizes.values()), -cpu.time_ms
