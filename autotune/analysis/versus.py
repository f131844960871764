"""The tuned kernel beside what else does its work: honest speed-ups, with and without transfers.

On the device: the tuned configuration, the default, a naive landmark, and the baselines of the reference
file. On the host: numpy on one thread, and the same kernel on all cores as an OpenCL device.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

from autotune.analysis.transfers import call_in_pieces_ms, call_transfer_ms
from autotune.core.records import Config, Sizes, Tier
from autotune.core.trials import Trial
from autotune.errors import AutotuneError, ChildFailed, InputError, JournalError
from autotune.evaluation.baselines import ALL_CORES, NUMPY, Baselines, baseline_times
from autotune.processes.child import Child
from autotune.tuning.context import FULL_POLICY, TuningContext, default_journal, open_context
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.served import served_best
from autotune.tuning.task import Target, TuningTask, bind_target

TUNED, DEFAULT, NAIVE, CPU = "tuned", "default", "naive", "CPU, all cores"
_BASELINES_TIMEOUT_S = 300.0
_MAX_ON_HOST = 3  # of the default and the landmarks, at the problem's size


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
class Pieces:
    """Whole calls of the tuned kernel with pinned copies: at once, and in pieces whose copies overlap."""

    size: str  # that is divided
    count: int
    whole_ms: float
    pieces_ms: float


@dataclass(frozen=True)
class Versus:
    """All contenders for one problem, and what copies cost a call; None where they were not timed."""

    sizes: Sizes
    contenders: tuple[Contender, ...]
    pinned_ms: float | None
    pageable_ms: float | None
    pieces: Pieces | None = None

    @property
    def tuned_ms(self) -> float | None:
        """The time of the tuned kernel alone."""
        return next((one.time_ms for one in self.contenders if one.name == TUNED), None)

    @property
    def fastest_host(self) -> Contender | None:
        """The fastest contender that needs no copies."""
        timed = [one for one in self.contenders if not one.on_device and one.time_ms is not None]
        return min(timed, key=lambda one: one.time_ms or 0.0, default=None)

    @property
    def pays(self) -> bool | None:
        """Whether the tuned kernel with copies from pageable memory beats every host contender."""
        host = self.fastest_host
        if host is None or host.time_ms is None or self.tuned_ms is None or self.pageable_ms is None:
            return None
        return self.tuned_ms + self.pageable_ms < host.time_ms


def versus(
    target: Target,
    options: Options,
    observer: Observer,
    cpu: str | None,
    naive: str | None = None,
    pieces: tuple[str, int] | None = None,
) -> Versus:
    """Time all contenders for one problem.

    Args:
        target: The space, the device and the problem.
        options: How to compile and run.
        observer: Receives the events of the runs.
        cpu: The host as an OpenCL device; None leaves it out.
        naive: The landmark to take as naive; None takes the first.
        pieces: The size to divide, and by what, for a call in pieces; None times none.

    Raises:
        InputError: There is no such landmark, or the size cannot be divided so.
        SetupError: The reference or the device cannot be used.
    """
    task = bind_target(target, observer.stage)
    divided = None if pieces is None else _in_pieces(target, task, options, observer, *pieces)
    configs = dict(_configs(task, options, naive))
    pinned = pageable = None
    with _open(task, options, observer) as context:
        observer.started(task, len(configs), context.journal)
        trials = context.evaluator([config for config, _ in configs.values()])
        found = [
            _contender(name, trial, detail)
            for (name, (_, detail)), trial in zip(configs.items(), trials, strict=True)
        ]
        problem = context.maker.make(task.spec.default).problem
        if task.device.kind == "gpu":
            pinned, pageable = (call_transfer_ms(context, problem, pinned=one) for one in (True, False))
    child = Child(Baselines, task.spec.reference, problem)
    try:
        for one in child.call(baseline_times, timeout_s=_BASELINES_TIMEOUT_S):
            is_host = one.name.startswith(NUMPY)
            host = "all threads of its libraries" if one.name == ALL_CORES else "one thread"
            detail = one.detail or (host if is_host else "runs one after the other, caches warm")
            found.append(Contender(one.name, one.time_ms, detail, on_device=not is_host))
    except ChildFailed as error:
        found.append(Contender("baselines", None, str(error).partition("\n")[0], on_device=True))
    finally:
        child.kill()
    if cpu is not None and task.device.kind == "gpu":
        on_host = replace(target, device=cpu, sizes=task.space.problem.sizes, dtype=task.space.problem.dtype)
        found.append(on_all_cores(on_host, options, observer))
    return Versus(dict(task.space.problem.sizes), tuple(found), pinned, pageable, divided)


def _in_pieces(
    target: Target, whole: TuningTask, options: Options, observer: Observer, size: str, count: int
) -> Pieces:
    """Time a whole call and one in pieces; raises InputError where the size cannot be divided so."""
    sizes = whole.space.problem.sizes
    if size not in sizes or sizes[size] % count:
        has = " ".join(f"{name}={value}" for name, value in sizes.items())
        raise InputError(
            f"--pieces {size}={count}: expected a size and a divisor of it; the problem has {has}"
        )
    piece = bind_target(replace(target, sizes={**sizes, size: sizes[size] // count}), observer.stage)
    times = []
    for task, calls in ((whole, 1), (piece, count)):
        with _open(task, options, observer) as context:
            times.append(call_in_pieces_ms(context, _served(task, options)[0], calls))
    return Pieces(size, count, *times)


def _open(task: TuningTask, options: Options, observer: Observer) -> AbstractContextManager[TuningContext]:
    journal = options.journal or default_journal(task, "versus.jsonl")
    return open_context(task, replace(options, journal=journal, fresh=True), observer, FULL_POLICY)


def _configs(
    task: TuningTask, options: Options, naive: str | None
) -> Iterator[tuple[str, tuple[Config, str]]]:
    """What runs on the device: name, configuration and what it is."""
    tuned, how = _served(task, options)
    yield TUNED, (tuned, how)
    yield DEFAULT, (task.spec.default, "the default of the space")
    landmarks = {one.name: one.config for one in task.spec.landmarks}
    if naive is not None and naive not in landmarks:
        raise InputError(
            f"--naive {naive}: no such landmark; {task.spec.path} has {', '.join(landmarks) or 'none'}"
        )
    first = naive or next((name for name, config in landmarks.items() if config in task.space), None)
    if first is not None:
        yield NAIVE, (landmarks[first], f"the landmark {first}")


def _served(task: TuningTask, options: Options) -> tuple[Config, str]:
    """The configuration that production code gets for the problem, and why; else the default."""
    best = served_best(task, options.cache)
    if best is None or best.match.tier is Tier.DEFAULT:
        return task.spec.default, "not tuned: the default"
    return best.config, f"tuned: {best.match.tier.value}"


def _contender(name: str, trial: Trial, detail: str) -> Contender:
    return Contender(name, trial.time_ms, str(trial.failure or detail), on_device=True)


def on_all_cores(target: Target, options: Options, observer: Observer) -> Contender:
    """The fastest of the tuned configuration, the default and the landmarks on the host's OpenCL device.

    At a large size most of them would take minutes. So the default and the landmarks run at the space's own
    size for a CPU first, and only the fastest there at the problem's.
    """
    try:
        task = bind_target(target, observer.stage)
        tuned, how = _served(task, options)
        ranked = [one for one in _fastest_on_host(target, options, observer) if one in task.space]
        chosen = list(dict.fromkeys((tuned, *ranked)))
        with _open(task, replace(options, journal=None), observer) as context:
            observer.started(task, len(chosen), context.journal)
            trials = _timed(context, chosen)
    except AutotuneError as error:
        return Contender(CPU, None, str(error).partition("\n")[0], on_device=False)
    best = min(trials, key=lambda trial: trial.time_ms or 0.0, default=None)
    if best is None:
        return Contender(CPU, None, "no configuration ran", on_device=False)
    known = {task.spec.default: "the default"}
    known |= {one.config: f"the landmark {one.name}" for one in task.spec.landmarks} | {tuned: how}
    detail = f"{task.device.compute_units} compute units of {task.device.name}, {known[best.config]}"
    return Contender(CPU, best.time_ms, detail, on_device=False)


def _fastest_on_host(target: Target, options: Options, observer: Observer) -> list[Config]:
    """The fastest of the default and the landmarks at the size that the space has for the host.

    Times of earlier sizes and runs are read from the journal, unless the kernel has been edited since.
    """
    task = bind_target(replace(target, sizes={}), observer.stage)
    own = replace(options, journal=default_journal(task, "versus.jsonl"))
    try:
        trials = _landmarks_on_host(task, own, observer)
    except JournalError:
        trials = _landmarks_on_host(task, replace(own, fresh=True), observer)
    fastest = sorted(trials, key=lambda trial: trial.time_ms or 0.0)
    return [trial.config for trial in fastest[:_MAX_ON_HOST]]


def _landmarks_on_host(task: TuningTask, options: Options, observer: Observer) -> list[Trial]:
    """Time the default and the landmarks."""
    known = dict.fromkeys([task.spec.default, *(one.config for one in task.spec.landmarks)])
    with open_context(task, options, observer) as context:
        configs = [config for config in known if config in task.space]
        observer.started(task, len(configs), context.journal)
        return _timed(context, configs)


def _timed(context: TuningContext, configs: Sequence[Config]) -> list[Trial]:
    return [trial for trial in context.evaluator(configs) if trial.time_ms is not None]
