"""The result of a search, for readers and for scripts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from autotune.finals import by_time
from autotune.report.tables import problem_text, rate_text
from autotune.session import Result
from autotune.trials import Status, Trial

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
        f"in {result.seconds:.0f} s: {_counts(result.counts)}" + _resumed(result),
        f"best    {result.final.median_ms:.4g} ms ({low:.4g} to {high:.4g})" + (f", {rate}" if rate else ""),
        f"        {winner.config}",
        f"default {result.default.median_ms:.4g} ms: {_gain(result)}",
    ]
    if result.ties:
        lines.append(
            f"ties    {len(result.ties)} more cannot be told from the best; they differ in {_varying(result)}"
        )
    lines += [f"struck  {trial.status.value}: {trial.config}: {trial.detail}" for trial in result.struck]
    lines += _failures(result)
    learnt = _shared(result.trials)
    if learnt:
        lines.append(f"learnt  {learnt}")
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
        "interval_ms": list(result.final.interval_ms),
        "default_time_ms": result.default.median_ms,
        "speedup": result.speedup,
        "ties": [dict(config) for config in result.ties],
        "trials": len(result.trials),
        "resumed": result.resumed,
        "valid_configurations": len(result.bound.space),
        "counts": {status.value: count for status, count in result.counts.items()},
        "seconds": result.seconds,
        "cache_file": str(result.cache_file),
        "journal": str(result.journal),
    }


def _counts(counts: Mapping[Status, int]) -> str:
    return ", ".join(f"{count} {status.value}" for status, count in Counter(counts).most_common())


def _resumed(result: Result) -> str:
    return f"; {result.resumed} of them were known from the journal" if result.resumed else ""


def _gain(result: Result) -> str:
    if result.speedup >= 2:
        return f"the best is {result.speedup:.2g} times as fast"
    if result.winner.config == result.bound.spec.default:
        return "nothing that was tried is faster"
    return (
        f"the best is only {result.speedup:.2f} times as fast: of the others that were tried, the default "
        f"beats {_beaten_by_default(result):.0%}"
    )


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
    timed = by_time(trials)
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
