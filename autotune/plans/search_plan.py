"""Plans: the searches of one command, each chosen by the results so far.

A plan is a function that gets `Searches`, runs its searches with it, one after the other or several at once,
and returns what has come of them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
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
        """Search; raises an AutotuneError of the search, or of reading its priors."""
        priors = self.priors(self.task, self.options)
        return search(self.task, self.options, self.observer or observer, priors, self.cluster)


@dataclass(frozen=True)
class PlanResult:
    """The results of a plan, and its failures."""

    results: tuple[SearchResult, ...] = ()
    failures: tuple[str, ...] = ()  # of searches, also of those that could not begin
    failed: str = ""  # follows the number of failures in a message, such as `of 3 spaces failed`
    known: KnownResult | None = None  # a cached result that took the place of the search

    def require_all(self) -> None:
        """Raise SetupError with the failures, if there are any."""
        if self.failures:
            raise SetupError(f"{len(self.failures)} {self.failed}: {'; '.join(self.failures)}")


class Searches:
    """Runs the searches of a plan, and keeps what has come of them so far."""

    def __init__(
        self, observer: Observer, on_result: Callable[[SearchResult], object] = lambda _: None
    ) -> None:
        """`on_result` is called with each result at once, in the thread of `run`."""
        self.observer, self._on_result = observer, on_result
        self.results: dict[int, SearchResult] = {}  # by the number of their search
        self.failures: list[str] = []  # to which a plan adds what could not begin

    def run(self, *searches: PlannedSearch) -> None:
        """Run searches at once, and wait for all; a failure is kept, or raised if the search has no name."""
        if len(searches) == 1:
            self._keep(searches[0], partial(searches[0].run, self.observer))
            return
        threads = ThreadPoolExecutor(max(1, len(searches)), thread_name_prefix="search")
        try:
            running = {threads.submit(planned.run, self.observer): planned for planned in searches}
            for ended in as_completed(running):
                self._keep(running[ended], ended.result)
        finally:
            threads.shutdown(wait=False)  # after an interrupt, they end once their devices are given back

    def _keep(self, planned: PlannedSearch, result_of: Callable[[], SearchResult]) -> None:
        """Keep the result of a search, or its failure."""
        try:
            result = self.results[planned.number] = result_of()
        except AutotuneError as error:
            if not planned.name:
                raise
            self.failures.append(f"{planned.name}: {error}")
        else:
            self._on_result(result)

    def done(self, failed: str = "") -> PlanResult:
        """All results, in the order of their numbers, and all failures, for a message that says `failed`."""
        in_order = tuple(self.results[number] for number in sorted(self.results))
        return PlanResult(in_order, tuple(self.failures), failed)


SearchPlan = Callable[[Searches], PlanResult]


def search_one(task: TuningTask, options: Options, cluster: Cluster | None, searches: Searches) -> PlanResult:
    """Search once; with the engine `adopt`, a cached result of a full search takes the search's place."""
    if options.engine == ADOPTION and (known := full_search_result(task, options.cache)):
        return PlanResult(known=known)
    searches.run(PlannedSearch(0, "", task, options, cluster))
    return searches.done()
