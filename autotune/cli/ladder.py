"""Run the landmarks of a space: the named steps of its ladder, beside the tuned best."""

from __future__ import annotations

import argparse

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.errors import NoConfig
from autotune.trials import Budget

EXAMPLE = "autotune ladder spaces/reduce.yaml"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    opt.add_target(parser)
    opt.add_run(parser)
    opt.add_cache(parser, "where the tuned best is looked up")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Run the command."""
    from autotune.loader import best_config
    from autotune.model import Tier
    from autotune.progress import SearchProgress
    from autotune.report.ladder import ladder_table
    from autotune.report.tables import console
    from autotune.rig import Options, get_ready
    from autotune.session import ladder
    from autotune.targets import bind_target

    get_ready(parsed.device, parsed.workers)
    bound = bind_target(opt.target(parsed))
    options = Options(
        budget=Budget(),
        timeout_s=parsed.timeout,
        compile_timeout_s=parsed.compile_timeout,
        workers=parsed.workers,
        journal=parsed.journal,
        fresh=parsed.fresh,
        binary_cache=parsed.binary_cache,
    )
    with SearchProgress() as progress:
        rungs = ladder(bound, options, progress)
    try:
        problem = bound.space.problem
        known = best_config(
            bound.spec.kernel,
            bound.device,
            dtype=problem.dtype,
            strict=True,
            min_match=Tier.EXACT,
            on_miss=None,
            cache=parsed.cache,
            **problem.sizes,
        )
        best = (known.config, known.time_ms) if known.time_ms is not None else None
    except NoConfig:  # not tuned yet: the ladder stands alone
        best = None
    if parsed.json:
        emit(
            [
                {"step": name, "time_ms": trial.time_ms, "status": trial.status.value, "detail": trial.detail}
                for name, trial in rungs
            ]
        )
    else:
        console().print(ladder_table(bound.space, rungs, best))
