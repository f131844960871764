"""Look for races and wrong accesses in named configurations, or check cached results again.

With --config, verify configurations, then run them on other data, with threads and blocks in other orders,
on the CPU under the sanitizers of g++ if it is installed, and finally (CUDA) under the four tools of
compute-sanitizer. Without it, verify and time each cached result of the kernel for this device again, with
its ties, the next best and the default. With --stale, check only results of another driver, compiler,
version of Triton or source, and store those that hold with their new times; if one is slower by more than
the noise, search again within --time. With --strength, plant mistakes into the kernel, one at a time, to
show which of them the space's sizes, data and tolerance miss, and what would catch them. With --bits,
compare results bit by bit: from run to run, and among all configurations that the cache serves.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.core.outcomes import checks_text, of_reasons
from autotune.core.records import Config
from autotune.core.text import count_text, problem_text
from autotune.core.trials import Failure, Status
from autotune.errors import InputError, SetupError

if TYPE_CHECKING:
    from autotune.plans.aged_results import AgedResult
    from autotune.plans.recheck import Bits, CheckedEntry

EXAMPLE = "autotune check reduce --refresh"


def add_options(parser: argparse.ArgumentParser) -> None:
    opt.add_target(parser)
    mode = parser.add_mutually_exclusive_group()
    opt.add_config(mode, "check this configuration; repeat for more", default=[])
    mode.add_argument("--refresh", action="store_true", help="store what the check finds for each result")
    mode.add_argument(
        "--strength", action="store_true", help="count the planted mistakes that verification catches"
    )
    mode.add_argument(
        "--stale",
        action="store_true",
        help="check results of another driver, compiler or source, and search again if one is slower",
    )
    parser.add_argument(
        "--bits",
        action="store_true",
        help="compare results bit by bit, at these sizes: between runs, and between all served "
        "configurations or those of --config",
    )
    opt.add_no_sanitizer(parser, "run neither compute-sanitizer nor the sanitizers of g++")
    parser.add_argument(
        "--time",
        metavar="SECONDS",
        type=opt.seconds,
        default=300.0,
        help="with --strength: plant no mistake after this time; with --stale: limit of all searches "
        "together (default %(default)g)",
    )
    opt.add_run(parser)
    opt.add_cache(parser, "the cache to check", reads=False)
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Check configurations or cached results and print what was found; fails if something is wrong."""
    if parsed.bits:
        _check_bits(parsed)
    elif parsed.strength:
        _check_strength(parsed)
    elif parsed.config:
        _check_configurations(parsed)
    else:
        _check_cache(parsed)


def _check_bits(parsed: argparse.Namespace) -> None:
    from autotune.plans.recheck import compare_bits, served_configs
    from autotune.serving.cache import writable_root

    opt.require_unset(parsed, "--bits", "refresh", "stale", "strength")
    with opt.open_task(parsed) as (task, progress):
        root = str(writable_root(parsed.cache))
        configs = opt.valid_configs(parsed.config, task) or served_configs(task, root)
        if not configs:
            raise InputError(
                f"{root} serves nothing of {task.spec.kernel} for {task.device.name} that is valid at these "
                "sizes; run autotune search, or name configurations with --config"
            )
        compared = compare_bits(task, opt.run_options(parsed, sanitizer=False), progress, configs)
    emit(bits_json(compared) if parsed.json else bits_text(compared))
    bad = sum(bool(bits.failure or bits.unsteady) for bits in compared.values())
    if bad:
        raise SetupError(f"wrong or not repeatable: {bad} of {count_text(len(compared), 'configuration')}")


def _check_strength(parsed: argparse.Namespace) -> None:
    from autotune.cli.strength_summary import strength_text
    from autotune.strength.record import keep, strength_file, strength_json
    from autotune.strength.strength import measure

    with opt.open_task(parsed) as (task, progress):
        options = opt.run_options(parsed, sanitizer=parsed.sanitizer)
        strength = measure(task, options, progress, parsed.time)
    keep(strength, strength_file(task.spec.kernel, task.device.slug))
    emit(strength_json(strength) if parsed.json else strength_text(strength))


def _check_configurations(parsed: argparse.Namespace) -> None:
    from autotune.plans.recheck import check

    with opt.open_task(parsed) as (task, progress):
        configs = opt.valid_configs(parsed.config, task)
        outcomes = check(task, opt.run_options(parsed, sanitizer=parsed.sanitizer), progress, configs)
    expected = task.spec.declared_wrong
    emit(findings_json(outcomes, expected) if parsed.json else findings_text(outcomes, expected))
    ended = {config: failure.status if failure else Status.OK for config, failure in outcomes.items()}
    wrong = sum(status is not expected.get(config, Status.OK) for config, status in ended.items())
    if wrong:
        raise SetupError(f"wrong: {wrong} of {count_text(len(outcomes), 'configuration')}")


def _check_cache(parsed: argparse.Namespace) -> None:
    from autotune.plans.aged_results import update_result
    from autotune.plans.recheck import CheckState, recheck, refresh
    from autotune.processes.deadline import Deadline
    from autotune.serving.cache import writable_root
    from autotune.tuning.task import read_task

    root = str(writable_root(parsed.cache))
    target = opt.target(parsed)
    options = opt.run_options(parsed, sanitizer=parsed.sanitizer)
    checked, aged = [], []
    deadline = Deadline.after(parsed.time)
    with opt.open_task(parsed) as (task, progress):
        record = task.cached_record(root)
        entries = [
            entry
            for entry in (record.entries if record else ())
            if target.dtype in (None, entry.dtype)
            and target.data in (None, entry.data)
            and target.sizes.items() <= entry.sizes.items()
        ]
        if not entries:
            raise InputError(
                f"{root} has no result of {task.spec.kernel} for {task.device.name} at these sizes and types"
                "; run autotune search, or name configurations with --config"
            )
        for entry in entries:
            of_entry = read_task(
                replace(target, sizes=entry.sizes, dtype=entry.dtype, data=entry.data or None)
            )
            if parsed.stale:
                aged.append(update_result(of_entry, options, progress, entry, root, deadline))
                continue
            checked.append(recheck(of_entry, options, progress, entry))
            if parsed.refresh:
                refresh(of_entry, root, checked[-1])
    if parsed.stale:
        updates = [update for update in aged if update is not None]
        emit(aged_json(updates) if parsed.json else aged_text(updates, len(entries)))
        return
    emit(entries_json(checked) if parsed.json else entries_text(checked, parsed.refresh))
    wrong = sum(result.state is CheckState.WRONG for result in checked)
    if wrong and not parsed.refresh:
        raise SetupError(
            f"wrong: {wrong} of {count_text(len(checked), 'result')}; update with --refresh, or search again"
        )


def bits_text(compared: Mapping[Config, Bits]) -> str:
    """A line for each configuration: the number of its result, or the reason why it has none."""
    numbers: dict[tuple[str, ...], int] = {}
    lines = []
    for config, bits in compared.items():
        if bits.failure:
            lines.append(f"wrong     {config}: {bits.failure}")
        elif bits.unsteady:
            lines.append(
                f"varies    {config}: bits of {', '.join(bits.unsteady)} differ between {len(bits.runs)} runs"
            )
        else:
            number = numbers.setdefault(tuple(bits.outputs.values()), len(numbers) + 1)
            lines.append(f"result {number}  {config}: the same bits in {len(bits.runs)} runs")
    if len(numbers) > 1:
        lines.append("configurations give different bits: they may add in different orders")
    return "\n".join(lines)


def bits_json(compared: Mapping[Config, Bits]) -> list[dict[str, Any]]:
    return [
        {
            "config": dict(config),
            "failure": str(bits.failure) if bits.failure else "",
            "unsteady": list(bits.unsteady),
            "sha256": dict(bits.outputs),
        }
        for config, bits in compared.items()
    ]


def aged_text(updates: Sequence[AgedResult], count: int) -> str:
    """For each aged result what the update cost or gained, and what a new search then gained."""
    if not updates:
        return f"stale: none of {count_text(count, 'result')}"
    return "\n".join("\n           ".join(_aged_lines(update)) for update in updates)


def _aged_lines(update: AgedResult) -> Iterator[str]:
    entry, fresh, time_ms = update.checked.entry, update.checked.refreshed, update.checked.time_ms
    yield entries_text([update.checked], not update.loses)
    yield from update.changes
    if fresh and time_ms and fresh.default_time_ms and entry.default_time_ms:
        now, before = fresh.default_time_ms / time_ms, entry.default_time_ms / entry.time_ms
        yield f"now {now:.3g} times as fast as the default; {before:.3g} times when it was stored"
    if update.searched_ms is not None:
        new_time = f"{update.searched_ms:.4g} ms"
        if time_ms:
            saved = 1 - update.searched_ms / time_ms
            new_time += f", {saved:.1%} less" if saved > 0 else ", no less"
        yield f"a new search found {new_time}, and stored it"
    if update.note:
        yield update.note


def aged_json(updates: Sequence[AgedResult]) -> list[dict[str, Any]]:
    checked = entries_json([update.checked for update in updates])
    return [
        row
        | {
            "changes": list(update.changes),
            "default_ms": update.checked.refreshed.default_time_ms if update.checked.refreshed else None,
            "loses": update.loses,
            "searched_ms": update.searched_ms,
            "note": update.note,
        }
        for row, update in zip(checked, updates, strict=True)
    ]


def findings_text(outcomes: Mapping[Config, Failure | None], expected: Mapping[Config, Status]) -> str:
    """A line for each configuration; `expected` has those that the space declares wrong."""
    return "\n".join(
        (f"ok     {config}" if failure is None else f"wrong  {config}: {failure}")
        + (f" (the space declares it as {expected[config].value})" if config in expected else "")
        for config, failure in outcomes.items()
    )


def findings_json(
    outcomes: Mapping[Config, Failure | None], expected: Mapping[Config, Status]
) -> list[dict[str, Any]]:
    return [
        {
            "config": dict(config),
            "status": failure.status.value if failure else "ok",
            "expected": expected.get(config, Status.OK).value,
            "detail": failure.detail if failure else "",
        }
        for config, failure in outcomes.items()
    ]


def entries_text(checked: Sequence[CheckedEntry], is_refreshed: bool) -> str:
    """A line for each result, for what was stored, and for the checks that the fastest passed."""
    lines = []
    for result in checked:
        entry, fresh = result.entry, result.refreshed
        problem = problem_text(entry.sizes, entry.dtype, entry.data)
        now = "" if result.time_ms is None else f", now {result.time_ms:.4g} ms"
        detail = f": {result.detail}" if result.detail else ""
        lines.append(f"{result.state.name:9}  {problem}: {entry.time_ms:.4g} ms{now}{detail}")
        if is_refreshed and fresh is not None:
            lines.append(f"           stored {fresh.config}, {fresh.time_ms:.4g} ms")
        if fresh is not None:
            passed = checks_text(of_reasons(fresh.provenance.checked))
            lines.append(f"           nothing wrong in {fresh.config}: {passed}")
    return "\n".join(lines)


def entries_json(checked: Sequence[CheckedEntry]) -> list[dict[str, Any]]:
    return [
        {
            "sizes": dict(result.entry.sizes),
            "dtype": result.entry.dtype,
            "config": dict(result.entry.config),
            "state": result.state.value,
            "detail": result.detail,
            "stored_ms": result.entry.time_ms,
            "time_ms": result.time_ms,
            "best": dict(result.refreshed.config) if result.refreshed else None,
            "best_ms": result.refreshed.time_ms if result.refreshed else None,
            "checks": checks_text(of_reasons(result.refreshed.provenance.checked))
            if result.refreshed
            else "",
        }
        for result in checked
    ]
