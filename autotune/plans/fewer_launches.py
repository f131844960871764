"""Finds configurations with fewer launches than the known ones: they may win on small arrays.

The best configuration for large arrays often adds up the results of its blocks in a second launch. For small
arrays that launch dominates, which no time on a larger array shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from autotune.core.records import Config
from autotune.errors import ExpressionError
from autotune.space import ValidSpace

MAX_CHANGES = 2  # parameters in which a configuration differs from the known one, at most

_Launches = tuple[tuple[str, tuple[str, ...]], ...]  # kernel and arguments of each launch


def with_fewer_launches(space: ValidSpace, known: Sequence[Config]) -> list[Config]:
    """One valid configuration, close to a known one, for each plan with fewer launches than the first has.

    It differs from a known one in at most MAX_CHANGES parameters.
    """
    most = len(_plan(space, known[0])) if known else 0
    if most <= 1:
        return []
    by_plan: dict[_Launches, Config] = {}
    for base in known:
        for config in space.neighbours(base, MAX_CHANGES):
            plan = _plan(space, config)
            if 0 < len(plan) < most:
                by_plan.setdefault(plan, config)
    return list(by_plan.values())


def _plan(space: ValidSpace, config: Config) -> _Launches:
    """The launches of a configuration; empty if they cannot be evaluated."""
    with suppress(ExpressionError):
        return tuple((launch.entry, launch.arguments) for launch in space.launches(config))
    return ()
