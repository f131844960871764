"""Computes the references of later workloads in a process next to the search; their results are kept on disk.

The device process finds them there when it needs them. On a CPU device this would disturb times, and a
reference that uses the device itself has to run where the device is free.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from autotune.core.text import size_text
from autotune.errors import ChildFailed
from autotune.evaluation.worker import SETUP_TIMEOUT_S
from autotune.problem.inputs import prepare
from autotune.problem.reference_cache import ReferenceCache
from autotune.problem.workload import Workload
from autotune.processes.child import Child

MAX_JUDGED_S = 1.0  # a slower data set ends work ahead at its size; where all are slower, no shapes follow


class References:
    """Later workloads, computed one after the other; whoever needs one reports its failure."""

    def __init__(self, reference: Path, cache: ReferenceCache) -> None:
        """Begin nothing yet; the cache keeps the results."""
        self._reference, self._cache = reference, cache
        self._child: Child | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="references")
        self._begun: dict[str, Future[None]] = {}

    def begin(self, workloads: Sequence[Workload], other_data: Sequence[Workload]) -> None:
        """Begin to compute workloads, once.

        Results on `other_data` are kept for this run, however fast they were.
        """
        if workloads or other_data:
            self._child = Child(_Keeper, self._reference, self._cache)
            for how, group in ((_Keeper.keep, workloads), (_Keeper.keep_for_run, other_data)):
                self._begun |= {
                    workload.data_key: self._thread.submit(self._ask, how, workload) for workload in group
                }

    def settle(self, workloads: Sequence[Workload]) -> None:
        """Wait for the workload that is being computed, if it is one of these; drop what has not begun."""
        for workload in reversed(workloads):
            begun = self._begun.get(workload.data_key)
            if begun is not None and not begun.cancel():
                begun.result()

    def close(self) -> None:
        """End the process."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._child is not None:
            self._child.kill()
        self._thread.shutdown()

    def _ask(self, how: Callable[..., None], workload: Workload) -> None:
        assert self._child is not None
        with suppress(ChildFailed):  # the device process computes it again, and reports why it fails
            self._child.call(how, workload, timeout_s=SETUP_TIMEOUT_S)


class _Keeper:
    """The state of the process."""

    def __init__(self, reference: Path, cache: ReferenceCache) -> None:
        self._reference, self._cache = reference, cache
        self._slow: set[str] = set()  # sizes that get no further data sets

    def keep(self, workload: Workload) -> None:
        """Compute and keep the results of a workload, unless they are on disk or the reference is fast."""
        prepare(workload, self._reference, self._cache)

    def keep_for_run(self, workload: Workload) -> None:
        """Compute and keep the results of a workload, unless its size was slow before."""
        size = size_text(workload.problem.sizes)
        if size in self._slow:
            return
        began_s = time.perf_counter()
        prepare(workload, self._reference, self._cache.all_of_run())
        if time.perf_counter() - began_s > MAX_JUDGED_S:
            self._slow.add(size)
