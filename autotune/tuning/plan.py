"""Plans: the steps of one command, each chosen by the results so far. One loop carries them out.

Most steps are searches. A sweep has steps of its own: its sizes are searched first, and concluded later.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from autotune.errors import AutotuneError, SetupError
from autotune.searchers.base import SourceResults
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.result import SearchResult
from autotune.tuning.task import TuningTask
from autotune.tuning.tuner import search, sources_of

if TYPE_CHECKING:  # needs the extra `cluster`
    from autotune.cluster.connection import Cluster


@dataclass(frozen=True)
class Step:
    """A part of a plan.

    Attributes:
        number: The number of its result; of several with one number, the last counts.
        name: What it is for, for the message of a failure.
        run: Does it; raises AutotuneError.
    """

    number: int
    name: str
    run: Callable[[Observer], Any]


def planned_search(
    number: int,
    name: str,
    bind: Callable[[], TuningTask],
    options: Options,
    sources: Callable[[TuningTask, Options], Iterable[SourceResults]] = sources_of,
    cluster: Cluster | None = None,
) -> Step:
    """A search as a step of a plan.

    Args:
        number: As of any step.
        name: As of any step.
        bind: Makes the task.
        options: How to search, with its share of the budget.
        sources: Gathers the results that it starts from.
        cluster: The devices; None uses the task's.
    """

    def run(observer: Observer) -> SearchResult:
        task = bind()
        return search(task, options, observer, sources(task, options), cluster)

    return Step(number, name, run)


Plan = Generator[Step, Any, Sequence[str]]
"""Yields steps, is sent what each one's `run` returned or raised, and returns why others were never begun."""


@dataclass(frozen=True)
class PlanResult:
    """The results of a plan, and its failures."""

    results: tuple[SearchResult, ...]
    failures: tuple[str, ...]

    def require_all(self, what: str) -> None:
        """Raise SetupError with the failures, if there are any; `what` says of what they are."""
        if self.failures:
            raise SetupError(f"{len(self.failures)} {what}: {'; '.join(self.failures)}")


def carry_out(
    plan: Plan, observer: Observer, on_result: Callable[[SearchResult], object] = lambda _: None
) -> PlanResult:
    """Run the steps of a plan one after the other; the failure of one does not end it.

    Args:
        plan: The plan.
        observer: Receives the events of all steps.
        on_result: Called with each result at once.

    Raises:
        AutotuneError: What the plan itself raises.
    """
    results: dict[int, SearchResult] = {}
    failures: list[str] = []
    found: Any = None
    while True:
        try:
            step = plan.send(found)
        except StopIteration as end:
            return PlanResult(tuple(results[number] for number in sorted(results)), (*failures, *end.value))
        try:
            found = step.run(observer)
        except AutotuneError as error:
            failures.append(f"{step.name}: {error}")
            found = error
        if isinstance(found, SearchResult):
            results[step.number] = found
            on_result(found)


def carry_out_together(
    plans: Sequence[tuple[Plan, Observer]], on_result: Callable[[SearchResult], object]
) -> PlanResult:
    """Carry out several plans at the same time, each in a thread of its own.

    Args:
        plans: The plans, each with an observer of its events.
        on_result: Called in this thread with the results of each plan that has ended.

    Raises:
        AutotuneError: What a plan itself raises, once all have ended.
    """
    threads = ThreadPoolExecutor(max(1, len(plans)), thread_name_prefix="plan")
    unexpected: Exception | None = None
    failures: list[str] = []
    try:
        running = [threads.submit(carry_out, plan, observer) for plan, observer in plans]
        for ended in as_completed(running):
            try:
                found = ended.result()
            except Exception as error:  # noqa: BLE001 - the other plans go on to their results
                unexpected = unexpected or error
                continue
            failures += found.failures
            for result in found.results:
                on_result(result)
    finally:
        threads.shutdown(wait=False)  # after an interrupt, they end once their devices are given back
    if unexpected is not None:
        raise unexpected
    results = (result for ended in running for result in ended.result().results)
    return PlanResult(tuple(results), tuple(failures))
