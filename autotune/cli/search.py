"""Tune a kernel and store the best configuration in the cache.

The space's kernel and reference are code that runs on this machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.cli.sizes import parse_sizes, parse_sweep
from autotune.core import timeline
from autotune.core.records import ADOPTION
from autotune.core.trials import Budget
from autotune.errors import InputError
from autotune.frameworks import FORMATS
from autotune.frameworks.config_file import KEY
from autotune.tuning.options import DEFAULT_BUDGET, MAX_VARIANTS, Options, read_objective, usual_budget

if TYPE_CHECKING:  # these load numpy, and progress should show from the start
    from autotune.cli.progress import SearchProgress
    from autotune.cli.tables import Table
    from autotune.plans.search_plan import SearchPlan
    from autotune.tuning.result import SearchResult

EXAMPLE = "autotune search spaces/reduce.yaml --budget 200"


def add_options(parser: argparse.ArgumentParser) -> None:
    opt.add_target(parser, optional=True)
    parser.add_argument(
        "more_spaces",
        metavar="SPACE",
        type=Path,
        nargs="*",
        help="more spaces, as in spaces/*.yaml: the space with the greatest expected gain per second runs "
        "next; --budget applies to each space, --time to all together",
    )
    several = parser.add_mutually_exclusive_group()
    several.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="search with the devices of a Dask cluster: tcp://HOST:PORT or slurm:JOBS (extra: cluster)",
    )
    several.add_argument(
        "--devices",
        metavar="LIST",
        help="search with several devices of one model, such as cuda:0,cuda:1, or all",
    )
    parser.add_argument(
        "--each-model",
        action="store_true",
        help="with --cluster: search for every GPU model among the workers at once, each with the whole "
        "budget; the searches learn from each other",
    )
    parser.add_argument(
        "--wanted",
        action="store_true",
        help="tune the problems that programs requested but did not find (on_miss of best_config), for this "
        "device; with a space, only its kernel",
    )
    parser.add_argument(
        "--recorded",
        metavar="FILE",
        type=Path,
        help="tune the problems that `autotune record` found in a program, with the spaces of its kernels",
    )
    _add_sweep(parser.add_argument_group("a range of sizes"))
    _add_engine(parser.add_argument_group("how to search"))
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        type=Path,
        help="write what every process did and waited for, as a trace for ui.perfetto.dev",
    )
    opt.add_run(parser, resumes=True)
    opt.add_cache(parser, "where to store the result", reads=False)
    opt.add_json(parser)


def _add_sweep(group: argparse._ArgumentGroup) -> None:
    opt.add_sweep(
        group,
        "tune many sizes in one run, such as n=2**10:2**30:x4, n=100:1000:+100, n=1,2,4,24 or a CSV file "
        "with names in its first line, and choose a few variants for the whole range; repeat for all "
        "combinations. --budget and --time apply to the first size; each other size gets a part. --dtype "
        "int32,float32 tunes several element types",
    )
    group.add_argument(
        "--format",
        choices=FORMATS,
        metavar="FORMAT",
        help=f"tune for a framework's files, at its numbers of tokens unless you give {KEY}; keep its own "
        f"configurations where none is faster: {', '.join(FORMATS)}",
    )
    group.add_argument(
        "--variants",
        metavar="N",
        type=opt.at_least(1),
        help=f"maximum number of variants of a sweep for each element type (default {MAX_VARIANTS})",
    )


def _add_engine(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--engine",
        help="surrogate, exhaustive, random, kernel_tuner, optuna or adopt; adopt tries the few "
        "configurations that results of other devices and sizes predict (default: exhaustive if the budget "
        "covers the space, else surrogate; optuna for --objective pareto)",
    )
    group.add_argument("--strategy", metavar="NAME", help="a Kernel Tuner strategy or an Optuna sampler")
    group.add_argument(
        "--objective",
        metavar="NAME|EXPRESSION",
        help="what to minimize: time, energy (joules of one run), edp (energy times delay), pareto (time and "
        "energy), or an expression such as 'time_ms * registers' (default: the space's objective, else time)",
    )
    group.add_argument(
        "--budget",
        metavar="N",
        type=opt.at_least(1),
        help=f"number of configurations to try (default {DEFAULT_BUDGET.trials}; "
        f"{usual_budget(ADOPTION).trials} for the engine {ADOPTION})",
    )
    group.add_argument(
        "--time",
        metavar="SECONDS",
        type=opt.seconds,
        help="time for the search, its last round and its checks; without --budget this is the only limit",
    )
    group.add_argument(
        "--seed", type=opt.seed, default=Options.seed, help="seed of the search (default %(default)s)"
    )
    group.add_argument(
        "--no-transfer", action="store_true", help="do not start from results of other devices and problems"
    )
    group.add_argument(
        "--stop-when-unlikely",
        action="store_true",
        help="stop as soon as a faster untried configuration is unlikely",
    )
    opt.add_no_sanitizer(
        group, "check the winner and its ties neither with compute-sanitizer nor with the sanitizers of g++"
    )


def run(parsed: argparse.Namespace) -> None:
    _require_consistent(parsed)
    with opt.timeline_file(parsed.timeline, "autotune search"):
        timeline.add("start Python and read the options", timeline.process_began_s(), time.perf_counter())
        is_sweep = _is_sweep(parsed) and not _is_several(parsed)
        (_sweep if is_sweep else _search)(parsed, _options(parsed))


def _is_sweep(parsed: argparse.Namespace) -> bool:
    """True if several sizes or element types are requested."""
    return bool(parsed.sweep or parsed.format) or "," in (parsed.dtype or "")


def _require_consistent(parsed: argparse.Namespace) -> None:
    if parsed.recorded:
        opt.require_unset(parsed, "--recorded brings its own requests", "wanted")
    if parsed.wanted or parsed.recorded:
        problem_options = ("size", "dtype", "sweep", "format", "journal")
        opt.require_unset(parsed, "--wanted and --recorded name the problems", *problem_options)
    elif parsed.space is None:
        raise InputError(f"name a space, or give --wanted; for example: {EXAMPLE}")
    if parsed.wanted or parsed.recorded or _is_sweep(parsed):
        why = "a sweep, --wanted and --recorded tune on one device"
        opt.require_unset(parsed, why, "devices", "cluster")
    if parsed.more_spaces:
        opt.require_unset(parsed, "with several spaces, each has one problem", "sweep", "format", "wanted")
    if parsed.each_model and (not parsed.cluster or parsed.journal or parsed.more_spaces):
        raise InputError("--each-model needs --cluster and one space, and no --journal")
    if parsed.format or not _is_sweep(parsed):
        opt.require_unset(parsed, "only a sweep without --format chooses variants", "variants")


def _is_several(parsed: argparse.Namespace) -> bool:
    """True if the command may have several results, or none."""
    return bool(parsed.wanted or parsed.recorded or parsed.more_spaces or parsed.each_model)


def _search(parsed: argparse.Namespace, options: Options) -> None:
    """Carry out the plan that the options name; raises SetupError at the end if some of it failed."""
    with ExitStack() as opened:
        with timeline.span("import autotune, and find the device and its configurations"):
            plan, progress = opened.enter_context(_open_asked(parsed, options))
        from autotune.cli.search_summary import plan_json, plan_text, result_line, result_text
        from autotune.plans.search_plan import Searches

        def show(result: SearchResult) -> None:
            if _is_several(parsed) and not parsed.json:
                by_turns = parsed.more_spaces and not parsed.recorded
                emit(result_line(result) if by_turns else result_text(result) + "\n")

        with timeline.span("search"):
            done = plan(Searches(progress, show))
    if parsed.json:
        emit(plan_json(done, is_several=_is_several(parsed)))
    elif not _is_several(parsed):
        emit(plan_text(done))
    elif parsed.each_model and done.results:
        emit(_compared(done.results[0]))
    elif not (done.results or done.failures):
        emit("no request is listed for this device")
    done.require_all()


@contextmanager
def _open_asked(parsed: argparse.Namespace, options: Options) -> Iterator[tuple[SearchPlan, SearchProgress]]:
    """The plan that the options name; a single search has as many of its devices as pay."""
    if not (parsed.cluster or _is_several(parsed)):  # the devices are listed while modules are imported
        with opt.open_task(parsed) as (task, progress):
            from autotune.plans.search_plan import search_one

            task = opt.alone_if_enough(task, parsed.devices, options.budget, progress.warn)
            yield partial(search_one, task, options, None), progress
        return
    with opt.progress(parsed) as progress:
        from autotune.plans.open_plan import open_plan

        spaces = [parsed.space, *parsed.more_spaces] if parsed.space else []
        asked = {name: getattr(parsed, name) for name in ("cluster", "each_model", "wanted", "recorded")}
        with open_plan(opt.target(parsed), spaces, options, progress, **asked) as plan:
            yield plan, progress


def _compared(result: SearchResult) -> Iterator[str | Table]:
    """The results of all models for the problem of a search."""
    from autotune.analysis.compare import compare, results_of, select
    from autotune.cli.compare import comparison_text
    from autotune.serving.device_records import device_records

    task, problem = result.task, result.task.space.problem
    results = results_of(device_records(task.spec.kernel, result.cache_root))
    return comparison_text(compare(task.spec.kernel, select(results, problem.sizes, problem.dtype)))


def _sweep(parsed: argparse.Namespace, options: Options) -> None:
    """Search many sizes, or several element types, and print the best or a table of variants."""
    from autotune.cli.sweep_summary import sweep_json, sweep_text
    from autotune.plans.sweep import bind_sweep, sweep

    points, form = parse_sweep(parsed.sweep, parse_sizes(parsed.size)), FORMATS.get(parsed.format)
    dtypes = list(dict.fromkeys(filter(None, map(str.strip, (parsed.dtype or "").split(",")))))
    with opt.progress(parsed) as progress:
        tasks = bind_sweep(opt.target(parsed), points, dtypes, progress, form)
        result = sweep(tasks, options, progress, parsed.variants or MAX_VARIANTS, form)
    emit(sweep_json(result) if parsed.json else sweep_text(result))


def _options(parsed: argparse.Namespace) -> Options:
    has_limit = parsed.budget is not None or parsed.time is not None
    objective, own = read_objective(parsed.objective)
    return opt.run_options(
        parsed,
        engine=parsed.engine,
        strategy=parsed.strategy,
        budget=Budget(trials=parsed.budget, seconds=parsed.time)
        if has_limit
        else usual_budget(parsed.engine),
        seed=parsed.seed,
        objective=objective,
        own_objective=own,
        transfer=not parsed.no_transfer,
        stop_when_unlikely=parsed.stop_when_unlikely,
        sanitizer=parsed.sanitizer,
    )
