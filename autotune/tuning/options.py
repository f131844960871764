"""The options of a search: budget, engine, limits and folders."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.core.expressions import parse
from autotune.core.records import ADOPTION
from autotune.core.trials import Budget, Objective
from autotune.errors import ExpressionError, InputError

if TYPE_CHECKING:  # loads numpy, and progress should show from the start
    from autotune.evaluation.scoring import OwnObjective, OwnScore

DEFAULT_BUDGET = Budget(trials=100)
_ADOPTION_BUDGET = Budget(trials=11)  # the default, and ten that results of other devices predict
MAX_VARIANTS = 8  # of a sweep, unless the user asks for more
MAX_PROBLEMS = 1024  # of one sweep


@dataclass(frozen=True)
class Options:
    """The options of a search."""

    engine: str | None = None  # None: exhaustive when the budget covers the space, else the surrogate
    strategy: str | None = None
    budget: Budget = DEFAULT_BUDGET
    seed: int = 0
    timeout_s: float = 30.0
    compile_timeout_s: float = 60.0
    compilers: int | None = None  # compiler processes; None: one per core
    journal: Path | None = None
    fresh: bool = False
    keep: bool = False  # after an edit, keep the journal's trials that still hold
    transfer: bool = True  # start from results of other devices and problems
    stop_when_unlikely: bool = False
    objective: Objective | None = None  # None: the space's, else the time
    own_objective: OwnScore | None = None  # where `objective` is OWN
    energy: bool = False  # measure the energy of every configuration, whatever the objective
    last_round_share: float | None = None  # share of the search's time, at least 3 s; None: as in `limits.py`
    cache: Path | None = None
    sanitizer: bool = True  # check what is stored with compute-sanitizer and g++'s sanitizers if installed
    dump_wrong: Path | None = None  # a folder for the arrays of the first wrong results
    binary_cache: bool = True  # reuse binaries that earlier runs compiled


def usual_budget(engine: str | None) -> Budget:
    """The budget of a search that was given none."""
    return _ADOPTION_BUDGET if engine == ADOPTION else DEFAULT_BUDGET


def read_objective(asked: OwnObjective | None) -> tuple[Objective | None, OwnScore | None]:
    """The objective that is asked for: a named one, or the user's own; None if there is none.

    Raises InputError for an expression that cannot be read.
    """
    named = next((kind for kind in Objective if kind is not Objective.OWN and kind.value == asked), None)
    if named or asked is None:
        return named, None
    try:
        return Objective.OWN, parse(asked) if isinstance(asked, str) else asked
    except ExpressionError as error:
        raise InputError(f"objective: {error}") from None
