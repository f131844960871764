"""Plans: the searches of one command, each chosen by the results so far; one loop runs them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autotune.errors import AutotuneError, SetupError
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.result import SearchResult
from autotune.tuning.task import TuningTask
from autotune.tuning.tuner import search

if TYPE_CHECKING:  # needs the extra `cluster`
    from autotune.cluster.connection import Cluster


@dataclass(frozen=True)
class PlannedSearch:
    """One search of a plan.

    Attributes:
        number: Number of what is searched; of several results with one number, the last counts.
        name: Its name, for the message of a failure.
        bind: Makes the task.
        options: How to search.
        cluster: The devices; None uses the task's.
    """

    number: int
    name: str
    bind: Callable[[], TuningTask]
    options: Options
    cluster: Cluster | None = None


Plan = Generator[PlannedSearch, SearchResult | AutotuneError, Sequence[str]]
"""Yields steps, is sent each one's result or failure, and returns why others were never begun."""


@dataclass(frozen=True)
class PlanResult:
    """The results of a plan, and its failures."""

    results: tuple[SearchResult, ...]
    failures: tuple[str, ...]

    def require_all(self, what: str) -> None:
        """Raise SetupError with the failures, if there are any; `what` says of what they are."""
        if self.failures:
            raise SetupError(f"{len(self.failures)} {what}: {'; '.join(self.failures)}")


def carry_out(plan: Plan, observer: Observer, on_result: Callable[[SearchResult], None]) -> PlanResult:
    """Run the searches of a plan one after the other; a failure does not end it.

    Args:
        plan: The plan.
        observer: Receives the events of all searches.
        on_result: Called with each result at once.

    Raises:
        InputError: The plan as a whole is wrong; nothing was written.
    """
    results: dict[int, SearchResult] = {}
    failures: list[str] = []
    found: SearchResult | AutotuneError | None = None
    while True:
        try:
            step = next(plan) if found is None else plan.send(found)
        except StopIteration as end:
            return PlanResult(tuple(results[number] for number in sorted(results)), (*failures, *end.value))
        try:
            found = search(step.bind(), step.options, observer, cluster=step.cluster)
        except AutotuneError as error:
            failures.append(f"{step.name}: {error}")
            found = error
        else:
            results[step.number] = found
            on_result(found)
