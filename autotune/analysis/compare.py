"""Comparison of the results of one kernel on several devices; what was not measured stays unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from statistics import harmonic_mean
from typing import Any, NamedTuple

from autotune.core.records import Config, DeviceInfo, Entry, ProblemKey, Sizes, Value
from autotune.core.text import size_text
from autotune.errors import InputError
from autotune.serving.device_records import DeviceRecord
from autotune.serving.portability import ranked

MARGIN = 0.05  # how much slower than a device's best a portfolio may be


@dataclass(frozen=True)
class DeviceResult:
    """One device's result for the compared problem; `folder` is the device's folder in the cache."""

    folder: str
    device: DeviceInfo
    entry: Entry

    @property
    def speedup(self) -> float | None:
        """The speed-up over the kernel's default; None if the default has no time."""
        default_ms = self.entry.default_time_ms
        return default_ms / self.entry.time_ms if default_ms and self.entry.time_ms > 0 else None

    @property
    def bytes_per_s(self) -> float | None:
        """The problem's bytes over the time; None if the space does not state them."""
        return _per_second(self.entry.work_bytes, self.entry.time_ms)

    @property
    def flops_per_s(self) -> float | None:
        """The problem's operations over the time; None if the space does not state them."""
        return _per_second(self.entry.work_flops, self.entry.time_ms)

    @property
    def bandwidth_share(self) -> float | None:
        """Share of the memory's bandwidth; None if either is unknown."""
        ceiling = self.device.memory_bandwidth_bytes_per_s
        return self.bytes_per_s / ceiling if self.bytes_per_s and ceiling else None


@dataclass(frozen=True)
class AgainstCpu:
    """A GPU's result and a CPU's: for the same problem, or else for other sizes."""

    gpu: DeviceResult
    cpu: DeviceResult

    @property
    def is_same_problem(self) -> bool:
        """True if both are of the same sizes, element type and data."""
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


@dataclass(frozen=True)
class Portable:
    """One configuration for all devices, with its time over each device's best; None: not measured there."""

    config: Config
    slowdowns: Mapping[str, float | None]

    @property
    def worst(self) -> float:
        """The largest known slowdown."""
        return max(factor for factor in self.slowdowns.values() if factor is not None)

    @property
    def portability(self) -> float | None:
        """Harmonic mean of the shares of each device's best speed; None if one is not measured.

        Source: Pennycook, Sewall and Lee, "Implications of a metric for performance portability", Future
        Generation Computer Systems 92 (2019), 947-958, section 3: application efficiency.
        """
        factors = [factor for factor in self.slowdowns.values() if factor is not None]
        complete = len(factors) == len(self.slowdowns)
        return harmonic_mean([1 / factor for factor in factors]) if complete else None


class PortfolioMember(NamedTuple):
    """A configuration of a portfolio, and the devices on which it is close to the best."""

    config: Config
    devices: tuple[str, ...]


@dataclass(frozen=True)
class KernelComparison:
    """The results for one problem, device by device in the order of the cache."""

    kernel: str
    tuned: tuple[DeviceResult, ...]
    # the best value on each device, for every parameter whose best values differ
    flips: Mapping[str, Mapping[str, Value]]
    agreed: Mapping[str, Value]  # the best value, for every parameter for which it is the same on all devices
    # share of the best speed, by the device that a configuration was tuned on, then by the device that it
    # runs on; None: not measured
    matrix: Mapping[str, Mapping[str, float | None]]
    portable: Portable  # the one with the smallest worst-case slowdown, which tier PORTABLE would serve
    most_portable: Portable | None  # the one with the highest portability, of those measured everywhere
    portfolio: tuple[PortfolioMember, ...]  # a few configurations for all devices

    @property
    def missing(self) -> int:
        """Number of cells of the matrix without a measurement."""
        return sum(share is None for row in self.matrix.values() for share in row.values())


def results_of(device_records: Iterable[DeviceRecord]) -> list[DeviceResult]:
    """All results of some devices."""
    return [
        DeviceResult(device_record.folder, device_record.device, entry)
        for device_record in device_records
        for entry in device_record.record.entries
    ]


def problem_of(results: Sequence[DeviceResult], sizes: Sizes, dtype: str | None) -> ProblemKey | None:
    """The problem to compare, of these sizes and type if given; None if there are no results for it.

    Of several problems take the one with results on most devices, then the largest.
    """
    counts = Counter(
        result.entry.problem
        for result in results
        if (not sizes or result.entry.sizes == sizes) and dtype in (None, result.entry.dtype)
    )

    def rank(problem: ProblemKey) -> tuple[int, int, ProblemKey]:
        _, named_sizes, _ = problem
        return -counts[problem], -prod(size for _, size in named_sizes), problem

    return min(counts, key=rank, default=None)


def select(results: Sequence[DeviceResult], sizes: Sizes, dtype: str | None) -> list[DeviceResult]:
    """The results for the problem that `problem_of` finds; raises InputError when there is none."""
    chosen = problem_of(results, sizes, dtype)
    if chosen is None:
        known = dict.fromkeys(_problem_text(result.entry) for result in results)
        raise InputError(f"no results for this problem; expected --size and --dtype of {'; '.join(known)}")
    return [result for result in results if result.entry.problem == chosen]


def require_one_kernel(results: Sequence[DeviceResult]) -> None:
    """Raise InputError if two results have no parameter in common: they are of different kernels."""
    for result in results[1:]:
        expected, names = results[0].entry.config.keys(), result.entry.config.keys()
        if expected.isdisjoint(names):
            raise InputError(
                f"{result.folder} and {results[0].folder} have different kernels of this name: parameters "
                f"{', '.join(sorted(names))} and parameters {', '.join(sorted(expected))}"
            )


def left_out(results: Sequence[DeviceResult], selected: Sequence[DeviceResult]) -> dict[str, str]:
    """The devices without a selected result, with the problems that they have results for."""
    compared = {result.folder for result in selected}
    problems: dict[str, list[str]] = {}
    for result in results:
        if result.folder not in compared:
            problems.setdefault(result.folder, []).append(_problem_text(result.entry))
    return {folder: " and ".join(texts) for folder, texts in problems.items()}


def compare(kernel: str, results: Sequence[DeviceResult]) -> KernelComparison:
    """Compare at least one result for a problem.

    Where there is a GPU, CPUs are not among the devices: `against_cpus` compares them.
    """
    has_gpu = any(result.device.kind == "gpu" for result in results)
    tuned = [result for result in results if not has_gpu or result.device.kind != "cpu"]
    known = {result.folder: result.entry.relative_times for result in tuned}
    best = {result.folder: result.entry.config for result in tuned}
    names = dict.fromkeys(name for config in best.values() for name in config)
    values = {
        name: {folder: config[name] for folder, config in best.items() if name in config} for name in names
    }
    flips = {name: row for name, row in values.items() if len(set(row.values())) > 1}
    configs = next(iter(known.values()))
    everywhere = [
        _portable(config, known) for config in configs if all(config in times for times in known.values())
    ]
    return KernelComparison(
        kernel=kernel,
        tuned=tuple(tuned),
        flips=flips,
        agreed={name: next(iter(row.values())) for name, row in values.items() if name not in flips},
        matrix={
            source: {
                target: 1 / times[config] if config in times else None for target, times in known.items()
            }
            for source, config in best.items()
        },
        portable=_portable(next(ranked(list(known.values()))), known),
        most_portable=max(everywhere, key=lambda portable: portable.portability or 0.0, default=None),
        portfolio=portfolio(known),
    )


def against_cpus(results: Sequence[DeviceResult]) -> Iterator[AgainstCpu]:
    """One pair for each GPU: of the largest problem that a CPU has, too, else of the largest of each.

    The results are all that is known of the kernel, on all devices and of all sizes.
    """
    timed = [result for result in results if result.entry.time_ms > 0]
    cpus = [result for result in timed if result.device.kind == "cpu"]
    gpus = [result for result in timed if result.device.kind == "gpu"]
    for folder in dict.fromkeys(result.folder for result in gpus):
        pairs = [
            AgainstCpu(gpu, cpu)
            for gpu in gpus
            for cpu in cpus
            if gpu.folder == folder and gpu.entry.dtype == cpu.entry.dtype
        ]
        if pairs:
            yield max(pairs, key=_pair_rank)


def _pair_rank(pair: AgainstCpu) -> tuple[bool, int, int, float]:
    gpu, cpu = pair.gpu.entry, pair.cpu.entry
    return pair.is_same_problem, prod(gpu.sizes.values()), prod(cpu.sizes.values()), -cpu.time_ms


def portfolio(known: Mapping[str, Mapping[Config, float]]) -> tuple[PortfolioMember, ...]:
    """A few configurations of which one is within MARGIN of the best on every device.

    Greedy set cover: each configuration covers most of the remaining devices; ties are broken by the smallest
    worst-case slowdown. `known` has the relative times of each device, with its own best.
    """
    covers: dict[Config, list[str]] = {}
    for device, times in known.items():
        for config, factor in times.items():
            if factor <= 1 + MARGIN:
                covers.setdefault(config, []).append(device)
    worst = {config: _portable(config, known).worst for config in covers}
    chosen: list[Config] = []
    left = set(known)
    while left:
        chosen.append(
            max(covers, key=lambda config: (len(left.intersection(covers[config])), -worst[config]))
        )
        left.difference_update(covers[chosen[-1]])
    return tuple(PortfolioMember(config, tuple(covers[config])) for config in chosen)


def comparison_json(comparison: KernelComparison) -> dict[str, Any]:
    """The comparison as JSON values; unknown ones are null."""
    entry = comparison.tuned[0].entry
    return {
        "kernel": comparison.kernel,
        "sizes": dict(entry.sizes),
        "dtype": entry.dtype,
        "devices": [_device_json(result) for result in comparison.tuned],
        "flips": {name: dict(row) for name, row in comparison.flips.items()},
        "agreed": dict(comparison.agreed),
        "matrix": {source: dict(row) for source, row in comparison.matrix.items()},
        "portable": _portable_json(comparison.portable),
        "most_portable": comparison.most_portable and _portable_json(comparison.most_portable),
        "portfolio": [
            {"config": dict(config), "devices": list(devices)} for config, devices in comparison.portfolio
        ],
    }


def _device_json(result: DeviceResult) -> dict[str, Any]:
    return {
        "device": result.folder,
        "name": result.device.name,
        "config": dict(result.entry.config),
        "time_ms": result.entry.time_ms,
        "bytes_per_s": result.bytes_per_s,
        "bandwidth_share": result.bandwidth_share,
        "flops_per_s": result.flops_per_s,
        "speedup": result.speedup,
        "engine": result.entry.provenance.engine,
        "trials": result.entry.provenance.trials,
    }


def _portable_json(portable: Portable) -> dict[str, Any]:
    return {
        "config": dict(portable.config),
        "slowdowns": dict(portable.slowdowns),
        "worst": portable.worst,
        "portability": portable.portability,
    }


def _problem_text(entry: Entry) -> str:
    return f"{entry.dtype} {size_text(entry.sizes)}"


def _portable(config: Config, known: Mapping[str, Mapping[Config, float]]) -> Portable:
    return Portable(config, {device: times.get(config) for device, times in known.items()})


def _per_second(amount: float | None, time_ms: float) -> float | None:
    return amount / time_ms * 1e3 if amount and time_ms > 0 else None
