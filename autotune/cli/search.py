"""Tune a kernel: search its space, verify and time, keep the best in the cache."""

from __future__ import annotations

import argparse

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.core.trials import Budget, Objective
from autotune.errors import InputError, SetupError
from autotune.tuning.options import DEFAULT_BUDGET, Options

EXAMPLE = "autotune search spaces/reduce.yaml --budget 200"
BEWARE = "A space's reference and kernel are code that runs on this machine. "


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    opt.add_target(parser, optional=True)
    parser.add_argument(
        "--wanted",
        action="store_true",
        help="tune what programs asked of this device and did not find (best_config with on_miss); "
        "with a space, only of its kernel",
    )
    how = parser.add_argument_group("how to search")
    how.add_argument(
        "--engine",
        help="surrogate, exhaustive, random, kernel_tuner, optuna or adopt; left out: exhaustive when the "
        "budget covers the space, else surrogate, for --objective pareto optuna",
    )
    how.add_argument("--strategy", metavar="NAME", help="a strategy of Kernel Tuner or a sampler of Optuna")
    _add_aim(how)
    how.add_argument(
        "--budget",
        metavar="N",
        type=opt.at_least(1),
        help=f"configurations to try (default {DEFAULT_BUDGET.trials})",
    )
    how.add_argument(
        "--time",
        metavar="SECONDS",
        type=opt.seconds,
        help="stop after this long; without --budget it alone decides",
    )
    how.add_argument(
        "--seed", type=opt.seed, default=Options.seed, help="seed of the search (default %(default)s)"
    )
    _add_learning(how)
    opt.add_run(parser)
    opt.add_cache(parser, "where the result is kept", reads=False)
    opt.add_json(parser)


def _add_aim(how: argparse._ArgumentGroup) -> None:
    """What the search is for, and how sure it has to be."""
    how.add_argument(
        "--objective",
        choices=[objective.value for objective in Objective],
        default=Options.objective.value,
        help="what to make small: time, energy (joules a run), edp, their product, or pareto, both at once "
        "(default %(default)s)",
    )
    how.add_argument(
        "--no-sanitizer",
        dest="sanitizer",
        action="store_false",
        help="do not have the winner looked at by compute-sanitizer",
    )


def _add_learning(how: argparse._ArgumentGroup) -> None:
    """What the search may know beforehand, and when it knows enough."""
    how.add_argument(
        "--no-transfer",
        action="store_true",
        help="do not start from what is known of other devices and problems",
    )
    how.add_argument(
        "--stop-when-unlikely",
        action="store_true",
        help="stop once something faster among the untried configurations is unlikely",
    )


def run(parsed: argparse.Namespace) -> None:
    """Run the command."""
    from autotune.cli._search_summary import result_json, result_text
    from autotune.cli.progress import SearchProgress
    from autotune.tuning.context import get_ready
    from autotune.tuning.task import bind_target
    from autotune.tuning.tuner import search

    options = _options(parsed)
    if parsed.wanted:
        _work_off(parsed, options)
        return
    if parsed.space is None:
        raise InputError("autotune search: name a space, or give --wanted")
    get_ready(parsed.device, parsed.workers)
    with SearchProgress() as progress:
        result = search(bind_target(opt.target(parsed)), options, progress)
    emit(result_json(result) if parsed.json else result_text(result))


def _work_off(parsed: argparse.Namespace, options: Options) -> None:
    """Search what is on the list for this device; whatever fails stays on it and is told in the end."""
    from autotune.cli._search_summary import result_json, result_text
    from autotune.cli.progress import SearchProgress
    from autotune.tuning.tune_misses import missed_tasks, tune_misses

    if parsed.journal or parsed.size or parsed.dtype:
        raise InputError("autotune search --wanted: the list says the sizes and types; leave out the options")
    questions = missed_tasks(parsed.cache, parsed.device, parsed.space)
    with SearchProgress() as progress:
        results, failures = tune_misses(questions, options, progress)
    if parsed.json:
        emit([result_json(result) for result in results])
    else:
        emit("\n\n".join(map(result_text, results)) or "nothing that is wanted of this device was tuned")
    if failures:
        raise SetupError(f"{len(failures)} of {len(questions)} stay on the list: {'; '.join(failures)}")


def _options(parsed: argparse.Namespace) -> Options:
    return opt.run_options(
        parsed,
        engine=parsed.engine,
        strategy=parsed.strategy,
        budget=_budget(parsed),
        seed=parsed.seed,
        objective=Objective(parsed.objective),
        transfer=not parsed.no_transfer,
        stop_when_unlikely=parsed.stop_when_unlikely,
        sanitizer=parsed.sanitizer,
    )


def _budget(parsed: argparse.Namespace) -> Budget:
    """Trials and seconds; without either, the default number of trials."""
    if parsed.budget is None and parsed.time is None:
        return DEFAULT_BUDGET
    return Budget(parsed.budget, parsed.time)
