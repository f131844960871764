"""The result of a search, for readers and for scripts."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from autotune.cli._tables import problem_text, rate_text
from autotune.core.records import NOISY, Value
from autotune.core.trials import Measurement, Objective, Status
from autotune.searchers.surrogate import FASTER, StoppingEstimate
from autotune.tuning.finals import by_score
from autotune.tuning.groups import Group, verdict
from autotune.tuning.result import Result
from autotune.tuning.source_results import summary

_COSTS = {
    Objective.ENERGY: "energy",
    Objective.EDP: "energy times delay",
    Objective.PARETO: "energy times delay",
}
SHIFT = 1.3  # best and default both took so many times as long, or as short, in the last round: told
_GROUP = 10  # how many of the fastest configurations "what they share" speaks of


def result_text(result: Result) -> str:
    """The last thing a search prints: what was tried, what won, what was learnt, where it is kept."""
    space, winner = result.task.space, result.winner
    rate = rate_text(space, winner.config, result.final.median_ms)
    low, high = result.final.interval_ms
    where = f"{result.task.device.name} ({result.task.address})"
    lines = [
        f"{result.task.spec.kernel} on {where}, {problem_text(space)}",
        f"tried   {len(result.trials):,} of {len(space):,} valid configurations with {result.engine} "
        f"in {result.seconds:.0f} s: {_counts(result.counts)}" + _resumed(result) + _kept(result),
        f"best    {result.final.median_ms:.4g} ms ({low:.4g} to {high:.4g})"
        + (f", {rate}" if rate else "")
        + _energy(result.final)
        + ("" if any(trial.config == winner.config for trial in result.trials) else ", of an earlier search"),
        f"        {winner.config}",
        f"default {result.default.median_ms:.4g} ms{_energy(result.default)}: {_gain(result)}",
    ]
    lines += [*_front(result), *_ties(result)]
    lines += _groups(result)
    lines += _noise(result.final.noise)
    lines += _conditions(result.final.conditions)
    searched = {trial.config: trial.time_ms for trial in result.trials}
    pairs = ((winner.config, result.final), (result.task.spec.default, result.default))
    lines += shifted([(searched.get(config), final) for config, final in pairs])
    lines += _uncompared(result)
    lines += [
        f"struck  {trial.status.value}: {trial.config}: in the last round: {trial.detail}"
        for trial in result.struck
    ]
    lines += _failures(result)
    learnt = _shared(result)
    if learnt:
        lines.append(f"learnt  {learnt}")
    lines.append(_explored(result.stopping_estimate, result.objective))
    if result.priors:
        lines.append(f"from    {summary(result.priors)}")
    before = ", which had this configuration before" if result.was_served else ""
    lines.append(f"kept    {result.cache_file}{before} (trials: {result.journal})")
    return "\n".join(lines)


def _uncompared(result: Result) -> list[str]:
    if not result.compares:
        return ["beware  no result was compared: the reference returns nothing, so a wrong one can win"]
    names = ", ".join(result.uncompared)
    return [f"beware  not compared, for the reference does not return it: {names}"] if names else []


def result_json(result: Result) -> dict[str, Any]:
    """The same for scripts."""
    return {
        "kernel": result.task.spec.kernel,
        "device": asdict(result.task.device),
        "sizes": dict(result.task.space.problem.sizes),
        "dtype": result.task.space.problem.dtype,
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
        "valid_configurations": len(result.task.space),
        "compared": result.compares,
        "uncompared": list(result.uncompared),
        "counts": {status.value: count for status, count in result.counts.items()},
        "seconds": result.seconds,
        "priors": {prior.source: len(prior.results) for prior in result.priors},
        "chance_of_faster": result.stopping_estimate.chance,
        "expected_gain": result.stopping_estimate.gain,
        "cache_file": str(result.cache_file),
        "journal": str(result.journal),
    }


def _group_json(group: Group) -> dict[str, Any]:
    return {"name": group.name, "tried": group.tried, "time_ms": group.best and group.best.median_ms}


def _group(group: Group) -> str:
    time = f"{group.best.median_ms:.4g} ms{_energy(group.best)}" if group.best else "has no time"
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


def _front(result: Result) -> list[str]:
    """What `--pareto` would show."""
    if not result.front:
        return []
    ends = [f"{time_ms:.4g} ms, {energy_j:.4g} J" for _, time_ms, energy_j in result.front]
    reach = f"from {ends[0]} to {ends[-1]}" if len(ends) > 1 else ends[0]
    return [
        f"front   {len(ends)} that no other beats in time and energy, {reach}: "
        f"autotune show {result.journal} --pareto"
    ]


def _ties(result: Result) -> list[str]:
    """How many are as good as the best, as far as was measured."""
    if not result.ties:
        return []
    winner, count = result.winner.config, len(result.ties)
    names = ", ".join(name for name in winner if any(tie[name] != winner[name] for tie in result.ties))
    among = ", the default among them" if count > 1 and result.task.spec.default in result.ties else ""
    differ = "it differs" if count == 1 else "they differ"
    return [f"ties    {count} more cannot be told from the best{among}; {differ} in {names}"]


def _noise(noise: float | None) -> list[str]:
    """How steady the machine was in the last round, and what to do if it was not."""
    if noise is None:
        return []
    if noise <= NOISY:
        return [f"noise   {noise:.2%} between two entries of the same binary"]
    return [
        f"beware  the machine was unsteady: {noise:.0%} noise between two entries of the same binary; "
        "run the search again on a quiet machine"
    ]


def _explored(estimate: StoppingEstimate, objective: Objective) -> str:
    """How much of the space was tried, and what the rest promises."""
    if estimate.seen == estimate.valid:
        return f"explored all {estimate.valid:,} valid configurations"
    share = _percent(estimate.seen / estimate.valid, 2)
    text = f"explored {share} of {estimate.valid:,} valid configurations"
    if estimate.chance is None:
        return f"{text}; too few have a time to say what the rest promises"
    better = "faster" if objective is Objective.TIME else "better"
    return f"{text}; {_percent(estimate.chance)} chance that an untried one is at least {FASTER:.0%} {better}"


def _percent(share: float, digits: int = 0) -> str:
    """A share of which neither nothing nor everything is certain: `<1%`, `16%`, `>99%`."""
    text, least = f"{share:.{digits}%}", 10.0 ** -(digits + 2)
    if float(text[:-1]) == 0:
        return f"<{least:.{digits}%}"
    return f">{1 - least:.{digits}%}" if float(text[:-1]) == 100 else text


def _conditions(known: Mapping[str, Value]) -> list[str]:
    """What may have disturbed the last round."""
    lines = []
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
    if len(factors) < len(pairs):
        return []
    factor = min(factors, key=lambda one: abs(math.log(one)))
    if 1 / SHIFT < factor < SHIFT or min(factors) < 1 < max(factors):
        return []
    return [
        f"beware  times of the last round are {factor:.2g} times those of the search: what else was running?"
    ]


def _counts(counts: Mapping[Status, int]) -> str:
    return ", ".join(f"{count} {status.value}" for status, count in Counter(counts).most_common())


def _resumed(result: Result) -> str:
    every = "all" if result.resumed == len(result.trials) else str(result.resumed)
    return f"; {every} of them were known from the journal" if result.resumed else ""


def _kept(result: Result) -> str:
    fresh = result.resumed < len(result.trials)
    count = sum(trial.binary_cached for trial in result.trials) if fresh else 0
    return f"; {count} with a binary of an earlier run" if count else ""


def _gain(result: Result) -> str:
    """What the search was good for; no gain that the measurement cannot tell from none."""
    default, ratio = result.task.spec.default, result.speedup
    if result.winner.config == default:
        return _no_gain(result)
    if default in result.ties or ratio <= 1:
        return "the best cannot be told from it"
    doubt = "" if result.compares else ", if its result is right"
    if result.objective is not Objective.TIME:
        cost = f"{1 / ratio:.0%} of its {_COSTS[result.objective]}"
        time = f"{result.final.median_ms / result.default.median_ms:.0%} of its time"
        return f"the best takes {cost} and {time}{doubt}"
    if ratio < 1.005:
        return f"the best is less than 0.5% faster{doubt}"
    how = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.2g}" if ratio >= 2 else f"{ratio:.2f}"
    beaten = _beaten_by_default(result) if ratio < 2 else 0.0
    why = f"; the default beats {beaten:.0%} of the others that have a time" if beaten >= 0.1 else ""
    return f"the best is {how} times as fast{doubt}{why}"


def _no_gain(result: Result) -> str:
    others = [trial for trial in result.trials if trial.config != result.winner.config]
    if not others:
        return "nothing else was tried"
    if all(trial.score is None for trial in others):
        return "all others that were tried failed"
    if result.objective is Objective.TIME:
        return "nothing that was tried is faster"
    return f"nothing that was tried takes less {_COSTS[result.objective]}"


def _beaten_by_default(result: Result) -> float:
    """The share of the others that have a time and are slower; all times are those of the search."""
    times_ms = {trial.config: trial.time_ms for trial in result.trials if trial.time_ms is not None}
    default_ms = times_ms.pop(result.task.spec.default, result.default.median_ms)
    times_ms.pop(result.winner.config, None)
    return sum(time_ms > default_ms for time_ms in times_ms.values()) / max(1, len(times_ms))


def _failures(result: Result) -> list[str]:
    """Where to look when trials failed."""
    lines = []
    for status, count in result.counts.most_common():
        if status is not Status.OK:
            command = f"autotune show {result.journal} --status {status.value}"
            lines.append(f"failed  {count} {status.value}: {command}")
    return lines


def _shared(result: Result) -> str:
    """Which values the best and the next have in common, and the rest does not: what mattered."""
    ranked = by_score(result.trials)
    group, rest = ranked[:_GROUP], ranked[_GROUP:]
    if len(rest) < _GROUP:
        return ""
    shared = []
    for name, value in result.winner.config.items():
        common = all(trial.config[name] == value for trial in group)
        elsewhere = sum(trial.config[name] == value for trial in rest) / len(rest)
        if common and elsewhere < 0.8:
            shared.append(f"{name}={value}")
    ratio = (ranked[-1].score or 0.0) / (ranked[0].score or 1.0)
    fastest, slowest, cost = (
        ("fastest", "slowest", "time")
        if result.objective is Objective.TIME
        else ("best", "worst", _COSTS[result.objective])
    )
    spread = (
        f"the {slowest} took {f'{ratio:,.0f}' if ratio >= 10 else f'{ratio:.2g}'} times the best's {cost}"
    )
    found = f"all have {', '.join(shared)}" if shared else "share no value that sets them apart"
    return f"the {_GROUP} {fastest} {found}; {spread}"
