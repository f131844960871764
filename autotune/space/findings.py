"""A likely mistake in a space or its source, as all checks report it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from autotune.core.records import Sizes


@dataclass(frozen=True)
class Finding:
    """One likely mistake: `kind` is a fixed word, `subject` the name or text it is about.

    `place` is `FILE:LINE` of the source or the space file.
    """

    kind: str  # unused_parameter, unknown_macro, idle_constraint, unreachable_value, invalid_default, ...
    subject: str
    detail: str
    place: str

    def __str__(self) -> str:
        return f"{self.place}: {self.subject}: {self.detail}"

    @property
    def is_about_checks(self) -> bool:
        """Whether it says what checks may miss, not why a configuration fails."""
        return self.kind == "untried_edge"

    @property
    def placed(self) -> str:
        """Where and what, without the subject."""
        return f"{self.place}: {self.detail}"


class Findings(NamedTuple):
    """Likely mistakes in a space and its source, and the sizes that were not searched for mistakes."""

    mistakes: tuple[Finding, ...] = ()
    left_out: tuple[Sizes, ...] = ()  # at which it takes too long to follow the launches
