"""The outcome of a check from what a run gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from autotune.core.outcomes import PASSED, Outcome, Outcomes, Unchecked
from autotune.core.records import Config
from autotune.core.trials import WRONG, Failure, Status

FINDINGS = (*WRONG, Status.CRASHED)

OutcomesByConfig = Mapping[Config, Outcomes]


def outcome_of(answer: Failure | None) -> Outcome:
    """The outcome of a run; the next search repeats one that did not end, or that the machine broke."""
    if answer is None:
        return PASSED
    return answer if is_finding(answer) else Unchecked(answer.detail, is_late=True)


def is_finding(answer: Failure | None) -> TypeGuard[Failure]:
    """True if a failure shows a mistake of the kernel, not of the machine."""
    return answer is not None and answer.status in FINDINGS and not answer.by_machine
