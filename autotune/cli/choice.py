"""The options that name one configuration of a space."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from autotune.cli import options as opt
from autotune.core.records import Config
from autotune.core.text import hint
from autotune.errors import InputError

if TYPE_CHECKING:
    from autotune.tuning.task import TuningTask


def add_choice(parser: argparse.ArgumentParser, verb: str) -> None:
    """Add the options; `verb` names what the command does with the configuration."""
    which = parser.add_mutually_exclusive_group()
    opt.add_config(which, f"{verb} this configuration")
    which.add_argument("--landmark", metavar="NAME", help=f"{verb} a landmark of the space")
    which.add_argument(
        "--default",
        action="store_true",
        help=f"{verb} the space's default (without any of these three: the tuned best, else the default)",
    )


def chosen_config(parsed: argparse.Namespace, task: TuningTask) -> tuple[Config, str]:
    """The configuration that the options name, with its description; raises InputError if it is invalid."""
    from autotune.tuning.served_best import tuned_best

    if parsed.config is not None:
        config, origin = opt.config(parsed.config, task.spec), "as given"
    elif parsed.landmark is not None:
        landmarks = {landmark.name: landmark.config for landmark in task.spec.landmarks}
        if parsed.landmark not in landmarks:
            raise InputError(
                f"--landmark {parsed.landmark}: unknown landmark{hint(parsed.landmark, landmarks)}"
            )
        config, origin = landmarks[parsed.landmark], f"the landmark {parsed.landmark}"
    else:
        best = None if parsed.default else tuned_best(task, parsed.cache)
        config, origin = (task.spec.default, "the default") if best is None else (best, "the tuned best")
    opt.require_valid(task, config)
    return config, origin
