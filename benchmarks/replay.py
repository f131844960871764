"""Replays of searches on recorded results, without a device.

A recording becomes a space whose valid configurations are the recorded ones, and trials that are answered
from it. `replay_score` scores the runs.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from heapq import heappop, heappush
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from autotune.analysis.external_results import unknown_device
from autotune.core.records import Config, DeviceInfo, LaunchSpec, Parameter, Sizes, Value
from autotune.core.trials import Failure, Problem, Status, Trial
from autotune.errors import InputError, NoMoreTrials
from autotune.hardware.names import slug, traits_of_name
from autotune.interop import Recording, read_recording
from autotune.interop.recording import domains
from autotune.searchers.base import PriorResults, Searcher
from autotune.space import ValidSpace
from autotune.space.enumeration import Rows
from autotune.space.spec import SpaceSpec

Floats = NDArray[np.float64]
_NO_PATH = Path("recorded")  # in place of files: recorded results have none


@dataclass(frozen=True, eq=False)
class Recorded:
    """A recording to search: a trial for each row of the space, with its time (nan: failed) and its cost."""

    recording: Recording
    space: ValidSpace
    trials: tuple[Trial, ...]
    times_ms: Floats
    costs_s: Floats

    @property
    def name(self) -> str:
        """Kernel and device, for tables."""
        return f"{self.recording.kernel}/{self.recording.device}"


@dataclass(frozen=True)
class ReplayRun:
    """One replayed search: the rows it evaluated, in order, and the wall time of the searcher itself."""

    seed: int
    rows: tuple[int, ...]
    requests: int  # configurations asked for, including repeated ones and those outside the space
    thinking_s: float


def load(path: Path) -> Recorded:
    """Load recorded results to search; raises InputError for a bad file or one without a time."""
    recorded = prepare(read_recording(path))
    if not np.isfinite(recorded.times_ms).any():
        raise InputError(f"{path}: no configuration has a time: there is nothing to search for")
    return recorded


def prepare(recording: Recording) -> Recorded:
    """Make a space and trials of a recording; the later trial of a configuration counts."""
    trials = {trial.config: trial for trial in recording.trials}
    parameters = domains([parameter.name for parameter in recording.parameters], trials)
    device = unknown_device(recording.device, slug(recording.device))
    space = recorded_space(recording.kernel, device, parameters, list(trials), recording.sizes)
    ordered = [trials[config] for config in space]
    return Recorded(
        recording=recording,
        space=space,
        trials=tuple(ordered),
        times_ms=np.array([trial.time_ms for trial in ordered], np.float64),
        costs_s=np.array([trial.cost_s for trial in ordered]),
    )


class RecordedSpace(ValidSpace):
    """A space whose valid configurations are listed instead of constrained."""

    def why_invalid(self, config: Mapping[str, Value]) -> tuple[str, ...]:
        """As in any space; also a configuration that is not listed is invalid."""
        return super().why_invalid(config) or (() if config in self else ("not a recorded configuration",))


def recorded_space(
    kernel: str,
    device: DeviceInfo,
    parameters: Sequence[Parameter],
    configs: Sequence[Mapping[str, Value]],
    sizes: Sizes | None = None,
) -> RecordedSpace:
    """A space whose valid configurations are `configs`.

    Repeated configurations count once; 1, 1.0 and True are one value. Configurations are ordered by the
    positions of their values in `parameters`, and the first serves as the default. Raises InputError if
    there is none, or if one lacks a parameter or has an unlisted value.
    """
    rows = _rows(kernel, parameters, configs)
    problem = Problem(dict(sizes or {}), "float32")
    first = zip(parameters, rows[0].tolist(), strict=True)
    default = Config({parameter.name: parameter.values[position] for parameter, position in first})
    spec = SpaceSpec(
        path=_NO_PATH,
        sha256="",
        kernel=kernel,
        dialect="portable",
        source=_NO_PATH,
        reference=_NO_PATH,
        sizes={"default": problem.sizes},
        parameters=tuple(parameters),
        default=default,
        launch=(LaunchSpec(kernel, ("1",), ("1",), ()),),
    )
    return RecordedSpace(spec, device, problem, rows)


def _rows(kernel: str, parameters: Sequence[Parameter], configs: Sequence[Mapping[str, Value]]) -> Rows:
    """The distinct configurations as sorted positions of values, in the dtype of `Space.rows`."""
    if not configs or not parameters:
        raise InputError(f"{kernel}: no configuration is recorded")
    longest = max(len(parameter.values) for parameter in parameters)
    columns = []
    for parameter in parameters:
        positions = {value: number for number, value in enumerate(parameter.values)}
        try:
            columns.append([positions[config[parameter.name]] for config in configs])
        except KeyError as error:
            raise InputError(f"{kernel}: {parameter.name}: no value {error}") from None
    rows = np.unique(np.array(columns, np.min_scalar_type(longest - 1)).T, axis=0)
    return np.ascontiguousarray(rows.astype(rows.dtype.newbyteorder(">")))


def priors_for(recorded: Recorded, others: Sequence[Recorded], evaluations: int) -> tuple[PriorResults, ...]:
    """The results of a random search of the same kernel on each other device; 0 evaluations take all.

    The draw depends on the number of configurations only, so every searcher gets the same results.
    """
    return tuple(
        _prior_results(other, evaluations)
        for other in others
        if other.recording.kernel == recorded.recording.kernel
        and other.recording.device != recorded.recording.device
    )


def _prior_results(recorded: Recorded, evaluations: int) -> PriorResults:
    total = len(recorded.trials)
    drawn = np.random.default_rng(total).permutation(total)[:evaluations] if evaluations else range(total)
    trials = [recorded.trials[int(row)] for row in drawn]
    device = recorded.recording.device
    results = tuple((trial.config, trial.time_ms) for trial in trials)
    return PriorResults(device, results, traits_of_name(device))


class ReplayTrials:
    """Answers from recorded results; each configuration costs budget once.

    With several devices, a trial ends as long after its submission as it took when it was recorded.
    """

    def __init__(self, recorded: Recorded, budget: int, parallel: int = 1) -> None:
        self.parallel = parallel
        self.rows: dict[int, None] = {}  # in order of evaluation
        self.requests = 0
        self.own_s = 0.0  # wall time of this class, not the searcher's
        self._recorded, self._budget = recorded, budget
        self._begun: set[int] = set()
        self._now_s = 0.0
        self._under_way: list[tuple[float, int]] = []  # when each row ends, as a heap
        self._ended: deque[Trial] = deque()  # those that cost nothing

    def submit(self, configs: Sequence[Config]) -> None:
        """Begin to evaluate recorded configurations that are new, as far as the budget covers them."""
        began_s = time.perf_counter()
        self.requests += len(configs)
        for config in configs:
            row = self._recorded.space.index(config)
            if row is None:
                self._ended.append(Trial(config, "", Failure(Status.INVALID, "not recorded")))
            elif row in self.rows:
                self._ended.append(self._recorded.trials[row])
            elif row not in self._begun and len(self._begun) < self._budget:
                # one device runs them one after the other: their number stands for the time
                ends_s = len(self._begun) if self.parallel == 1 else self._now_s + self._recorded.costs_s[row]
                self._begun.add(row)
                heappush(self._under_way, (ends_s, row))
        self.own_s += time.perf_counter() - began_s

    def collect(self) -> list[Trial]:
        """The trial that ends next; raises NoMoreTrials after the last one."""
        if self._ended:
            return [self._ended.popleft()]
        if not self._under_way:
            raise NoMoreTrials
        self._now_s, row = heappop(self._under_way)
        self.rows[row] = None
        return [self._recorded.trials[row]]


def replay(recorded: Recorded, searcher: Searcher, *, budget: int, seed: int, parallel: int = 1) -> ReplayRun:
    """Run one search until it has evaluated `budget` configurations, `parallel` at a time, or returns."""
    trials = ReplayTrials(recorded, budget, parallel)
    began = time.perf_counter()
    with suppress(NoMoreTrials):
        searcher.search(recorded.space, trials, seed=seed)
    thinking_s = time.perf_counter() - began - trials.own_s
    return ReplayRun(seed, tuple(trials.rows), trials.requests, thinking_s)
