"""The outcome of a check from what a run gave."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeGuard

from autotune.core.checks import PASSED, Checks, Outcome, Unchecked
from autotune.core.records import Config
from autotune.core.trials import WRONG, Failure, Status

FINDINGS = (*WRONG, Status.CRASHED)

ConfigChecks = Mapping[Config, Checks]


def outcome_of(found: bool | Failure | None) -> Outcome:
    """A run that did not end, or that the machine broke, has not passed: a later search repeats it."""
    if isinstance(found, Failure) and not is_finding(found):
        return Unchecked(found.detail, is_late=True)
    return found if isinstance(found, Failure) else PASSED


def is_finding(found: bool | Failure | None) -> TypeGuard[Failure]:
    """True if a failure shows a mistake of the kernel, not of the machine."""
    return isinstance(found, Failure) and found.status in FINDINGS and not found.by_machine
