"""Prepares workloads on the host in the background: draws their inputs and runs the reference."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from weakref import WeakValueDictionary

from autotune.problem.covering import size_product
from autotune.problem.inputs import Drawn, WorkloadData, prepare
from autotune.problem.reference_cache import ReferenceCache
from autotune.problem.rounding import rounding_is_tolerated
from autotune.problem.workload import Workload


class Preparation:
    """Workloads that are being prepared, one at a time, because references are not made for threads."""

    def __init__(
        self, reference: Path, workloads: tuple[Workload, ...], cache: ReferenceCache | None
    ) -> None:
        """Begin with all workloads but the last, the one to be timed; their data are kept."""
        self._reference, self._cache = reference, cache
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="preparation")
        self._drawn: Drawn = WeakValueDictionary()  # inputs in use; sizes of a sweep have some in common
        self._workloads = workloads
        self._prepared = {workload.data_key: self._begin(workload) for workload in workloads[:-1]}

    def begin_last(self) -> None:
        """Begin with the last workload, which may take much memory."""
        for workload in self._workloads[-1:]:
            if workload.data_key not in self._prepared:
                self._prepared[workload.data_key] = self._begin(workload)

    def data_of(self, workload: Workload) -> WorkloadData:
        """Wait for the inputs and expected results of a workload; raises what preparing it raises."""
        return (self._prepared.get(workload.data_key) or self._begin(workload)).result()

    @cached_property
    def compared(self) -> frozenset[str]:
        """The arrays that the reference returns, the same for every workload; it may be slow for the last."""
        self.begin_last()
        first = [self._prepared[workload.data_key].result() for workload in self._workloads[:1]]
        stored = (name for workload in self._workloads for name, _ in workload.expected or ())
        return frozenset((*(name for data in first for name in data.expected), *stored))

    def rounding_is_tolerated(self, workload: Workload, usual: Workload) -> bool:
        """True if rounding alone explains no difference on other data than the usual."""
        judged = (workload, usual, self._reference, self.compared)
        return self._thread.submit(rounding_is_tolerated, *judged).result()

    def reference_s(self, workload: Workload) -> float:
        """The time that the reference may take for a workload, by that for the largest; 0 if not known."""
        prepared = [future.result() for future in self._prepared.values()]
        timed = [(size_product(one.problem.sizes), one.reference_s) for one in prepared if one.reference_s]
        most, took_s = max(timed, default=(1, 0.0))
        return took_s * size_product(workload.problem.sizes) / max(1, most)

    def _begin(self, workload: Workload) -> Future[WorkloadData]:
        return self._thread.submit(prepare, workload, self._reference, self._cache, self._drawn)
