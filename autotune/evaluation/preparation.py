"""Prepares problems on the host in the background: draws their inputs and runs the reference."""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from functools import cached_property
from pathlib import Path
from weakref import WeakValueDictionary

from autotune.problem.covering import size_product
from autotune.problem.inputs import Drawn, ProblemData, prepare
from autotune.problem.kept_results import KeptResults
from autotune.problem.problem_instance import ProblemInstance
from autotune.problem.rounding import allows_rounding


class Preparation:
    """Problems that are being prepared, one at a time, because references are not made for threads."""

    def __init__(
        self, reference: Path, problems: tuple[ProblemInstance, ...], kept: KeptResults | None
    ) -> None:
        """Begin with all problems but the last, the one to be timed; their data are kept."""
        self._reference, self._kept = reference, kept
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="preparation")
        self._drawn: Drawn = WeakValueDictionary()  # inputs in use; sizes of a sweep have some in common
        self._problems = problems
        self._prepared = {problem.data_key: self._begun(problem) for problem in problems[:-1]}

    def begin_last(self) -> None:
        """Begin with the last problem, which may take much memory."""
        for problem in self._problems[-1:]:
            if problem.data_key not in self._prepared:
                self._prepared[problem.data_key] = self._begun(problem)

    def data_of(self, problem: ProblemInstance) -> ProblemData:
        """Wait for the inputs and expected results of a problem; raises what preparing it raises."""
        return (self._prepared.get(problem.data_key) or self._begun(problem)).result()

    @cached_property
    def compared(self) -> frozenset[str]:
        """The arrays that the reference returns, the same for every problem; it may be slow for the last."""
        self.begin_last()
        first = [self._prepared[problem.data_key].result() for problem in self._problems[:1]]
        stored = (name for problem in self._problems for name, _ in problem.expected or ())
        return frozenset((*(name for data in first for name in data.expected), *stored))

    def allows_rounding(self, problem: ProblemInstance) -> bool:
        """True if the tolerance of a problem allows sums in any order, and denormals taken for zeros."""
        judged = (problem, self._reference, self.compared, self._kept)
        return self._thread.submit(allows_rounding, *judged).result()

    def reference_s(self, problem: ProblemInstance) -> float:
        """The time that the reference may take at a problem, from that at the most work; 0 if not known."""
        found = [one.result() for one in self._prepared.values()]
        known = [(size_product(one.problem.sizes), one.reference_s) for one in found if one.reference_s]
        most, took_s = max(known, default=(1, 0.0))
        return took_s * size_product(problem.definition.sizes) / max(1, most)

    def _begun(self, problem: ProblemInstance) -> Future[ProblemData]:
        return self._thread.submit(prepare, problem, self._reference, self._kept, self._drawn)
