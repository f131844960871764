"""Tune a kernel and store the best configuration in the cache.

The space's kernel and reference are code that runs on this machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.cli.sizes import parse_sizes, parse_sweep
from autotune.core import timeline
from autotune.core.records import ADOPTION
from autotune.core.stages import Stage
from autotune.core.trials import Budget
from autotune.errors import InputError
from autotune.frameworks import FORMATS, Format
from autotune.frameworks.config_file import KEY, TOKENS, nearest
from autotune.processes.files import write_output
from autotune.tuning.options import DEFAULT_BUDGET, MAX_VARIANTS, Options, read_objective, usual_budget

if TYPE_CHECKING:  # these load numpy, and progress should show from the start
    from autotune.cli.progress import SearchProgress
    from autotune.plans.search_plan import PlanResult
    from autotune.tuning.observer import Observer
    from autotune.tuning.result import SearchResult
    from autotune.tuning.task import TuningTask

EXAMPLE = "autotune search spaces/reduce.yaml --budget 200"


def add_options(parser: argparse.ArgumentParser) -> None:
    opt.add_target(parser, optional=True)
    parser.add_argument(
        "more_spaces",
        metavar="SPACE",
        type=Path,
        nargs="*",
        help="further spaces, as in spaces/*.yaml: next is always the one with the greatest expected gain "
        "per second; --budget is for each space, --time for all together",
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
        help="with --cluster: search for every GPU model among the workers at once, each with the budget; "
        "results on one inform the searches on the others",
    )
    parser.add_argument(
        "--wanted",
        action="store_true",
        help="tune the problems that programs requested and did not find (on_miss of best_config), for this "
        "device; with a space, only its kernel",
    )
    parser.add_argument(
        "--recorded",
        metavar="FILE",
        type=Path,
        help="tune what `autotune record` noted of a program, with the spaces of its kernels",
    )
    _add_sweep(parser.add_argument_group("a range of sizes"))
    _add_engine(parser.add_argument_group("how to search"))
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        type=Path,
        help="write what every process did and waited for, to be opened at ui.perfetto.dev",
    )
    opt.add_run(parser, resumes=True)
    opt.add_cache(parser, "where to store the result", reads=False)
    opt.add_json(parser)


def _add_sweep(group: argparse._ArgumentGroup) -> None:
    opt.add_sweep(
        group,
        "tune many sizes in one run, such as n=2**10:2**30:x4, n=100:1000:+100, n=1,2,4,24 or a CSV file "
        "with names in its first line, and choose a few variants that serve all between; repeat for all "
        "combinations. --budget and --time are for the first size; each other size gets a part. --dtype "
        "int32,float32 takes several element types",
    )
    group.add_argument(
        "--format",
        choices=FORMATS,
        metavar="FORMAT",
        help=f"tune for files that a framework reads, at its numbers of tokens unless {KEY} is given, and "
        f"keep what it serves where nothing is faster: {', '.join(FORMATS)}",
    )
    group.add_argument(
        "--variants",
        metavar="N",
        type=opt.at_least(1),
        help=f"the most variants that a sweep chooses for an element type (default {MAX_VARIANTS})",
    )


def _add_engine(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--engine",
        help="surrogate, exhaustive, random, kernel_tuner, optuna or adopt, which tries a few that results "
        "of other devices and sizes predict (default: exhaustive if the budget covers the space, else "
        "surrogate; optuna for --objective pareto)",
    )
    group.add_argument("--strategy", metavar="NAME", help="a strategy of Kernel Tuner or a sampler of Optuna")
    group.add_argument(
        "--objective",
        metavar="NAME|EXPRESSION",
        help="what to minimize: time, energy (joules of one run), edp (energy times delay), pareto (time and "
        "energy), or an expression such as 'time_ms * registers' (default: that of the space, else time)",
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
    with _timeline(parsed.timeline):
        _run(parsed, _options(parsed))


@contextmanager
def _timeline(path: Path | None) -> Iterator[None]:
    """Write the timeline of what happens meanwhile, and since this process began; None writes none."""
    if path is None:
        yield
        return
    write_output(path, "")  # an error shows before the work, not after it
    timeline.begin("autotune search")
    timeline.add("start Python and read the options", timeline.process_began_s(), time.perf_counter())
    try:
        yield
    finally:
        write_output(path, timeline.chrome_trace(timeline.taken()))
        timeline.end()


def _run(parsed: argparse.Namespace, options: Options) -> None:
    if parsed.wanted or parsed.recorded:
        _search_requests(parsed, options)
    elif parsed.more_spaces:
        _search_spaces(parsed, options)
    elif _is_sweep(parsed):
        _sweep(parsed, options)
    elif parsed.each_model:
        _search_each_model(parsed, options)
    else:
        _search(parsed, options)


def _is_sweep(parsed: argparse.Namespace) -> bool:
    """True if several sizes or element types are requested."""
    return bool(parsed.sweep or parsed.format) or "," in (parsed.dtype or "")


def _require_consistent(parsed: argparse.Namespace) -> None:
    if parsed.recorded:
        opt.require_unset(parsed, "--recorded tunes what a program asked for", "wanted")
    if parsed.wanted or parsed.recorded:
        own = ("size", "dtype", "sweep", "format", "journal")
        opt.require_unset(parsed, "requests name their sizes and types", *own)
    elif parsed.space is None:
        raise InputError(f"name a space, or give --wanted; for example: {EXAMPLE}")
    if parsed.wanted or parsed.recorded or _is_sweep(parsed):
        why = "a sweep, --wanted and --recorded tune on one device"
        opt.require_unset(parsed, why, "devices", "cluster")
    if parsed.more_spaces:
        opt.require_unset(parsed, "of several spaces, each has one problem", "sweep", "format", "wanted")
    if parsed.each_model and (not parsed.cluster or parsed.journal or parsed.more_spaces):
        raise InputError("--each-model needs --cluster and one space, and no --journal")
    if parsed.format or not _is_sweep(parsed):
        opt.require_unset(parsed, "only a sweep without --format chooses variants", "variants")


def _search(parsed: argparse.Namespace, options: Options) -> None:
    if options.engine == ADOPTION and not parsed.cluster:
        _adopt(parsed, options)
        return
    result = _with_cluster(parsed, options) if parsed.cluster else _with_device(parsed, options)
    from autotune.cli.search_summary import result_json, result_text

    emit(result_json(result) if parsed.json else result_text(result))


def _adopt(parsed: argparse.Namespace, options: Options) -> None:
    """Adopt a result, unless a search has stored one for this device and problem already."""
    from autotune.cli.search_summary import known_json, known_text, result_json, result_text
    from autotune.tuning.served_best import KnownResult
    from autotune.tuning.tuner import adopt

    with _opened_task(parsed, options) as (task, progress):
        adopted = adopt(task, options, progress)
    if isinstance(adopted, KnownResult):
        emit(known_json(adopted) if parsed.json else known_text(adopted))
    else:
        emit(result_json(adopted) | {"adopted": True} if parsed.json else result_text(adopted))


@contextmanager
def _opened_task(parsed: argparse.Namespace, options: Options) -> Iterator[tuple[TuningTask, SearchProgress]]:
    """The task that the options name, with as many of its devices as pay."""
    with opt.opened_task(parsed) as (task, progress):
        yield opt.alone_if_enough(task, parsed.devices, options.budget, progress.warn), progress


def _with_device(parsed: argparse.Namespace, options: Options) -> SearchResult:
    with ExitStack() as opened:
        with timeline.span("import autotune, and find the device and its configurations"):
            task, progress = opened.enter_context(_opened_task(parsed, options))
        from autotune.tuning.tuner import priors_of, search

        with timeline.span("search"):
            return search(task, options, progress, priors_of(task, options))


def _with_cluster(parsed: argparse.Namespace, options: Options) -> SearchResult:
    with (
        opt.progress(parsed) as progress,
        opt.opened_cluster(parsed.cluster, parsed.device, progress) as several,
    ):
        from autotune.tuning.task import bind_target
        from autotune.tuning.tuner import priors_of, search

        devices = None if several is None else [(several.address, several.info)]
        task = bind_target(opt.target(parsed), progress.stage, devices)
        return search(task, options, progress, priors_of(task, options), several)


def _search_each_model(parsed: argparse.Namespace, options: Options) -> None:
    """Search for every model of a cluster, and compare them; raises SetupError at the end if some failed."""
    from autotune.cli.compare import comparison_text
    from autotune.cluster.connection import open_each_model
    from autotune.plans.each_model import search_each_model

    with (
        opt.progress(parsed) as progress,
        open_each_model(parsed.cluster, parsed.device, progress.stage, progress.warn) as clusters,
    ):
        plan_result = search_each_model(
            opt.target(parsed), options, progress, clusters, partial(_show, parsed)
        )
    if parsed.json:
        emit(_results_json(plan_result))
    elif plan_result.results:
        from autotune.analysis.compare import compare, results_of, select
        from autotune.serving.device_records import device_records

        task = plan_result.results[0].task
        results = results_of(device_records(task.spec.kernel, plan_result.results[0].cache_root))
        selected = select(results, task.space.problem.sizes, task.space.problem.dtype)
        emit(*comparison_text(compare(task.spec.kernel, selected)))
    plan_result.require_all(f"of {len(clusters)} models failed")


def _search_spaces(parsed: argparse.Namespace, options: Options) -> None:
    """Search several spaces in turns; raises SetupError at the end if some of them failed."""
    from autotune.cli.search_summary import result_line
    from autotune.plans.search_plan import run_searches
    from autotune.plans.several_spaces import plan_of_spaces

    def show(result: SearchResult) -> None:
        if not parsed.json:
            emit(result_line(result))

    target = opt.target(parsed)
    targets = [target, *(replace(target, space=space) for space in parsed.more_spaces)]
    with (
        opt.progress(parsed) as progress,
        opt.opened_cluster(parsed.cluster, parsed.device, progress) as several,
    ):
        plan = plan_of_spaces(targets, options, progress.stage, several)
        plan_result = run_searches(plan, progress, show)
    if parsed.json:
        emit(_results_json(plan_result))
    plan_result.require_all(f"of {len(targets)} spaces failed")


def _sweep(parsed: argparse.Namespace, options: Options) -> None:
    """Search many sizes, or several element types, and print the best or a table of variants."""
    from autotune.cli.sweep_summary import sweep_json, sweep_text
    from autotune.plans.sweep import KeyedTable, bind_sweep, sweep

    fixed, form = parse_sizes(parsed.size), FORMATS.get(parsed.format)
    points = parse_sweep(parsed.sweep, fixed)
    if form is not None and KEY not in (fixed | points[0]):
        points = [{**sizes, KEY: tokens} for sizes in points for tokens in TOKENS]
    dtypes = list(dict.fromkeys(filter(None, map(str.strip, (parsed.dtype or "").split(",")))))
    with opt.progress(parsed) as progress:
        tasks = bind_sweep(opt.target(parsed), points, dtypes, progress)
        if form is not None:
            tasks = _with_installed(tasks, form, progress)
        keyed = KeyedTable(KEY, nearest) if form else None
        result = sweep(tasks, options, progress, parsed.variants or MAX_VARIANTS, keyed)
    emit(sweep_json(result) if parsed.json else sweep_text(result))


def _with_installed(tasks: Sequence[TuningTask], form: Format, progress: Observer) -> list[TuningTask]:
    """Tasks that know what a framework serves now; warns of what their space does not have."""
    from autotune.frameworks.installed import InstalledConfigs

    installed, left_out, done = InstalledConfigs(form, tasks[0].device.name), [], []
    for task in tasks:
        sizes = task.space.problem.sizes
        config, where = installed.config(sizes, task.spec.default)
        if config is not None and (reasons := task.space.why_invalid(config)):
            config, where = None, f"{where}: {config}: {'; '.join(reasons)}"
        if config is None:
            left_out.append(f"{KEY}={sizes[KEY]}: {where}")
        done.append(replace(task, served_elsewhere=(config,) if config else ()))
    if left_out:
        progress.warn(f"nothing is compared with what {form.package} serves now, at {', '.join(left_out)}")
    return done


def _search_requests(parsed: argparse.Namespace, options: Options) -> None:
    """Search what programs asked for; raises SetupError at the end if some of it failed."""
    from autotune.plans.requests import plan_of_requests, requests_of_misses, requests_of_tunings
    from autotune.plans.search_plan import run_searches
    from autotune.recording.tunings import read_recorded

    with opt.progress(parsed) as progress:
        if parsed.wanted:
            progress.stage(Stage("finding devices"))
            requests = requests_of_misses(parsed.cache, parsed.device, parsed.space)
        else:
            spaces = [parsed.space, *parsed.more_spaces] if parsed.space else []
            requests = requests_of_tunings(read_recorded(parsed.recorded), spaces, parsed.device)
        plan = plan_of_requests(requests, options, progress.stage)
        plan_result = run_searches(plan, progress, partial(_show, parsed))
    if parsed.json:
        emit(_results_json(plan_result))
    elif not requests.total:
        emit("no request is listed for this device")
    stay = " and stay" if parsed.wanted else ""
    plan_result.require_all(f"of {requests.total} requests failed{stay}")


def _show(parsed: argparse.Namespace, result: SearchResult) -> None:
    """Print one of several results, unless all are printed as JSON in the end."""
    from autotune.cli.search_summary import result_text

    if not parsed.json:
        emit(result_text(result) + "\n")


def _results_json(plan_result: PlanResult) -> list[dict[str, Any]]:
    from autotune.cli.search_summary import result_json

    return [result_json(result) for result in plan_result.results]


def _options(parsed: argparse.Namespace) -> Options:
    has_limit = parsed.budget is not None or parsed.time is not None
    objective, own = read_objective(parsed.objective)
    return opt.run_options(
        parsed,
        engine=parsed.engine,
        strategy=parsed.strategy,
        budget=Budget(parsed.budget, parsed.time) if has_limit else usual_budget(parsed.engine),
        seed=parsed.seed,
        objective=objective,
        own_objective=own,
        transfer=not parsed.no_transfer,
        stop_when_unlikely=parsed.stop_when_unlikely,
        sanitizer=parsed.sanitizer,
    )
