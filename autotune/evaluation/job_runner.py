"""Runs an evaluator's work items: the interface to devices, and the one device of a worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Protocol

from autotune.core.stages import Stage
from autotune.core.trials import Failure, Measurement
from autotune.evaluation.work_item import ItemResult, Laps, WorkItem
from autotune.evaluation.worker import DeviceWorker, Worker


class JobDropped(Exception):
    """The device of a job is gone: another one may run it."""


class JobKills(Exception):
    """A job has cost one device after the other."""


class JobRunner(Protocol):
    """Runs jobs of work items, as many at the same time as there are slots."""

    stage: Stage  # for the progress line
    laps: Laps  # what trials without a run cost; with one device, what all trials cost

    @property
    def worker(self) -> DeviceWorker:
        """The worker of one of the devices, for runs that must share a device."""

    @property
    def count(self) -> int:
        """Number of devices."""

    @property
    def parallel(self) -> int:
        """Number of configurations under way that keeps them busy; 1: they run in the order of submission."""

    @property
    def slots(self) -> int:
        """Number of jobs that keeps them busy."""

    @property
    def job_items(self) -> int:
        """Number of work items that one job should have."""

    def submit(self, items: Sequence[WorkItem], timeout_s: float) -> Future[list[ItemResult]]:
        """Begin a job; once its future is done, `result` takes it."""

    def finish_jobs(self) -> None:
        """Wait for running jobs, and set their futures; does nothing where threads do that."""
        return

    def result(self, future: Future[list[ItemResult]]) -> list[ItemResult]:
        """The outcomes of a finished job.

        Raises JobDropped, JobKills, or what the setup raises.
        """

    def stranded(self) -> list[Future[list[ItemResult]]]:
        """Drop and return the jobs that wait for a lost device; none where a worker ends every run."""
        return []

    def without_device(self) -> list[Future[list[ItemResult]]]:
        """Drop and return the jobs that have waited in vain; raises SetupError if no device is left."""
        return []


class OneDevice(JobRunner):
    """The device of one worker: it runs while compilers and the searcher work, and no thread waits for it."""

    stage = Stage("verifying and timing")
    count = parallel = slots = job_items = 1

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._running: tuple[Future[list[ItemResult]], Callable[[], Measurement | Failure]] | None = None
        self.laps = Laps()

    @property
    def worker(self) -> Worker:
        """Its worker."""
        return self._worker

    def submit(self, items: Sequence[WorkItem], timeout_s: float) -> Future[list[ItemResult]]:
        """Begin a work item."""
        (item,) = items
        job: Future[list[ItemResult]] = Future()
        self._running = job, self._worker.begin_item(item, timeout_s)
        return job

    def finish_jobs(self) -> None:
        """Wait for the running item, if there is one, and set its future."""
        if self._running is None:
            return
        (job, wait_for_outcome), self._running = self._running, None
        job.set_result([ItemResult(wait_for_outcome(), "", self.laps.next_s())])

    def result(self, future: Future[list[ItemResult]]) -> list[ItemResult]:
        """The outcomes; the worker has replaced a process that was lost."""
        return future.result()
