"""Measures what a device can reach, each figure as the best configuration of a small space.

The kernels are ordinary ones (kernels/ceilings), tuned exhaustively and verified like any other. Copies, and
the host's wait for a launch, are timed by the host's clock.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from autotune.compilers.source_text import packaged, read_source
from autotune.core.records import DeviceInfo
from autotune.core.stages import OnStage, Stage
from autotune.core.trials import Binary, Budget
from autotune.devices import Address
from autotune.diagnosis.device_rates import nominal
from autotune.diagnosis.probing import transfer_ms, waited_s
from autotune.evaluation.device_process import DeviceState
from autotune.evaluation.instance import work
from autotune.problem.workload import Workload
from autotune.processes.scratch_folder import scratch_folder
from autotune.serving.cache import store_beside
from autotune.serving.ceilings import (
    BYTES,
    FILE,
    OPERATIONS,
    SECONDS,
    TENSOR,
    Ceiling,
    ceilings_text,
    read_ceilings,
)
from autotune.space import bind, load_space, problem_of
from autotune.tuning.context import open_run
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask
from autotune.tuning.tuner import search

_STEP = 2**14  # array lengths are multiples of it, as kernels/ceilings/memory.cu asks
_MOVED_BYTES = {"gpu": 2**30, "cpu": 2**27}  # by repeated passes over arrays that fit in a cache
_CACHE_SHARES = (1 / 64, 1 / 4)  # of the last cache: array sizes to read again and again
_COPIED_BYTES = (2**24, 2**26, 2**28)
_COPY_ROUNDS = 5  # over these sizes: in the first one the device process still compiles
_TIMEOUT_S = 60.0
_MAX_SEARCH_S = 30.0  # for one figure, checks included: a GPU needs a few, a slow CPU would need minutes
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


@dataclass(frozen=True)
class HostProbe:
    """One figure that the host's clock gives: what the device process runs with an empty kernel at hand."""

    name: str
    unit: str
    measure: Callable[[DeviceState, Binary, Workload], float]


def probes(device: DeviceInfo) -> Iterator[Probe | HostProbe]:
    """The probes to measure on a device."""
    for kind in ("read", "write", "copy"):
        yield Probe(f"memory {kind}", kind, BYTES)
        for share in _CACHE_SHARES:
            elements = max(1, int(device.cache_bytes * share) // 4 // _STEP) * _STEP
            passes = max(1, _MOVED_BYTES[device.kind] // (4 * elements))
            yield Probe(f"{kind} of {4 * elements:,} bytes", kind, BYTES, {"n": elements, "passes": passes})
    yield Probe("shared memory", "shared", BYTES)
    yield Probe("shared memory, 32 words apart", "shared", BYTES, {"stride": 32})
    for dtype in ("float32", "float64", "int32"):
        yield Probe(f"{dtype} multiply-add", "arithmetic", OPERATIONS, dtype=dtype)
    if device.architecture.startswith("sm_"):
        yield Probe("float16 multiply-add", "packed_half", OPERATIONS)
        if int(device.architecture.removeprefix("sm_")) >= 80:
            yield Probe(TENSOR, "tensor", OPERATIONS)
    yield Probe("atomics to many counters", "atomics", OPERATIONS)
    yield Probe("atomics to one counter", "atomics", OPERATIONS, {"spread": 1})
    yield Probe("latency of memory", "latency", SECONDS)
    elements = max(64, int(device.cache_bytes / 4) // 4)
    yield Probe(f"latency of {4 * elements:,} bytes", "latency", SECONDS, {"n": elements})
    if device.kind == "gpu":  # a CPU runs the threads of a warp one after the other
        for dtype in ("float32", "float64"):
            yield Probe(f"latency of {dtype} multiply-add", "chain", SECONDS, dtype=dtype)
    yield Probe("launch of an empty kernel", "launch", SECONDS)
    yield HostProbe("launch and wait of the host", SECONDS, waited_s)
    for memory in ("pinned", "pageable"):
        for direction in ("to", "from"):
            measure = partial(_copied_bytes_per_s, pinned=memory == "pinned", is_back=direction == "from")
            yield HostProbe(f"copy {direction} the device, {memory} memory", BYTES, measure)


def measure_ceilings(
    address: Address, device: DeviceInfo, on_stage: OnStage, wanted: Callable[[Probe | HostProbe], bool]
) -> Iterator[Ceiling]:
    """Measure the wanted figures, one after another; raises SetupError where a kernel fails."""
    chosen = [probe for probe in probes(device) if wanted(probe)]
    for number, probe in enumerate(chosen, 1):
        on_stage(Stage(f"measuring {probe.name}:", number, len(chosen)))
        if isinstance(probe, HostProbe):
            yield _measured_by_host(address, device, probe)
        else:
            yield _measure(address, device, probe)


def keep_ceilings(root: Path, device: DeviceInfo, ceilings: Sequence[Ceiling]) -> Path:
    """Store figures in a cache; older ones stay unless they were measured again; returns the file.

    Two processes that store at once lose nothing. Raises CacheError as `store_beside` does.
    """
    measured_at = datetime.now(UTC).isoformat(timespec="seconds")

    def text() -> str:
        kept = read_ceilings(root / device.slug) | {ceiling.name: ceiling for ceiling in ceilings}
        return ceilings_text(list(kept.values()), measured_at)

    return store_beside(root, device, FILE, text)


def _measure(address: Address, device: DeviceInfo, probe: Probe) -> Ceiling:
    task = _task(address, device, probe.space, probe.sizes, probe.dtype)
    problem = task.space.problem
    with scratch_folder() as folder:
        result = search(task, _options(folder, len(task.space)), Observer())
    config, seconds = result.winner.config, result.final.median_ms / 1e3
    if probe.unit == SECONDS:
        value = seconds / problem.sizes["steps"]
    else:
        amount = work(task.space, config, problem.sizes)["bytes" if probe.unit == BYTES else "flops"]
        value = amount * math.prod(problem.sizes.get(name, 1) for name in _REPEATS) / seconds
    return Ceiling(
        name=probe.name,
        unit=probe.unit,
        value=value,
        sizes=dict(problem.sizes),
        config=dict(config),
        nominal=nominal(device, probe.name),
    )


def _measured_by_host(address: Address, device: DeviceInfo, probe: HostProbe) -> Ceiling:
    task = _task(address, device, "launch", {"steps": 1})
    with scratch_folder() as folder, open_run(task, _options(folder), Observer()) as context:
        value = context.run_default(probe.measure, probe.name, _TIMEOUT_S)
    return Ceiling(probe.name, probe.unit, value, {}, {}, nominal(device, probe.name))


def _task(
    address: Address, device: DeviceInfo, space: str, sizes: Mapping[str, int], dtype: str | None = None
) -> TuningTask:
    spec = load_space(packaged("kernels") / "ceilings" / f"{space}.yaml")
    problem = problem_of(spec, device, sizes, dtype)
    return TuningTask(address, device, spec, read_source(spec.source), bind(spec, device, problem))


def _options(folder: str, trials: int = 1) -> Options:
    """Those of a search that leaves nothing behind."""
    return Options(
        engine="exhaustive",
        budget=Budget(trials=trials, seconds=_MAX_SEARCH_S),
        journal=Path(folder) / "journal.jsonl",
        cache=Path(folder) / "cache",
        transfer=False,
        sanitizer=False,
    )


def _copied_bytes_per_s(
    state: DeviceState, _binary: Binary, _workload: Workload, *, pinned: bool, is_back: bool
) -> float:
    """The bandwidth of copies in one direction, at the size at which it is highest."""
    rates = []
    for size_bytes in _COPIED_BYTES * _COPY_ROUNDS:
        to_device_ms, back_ms = transfer_ms(state, size_bytes, pinned=pinned)
        rates.append(size_bytes / (back_ms if is_back else to_device_ms) * 1e3)
    return max(rates)
