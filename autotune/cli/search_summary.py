"""The result of a search as text and as JSON values."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from textwrap import shorten
from typing import Any

from autotune.cli.device_use import use_of
from autotune.cli.texts import measured_text, space_problem
from autotune.core.outcomes import (
    checks_text,
    combined,
    index_limit,
    is_late,
    names_text,
    outcomes_text,
    unchecked_text,
    unpassed,
)
from autotune.core.records import ADOPTION, NOISY, Config
from autotune.core.text import count_text, first_error, ratio_text
from autotune.core.trials import Measurement, Objective, Status, Trial
from autotune.devices import INTERPRETER
from autotune.plans.search_plan import PlanResult
from autotune.tuning.finalists import by_score
from autotune.tuning.groups import Group, verdict
from autotune.tuning.last_round import MAX_TIES
from autotune.tuning.result import SearchResult
from autotune.tuning.served_best import KnownResult
from autotune.tuning.timing_warnings import timing_warnings

_COSTS = {
    Objective.TIME: "time",
    Objective.ENERGY: "energy",
    Objective.EDP: "energy times delay",
    Objective.PARETO: "energy times delay",
}
# what details of failed checks begin with
_CHECKS = ("with ", "at sizes", "in run", "run on the CPU", "compute-sanitizer")
_PRECISE = 0.02  # relative to the median; a narrower interval needs no explanation
_REASON_LETTERS = 100
_FASTEST = 10  # number of the fastest configurations that the line `learnt` describes


def result_line(result: SearchResult) -> str:
    """One line on a search that is one of several."""
    is_tied = result.task.spec.default in (*result.ties, *result.unchecked_ties)
    gain = "not distinguishable from" if is_tied else f"{ratio_text(result.speedup)} over"
    best = f"best {result.final.median_ms:.4g} ms, {gain} the default"
    return f"{result.task.spec.kernel}{_unverified(result)}: {best}; {result.coverage}"


def result_text(result: SearchResult) -> str:
    """The summary of a search: winner, trials, lessons, and where the result is stored."""
    task, winner, final = result.task, result.winner, result.final
    is_earlier = all(trial.config != winner.config for trial in result.trials)
    before = ", which already had this configuration" if result.was_served else ""
    lines = [
        f"{task.spec.kernel} on {task.device.name} ({task.address}), {space_problem(task.space)}"
        + _unverified(result),
        f"best    {measured_text(task.space, winner.config, final)}"
        + _energy_text(final)
        + (", found by an earlier search" if is_earlier else ""),
        f"        {_difference_text(winner.config, task.spec.default, 'default')}",
        *_metrics_line(result),
        *_device_use_line(result),
        f"default {result.default.median_ms:.4g} ms{_energy_text(result.default)}: {_speedup_text(result)}",
        *_rejected_line(result),
        _trials_line(result),
        *_front_line(result),
        *([] if _is_rehearsal(result) else _lines_of_times(result)),
        *uncompared(result),
        *failures(result),
        *([] if _is_rehearsal(result) else _lesson_line(result)),
        result.coverage,
        *([f"checks  {checks}"] if (checks := outcomes_text(result.checks)) else []),
        *([f"limit   {limit}"] if (limit := index_limit(result.checks)) else []),
        f"kept    {result.cache_file}{before} (trials: {result.journal})",
        f"next    {_next_command(result)}",
    ]
    return "\n".join(lines)


def result_json(result: SearchResult) -> dict[str, Any]:
    return {
        "kernel": result.task.spec.kernel,
        "device": asdict(result.task.device),
        "sizes": dict(result.task.space.problem.sizes),
        "dtype": result.task.space.problem.dtype,
        "engine": result.engine,
        "measure": asdict(result.task.spec.measure),
        "config": dict(result.winner.config),
        "time_ms": result.final.median_ms,
        "objective": result.objective_name,
        "metrics": _metrics(result),
        "energy_j": result.final.energy_j,
        "front": [[dict(config), time_ms, energy_j] for config, time_ms, energy_j in result.front],
        "interval_ms": list(result.final.interval_ms),
        "default_time_ms": result.default.median_ms,
        "speedup": result.speedup,
        "speedup_interval": result.speedup_interval,
        "ties": [dict(config) for config in result.ties],
        "unchecked_ties": [dict(config) for config in result.unchecked_ties],
        "unchecked": list(unpassed(result.checks)),
        "groups": [
            {"name": group.name, "tried": group.tried, "time_ms": group.best and group.best.median_ms}
            for group in result.groups
        ],
        "trials": len(result.trials),
        "resumed": result.resumed,
        "valid_configurations": len(result.task.space),
        "compared": result.compares,
        "uncompared": list(result.uncompared),
        "checks": checks_text(result.checks),
        "counts": {status.value: count for status, count in result.counts.items()},
        "seconds": result.seconds,
        "priors": {prior.origin: len(prior.results) for prior in result.priors},
        "chance_of_faster": result.stopping_estimate.improvement_probability,
        "expected_gain": result.stopping_estimate.expected_improvement,
        "cache_file": str(result.cache_file),
        "journal": str(result.journal),
    }


def plan_text(done: PlanResult) -> str:
    """The summary of a plan of one search."""
    return known_text(done.known) if done.known else result_text(done.results[0])


def plan_json(done: PlanResult, *, is_several: bool) -> dict[str, Any] | list[dict[str, Any]]:
    if known := done.known:
        return {"adopted": False, "config": dict(known.entry.config), "time_ms": known.entry.time_ms}
    results = [result_json(result) for result in done.results]
    if is_several:
        return results
    return results[0] | ({"adopted": True} if done.results[0].engine == ADOPTION else {})


def known_text(known: KnownResult) -> str:
    """The message that nothing was run, with the reason."""
    task, entry = known.task, known.entry
    origin = entry.provenance
    return (
        f"{task.spec.kernel} on {task.device.name}, {space_problem(task.space)}: tuned already, with "
        f"{count_text(origin.trials, 'trial')} of {origin.engine}{entry.caveat}; nothing was run\n"
        f"best    {entry.time_ms:.4g} ms: {entry.config}"
    )


def _unverified(result: SearchResult) -> str:
    """The checks that were not made, for the first line; empty if all were."""
    if _is_rehearsal(result):
        return ": a rehearsal, whose times mean nothing"
    names = unpassed(result.checks)
    count = f"{len(names)} of {count_text(len(result.checks), 'check')}"
    return f": not verified in full, without {count}: {names_text(names)}" if names else ""


def _trials_line(result: SearchResult) -> str:
    count = len(result.trials)
    statuses = ", ".join(f"{number} {status.value}" for status, number in result.counts.most_common())
    start = f", starting from {count_text(len(result.priors), 'other result')}," if result.priors else ""
    line = (
        f"tried   {count:,} of {len(result.task.space):,} valid configurations with {result.engine}{start} "
        f"in {result.seconds:.0f} s: {statuses}"
    )
    if result.resumed:
        resumed = "all" if result.resumed == count else result.resumed
        line += f"; {resumed} of them came from the journal"
    if result.beside_budget:
        line += "; the best in the cache was tried beyond the budget"
    if result.resumed < count and (cached := sum(trial.binary_cached for trial in result.trials)):
        line += f"; {cached} with a binary of an earlier run"
    return line + ("; time ran out" if result.time_was_over else "")


def _lines_of_times(result: SearchResult) -> list[str]:
    """What the times mean, and how far they can be trusted."""
    measure, warnings = str(result.task.spec.measure), timing_warnings(result)
    return [
        *_tie_lines(result),
        *_group_line(result),
        *([f"timed   {measure}"] if measure else []),
        *_noise_line(result.final),
        *([f"warning {'; '.join(warnings)}"] if warnings else []),
    ]


def _difference_text(config: Config, base: Config, name: str) -> str:
    """A configuration as its difference from another one, which `--config` takes for the default."""
    differing = {parameter: value for parameter, value in config.items() if value != base[parameter]}
    rest = "" if len(differing) == len(config) else f"; the rest as in the {name}"
    return f"{Config(differing)}{rest}" if differing else f"the {name}"


def _objective_noun(result: SearchResult) -> str:
    """The objective of a search, as a noun."""
    return _COSTS.get(result.objective, result.objective_name)


def _metrics(result: SearchResult) -> Mapping[str, float]:
    """The metrics of the winner, of its trial in the search."""
    pairs = zip(result.trials, result.metrics, strict=True)
    return next((metrics for trial, metrics in pairs if trial.config == result.winner.config), {})


def _metrics_line(result: SearchResult) -> list[str]:
    figures = [f"{name} {value:.4g}" for name, value in _metrics(result).items()]
    if result.objective is Objective.OWN:
        figures.insert(0, f"{result.objective_name} = {result.final.value:.4g}")
    return [f"        {', '.join(figures)}"] if figures else []


def _device_use_line(result: SearchResult) -> list[str]:
    """The best configuration's use of a GPU, as far as known."""
    winner = replace(result.winner, measurement=result.final)
    use = use_of(result.task.space, winner)
    parts = []
    if winner.registers is not None:
        parts.append(f"{winner.registers} registers")
    if use.occupancy is not None:
        parts.append(f"occupancy {use.occupancy.share:.0%}, limited by {use.occupancy.limit}")
    if use.bandwidth_share is not None:
        parts.append(f"{use.bandwidth_share:.0%} of the peak bandwidth")
    return [f"        {'; '.join(parts)}"] if parts else []


def _energy_text(measurement: Measurement) -> str:
    return f", {measurement.energy_j:.4g} J a run" if measurement.energy_j is not None else ""


def _speedup_text(result: SearchResult) -> str:
    """The gain of the best over the default, as far as the measurement can tell."""
    default, ratio = result.task.spec.default, result.speedup
    if result.winner.config == default:
        return _why_default(result)
    if default in (*result.ties, *result.unchecked_ties) or ratio <= 1:
        return "the best cannot be told from it"
    doubt = "" if result.compares else ", if its result is right"
    if result.objective is not Objective.TIME:
        cost = f"{1 / ratio:.0%} of the default's {_objective_noun(result)}"
        time = f"{result.final.median_ms / result.default.median_ms:.0%} of its time"
        return f"the best takes {cost} and {time}{doubt}"
    if ratio < 1.005:
        return f"the best is less than 0.5% faster{doubt}"
    factor = _factor(ratio)
    ends = [_factor(end) for end in result.speedup_interval or ()]
    reach = f" ({' to '.join(ends)})" if {*ends} - {factor} else ""
    beaten = _beaten_by_default(result) if ratio < 2 else 0.0
    why = f"; the default beats {beaten:.0%} of the other timed ones" if beaten >= 0.1 else ""
    return f"the best is {factor} times as fast{reach}{doubt}{why}"


def _factor(ratio: float) -> str:
    return f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}" if ratio >= 2 else f"{ratio:.2f}"


def _why_default(result: SearchResult) -> str:
    """The reason why the default is the best."""
    others = [trial for trial in result.trials if trial.config != result.winner.config]
    if not others:
        return "no other configuration was tried"
    if all(trial.score is None for trial in others):
        return "all other configurations tried failed"
    if result.objective is Objective.TIME:
        return "no other configuration tried is faster"
    return f"no other configuration tried takes less {_objective_noun(result)}"


def _beaten_by_default(result: SearchResult) -> float:
    """The share of the other configurations that were slower than the default in the search."""
    times_ms = {trial.config: trial.time_ms for trial in result.trials if trial.time_ms is not None}
    default_ms = times_ms.pop(result.task.spec.default, result.default.median_ms)
    times_ms.pop(result.winner.config, None)
    return sum(time_ms > default_ms for time_ms in times_ms.values()) / max(1, len(times_ms))


def _front_line(result: SearchResult) -> list[str]:
    if not result.front:
        return []
    ends = [f"{time_ms:.4g} ms, {energy_j:.4g} J" for _, time_ms, energy_j in result.front]
    reach = f"from {ends[0]} to {ends[-1]}" if len(ends) > 1 else ends[0]
    return [
        f"front   {len(ends)} that no other beats in both time and energy, {reach}: "
        f"autotune show {result.journal} --pareto"
    ]


def _tie_lines(result: SearchResult) -> list[str]:
    ties = (*result.ties, *result.unchecked_ties)
    if not ties:
        return []
    winner, default, count = result.winner.config, result.task.spec.default, len(ties)
    names = ", ".join(name for name in winner if any(tie[name] != winner[name] for tie in ties))
    among = ", the default among them" if count > 1 and default in ties else ""
    differ = "it differs" if count == 1 else "they differ"
    lines = [f"ties    {count} more cannot be told from the best{among}; {differ} in {names}"]
    if result.unchecked_ties:
        left = len(result.unchecked_ties)
        lines.append(
            f"        {left} of them {'is' if left == 1 else 'are'} not in the cache: only the best "
            f"{1 + MAX_TIES} get all `checks`"
        )
    return [
        *lines,
        *(
            f"        {'the default' if tie == default else _difference_text(tie, winner, 'best')}"
            for tie in result.unchecked_ties
        ),
    ]


def _group_line(result: SearchResult) -> list[str]:
    """The winner among the groups that the space contrasts."""
    if not result.groups:
        return []
    wins = verdict(result.groups, result.objective)
    return [f"groups  {', '.join(map(_group_text, result.groups))}" + (f": {wins}" if wins else "")]


def _group_text(group: Group) -> str:
    time = f"{group.best.median_ms:.4g} ms{_energy_text(group.best)}" if group.best else "has no time"
    return f"{group.name} {time} ({group.tried} tried)"


def _noise_line(final: Measurement) -> list[str]:
    """The noise of the last round on a steady machine."""
    noise, (low, high) = final.noise, final.interval_ms
    if noise is None or noise > NOISY:
        return []
    spread = (high - low) / final.median_ms
    rounds = f"; single rounds differ by up to {spread:.0%}" if spread > max(_PRECISE, 2 * noise) else ""
    return [f"noise   {noise:.2%} between the medians of two timings of the same binary{rounds}"]


def _is_rehearsal(result: SearchResult) -> bool:
    return result.task.address.backend == INTERPRETER


def _next_command(result: SearchResult) -> str:
    if _is_rehearsal(result):  # no GPU takes its results: they let a program run
        cache = shlex.quote(str(result.cache_root))
        return f"AUTOTUNE_CACHE={cache} TRITON_INTERPRET=1 python PROGRAM, where PROGRAM uses tuned"
    return _check_command([result]) or f"autotune report {result.journal}"


def uncompared(result: SearchResult) -> list[str]:
    """Warn if the reference returns no output."""
    said = "warning no output was compared: the reference returns none, so a wrong kernel can win"
    return [] if result.compares else [said]


def unchecked_lines(results: Sequence[SearchResult]) -> list[str]:
    """The checks that were not made, and the command that makes up for late ones."""
    text = unchecked_text(combined(search.checks for search in results))
    command = _check_command(results)
    return [f"checks  {text}{command and ': '}{command}"] if text else []


def _check_command(results: Sequence[SearchResult]) -> str:
    """The command that makes up for late checks; empty if it cannot: it ranks by time, and reads files."""
    result = results[0]
    is_ranked = result.objective is Objective.TIME and Path(result.task.spec.path).is_file()
    if not (is_ranked and is_late(combined(search.checks for search in results))):
        return ""
    root = result.cache_root
    cache = () if root == Path("cache") else ("--cache", str(root))
    command = ("autotune", "check", str(result.task.spec.path), "-d", str(result.task.address), *cache)
    return shlex.join((*command, "--refresh"))


def _rejected_line(result: SearchResult) -> list[str]:
    """The checks that faster configurations failed: if one is mistaken, the best is too slow."""
    best_ms = result.winner.time_ms or result.final.median_ms
    faster = [
        trial
        for trial in result.failed_last_round
        if trial.measurement is not None and trial.measurement.median_ms < best_ms
    ]
    if not faster:
        return []
    counts = Counter(_check_of(trial) for trial in faster).most_common()
    checks = ", ".join(f"{count} {name}" for name, count in counts)
    return [
        f"faster  {len(faster)} in the search, which failed a check: {checks}; look at these first: "
        f"autotune show {result.journal} --status {faster[0].status.value}"
    ]


def _check_of(trial: Trial) -> str:
    """The check that a trial of the last round failed: what its detail begins with, else its status."""
    head, colon, _ = trial.detail.partition(": ")
    return head if colon and head.startswith(_CHECKS) else trial.status.value


def failures(result: SearchResult) -> list[str]:
    """The first trial that failed each check of the last round; of each status how many, why, and where."""
    firsts = {_check_of(trial): trial for trial in reversed(result.failed_last_round)}
    lines = [
        f"failed  in the last round: {trial.status.value}: {trial.config}: {trial.detail}"
        for trial in reversed(firsts.values())
    ]
    for status, count in result.counts.most_common():
        if status is not Status.OK:
            example = next(trial for trial in result.trials if trial.status is status)
            reason = shorten(first_error(example.detail), _REASON_LETTERS, placeholder=" ...")
            command = f"autotune show {result.journal} --status {status.value}"
            lines.append(f"failed  {count} {status.value}{_in_common(result, status)}: {reason}; {command}")
    return lines


def _in_common(result: SearchResult, status: Status) -> str:
    """The values that all trials of a status have, and none that has a time: a value may be to blame."""
    failed = [trial.config for trial in result.trials if trial.status is status]
    timed = [trial.config for trial in result.trials if trial.status is Status.OK]
    shared = [
        f"{name}={value}"
        for name, value in failed[0].items()
        if all(config[name] == value for config in failed)
        and not any(config[name] == value for config in timed)
    ]
    return f", all with {', '.join(shared)}, which no timed trial has" if shared and len(failed) > 1 else ""


def _lesson_line(result: SearchResult) -> list[str]:
    """The values that the fastest configurations share and most others lack."""
    ranked = by_score(result.trials)
    fastest, others = ranked[:_FASTEST], ranked[_FASTEST:]
    if len(others) < _FASTEST:
        return []
    shared = [
        f"{name}={value}"
        for name, value in result.winner.config.items()
        if all(trial.config[name] == value for trial in fastest)
        and sum(trial.config[name] == value for trial in others) / len(others) < 0.8
    ]
    lesson = f"all have {', '.join(shared)}" if shared else "share no value that sets them apart"
    best, worst = ("fastest", "slowest") if result.objective is Objective.TIME else ("best", "worst")
    ratio = (ranked[-1].score or 0.0) / (ranked[0].score or 1.0)
    factor = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}"
    cost = _objective_noun(result)
    return [f"learnt  the {_FASTEST} {best} {lesson}; the {worst} took {factor} times the best's {cost}"]
