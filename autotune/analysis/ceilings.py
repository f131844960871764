"""Measures what a device can reach, each figure as the best configuration of a small space.

The kernels are ordinary ones (kernels/ceilings), tuned exhaustively and verified like any other.
"""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from autotune.compilers.kernel_source import packaged, read_source
from autotune.core.records import DeviceInfo
from autotune.core.stages import OnStage, Stage
from autotune.core.trials import Budget
from autotune.devices import Address
from autotune.evaluation.instance import work
from autotune.serving.cache import store_beside
from autotune.serving.ceilings import (
    BYTES,
    FILE,
    OPERATIONS,
    SECONDS,
    Ceiling,
    ceilings_text,
    read_ceilings,
)
from autotune.space import bind, load_space, problem_of
from autotune.tuning.context import Unobserved
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask
from autotune.tuning.tuner import search

_STEP = 2**14  # array lengths are multiples of it, as kernels/ceilings/memory.cu asks
_MOVED_BYTES = {"gpu": 2**30, "cpu": 2**27}  # by repeated passes over arrays that fit in a cache
_CACHE_SHARES = (1 / 64, 1 / 4)  # of the last cache: array sizes to read again and again
_NOMINAL = "memory read"
_REPEATS = ("passes", "rounds")  # sizes that say how often a kernel does its work


@dataclass(frozen=True)
class Probe:
    """One figure to measure: a space of kernels/ceilings, with sizes that replace its own.

    A figure in seconds is the time of one of `steps`, a size of the space.
    """

    name: str
    space: str
    unit: str
    sizes: Mapping[str, int] = field(default_factory=dict)
    dtype: str | None = None


def probes(device: DeviceInfo) -> Iterator[Probe]:
    """What to measure on a device."""
    for kind in ("read", "write", "copy"):
        yield Probe(f"memory {kind}", kind, BYTES)
    for share in _CACHE_SHARES:
        elements = max(1, int(device.cache_bytes * share) // 4 // _STEP) * _STEP
        passes = max(1, _MOVED_BYTES[device.kind] // (4 * elements))
        yield Probe(f"read of {4 * elements:,} bytes", "read", BYTES, {"n": elements, "passes": passes})
    yield Probe("shared memory", "shared", BYTES)
    yield Probe("shared memory, 32 words apart", "shared", BYTES, {"stride": 32})
    for dtype in ("float32", "float64", "int32"):
        yield Probe(f"{dtype} multiply-add", "arithmetic", OPERATIONS, dtype=dtype)
    yield Probe("atomics to many counters", "atomics", OPERATIONS)
    yield Probe("atomics to one counter", "atomics", OPERATIONS, {"spread": 1})
    yield Probe("latency of memory", "latency", SECONDS)
    elements = max(64, int(device.cache_bytes / 4) // 4)
    yield Probe(f"latency of {4 * elements:,} bytes", "latency", SECONDS, {"n": elements})


def measure_ceilings(
    address: Address,
    device: DeviceInfo,
    on_stage: OnStage,
    wanted: Callable[[Probe], bool] = lambda _: True,
) -> Iterator[Ceiling]:
    """Measure one figure after another; raises SetupError where a kernel fails.

    Args:
        address: The device.
        device: Its properties.
        on_stage: Is told what is measured.
        wanted: Says which figures to measure.
    """
    chosen = [probe for probe in probes(device) if wanted(probe)]
    for number, probe in enumerate(chosen, 1):
        on_stage(Stage(f"measuring {probe.name}:", number, len(chosen)))
        yield _measure(address, device, probe)


def keep_ceilings(root: Path, device: DeviceInfo, found: Sequence[Ceiling]) -> Path:
    """Store figures in a cache beside those that were not measured again; returns the file.

    Two processes that store at once lose nothing. Raises CacheError as `store_beside` does.
    """
    measured_at = datetime.now(UTC).isoformat(timespec="seconds")

    def text() -> str:
        kept = read_ceilings(root / device.slug) | {one.name: one for one in found}
        return ceilings_text(list(kept.values()), measured_at)

    return store_beside(root, device, FILE, text)


def _measure(address: Address, device: DeviceInfo, probe: Probe) -> Ceiling:
    spec = load_space(packaged("kernels") / "ceilings" / f"{probe.space}.yaml")
    problem = problem_of(spec, device, probe.sizes, probe.dtype)
    task = TuningTask(address, device, spec, read_source(spec.source), bind(spec, device, problem))
    with tempfile.TemporaryDirectory() as folder:
        options = Options(
            engine="exhaustive",
            budget=Budget(trials=len(task.space)),
            journal=Path(folder) / "journal.jsonl",
            cache=Path(folder) / "cache",
            transfer=False,
            sanitizer=False,
        )
        result = search(task, options, Unobserved())
    config, seconds = result.winner.config, result.final.median_ms / 1e3
    amounts = work(task.space, config, problem.sizes)
    repeats = math.prod(problem.sizes.get(name, 1) for name in _REPEATS)
    value = {
        BYTES: lambda: amounts["bytes"] * repeats / seconds,
        OPERATIONS: lambda: amounts["flops"] * repeats / seconds,
        SECONDS: lambda: seconds / problem.sizes["steps"],
    }[probe.unit]()
    nominal = device.memory_bandwidth_bytes_per_s if probe.name == _NOMINAL else None
    return Ceiling(probe.name, probe.unit, value, dict(problem.sizes), dict(config), nominal)
