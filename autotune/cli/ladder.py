"""Run the landmarks of a space: the named steps of its ladder, beside the tuned best."""

from __future__ import annotations

import argparse
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.errors import InputError, NoConfig
from autotune.loader import best_config
from autotune.model import Config, Tier
from autotune.targets import Bound
from autotune.trials import Budget

EXAMPLE = "autotune ladder spaces/reduce.yaml"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    opt.add_target(parser)
    opt.add_run(parser)
    opt.add_cache(parser, "where the tuned best is looked up")
    opt.add_plot(parser, "draw the times as bars, too")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Run the command."""
    from autotune.interop.files import write_text
    from autotune.progress import SearchProgress
    from autotune.report.ladder import ladder_plot, ladder_table
    from autotune.report.tables import console
    from autotune.rig import get_ready
    from autotune.session import ladder
    from autotune.targets import bind_target

    get_ready(parsed.device, parsed.workers)
    bound = bind_target(opt.target(parsed))
    best = _tuned_best(bound, parsed.cache)  # first: a damaged cache must not cost the ladder's result
    with SearchProgress() as progress:
        rungs = ladder(bound, opt.run_options(parsed, budget=Budget()), progress, best)
    if parsed.json:
        emit(
            [
                {"step": name, "time_ms": trial.time_ms, "status": trial.status.value, "detail": trial.detail}
                for name, trial in rungs
            ]
        )
    else:
        console().print(ladder_table(bound.space, rungs))
    if parsed.plot is not None:
        write_text(parsed.plot, ladder_plot(bound.space, rungs))


def _tuned_best(bound: Bound, cache: Path | None) -> Config | None:
    """The best that is known of this very device and problem; None before a search.

    A result from before the space's sizes, types or parameters were changed is none.
    """
    problem = bound.space.problem
    try:
        known = best_config(
            bound.spec.kernel,
            bound.device,
            dtype=problem.dtype,
            strict=True,
            min_match=Tier.EXACT,
            on_miss=None,
            cache=cache,
            **problem.sizes,
        )
    except (NoConfig, InputError):  # not tuned yet, or of other sizes or types: the ladder stands alone
        return None
    return known.config if known.config in bound.space else None
