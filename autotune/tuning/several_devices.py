"""Makes sure that times of several devices can be compared, before the search and after it.

Before: every device times the same few configurations. One that is off or noisy takes no part.
After: the finalists of the last round, which runs on one device, are measured on a second one, too.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from statistics import median, median_low

import numpy as np

from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.trials import DeviceScale, Failure, Trial, median_interval
from autotune.errors import SetupError
from autotune.evaluation.fleet import DeviceGone, Fleet
from autotune.processes.deadline import Deadline
from autotune.space import ValidSpace
from autotune.tuning.context import BuiltConfig, TuningContext
from autotune.tuning.finish_search import finish_search
from autotune.tuning.last_round import LastRoundSetting
from autotune.tuning.observer import Observer
from autotune.tuning.remeasure import Remeasurement, remeasure
from autotune.tuning.result import SearchResult
from autotune.tuning.ties import winner_and_ties
from autotune.tuning.turns import Series, Turns

CONFIGURATIONS = 4  # that every device times, to be compared with the others
ROUNDS = 8
MAX_OFF = 0.02  # a device is unlike if it differs by more, or half of its interval is wider

_Times = list[list[float]]  # by configuration, in ms; empty if it fails


def calibrate(context: TuningContext, fleet: Fleet) -> None:
    """Compare the devices, write their scales to the journal, and drop the unlike ones.

    Raises:
        SetupError: No device is left, no configuration runs on all, or none is like another and steady.
    """
    names = fleet.present()
    if len(names) < 2:
        return
    context.observer.stage(Stage(f"comparing {len(names)} devices"))
    builds = [*context.build(calibration_configs(context.task.space))[0].values()]
    there = {name: replace(context, worker=fleet.worker_of(name), observer=Observer()) for name in names}
    with ThreadPoolExecutor(len(names)) as threads:
        timed = {
            name: threads.submit(_times, device_context, builds) for name, device_context in there.items()
        }
    times: dict[str, _Times] = {}
    for name, future in timed.items():
        try:
            times[name] = future.result()
        except DeviceGone as error:
            fleet.leave_out(name, error.reason)
    scales = scales_of(times)
    context.journal.append_devices(scales)
    unlike = {name: scale for name, scale in scales.items() if not is_alike(scale)}
    for name, scale in unlike.items():
        context.observer.warn(f"{name} is left out: {_why(scale)}")
    if len(unlike) == len(scales):
        raise SetupError("no device's times are steady; search with one device")
    fleet.admit(scales.keys() - unlike.keys())


def scales_of(times: Mapping[str, _Times]) -> dict[str, DeviceScale]:
    """The scale of every device relative to the median one, the faster of two."""
    if not times:  # all workers were lost at the same time
        raise SetupError("no device is left to search with; once one works, the same command resumes")
    common = [
        number
        for number in range(len(next(iter(times.values()))))
        if all(timed[number] for timed in times.values())
    ]
    if not common:
        raise SetupError("no configuration runs on all devices; search with one device")
    medians = {name: [median(timed[number]) for number in common] for name, timed in times.items()}
    means = {name: math.exp(np.mean(np.log(values))) for name, values in medians.items()}
    middle = median_low(means.values())
    usual = medians[next(name for name, value in means.items() if value == middle)]
    scales = {}
    for name, timed in times.items():
        ratios = [
            value / expected
            for number, expected in zip(common, usual, strict=True)
            for value in timed[number]
        ]
        scales[name] = DeviceScale(median(ratios), median_interval(ratios))
    return scales


def is_alike(scale: DeviceScale) -> bool:
    """Judge whether times of a device can be compared with other devices' times."""
    low, high = scale.interval
    return abs(scale.scale - 1) <= MAX_OFF and (high - low) / 2 <= MAX_OFF


def _why(scale: DeviceScale) -> str:
    low, high = scale.interval
    times = f"it takes {scale.scale:.3f} ({low:.3f} to {high:.3f}) times as long as the others"
    return times if abs(scale.scale - 1) > MAX_OFF else f"its times are noisy: {times}"


def calibration_configs(space: ValidSpace) -> list[Config]:
    """The configurations that `calibrate` times: the default, and others from all over the space."""
    rows = np.random.default_rng(0).permutation(len(space))[: CONFIGURATIONS - 1]
    return [*dict.fromkeys([space.spec.default, *(space.config(int(row)) for row in rows)])]


def _times(context: TuningContext, builds: Sequence[BuiltConfig]) -> _Times:
    """Time the configurations in turns on the context's device, after verifying them there."""
    failures: dict[Config, Failure] = {}
    series = []
    for built in builds:
        failure = context.verify(built.binary, built.instance.workload)
        if failure is not None:
            failures[built.instance.config] = failure
        repeatable = failure is None and context.is_repeatable(built.instance.workload)
        series.append(Series(built, context.journal.batch or 1, repeatable))
    Turns(context, series, failures, min).run(ROUNDS, Deadline())
    return [[] if timed.config in failures else timed.values_ms for timed in series]


def finish_on_two_devices(context: TuningContext, fleet: Fleet, setting: LastRoundSetting) -> SearchResult:
    """Run the last round on one device, or on the next if that fails, and its measurements on another too.

    Raises:
        SetupError: The default fails, or no device is left.
        NoMemory: The last device has no memory left.
        CacheError: The cache cannot be written.
    """
    for used in fleet.present():
        if used not in fleet.names:  # it has gone since
            continue
        with ThreadPoolExecutor(1) as threads:
            second = _SecondDevice(context, fleet, used, threads)
            try:
                here = replace(context, worker=fleet.worker_of(used))
                result = finish_search(here, replace(setting, measure_again=second.measure_again))
            except DeviceGone as error:
                fleet.leave_out(error.device, error.reason)
                continue
            second.compare(result)
        return result
    raise SetupError("no device is left for the last round; once one works, the same command resumes")


class _SecondDevice:
    """Measures the finalists of a last round at the same time on a second device, if there is one."""

    def __init__(self, context: TuningContext, fleet: Fleet, used: str, threads: Executor) -> None:
        self._context, self._used, self._threads = context, used, threads
        self._name = next((name for name in fleet.present() if name != used), "")
        worker = fleet.worker_of(self._name) if self._name else context.worker
        self._there = replace(context, worker=worker, observer=Observer())
        self._trials: Sequence[Trial] = ()
        self._measured: Future[Remeasurement] | None = None

    def measure_again(
        self, context: TuningContext, trials: Sequence[Trial], deadline: Deadline
    ) -> Remeasurement:
        """Measure the finalists on the device of the context, as the function does, and on the second one."""
        if self._name:
            self._trials = trials
            self._measured = self._threads.submit(remeasure, self._there, trials, deadline)
        return remeasure(context, trials, deadline)

    def compare(self, result: SearchResult) -> None:
        """Warn if another configuration wins on the second device."""
        if self._measured is None:  # the last round is an earlier search's
            return
        warn, second, winner = self._context.observer.warn, self._name, result.winner
        try:
            outcome = self._measured.result()
        except DeviceGone as error:
            warn(f"the last round is not repeated: {error}")
            return
        if failure := outcome.rejected.get(winner.config):
            warn(f"the best fails on {second}: {failure}")
            return
        passed = [trial for trial in self._trials if trial.key in outcome.measurements]
        first, *ties = winner_and_ties(passed, outcome.measurements, self._context.objective)
        if winner.key not in {trial.key for trial in (first, *ties)}:
            best_ms, own_ms = (outcome.measurements[trial.key].median_ms for trial in (first, winner))
            warn(
                f"{second} disagrees with {self._used}, whose best takes {own_ms:.4g} ms on {second}, while "
                f"{first.config} takes {best_ms:.4g} ms"
            )
