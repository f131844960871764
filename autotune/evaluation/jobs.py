"""The jobs of a search on its devices: how many items each has, and what becomes of those that are lost."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from autotune.core.stages import OnStage
from autotune.core.trials import Failure, Status
from autotune.errors import Blame
from autotune.evaluation.compile_queue import Submission
from autotune.evaluation.job_runner import JobDropped, JobKills, JobRunner
from autotune.evaluation.ledger import RunKey
from autotune.evaluation.work_item import ItemResult, WorkItem

LOST = Failure(Status.CRASHED, "the workers that ran it were lost", Blame.MACHINE)


@dataclass(frozen=True, eq=False)
class RunningItem:
    """A configuration that a device verifies and times."""

    submission: Submission
    key: RunKey
    item: WorkItem


class Jobs:
    """Keeps devices busy with jobs, and sends lost ones again.

    The configurations of a job that cost its device wait in `retries`: each runs again in a job of its own,
    one at a time, which shows the cause.
    """

    def __init__(
        self, devices: JobRunner, limit_s: float, on_done: Callable[[Future[Any]], object], on_stage: OnStage
    ) -> None:
        """Begin nothing yet; `on_done` is called, in any thread, with each job when it is done."""
        self._devices, self._on_done, self._on_stage = devices, on_done, on_stage
        self.limit_s = limit_s  # for each item of the jobs to come
        self.running: dict[Future[list[ItemResult]], Sequence[RunningItem]] = {}
        self.retries: deque[RunningItem] = deque()
        self._retry: Future[list[ItemResult]] | None = None

    def next_count(self, ready: int, has_more: bool) -> int:
        """The number of items for the next job, of those that are ready; 0 if none should begin now.

        It is a fair share: 6 of 12 if two of four slots are free. While all devices are busy and `has_more`
        are to come, a small job waits for these.
        """
        devices, running = self._devices, len(self.running)
        can_grow = has_more and ready < devices.job_items and running >= devices.count
        if not ready or running >= devices.slots or can_grow:
            return 0
        return max(1, min(ready // (devices.slots - running), devices.job_items))

    def begin(self, job: Sequence[RunningItem]) -> Future[list[ItemResult]]:
        """Send a job to whichever device is free next."""
        future = self._devices.submit([running.item for running in job], self.limit_s)
        self.running[future] = job
        future.add_done_callback(self._on_done)
        self._on_stage(self._devices.stage)
        return future

    def begin_retry(self) -> None:
        """Run one of the retries again, unless one is running."""
        if self.retries and self._retry not in self.running:
            self._retry = self.begin([self.retries.popleft()])

    def ended(self, events: Iterable[Future[Any]]) -> Iterator[tuple[RunningItem, ItemResult]]:
        """The items of jobs among the events, with their results; what is lost begins again."""
        for event in events:
            if (job := self.running.pop(event, None)) is None:  # a compilation
                continue
            try:
                yield from zip(job, self._devices.result(event), strict=True)
            except JobDropped:
                self.begin(job)
            except JobKills:
                if len(job) > 1:
                    self.retries.extend(job)
                else:
                    yield job[0], ItemResult(LOST, "", 0.0)
        self.begin_again(self._devices.stranded())

    def begin_again(self, futures: Iterable[Future[list[ItemResult]]]) -> None:
        """Begin again the jobs of futures that the devices have dropped."""
        for future in futures:
            self.begin(self.running.pop(future))
