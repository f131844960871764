"""The outcomes of a configuration's checks: each has passed, failed, or was not made, and the reason."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum

from autotune.core.trials import Failure

FRESH_INPUTS, OTHER_SIZES, LARGER_SIZES = "fresh inputs", "other sizes", "larger sizes"
_OUTPUT, _DATA = "output ", "data "
_MAX_NAMED = 3  # sets of data; more are counted


class Passed(Enum):
    """The outcome of a check that found nothing."""

    PASSED = "passed"


@dataclass(frozen=True)
class Unchecked:
    """The reason why a check was not made; if that was late, a later search makes up for it."""

    reason: str
    is_late: bool = False


@dataclass(frozen=True)
class Limit:
    """What goes wrong, or is not known, at sizes that no space asks for: the check has done all it can."""

    reason: str


PASSED = Passed.PASSED
NO_TIME = Unchecked("no time was left", is_late=True)
Outcome = Failure | Unchecked | Limit | Passed
Outcomes = Mapping[str, Outcome]  # by the name of the check


def output_check(name: str) -> str:
    """The name of the check that compares an output with the reference."""
    return f"{_OUTPUT}{name}"


def data_check(name: str) -> str:
    """The name of the check on a set of data."""
    return f"{_DATA}{name}"


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst outcome: a failure, else a check that was not made or a limit, else one that has passed."""
    return max(outcomes, key=_weight, default=PASSED)


def _weight(outcome: Outcome) -> int:
    if isinstance(outcome, Unchecked):
        return 1 + outcome.is_late
    return {Passed: 0, Limit: 1, Failure: 3}[type(outcome)]


def combined(checks: Iterable[Outcomes]) -> Outcomes:
    """The worst outcome of each check of several configurations."""
    rows = [row for outcomes in checks for row in outcomes.items()]
    return {name: worst(outcome for row_name, outcome in rows if row_name == name) for name, _ in rows}


def first_failure(outcomes: Outcomes) -> Failure | None:
    """The first failure."""
    return next((outcome for outcome in outcomes.values() if isinstance(outcome, Failure)), None)


def is_late(outcomes: Outcomes) -> bool:
    """True if a later search makes up for a check."""
    return any(isinstance(outcome, Unchecked) and outcome.is_late for outcome in outcomes.values())


def reasons(outcomes: Outcomes) -> dict[str, str]:
    """Each check with the reason why it has not passed, which is empty if it has: what a cache keeps."""
    return {name: _reason(outcome) for name, outcome in outcomes.items()}


def of_reasons(by_check: Mapping[str, str]) -> Outcomes:
    """The outcomes of which a cache keeps the reasons."""
    known: dict[str, Outcome] = {"": PASSED, NO_TIME.reason: NO_TIME}
    return {name: known.get(reason) or with_reason(name, reason) for name, reason in by_check.items()}


def with_reason(name: str, reason: str) -> Unchecked | Limit:
    """The outcome of a check that neither passed nor failed, and that no later search makes up for."""
    return Limit(reason) if name == LARGER_SIZES else Unchecked(reason)


def _reason(outcome: Outcome) -> str:
    if outcome is PASSED:
        return ""
    return str(outcome) if isinstance(outcome, Failure) else outcome.reason


def is_verified(outcomes: Outcomes) -> bool:
    """True if the check of an output against the reference has passed."""
    return any(name.startswith(_OUTPUT) and outcome is PASSED for name, outcome in outcomes.items())


def names_text(names: Iterable[str]) -> str:
    """The names of checks; many sets of data are counted."""
    shown = list(names)
    sets = [name for name in shown if name.startswith(_DATA)]
    if len(sets) > _MAX_NAMED:
        shown[shown.index(sets[0])] = f"{len(sets)} sets of data"
        shown = [name for name in shown if name not in sets]
    return ", ".join(shown)


def unpassed(outcomes: Outcomes) -> dict[str, str]:
    """The checks that failed or were not made, with their reasons."""
    return reasons({name: one for name, one in outcomes.items() if not isinstance(one, Limit | Passed)})


def index_limit(outcomes: Outcomes) -> str:
    """The limit of the kernel's indices, at sizes that no space asks for; empty if none was found."""
    return next((outcome.reason for outcome in outcomes.values() if isinstance(outcome, Limit)), "")


def unchecked_text(outcomes: Outcomes) -> str:
    """The checks that have not passed, by their reasons; empty if all have."""
    names: dict[str, list[str]] = {}
    for name, reason in unpassed(outcomes).items():
        names.setdefault(reason, []).append(name)
    groups = (f"{names_text(group)} ({reason})" for reason, group in names.items())
    return f"without {'; '.join(groups)}" if names else ""


def outcomes_text(outcomes: Outcomes) -> str:
    """The names of the checks that have passed, and the others with their reasons."""
    passed = names_text(name for name, outcome in outcomes.items() if outcome is PASSED)
    return "; ".join(filter(None, (passed, unchecked_text(outcomes))))


def checks_text(outcomes: Outcomes) -> str:
    """The outcomes, and the indices' limit."""
    return "; ".join(filter(None, (outcomes_text(outcomes), index_limit(outcomes))))
