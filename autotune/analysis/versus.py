"""The tuned kernel against alternatives: honest speed-ups, with and without transfers.

On the device: the tuned configuration, the default, a naive landmark, and the baselines of the reference
file. On the host: numpy on one thread, and the same kernel on all cores as an OpenCL device.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from autotune.core.records import Config, Sizes, Tier
from autotune.core.trials import Trial
from autotune.devices.listing import find_device
from autotune.diagnosis.device_rates import MULTIPLY_ADD, DeviceRates
from autotune.diagnosis.resource_use import pipe_of
from autotune.diagnosis.transfers import call_transfer_ms
from autotune.errors import AutotuneError, ChildFailed, InputError, JournalError
from autotune.evaluation.instance import work
from autotune.problem.baselines import Baselines, BaselineTime
from autotune.problem.workload import Workload
from autotune.processes.child import Child
from autotune.searchers.base import evaluate
from autotune.serving.ceilings import known_ceilings
from autotune.tuning.context import POLICY, TuningContext, open_run
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.served_best import served_best
from autotune.tuning.task import Target, TuningTask, read_task

TUNED, DEFAULT, NAIVE, CPU = "tuned", "default", "naive", "CPU, all cores"
_BASELINES_TIMEOUT_S = 300.0
_MAX_ON_HOST = 3  # of the default and the landmarks, at the problem's size


class _Way(NamedTuple):
    """A configuration to time, and what it is."""

    name: str
    config: Config
    detail: str


@dataclass(frozen=True)
class Contender:
    """The time of one way to do the work; None where it failed. `detail` says what ran, or why it failed.

    `on_device` says whether its time leaves out copies from and to the host.
    """

    name: str
    time_ms: float | None
    detail: str
    on_device: bool


@dataclass(frozen=True)
class Versus:
    """All contenders for one problem."""

    sizes: Sizes
    contenders: tuple[Contender, ...]
    # time of a call's copies from and to pinned memory; None where they were not timed
    pinned_ms: float | None
    pageable_ms: float | None  # the same with pageable memory
    # the bytes and flops of the problem, as far as the space states them
    work: Mapping[str, float] = field(default_factory=dict)
    # measured bytes and flops of the host in a second; empty where nobody measured them
    host_peaks: Mapping[str, float] = field(default_factory=dict)

    def share_of_peak(self, contender: Contender, amount: str) -> float | None:
        """The share of the host's peak that a contender on it reaches with its bytes or flops."""
        if contender.on_device or not contender.time_ms or not {amount} <= self.work.keys() & self.host_peaks:
            return None
        return self.work[amount] / (contender.time_ms * 1e-3 * self.host_peaks[amount])

    @property
    def tuned_ms(self) -> float | None:
        """The time of the tuned kernel alone."""
        return next((contender.time_ms for contender in self.contenders if contender.name == TUNED), None)

    @property
    def fastest_host(self) -> Contender | None:
        """The fastest contender that needs no copies."""
        timed = [item for item in self.contenders if not item.on_device and item.time_ms is not None]
        return min(timed, key=lambda contender: contender.time_ms or 0.0, default=None)

    @property
    def pays(self) -> bool | None:
        """True if the tuned kernel with copies from pageable memory beats every host contender."""
        host = self.fastest_host
        if host is None or host.time_ms is None or self.tuned_ms is None or self.pageable_ms is None:
            return None
        return self.tuned_ms + self.pageable_ms < host.time_ms


def versus(
    target: Target, options: Options, observer: Observer, cpu: str | None, naive: str | None
) -> Versus:
    """Time all contenders for one problem.

    Args:
        target: The space, the device and the problem.
        options: How to compile and run.
        observer: Receives the events of the runs.
        cpu: The host as an OpenCL device; None leaves it out.
        naive: The landmark to take as naive; None takes the first.

    Raises:
        InputError: There is no such landmark.
        SetupError: The reference or the device cannot be used.
    """
    task = read_task(target, observer.stage)
    ways = list(_ways_on_device(task, options, naive))
    pinned_ms = pageable_ms = None
    with _begin(task, options, observer) as context:
        observer.started(task, len(ways), context.journal)
        trials = evaluate(context.evaluator, [way.config for way in ways])
        workload = context.default.workload
        if task.device.kind == "gpu":
            pinned_ms = call_transfer_ms(context, workload, pinned=True)
            pageable_ms = call_transfer_ms(context, workload, pinned=False)
    contenders = [
        Contender(way.name, trial.time_ms, str(trial.failure or way.detail), on_device=True)
        for way, trial in zip(ways, trials, strict=True)
    ]
    contenders += _baselines(task, workload)
    if cpu is not None and task.device.kind == "gpu":
        on_host = replace(target, device=cpu, sizes=task.space.problem.sizes, dtype=task.space.problem.dtype)
        contenders.append(on_all_cores(on_host, options, observer))
    return Versus(
        dict(task.space.problem.sizes),
        tuple(contenders),
        pinned_ms,
        pageable_ms,
        work(task.space, task.spec.default, task.space.problem.sizes),
        _host_peaks(task, workload, cpu, options),
    )


def _host_peaks(task: TuningTask, workload: Workload, cpu: str | None, options: Options) -> dict[str, float]:
    """What the host reaches in a second, according to the measured ceilings of its OpenCL device."""
    host = task.device
    if host.kind == "gpu":
        if cpu is None:
            return {}
        try:
            _, host = find_device(cpu)
        except AutotuneError:
            return {}
    stored = sum(array.size_bytes for array in workload.arrays if array.role != "in")
    share = stored / workload.size_bytes
    rates = DeviceRates(host, known_ceilings(host.slug, options.cache))
    flops, moved = rates.operations(pipe_of(task.space.problem.dtype)), rates.memory_bytes(share)
    rates_of = {"flops": flops and flops.scaled(MULTIPLY_ADD), "bytes": moved}
    return {amount: rate.per_s for amount, rate in rates_of.items() if rate is not None and rate.is_measured}


def _baselines(task: TuningTask, workload: Workload) -> list[Contender]:
    """The baselines of the reference file and numpy, timed in a process of their own."""
    child = Child(Baselines, task.spec.reference, workload, task.space.macros(task.spec.default))
    try:
        times: Sequence[BaselineTime] = child.call(Baselines.times, timeout_s=_BASELINES_TIMEOUT_S)
        return [Contender(time.name, time.time_ms, time.detail, on_device=not time.on_host) for time in times]
    except ChildFailed as error:
        return [Contender("baselines", None, str(error).partition("\n")[0], on_device=True)]
    finally:
        child.kill()


def _begin(task: TuningTask, options: Options, observer: Observer) -> AbstractContextManager[TuningContext]:
    return open_run(task, replace(options, fresh=True), observer, "versus.jsonl")


def _ways_on_device(task: TuningTask, options: Options, naive: str | None) -> Iterator[_Way]:
    """The tuned configuration, the default and a naive landmark; raises InputError for an unknown one."""
    yield _served(task, options)
    yield _Way(DEFAULT, task.spec.default, "the default of the space")
    landmarks = {landmark.name: landmark.config for landmark in task.spec.landmarks}
    if naive is not None and naive not in landmarks:
        raise InputError(
            f"--naive {naive}: no such landmark; {task.spec.path} has {', '.join(landmarks) or 'none'}"
        )
    chosen = naive or next((name for name, config in landmarks.items() if config in task.space), None)
    if chosen is not None:
        yield _Way(NAIVE, landmarks[chosen], f"the landmark {chosen}")


def _served(task: TuningTask, options: Options) -> _Way:
    """The configuration that production code gets for the problem; else the default."""
    best = served_best(task, options.cache)
    if best is None or best.match.tier is Tier.DEFAULT:
        return _Way(TUNED, task.spec.default, "not tuned: the default")
    return _Way(TUNED, best.config, f"tuned: {best.match.tier.value}")


def on_all_cores(target: Target, options: Options, observer: Observer) -> Contender:
    """The fastest of the tuned configuration, the default and the landmarks on the host's OpenCL device.

    At a large size most of them would take minutes. So the default and the landmarks run at the space's own
    size for a CPU first, and only the fastest there at the problem's.
    """
    try:
        task = read_task(target, observer.stage)
        tuned = _served(task, options)
        ranked = [config for config in _fastest_on_host(target, options, observer) if config in task.space]
        chosen = list(dict.fromkeys((tuned.config, *ranked)))
        with _begin(task, replace(options, journal=None), observer) as context:
            observer.started(task, len(chosen), context.journal)
            trials = _timed(context, chosen)
    except AutotuneError as error:
        return Contender(CPU, None, str(error).partition("\n")[0], on_device=False)
    best = min(trials, key=lambda trial: trial.time_ms or 0.0, default=None)
    if best is None:
        return Contender(CPU, None, "no configuration ran", on_device=False)
    known = {task.spec.default: "the default"}
    known |= {landmark.config: f"the landmark {landmark.name}" for landmark in task.spec.landmarks}
    known[tuned.config] = tuned.detail
    detail = f"{task.device.compute_units} compute units of {task.device.name}, {known[best.config]}"
    return Contender(CPU, best.time_ms, detail, on_device=False)


def _fastest_on_host(target: Target, options: Options, observer: Observer) -> list[Config]:
    """The fastest of the default and the landmarks at the size that the space has for the host.

    Times of earlier sizes and runs are read from the journal, unless the kernel has been edited since.
    """
    task = read_task(replace(target, sizes={}), observer.stage)
    own = replace(options, journal=None)
    try:
        trials = _landmarks_on_host(task, own, observer)
    except JournalError:
        trials = _landmarks_on_host(task, replace(own, fresh=True), observer)
    fastest = sorted(trials, key=lambda trial: trial.time_ms or 0.0)
    return [trial.config for trial in fastest[:_MAX_ON_HOST]]


def _landmarks_on_host(task: TuningTask, options: Options, observer: Observer) -> list[Trial]:
    known = dict.fromkeys([task.spec.default, *(landmark.config for landmark in task.spec.landmarks)])
    with open_run(task, options, observer, "versus.jsonl", POLICY) as context:
        configs = [config for config in known if config in task.space]
        observer.started(task, len(configs), context.journal)
        return _timed(context, configs)


def _timed(context: TuningContext, configs: Sequence[Config]) -> list[Trial]:
    return [trial for trial in evaluate(context.evaluator, configs) if trial.time_ms is not None]
