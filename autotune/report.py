"""What users read: the result of a search, tables, and the progress of long work. Rendering only."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from autotune.candidates import work
from autotune.finals import by_time
from autotune.model import Config, DeviceInfo, Sizes
from autotune.session import Result
from autotune.space import ConstraintReport, Finding, Space
from autotune.trials import Status, Trial

_PLAIN_WIDTH = 200  # columns of a table that goes to a file or a pipe
_GROUP = 10  # how many of the fastest configurations "what they share" speaks of


def console() -> Console:
    """Where results go: colours on a terminal, plain text elsewhere."""
    plain = not sys.stdout.isatty()
    return Console(highlight=False, soft_wrap=True, no_color=plain, width=_PLAIN_WIDTH if plain else None)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Table:
    """A table without lines; columns of numbers line up on the right."""
    drawn = Table(box=None, pad_edge=False, header_style="bold")
    cells = list(rows)
    for position, column in enumerate(columns):
        texts = [row[position] for row in cells if row[position] not in ("", "-")]
        numeric = bool(texts) and all(text[0].isdigit() for text in texts)
        drawn.add_column(column, justify="right" if numeric else "left", overflow="fold")
    for row in cells:
        drawn.add_row(*row)
    return drawn


def problem_text(space: Space) -> str:
    """`n=4,194,304, int32`."""
    return f"{_sizes(space.problem.sizes)}, {space.problem.dtype}"


def rate_text(space: Space, config: Config, time_ms: float) -> str:
    """What the time means: `13.6 GB/s, 3.4 GFLOP/s`, as far as the space states the work."""
    done = work(space, config, space.problem.sizes)
    units = {"bytes": "GB/s", "flops": "GFLOP/s"}
    return ", ".join(f"{amount / time_ms * 1e-6:.4g} {units[name]}" for name, amount in done.items())


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


def ladder_table(
    space: Space, rungs: Sequence[tuple[str, Trial]], best: tuple[Config, float] | None
) -> Table:
    """One row per landmark: time, rate, speed-up over the first that ran; the tuned best in the end."""
    notes = {landmark.name: landmark.note for landmark in space.spec.landmarks}
    first_ms = next((trial.time_ms for _, trial in rungs if trial.time_ms is not None), None)
    rows = []
    for name, trial in rungs:
        if trial.time_ms is None:
            rows.append((name, "-", "-", "-", f"{_why_not(trial)}"))
        else:
            rows.append((name, *_rung(space, trial.config, trial.time_ms, first_ms), notes[name]))
    if best is not None:
        rows.append(("tuned best", *_rung(space, best[0], best[1], first_ms), str(best[0])))
    return table(("step", "ms", "rate", "speed-up", "note"), rows)


def trials_table(trials: Sequence[Trial]) -> Table:
    """Trials with one column per parameter."""
    names = list(dict.fromkeys(name for trial in trials for name in trial.config))
    rows = [
        (
            f"{trial.time_ms:.4g}" if trial.time_ms is not None else "-",
            trial.status.value,
            *(str(trial.config.get(name, "")) for name in names),
            trial.detail.splitlines()[0] if trial.detail else "",
        )
        for trial in trials
    ]
    return table(("ms", "status", *names, "detail"), rows)


def devices_table(devices: Sequence[tuple[str, DeviceInfo]]) -> Table:
    """What `--device` accepts, and what each device is."""
    rows = [
        (
            address,
            info.name,
            info.kind,
            str(info.compute_units),
            f"{info.memory_bytes / 2**30:.1f}",
            info.runtime,
        )
        for address, info in devices
    ]
    return table(("device", "name", "kind", "units", "GiB", "runtime"), rows)


def _rung(space: Space, config: Config, time_ms: float, first_ms: float | None) -> tuple[str, str, str]:
    return f"{time_ms:.4g}", rate_text(space, config, time_ms), f"{(first_ms or time_ms) / time_ms:.1f}x"


def _why_not(trial: Trial) -> str:
    if trial.status is Status.PRUNED:
        return f"not valid here: {trial.detail}"
    return f"{trial.status.value}: {trial.detail}"


def _sizes(sizes: Sizes) -> str:
    return " ".join(f"{name}={size:,}" for name, size in sizes.items())


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


def print_space(
    space: Space, device: DeviceInfo, constraints: Sequence[ConstraintReport], findings: Sequence[Finding]
) -> None:
    """Counts, parameters, constraints, findings."""
    out = console()
    out.print(f"{space.spec.kernel} on {device.name}, {problem_text(space)}")
    out.print(f"{len(space):,} valid of {space.cartesian:,} combinations\n")
    domains = [
        (item.name, str(len(item.values)), ", ".join(map(str, item.values))) for item in space.parameters
    ]
    out.print(table(("parameter", "values", ""), domains))
    out.print()
    effects = [
        (str(item.line), _share(item.removes_alone, space.cartesian), _number(item.appear_without), item.text)
        for item in constraints
    ]
    out.print(table(("line", "removes alone", "valid without it", "constraint"), effects))
    out.print("\nno findings" if not findings else "")
    if findings:
        out.print(table(("finding", "", ""), [(item.kind, item.subject, item.detail) for item in findings]))


def space_json(
    space: Space, constraints: Sequence[ConstraintReport], findings: Sequence[Finding]
) -> dict[str, Any]:
    """The same for scripts."""
    return {
        "kernel": space.spec.kernel,
        "valid": len(space),
        "combinations": space.cartesian,
        "parameters": {item.name: list(item.values) for item in space.parameters},
        "constraints": [asdict(item) for item in constraints],
        "findings": [asdict(item) for item in findings],
    }


def _share(count: int | None, of: int) -> str:
    return "-" if count is None else f"{count / of:.1%}"


def _number(count: int | None) -> str:
    return "-" if count is None else f"+{count:,}"
