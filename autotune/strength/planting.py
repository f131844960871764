"""Chooses the configurations to try, and finds the mistakes that their code has room for."""

from __future__ import annotations

import random
from collections.abc import Sequence

from autotune.core.launch_plan import TRITON
from autotune.core.records import Config
from autotune.errors import InputError
from autotune.space.signatures import own_name
from autotune.strength.c_mistakes import mistakes_in_c
from autotune.strength.mistakes import Mistake, merged
from autotune.strength.triton_mistakes import mistakes_in_triton
from autotune.tuning.task import TuningTask

_CANDIDATES = 12  # configurations that are read besides the default and the landmarks
_CHOSEN = 4


def room(task: TuningTask, seed: int) -> list[Mistake]:
    """The mistakes that the default and the few configurations with most other code have room for.

    Raises InputError for a source that a function of the space makes, or that cannot be read.
    """
    if task.spec.functions.source is not None:
        raise InputError(
            f"{task.spec.path}: a function makes the source: mistakes are planted into a file only"
        )
    space, drawn = task.space, random.Random(seed)
    named = [task.spec.default, *(landmark.config for landmark in task.spec.landmarks)]
    others = drawn.sample(range(len(space)), min(_CANDIDATES, len(space)))
    configs = dict.fromkeys((*named, *map(space.config, others)))
    found = {config: _of(task, config) for config in configs if config in space}
    chosen, covered = [task.spec.default], {*found[task.spec.default]}
    while len(chosen) < min(_CHOSEN, len(found)):
        left = [config for config in found if config not in chosen]
        chosen.append(max(left, key=lambda one: (len({*found[one]} - covered), _distance(one, chosen))))
        covered |= {*found[chosen[-1]]}
    return merged((config, found[config]) for config in chosen)


def _of(task: TuningTask, config: Config) -> Sequence[Mistake]:
    entries = frozenset(own_name(step.entry) for step in task.space.launches(config))
    if task.spec.dialect == TRITON:
        return mistakes_in_triton(task.source.text, entries)
    values = {name: str(value) for name, value in task.space.macros(config).items()}
    return mistakes_in_c(task.source.text, values, task.spec.dialect, entries)


def _distance(config: Config, chosen: Sequence[Config]) -> int:
    """How many values differ from the nearest of the chosen ones."""
    return min(sum(config[name] != one[name] for name in config) for one in chosen)
