"""Look for races and wrong accesses in named configurations, or check what the cache holds.

With --config, configurations are verified, then run on other data, with threads and blocks in other
orders, on the CPU under the sanitizers of g++ where it is installed, and at last (CUDA) under the four
tools of compute-sanitizer. Without, each cached result of the kernel for this device is verified and
timed again with its ties, the next best and the default, for example after a driver or a compiler was
updated. With --strength, mistakes are planted into the kernel, one at a time: it is told which of
them the sizes, the data and the tolerance of the space cannot see, and what would.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.core.checks import checks_text
from autotune.core.records import Config
from autotune.core.text import count_text, problem_text
from autotune.core.trials import Failure, Status
from autotune.errors import InputError, SetupError

if TYPE_CHECKING:
    from autotune.tuning.recheck import CheckedEntry

EXAMPLE = "autotune check reduce --refresh"


def add_options(parser: argparse.ArgumentParser) -> None:
    opt.add_target(parser)
    what = parser.add_mutually_exclusive_group()
    opt.add_config(what, "check this configuration; repeat for more", default=[])
    what.add_argument("--refresh", action="store_true", help="update each cached result with what was found")
    what.add_argument(
        "--strength", action="store_true", help="count the planted mistakes that verification catches"
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
        help="with --strength: plant no mistake after so long (default %(default)g)",
    )
    opt.add_run(parser)
    opt.add_cache(parser, "the cache to check", reads=False)
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Check configurations or cached results and print what was found; fails if something is wrong."""
    if parsed.strength:
        _check_strength(parsed)
    elif parsed.config:
        _check_configurations(parsed)
    else:
        _check_cache(parsed)


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
    from autotune.tuning.recheck import check

    with opt.opened_task(parsed) as (task, progress):
        configs = [opt.config([text], task.spec) for text in parsed.config]
        for config in configs:
            opt.require_valid(task, config)
        found = check(task, opt.run_options(parsed, sanitizer=parsed.sanitizer), progress, configs)
    expected = task.spec.declared_wrong
    emit(findings_json(found, expected) if parsed.json else findings_text(found, expected))
    ended = {config: failure.status if failure else Status.OK for config, failure in found.items()}
    wrong = sum(status is not expected.get(config, Status.OK) for config, status in ended.items())
    if wrong:
        raise SetupError(f"wrong: {wrong} of {count_text(len(found), 'configuration')}")


def _check_cache(parsed: argparse.Namespace) -> None:
    from autotune.serving.cache import writable_root
    from autotune.tuning.recheck import CheckState, cached_record, recheck, refresh
    from autotune.tuning.task import bind_target

    root = str(writable_root(parsed.cache))
    target = opt.target(parsed)
    options = opt.run_options(parsed, sanitizer=parsed.sanitizer)
    checked = []
    with opt.opened_task(parsed) as (task, progress):
        record = cached_record(task, root)
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
            checked.append(recheck(of_entry, options, progress, entry))
            if parsed.refresh:
                refresh(of_entry, root, checked[-1])
    emit(entries_json(checked) if parsed.json else entries_text(checked, parsed.refresh))
    wrong = sum(one.state is CheckState.WRONG for one in checked)
    if wrong and not parsed.refresh:
        raise SetupError(
            f"wrong: {wrong} of {count_text(len(checked), 'result')}; add --refresh, or search again"
        )


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
        entry, fresh = one.entry, one.fresh
        problem = problem_text(entry.sizes, entry.dtype, entry.data)
        times = f"{entry.time_ms:.4g} ms" + ("" if one.time_ms is None else f", now {one.time_ms:.4g} ms")
        detail = f": {one.detail}" if one.detail else ""
        lines.append(f"{one.state.name:9}  {problem}: {times}{detail}")
        if is_refreshed and fresh is not None:
            lines.append(f"           stored {fresh.config}, {fresh.time_ms:.4g} ms")
        if fresh is not None:
            passed = checks_text(fresh.provenance.checked)
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
            "best": dict(one.fresh.config) if one.fresh else None,
            "best_ms": one.fresh.time_ms if one.fresh else None,
            "checks": checks_text(one.fresh.provenance.checked) if one.fresh else "",
        }
        for one in checked
    ]
