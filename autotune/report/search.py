"""The result of a search, for readers and for scripts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from autotune.contrasts import Group, verdict
from autotune.finals import by_score
from autotune.model import Value
from autotune.priors import summary
from autotune.report.tables import problem_text, rate_text
from autotune.searchers.surrogate import FASTER, Outlook
from autotune.session import Result
from autotune.trials import Measurement, Objective, Status, Trial

SHIFT = 1.3  # best and default both took so many times as long, or as short, in the last round: told
_GROUP = 10  # how many of the fastest configurations "what they share" speaks of


def result_text(result: Result) -> str:
    """The last thing a search prints: what was tried, what won, what was learnt, where it is kept."""
    space, winner = result.bound.space, result.winner
    rate = rate_text(space, winner.config, result.final.median_ms)
    low, high = result.final.interval_ms
    where = f"{result.bound.device.name} ({result.bound.address})"
    lines = [
        f"{result.bound.spec.kernel} on {where}, {problem_text(space)}",
        f"tried   {len(result.trials):,} of {len(space):,} valid configurations with {result.engine} "
        f"in {result.seconds:.0f} s: {_counts(result.counts)}" + _resumed(result) + _kept(result),
        f"best    {result.final.median_ms:.4g} ms ({low:.4g} to {high:.4g})"
        + (f", {rate}" if rate else "")
        + _energy(result.final),
        f"        {winner.config}",
        f"default {result.default.median_ms:.4g} ms{_energy(result.default)}: {_gain(result)}",
    ]
    if result.front:
        (_, fastest_ms, most_j), (_, slowest_ms, least_j) = result.front[0], result.front[-1]
        reach = f"from {fastest_ms:.4g} ms, {most_j:.4g} J to {slowest_ms:.4g} ms, {least_j:.4g} J"
        lines.append(
            f"front   {len(result.front)} that no other beats in time and energy, {reach}: "
            f"autotune show {result.journal} --pareto"
        )
    if result.ties:
        lines.append(
            f"ties    {len(result.ties)} more cannot be told from the best; they differ in {_varying(result)}"
        )
    lines += _groups(result)
    lines += _conditions(result.final.conditions)
    searched = {trial.config: trial.time_ms for trial in result.trials}
    pairs = ((winner.config, result.final), (result.bound.spec.default, result.default))
    lines += shifted([(searched.get(config), final) for config, final in pairs])
    if not result.compares:
        lines.append("beware  no result was compared: the reference returns nothing, so a wrong one can win")
    lines += [f"struck  {trial.status.value}: {trial.config}: {trial.detail}" for trial in result.struck]
    lines += _failures(result)
    learnt = _shared(result.trials)
    if learnt:
        lines.append(f"learnt  {learnt}")
    lines.append(f"seen    {_seen(result.outlook)}")
    if result.priors:
        lines.append(f"from    {summary(result.priors)}")
    lines.append(f"kept    {result.cache_file} (trials: {result.journal})")
    return "\n".join(lines)


def result_json(result: Result) -> dict[str, Any]:
    """The same for scripts."""
    return {
        "kernel": result.bound.spec.kernel,
        "device": asdict(result.bound.device),
        "sizes": dict(result.bound.space.problem.sizes),
        "dtype": result.bound.space.problem.dtype,
        "engine": result.engine,
        "config": dict(result.winner.config),
        "time_ms": result.final.median_ms,
        "objective": result.objective.value,
        "energy_j": result.final.energy_j,
        "front": [[dict(config), time_ms, energy_j] for config, time_ms, energy_j in result.front],
        "interval_ms": list(result.final.interval_ms),
        "default_time_ms": result.default.median_ms,
        "speedup": result.speedup,
        "ties": [dict(config) for config in result.ties],
        "groups": [_group_json(group) for group in result.groups],
        "trials": len(result.trials),
        "resumed": result.resumed,
        "valid_configurations": len(result.bound.space),
        "compared": result.compares,
        "counts": {status.value: count for status, count in result.counts.items()},
        "seconds": result.seconds,
        "priors": {prior.source: len(prior.results) for prior in result.priors},
        "chance_of_faster": result.outlook.chance,
        "expected_gain": result.outlook.gain,
        "cache_file": str(result.cache_file),
        "journal": str(result.journal),
    }


def _group_json(group: Group) -> dict[str, Any]:
    return {"name": group.name, "tried": group.tried, "time_ms": group.best and group.best.median_ms}


def _group(group: Group) -> str:
    time = f"{group.best.median_ms:.4g} ms" if group.best else "has no time"
    return f"{group.name} {time} ({group.tried} tried)"


def _groups(result: Result) -> list[str]:
    """Which of the groups that the space sets against each other wins."""
    if not result.groups:
        return []
    each = ", ".join(_group(group) for group in result.groups)
    decided = verdict(result.groups, result.objective)
    return [f"groups  {each}" + (f": {decided}" if decided else "")]


def _energy(measurement: Measurement) -> str:
    return f", {measurement.energy_j:.4g} J a run" if measurement.energy_j is not None else ""


def _seen(outlook: Outlook) -> str:
    """How much of the space was tried, and what the rest promises."""
    if outlook.seen == outlook.valid:
        return "the whole space: there is nothing left to find"
    text = f"{outlook.seen / outlook.valid:.2%} of the valid configurations"
    if outlook.chance is None or outlook.gain is None:
        return f"{text}; too few have a time to say what the rest promises"
    return (
        f"{text}; that one of the others is at least {FASTER:.0%} faster has a chance of about "
        f"{outlook.chance:.0%}, and trying them all is expected to save {outlook.gain:.1%} of the time"
    )


def _conditions(known: Mapping[str, Value]) -> list[str]:
    """How far the last round can be trusted: its noise, and what may have disturbed it."""
    lines = []
    if "noise" in known:
        lines.append(f"noise   {float(known['noise']):.2%} between two entries of the same binary")
    if "throttled" in known:
        lines.append(f"beware  the device was throttled: {known['throttled']}")
    if "other_processes" in known:
        lines.append(f"beware  other processes that used the device: {known['other_processes']}")
    if float(known.get("flush_ratio", 2)) < 1.1:
        lines.append("beware  flushing the cache made no difference: times may be those of warm caches")
    return lines


def shifted(pairs: Sequence[tuple[float | None, Measurement]]) -> list[str]:
    """Whether the last round found another device than the search: best and default both took other times.

    `pairs`: the time in ms that each had in the search, and its measurement in the last round.
    """
    factors = [final.median_ms / time_ms for time_ms, final in pairs if time_ms]
    factor = min(factors, key=lambda one: abs(math.log(one)))
    if len(factors) < len(pairs) or 1 / SHIFT < factor < SHIFT or min(factors) < 1 < max(factors):
        return []
    text = f"beware  the last round took {factor:.2g} times the search's times"
    return [f"{text}: what else was running, then or now?"]


def _counts(counts: Mapping[Status, int]) -> str:
    return ", ".join(f"{count} {status.value}" for status, count in Counter(counts).most_common())


def _resumed(result: Result) -> str:
    return f"; {result.resumed} of them were known from the journal" if result.resumed else ""


def _kept(result: Result) -> str:
    count = sum(trial.binary_cached for trial in result.trials)
    return f"; {count} of them with a binary of an earlier run" if count else ""


def _gain(result: Result) -> str:
    if result.objective is not Objective.TIME:
        what = "energy" if result.objective is Objective.ENERGY else "energy times delay"
        return f"the best takes {1 / result.speedup:.0%} of its {what}"
    if result.speedup >= 2:
        return f"the best is {result.speedup:.2g} times as fast"
    if result.winner.config == result.bound.spec.default:
        return "nothing that was tried is faster"
    text = f"the best is {result.speedup:.2f} times as fast"
    beaten = _beaten_by_default(result)
    return f"{text}; the default beats {beaten:.0%} of the others that were tried" if beaten >= 0.1 else text


def _beaten_by_default(result: Result) -> float:
    default_ms = result.default.median_ms
    others = [
        trial
        for trial in result.trials
        if trial.config not in (result.bound.spec.default, result.winner.config)
    ]
    slower = [trial for trial in others if trial.time_ms is None or trial.time_ms > default_ms]
    return len(slower) / max(1, len(others))


def _failures(result: Result) -> list[str]:
    """Where to look when trials failed."""
    lines = []
    for status, count in result.counts.most_common():
        if status is not Status.OK:
            command = f"autotune show {result.journal} --status {status.value}"
            lines.append(f"failed  {count} {status.value}: {command}")
    return lines


def _varying(result: Result) -> str:
    winner = result.winner.config
    return ", ".join(name for name in winner if any(tie[name] != winner[name] for tie in result.ties))


def _shared(trials: Iterable[Trial]) -> str:
    """Which values the fastest configurations have in common, and the rest does not: what mattered."""
    timed = by_score(trials)
    group, rest = timed[:_GROUP], timed[_GROUP:]
    if len(rest) < _GROUP:
        return ""
    shared = []
    for name, value in group[0].config.items():
        common = all(trial.config[name] == value for trial in group)
        elsewhere = sum(trial.config[name] == value for trial in rest) / len(rest)
        if common and elsewhere < 0.8:
            shared.append(f"{name}={value}")
    spread = (
        f"the slowest took {(timed[-1].time_ms or 0.0) / (timed[0].time_ms or 1.0):.0f} times the best's time"
    )
    if not shared:
        return f"the {_GROUP} fastest share no value that sets them apart; {spread}"
    return f"the {_GROUP} fastest all have {', '.join(shared)}; {spread}"
