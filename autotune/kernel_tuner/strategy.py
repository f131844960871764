"""A strategy of Kernel Tuner and its options as options of a search."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from autotune.core.text import hint
from autotune.core.trials import Budget, Objective
from autotune.errors import InputError
from autotune.searchers import strategy_names
from autotune.tuning.options import Options

ENGINE = "kernel_tuner"
DEFAULT_FEVALS = 100  # of a strategy; without one the whole space is tried
TIMEOUT_S = 300.0  # of a configuration until the first one has run: scripts have problems of any size
LAST_ROUND_SHARE = 0.2  # of the time of the search: Kernel Tuner has no such round
_MODULES = "kernel_tuner.strategies."  # a script may give the module in the place of its name


def search_options(strategy: Any, strategy_options: Mapping[str, Any] | None, seed: int | None) -> Options:
    """The options of a search by a strategy, else of the whole space; raises InputError for an unknown one.

    A strategy's own options are ignored, with a warning.
    """
    given = dict(strategy_options or {})
    fevals, seconds = given.pop("max_fevals", None), given.pop("time_limit", None)
    if given:
        warnings.warn(f"strategy_options {', '.join(given)} are ignored", stacklevel=3)
    module = getattr(strategy, "__name__", "")
    if module.startswith(_MODULES):
        strategy = module.removeprefix(_MODULES)
    is_whole = strategy in (None, "brute_force")
    if not is_whole and strategy not in strategy_names(ENGINE):
        named = strategy if isinstance(strategy, str) else type(strategy).__name__
        raise InputError(f"strategy: {named!r} is unknown{hint(named, strategy_names(ENGINE))}")
    limit = fevals if is_whole or fevals is not None or seconds is not None else DEFAULT_FEVALS
    return Options(
        engine="exhaustive" if is_whole else ENGINE,
        strategy=None if is_whole else strategy,
        budget=Budget(limit, seconds),
        seed=seed or 0,
        timeout_s=TIMEOUT_S,
        transfer=False,
        last_round_share=LAST_ROUND_SHARE,
        sanitizer=False,  # a script's only problem is its full one, which takes long on the CPU
        objective=Objective.TIME,
    )
