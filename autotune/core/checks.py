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


PASSED = Passed.PASSED
NO_TIME = Unchecked("no time was left", is_late=True)
Outcome = Failure | Unchecked | Passed
Checks = Mapping[str, Outcome]  # by the name of the check


def output_check(name: str) -> str:
    """The name of the check that compares an output with the reference."""
    return f"{_OUTPUT}{name}"


def data_check(name: str) -> str:
    """The name of the check on a set of data."""
    return f"{_DATA}{name}"


def worst(outcomes: Iterable[Outcome]) -> Outcome:
    """The worst outcome: a failure, else a check that was not made, else a check that has passed."""
    return max(outcomes, key=_weight, default=PASSED)


def _weight(outcome: Outcome) -> int:
    if isinstance(outcome, Unchecked):
        return 1 + outcome.is_late
    return 0 if outcome is PASSED else 3


def combined(checks: Iterable[Checks]) -> Checks:
    """The worst outcome of each check of several configurations."""
    rows = [row for outcomes in checks for row in outcomes.items()]
    return {name: worst(outcome for other, outcome in rows if other == name) for name, _ in rows}


def first_failure(outcomes: Checks) -> Failure | None:
    """The first failure."""
    return next((outcome for outcome in outcomes.values() if isinstance(outcome, Failure)), None)


def is_late(outcomes: Checks) -> bool:
    """True if a later search makes up for a check."""
    return any(isinstance(outcome, Unchecked) and outcome.is_late for outcome in outcomes.values())


def reasons(outcomes: Checks) -> dict[str, str]:
    """Each check with the reason why it has not passed, which is empty if it has."""
    return {name: _reason(outcome) for name, outcome in outcomes.items()}


def _reason(outcome: Outcome) -> str:
    if outcome is PASSED:
        return ""
    return outcome.reason if isinstance(outcome, Unchecked) else str(outcome)


def is_compared(by_check: Mapping[str, str]) -> bool:
    """True if, by these reasons, an output was compared with the reference."""
    return any(name.startswith(_OUTPUT) and not reason for name, reason in by_check.items())


def names_text(names: Iterable[str]) -> str:
    """The names of checks; many sets of data are counted."""
    shown = list(names)
    sets = [name for name in shown if name.startswith(_DATA)]
    if len(sets) > _MAX_NAMED:
        shown[shown.index(sets[0])] = f"{len(sets)} sets of data"
        shown = [name for name in shown if name not in sets]
    return ", ".join(shown)


def index_limit(by_check: Mapping[str, str]) -> str:
    """The limit of the kernel's indices, at sizes that no space asks for; empty if none was found."""
    reason = by_check.get(LARGER_SIZES, "")
    return "" if reason == NO_TIME.reason else reason


def unpassed(by_check: Mapping[str, str]) -> dict[str, str]:
    """The checks that have not passed, with their reasons; what a kernel's indices hold is a limit."""
    return {
        name: reason
        for name, reason in by_check.items()
        if reason and (name != LARGER_SIZES or not index_limit(by_check))
    }


def unchecked_text(by_check: Mapping[str, str]) -> str:
    """The checks that have not passed, by their reasons; empty if all have."""
    names: dict[str, list[str]] = {}
    for name, reason in unpassed(by_check).items():
        names.setdefault(reason, []).append(name)
    groups = (f"{names_text(group)} ({reason})" for reason, group in names.items())
    return f"without {'; '.join(groups)}" if names else ""


def checks_text(by_check: Mapping[str, str]) -> str:
    """The names of the checks that have passed, the others with their reasons, and the indices' limit."""
    passed = names_text(name for name, reason in by_check.items() if not reason)
    return "; ".join(filter(None, (passed, unchecked_text(by_check), index_limit(by_check))))
