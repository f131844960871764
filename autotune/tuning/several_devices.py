"""Makes sure that times of several devices can be compared, before the search and after it.

Before: every device times the same few configurations. One that is off or noisy takes no part.
After: the last round, which runs on one device, is repeated on a second one.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from statistics import median, median_low

import numpy as np

from autotune.cluster.device_host import DeviceGone
from autotune.cluster.fleet import Fleet
from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.trials import DeviceScale, Failure, median_interval
from autotune.errors import SetupError
from autotune.tuning.context import Built, TuningContext
from autotune.tuning.finish_search import finish_search
from autotune.tuning.last_round import Searched
from autotune.tuning.observer import Observer
from autotune.tuning.remeasure import remeasure
from autotune.tuning.result import SearchResult
from autotune.tuning.ties import winner_and_ties
from autotune.tuning.turns import Series, Turns

CONFIGURATIONS = 4  # configurations that every device times: the default, and others from all over the space
ROUNDS = 8
MAX_OFF = 0.02  # relative difference to the other devices, and half the width of its interval

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
    built = _built(context)
    there = {name: replace(context, worker=fleet.worker(name), observer=Observer()) for name in names}
    with ThreadPoolExecutor(len(names)) as threads:
        timed = {name: threads.submit(_times, own, built) for name, own in there.items()}
    times: dict[str, _Times] = {}
    for name, found in timed.items():
        try:
            times[name] = found.result()
        except DeviceGone as error:
            fleet.leave_out(name, error.reason)
    scales = scales_of(times)
    context.journal.append_devices(scales)
    unlike = {name: scale for name, scale in scales.items() if not is_alike(scale)}
    for name, scale in unlike.items():
        context.observer.warn(f"{name} is left out: {_why(scale)}")
    if len(unlike) == len(scales):
        raise SetupError("no device takes steady times; search with one device")
    fleet.admit(scales.keys() - unlike.keys())


def scales_of(times: Mapping[str, _Times]) -> dict[str, DeviceScale]:
    """The scale of every device relative to the median one, the faster of two."""
    if not times:  # all workers were lost at the same time
        raise SetupError("no device is left to search with; once one works, the same command goes on")
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


def _built(context: TuningContext) -> list[Built]:
    space = context.task.space
    rows = np.random.default_rng(0).permutation(len(space))[: CONFIGURATIONS - 1]
    configs = dict.fromkeys([space.spec.default, *(space.config(int(row)) for row in rows)])
    return [*context.build(configs)[0].values()]


def _times(context: TuningContext, built: Sequence[Built]) -> _Times:
    """Time the configurations in turns on the context's device, after verifying them there."""
    failures: dict[Config, Failure] = {}
    series = []
    for one in built:
        found = context.verify(one.binary, one.instance.problem)
        if isinstance(found, Failure):
            failures[one.instance.config] = found
        series.append(Series(one, context.journal.batch or 1, repeatable=found is True))
    Turns(context, series, failures, min).run(ROUNDS)
    return [[] if timed.config in failures else timed.values_ms for timed in series]


def finish_on_two_devices(context: TuningContext, fleet: Fleet, searched: Searched) -> SearchResult:
    """Run the last round on one device, or on the next if that fails, and repeat it on another.

    Each gets half of the time for the last round, if that is limited.

    Raises:
        SetupError: The default fails, or no device is left.
        NoMemory: The last device has no memory left.
        CacheError: The cache cannot be written.
    """
    limits = searched.limits
    half_s = limits.round_s / 2 if limits.is_limited else limits.round_s
    half = replace(searched, limits=replace(limits, round_s=half_s))
    for used in fleet.present():
        if used not in fleet.devices:  # it has gone since
            continue
        try:
            result = finish_search(replace(context, worker=fleet.worker(used)), half)
        except DeviceGone as error:
            fleet.leave_out(error.device, error.reason)
            continue
        try:
            _repeat_last_round(context, fleet, result, used, half_s)
        except DeviceGone as error:
            context.observer.warn(f"the last round is not repeated: {error}")
        return result
    raise SetupError("no device is left for the last round; once one works, the same command goes on")


def _repeat_last_round(
    context: TuningContext, fleet: Fleet, result: SearchResult, used: str, limit_s: float
) -> None:
    """Run the last round on a second device, too; warn if another configuration wins there."""
    second = next((name for name in fleet.present() if name != used), None)
    rounds = reversed(context.journal.last_rounds)
    keys = next((keys for keys in rounds if result.winner.key in keys), None)
    if second is None or keys is None:
        return
    known = {trial.key: trial for trial in (*context.journal.trials.values(), result.winner)}
    chosen = [replace(known[key], objective=context.objective) for key in keys if key in known]
    context.observer.stage(Stage(f"repeating the last round on {second}"))
    there = replace(context, worker=fleet.worker(second))
    outcome = remeasure(there, chosen, time.perf_counter() + limit_s)
    if failure := outcome.rejected.get(result.winner.config):
        context.observer.warn(f"the best fails on {second}: {failure}")
        return
    passed = [trial for trial in chosen if trial.key in outcome.measurements]
    first, *ties = winner_and_ties(passed, outcome.measurements, context.objective)
    if result.winner.key not in {trial.key for trial in (first, *ties)}:
        best_ms, own_ms = (outcome.measurements[one.key].median_ms for one in (first, result.winner))
        context.observer.warn(
            f"{second} disagrees with {used}: there the best takes {own_ms:.4g} ms, and "
            f"{first.config} {best_ms:.4g} ms"
        )
