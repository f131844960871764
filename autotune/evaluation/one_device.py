"""Where an evaluator's work items run: what it needs of devices, and the one device of a worker."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Protocol

from autotune.core.stages import Stage
from autotune.evaluation.work_item import Evaluated, Outcome, WorkItem
from autotune.evaluation.worker import DeviceWorker


class Devices(Protocol):
    """Runs tasks of work items, as many at the same time as there are slots.

    Attributes:
        stage: What the devices do, as the progress says it.
    """

    stage: Stage

    @property
    def count(self) -> int:
        """How many devices there are."""
        ...

    @property
    def parallel(self) -> int:
        """How many configurations under way keep them busy; 1: they run in the order of submission."""
        ...

    @property
    def slots(self) -> int:
        """How many tasks keep them busy."""
        ...

    @property
    def task_items(self) -> int:
        """How many work items one task should have."""
        ...

    def submit(self, items: Sequence[WorkItem], timeout_s: float) -> Future[list[Evaluated]]:
        """Begin a task; `result` takes the future once it is done."""
        ...

    def result(self, future: Future[list[Evaluated]]) -> list[Evaluated] | None:
        """The outcomes of a task: none if its device is gone, None if it costs one device after the other.

        Raises what the setup raises.
        """
        ...

    def stranded(self) -> list[Future[list[Evaluated]]]:
        """Drop and return the tasks that wait for a device that is gone."""
        ...

    def unplaced(self) -> list[Future[list[Evaluated]]]:
        """The same after a time without an event; raises SetupError if no device is left."""
        ...


class OneDevice:
    """The device of one worker; a thread waits for it, so it runs while compilers and a searcher work."""

    stage = Stage("verifying and timing")
    count = parallel = slots = task_items = 1

    def __init__(self, worker: DeviceWorker) -> None:
        self._worker = worker
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="device")
        self._idle_since_s = time.perf_counter()

    def submit(self, items: Sequence[WorkItem], timeout_s: float) -> Future[list[Evaluated]]:
        """Run work items; the cost of the first one includes the time that the device waited for it."""
        return self._thread.submit(lambda: [self._evaluated(item, timeout_s) for item in items])

    def _evaluated(self, item: WorkItem, timeout_s: float) -> Evaluated:
        failure = self._worker.begin_item(item, timeout_s)
        outcome = self._worker.finish_item() if failure is None else Outcome(failure)
        began_s, self._idle_since_s = self._idle_since_s, time.perf_counter()
        return Evaluated(outcome, "", self._idle_since_s - began_s)

    def result(self, future: Future[list[Evaluated]]) -> list[Evaluated]:
        """The outcomes; the worker has replaced a process that was lost."""
        return future.result()

    def stranded(self) -> list[Future[list[Evaluated]]]:
        """None: the worker ends every run."""
        return []

    def unplaced(self) -> list[Future[list[Evaluated]]]:
        """None, as `stranded`."""
        return []

    def close(self) -> None:
        """End the thread, once what it runs has ended."""
        self._thread.shutdown(wait=False, cancel_futures=True)
