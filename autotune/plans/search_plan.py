"""Plans: the searches of one command, each chosen by the results so far. One loop carries them out."""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from autotune.core.records import ADOPTION
from autotune.errors import AutotuneError, SetupError
from autotune.searchers.base import PriorResults
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.result import SearchResult
from autotune.tuning.served_best import KnownResult, full_search_result
from autotune.tuning.task import TuningTask
from autotune.tuning.tuner import priors_of, search

if TYPE_CHECKING:  # needs the extra `cluster`
    from autotune.cluster.connection import Cluster


@dataclass(frozen=True)
class PlannedSearch:
    """One search of a plan."""

    number: int  # of its result; of several with one number, the last counts
    name: str  # for the message of a failure; empty if its failure ends the plan
    task: TuningTask
    options: Options  # with its share of the budget
    cluster: Cluster | None = None  # None uses the task's device
    observer: Observer | None = None  # None: the plan's
    priors: Callable[[TuningTask, Options], Collection[PriorResults]] = priors_of

    def run(self, observer: Observer) -> SearchResult:
        """Search; raises what `priors` and `search` raise."""
        priors = self.priors(self.task, self.options)
        return search(self.task, self.options, self.observer or observer, priors, self.cluster)


@dataclass(frozen=True)
class PlanResult:
    """The results of a plan, and its failures."""

    failures: tuple[str, ...] = ()  # of searches, also of those that could not begin
    failed: str = ""  # follows the number of failures in a message, such as `of 3 spaces failed`
    results: tuple[SearchResult, ...] = ()
    known: KnownResult | None = None  # in place of a search

    def require_all(self) -> None:
        """Raise SetupError with the failures, if there are any."""
        if self.failures:
            raise SetupError(f"{len(self.failures)} {self.failed}: {'; '.join(self.failures)}")


SearchPlan = Generator[Sequence[PlannedSearch], Mapping[int, SearchResult], PlanResult]
"""Yields searches that run at once, and is sent all results so far by their numbers, until it returns.

`run_searches` adds the results of the searches and their failures to what it returns.
"""


def run_searches(
    plan: SearchPlan, observer: Observer, on_result: Callable[[SearchResult], object] = lambda _: None
) -> PlanResult:
    """Run the searches of a plan; the failure of one that has a name does not end it.

    `on_result` is called with each result at once, in this thread. Raises what the plan itself raises.
    """
    results: dict[int, SearchResult] = {}
    failures: list[str] = []
    with closing(plan):
        try:
            batch = next(plan)
            while True:
                for planned, result_of in _ended(batch, observer):
                    try:
                        result = results[planned.number] = result_of()
                    except AutotuneError as error:
                        if not planned.name:
                            raise
                        failures.append(f"{planned.name}: {error}")
                    else:
                        on_result(result)
                batch = plan.send(results)
        except StopIteration as end:
            ending: PlanResult = end.value
    in_order = tuple(results[number] for number in sorted(results))
    return replace(ending, results=in_order, failures=(*failures, *ending.failures))


def _ended(
    batch: Sequence[PlannedSearch], observer: Observer
) -> Iterator[tuple[PlannedSearch, Callable[[], SearchResult]]]:
    """Run searches at once, and give each with its result when it has ended; a single one, in this thread."""
    if len(batch) == 1:
        yield batch[0], partial(batch[0].run, observer)
        return
    threads = ThreadPoolExecutor(max(1, len(batch)), thread_name_prefix="search")
    try:
        running = {threads.submit(planned.run, observer): planned for planned in batch}
        for ended in as_completed(running):
            yield running[ended], ended.result
    finally:
        threads.shutdown(wait=False)  # after an interrupt, they end once their devices are given back


def plan_of_one(task: TuningTask, options: Options, cluster: Cluster | None = None) -> SearchPlan:
    """A plan of one search; with the engine `adopt`, a cached result of a full search takes its place."""
    if options.engine == ADOPTION and (known := full_search_result(task, options.cache)):
        return PlanResult(known=known)
    yield [PlannedSearch(0, "", task, options, cluster)]
    return PlanResult()
