"""Look for races and wrong accesses in named configurations, or check what the cache holds.

With --config, configurations are verified, then run on other data, with threads and blocks in other
orders, on the CPU under the sanitizers of g++ where it is installed, and at last (CUDA) under the four
tools of compute-sanitizer. Without, each cached result of the kernel for this device is verified and
timed again with its ties, the next best and the default. With --stale, only results are checked
that another driver, compiler, version of Triton or source gave, and all that hold are stored anew; a
new search begins where one loses more than the noise, within --time. With --strength, mistakes are
planted into the kernel, one at a time: it is told which of them the sizes, the data and the tolerance
of the space cannot see, and what would. With --bits, results are compared bit by bit: from run to run,
and among all configurations that the cache serves.
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
    what = parser.add_mutually_exclusive_group()
    opt.add_config(what, "check this configuration; repeat for more", default=[])
    what.add_argument("--refresh", action="store_true", help="update each cached result with what was found")
    what.add_argument(
        "--strength", action="store_true", help="count the planted mistakes that verification catches"
    )
    what.add_argument(
        "--stale",
        action="store_true",
        help="check what an older driver, compiler or source gave, and search anew where it loses",
    )
    parser.add_argument(
        "--bits",
        action="store_true",
        help="compare bits of results, at these sizes: of several runs, and of all served configurations or "
        "those of --config",
    )
    parser.add_argument(
        "--no-sanitizer",
        dest="sanitizer",
        action="store_false",
        help="run neither compute-sanitizer nor the sanitizers of g++",
    )
    parser.add_argument(
        "--time",
        metavar="SECONDS",
        type=opt.seconds,
        default=300.0,
        help="with --strength: plant no mistake after so long; with --stale: search no longer than this, all "
        "results together (default %(default)g)",
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
    with opt.opened_task(parsed) as (task, progress):
        root = str(writable_root(parsed.cache))
        configs = opt.valid_configs(parsed.config, task) or served_configs(task, root)
        if not configs:
            raise InputError(
                f"{root} serves nothing of {task.spec.kernel} for {task.device.name} that is valid at these "
                "sizes; run autotune search, or name configurations with --config"
            )
        found = compare_bits(task, opt.run_options(parsed, sanitizer=False), progress, configs)
    emit(bits_json(found) if parsed.json else bits_text(found))
    bad = sum(bool(one.failure or one.unsteady) for one in found.values())
    if bad:
        raise SetupError(f"wrong or not repeatable: {bad} of {count_text(len(found), 'configuration')}")


def _check_strength(parsed: argparse.Namespace) -> None:
    from autotune.cli.strength_summary import strength_text
    from autotune.strength.record import keep, strength_file, strength_json
    from autotune.strength.strength import measure

    with opt.opened_task(parsed) as (task, progress):
        options = opt.run_options(parsed, sanitizer=parsed.sanitizer)
        found = measure(task, options, progress, parsed.time)
    keep(found, strength_file(task.spec.kernel, task.device.slug))
    if parsed.json:
        emit(strength_json(found))
    else:
        emit(*strength_text(found))


def _check_configurations(parsed: argparse.Namespace) -> None:
    from autotune.plans.recheck import check

    with opt.opened_task(parsed) as (task, progress):
        configs = opt.valid_configs(parsed.config, task)
        found = check(task, opt.run_options(parsed, sanitizer=parsed.sanitizer), progress, configs)
    expected = task.spec.declared_wrong
    emit(findings_json(found, expected) if parsed.json else findings_text(found, expected))
    ended = {config: failure.status if failure else Status.OK for config, failure in found.items()}
    wrong = sum(status is not expected.get(config, Status.OK) for config, status in ended.items())
    if wrong:
        raise SetupError(f"wrong: {wrong} of {count_text(len(found), 'configuration')}")


def _check_cache(parsed: argparse.Namespace) -> None:
    from autotune.checks.deadline import Deadline
    from autotune.plans.aged_results import update_result
    from autotune.plans.recheck import CheckState, recheck, refresh
    from autotune.serving.cache import writable_root
    from autotune.tuning.task import bind_target

    root = str(writable_root(parsed.cache))
    target = opt.target(parsed)
    options = opt.run_options(parsed, sanitizer=parsed.sanitizer)
    checked, aged = [], []
    deadline = Deadline.after(parsed.time)
    with opt.opened_task(parsed) as (task, progress):
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
                f"{root} holds no such result of {task.spec.kernel} for {task.device.name}; "
                "run autotune search, or name configurations with --config"
            )
        for entry in entries:
            of_entry = bind_target(
                replace(target, sizes=entry.sizes, dtype=entry.dtype, data=entry.data or None)
            )
            if parsed.stale:
                aged.append(update_result(of_entry, options, progress, entry, root, deadline))
                continue
            checked.append(recheck(of_entry, options, progress, entry))
            if parsed.refresh:
                refresh(of_entry, root, checked[-1])
    if parsed.stale:
        found = [one for one in aged if one is not None]
        emit(aged_json(found) if parsed.json else aged_text(found, len(entries)))
        return
    emit(entries_json(checked) if parsed.json else entries_text(checked, parsed.refresh))
    wrong = sum(one.state is CheckState.WRONG for one in checked)
    if wrong and not parsed.refresh:
        raise SetupError(
            f"wrong: {wrong} of {count_text(len(checked), 'result')}; add --refresh, or search again"
        )


def bits_text(found: Mapping[Config, Bits]) -> str:
    """A line for each configuration: the number of its result, or the reason why it has none."""
    numbers: dict[tuple[str, ...], int] = {}
    lines = []
    for config, one in found.items():
        if one.failure:
            lines.append(f"wrong     {config}: {one.failure}")
        elif one.unsteady:
            lines.append(
                f"varies    {config}: {', '.join(one.unsteady)} differs between {len(one.runs)} runs"
            )
        else:
            number = numbers.setdefault(tuple(one.outputs.values()), len(numbers) + 1)
            lines.append(f"result {number}  {config}: the same bits in {len(one.runs)} runs")
    if len(numbers) > 1:
        lines.append("configurations give different bits: sums are added up in other orders")
    return "\n".join(lines)


def bits_json(found: Mapping[Config, Bits]) -> list[dict[str, Any]]:
    return [
        {
            "config": dict(config),
            "failure": str(one.failure) if one.failure else "",
            "unsteady": list(one.unsteady),
            "sha256": dict(one.outputs),
        }
        for config, one in found.items()
    ]


def aged_text(found: Sequence[AgedResult], count: int) -> str:
    """For each aged result what the update cost or gained, and what a new search then gained."""
    if not found:
        return f"nothing is stale: {count_text(count, 'result')}"
    return "\n".join("\n           ".join(_aged_lines(one)) for one in found)


def _aged_lines(one: AgedResult) -> Iterator[str]:
    entry, fresh, time_ms = one.checked.entry, one.checked.refreshed, one.checked.time_ms
    yield entries_text([one.checked], not one.loses)
    yield from one.changes
    if fresh and time_ms and fresh.default_time_ms and entry.default_time_ms:
        now, before = fresh.default_time_ms / time_ms, entry.default_time_ms / entry.time_ms
        yield f"{now:.3g} times as fast as the default; {before:.3g} times before"
    if one.searched_ms is not None:
        what = f"{one.searched_ms:.4g} ms"
        if time_ms:
            saved = 1 - one.searched_ms / time_ms
            what = f"{what}, {saved:.1%} less" if saved > 0 else f"nothing faster than {what}"
        yield f"a new search found {what}, which is stored"
    if one.note:
        yield one.note


def aged_json(found: Sequence[AgedResult]) -> list[dict[str, Any]]:
    checked = entries_json([one.checked for one in found])
    return [
        row
        | {
            "changes": list(one.changes),
            "default_ms": one.checked.refreshed.default_time_ms if one.checked.refreshed else None,
            "loses": one.loses,
            "searched_ms": one.searched_ms,
            "note": one.note,
        }
        for row, one in zip(checked, found, strict=True)
    ]


def findings_text(found: Mapping[Config, Failure | None], expected: Mapping[Config, Status]) -> str:
    """A line for each configuration; `expected` has those that the space declares wrong."""
    return "\n".join(
        (f"ok     {config}" if failure is None else f"wrong  {config}: {failure}")
        + (f" (the space declares it as {expected[config].value})" if config in expected else "")
        for config, failure in found.items()
    )


def findings_json(
    found: Mapping[Config, Failure | None], expected: Mapping[Config, Status]
) -> list[dict[str, Any]]:
    return [
        {
            "config": dict(config),
            "status": failure.status.value if failure else "ok",
            "expected": expected.get(config, Status.OK).value,
            "detail": failure.detail if failure else "",
        }
        for config, failure in found.items()
    ]


def entries_text(checked: Sequence[CheckedEntry], is_refreshed: bool) -> str:
    """A line for each result, for what was stored, and for the checks that the fastest passed."""
    lines = []
    for one in checked:
        entry, fresh = one.entry, one.refreshed
        problem = problem_text(entry.sizes, entry.dtype, entry.data)
        times = f"{entry.time_ms:.4g} ms" + ("" if one.time_ms is None else f", now {one.time_ms:.4g} ms")
        detail = f": {one.detail}" if one.detail else ""
        lines.append(f"{one.state.name:9}  {problem}: {times}{detail}")
        if is_refreshed and fresh is not None:
            lines.append(f"           stored {fresh.config}, {fresh.time_ms:.4g} ms")
        if fresh is not None:
            passed = checks_text(of_reasons(fresh.provenance.checked))
            lines.append(f"           nothing wrong in {fresh.config}: {passed}")
    return "\n".join(lines)


def entries_json(checked: Sequence[CheckedEntry]) -> list[dict[str, Any]]:
    return [
        {
            "sizes": dict(one.entry.sizes),
            "dtype": one.entry.dtype,
            "config": dict(one.entry.config),
            "state": one.state.value,
            "detail": one.detail,
            "stored_ms": one.entry.time_ms,
            "time_ms": one.time_ms,
            "best": dict(one.refreshed.config) if one.refreshed else None,
            "best_ms": one.refreshed.time_ms if one.refreshed else None,
            "checks": checks_text(of_reasons(one.refreshed.provenance.checked)) if one.refreshed else "",
        }
        for one in checked
    ]
