"""Plans: the searches of one command, each chosen by the results so far. One loop carries them out."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from autotune.errors import AutotuneError, SetupError
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.result import SearchResult
from autotune.tuning.task import TuningTask
from autotune.tuning.tuner import priors_of, search

if TYPE_CHECKING:  # needs the extra `cluster`
    from autotune.cluster.connection import Cluster


@dataclass(frozen=True)
class PlannedSearch:
    """One search of a plan."""

    number: int  # of its result; of several with one number, the last counts
    name: str  # for the message of a failure
    bind: Callable[[], TuningTask]
    options: Options  # with its share of the budget
    cluster: Cluster | None = None  # None uses the task's device


SearchPlan = Generator[PlannedSearch, SearchResult | AutotuneError, Sequence[str]]
"""Yields searches, is sent what each one returned or raised, and returns why others were never begun."""


@dataclass(frozen=True)
class PlanResult:
    """The results of a plan, and its failures."""

    results: tuple[SearchResult, ...]
    failures: tuple[str, ...]

    def require_all(self, failed: str) -> None:
        """Raise SetupError with the failures, if there are any; `failed` says what has failed."""
        if self.failures:
            raise SetupError(f"{len(self.failures)} {failed}: {'; '.join(self.failures)}")


def run_searches(
    plan: SearchPlan, observer: Observer, on_result: Callable[[SearchResult], object] = lambda _: None
) -> PlanResult:
    """Run the searches of a plan one after the other; the failure of one does not end it.

    `on_result` is called with each result at once. Raises what the plan itself raises.
    """
    results: dict[int, SearchResult] = {}
    failures: list[str] = []
    try:
        planned = next(plan)
        while True:
            answer: SearchResult | AutotuneError
            try:
                task, options = planned.bind(), planned.options
                answer = search(task, options, observer, priors_of(task, options), planned.cluster)
            except AutotuneError as error:
                failures.append(f"{planned.name}: {error}")
                answer = error
            else:
                results[planned.number] = answer
                on_result(answer)
            planned = plan.send(answer)
    except StopIteration as end:
        return PlanResult(tuple(results[number] for number in sorted(results)), (*failures, *end.value))
