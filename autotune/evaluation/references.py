"""Computes the references of later problems in a process next to the search, and keeps their results on disk.

The device process finds them there when it needs them. On a CPU device this would disturb times, and a
reference that uses the device itself has to run where the device is free.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from autotune.errors import ChildFailed
from autotune.evaluation.device_process import DeviceSetting
from autotune.evaluation.worker import SETUP_TIMEOUT_S
from autotune.problem.inputs import prepare
from autotune.problem.kept_results import KeptResults
from autotune.problem.problem_instance import ProblemInstance
from autotune.processes.child import Child


class References:
    """Later problems, computed one after the other; what fails here is reported by who needs it."""

    def __init__(self, setting: DeviceSetting, variables: Mapping[str, str]) -> None:
        """Begin nothing yet; the setting has the reference and the place to keep its results."""
        self._setting, self._variables = setting, variables
        self._child: Child | None = None
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="references")
        self._begun: dict[str, Future[None]] = {}

    def begin(self, problems: Sequence[ProblemInstance]) -> None:
        """Begin to compute problems, once; none without a place to keep results."""
        reference, kept = self._setting.reference, self._setting.kept
        if kept is not None and problems:
            self._child = Child(_Keeper, reference, kept, variables=self._variables)
            self._begun = {one.data_key: self._thread.submit(self._compute, one) for one in problems}

    def settle(self, problems: Sequence[ProblemInstance]) -> None:
        """Wait for the problem that is being computed, if it is one of these; drop what has not begun."""
        for problem in reversed(problems):
            begun = self._begun.pop(problem.data_key, None)
            if begun is not None and not begun.cancel():
                begun.result()

    def close(self) -> None:
        """End the process."""
        self._thread.shutdown(wait=False, cancel_futures=True)
        if self._child is not None:
            self._child.kill()
        self._thread.shutdown()

    def _compute(self, problem: ProblemInstance) -> None:
        assert self._child is not None
        with suppress(ChildFailed):  # the device process computes it again, and reports why it fails
            self._child.call(_Keeper.keep, problem, timeout_s=SETUP_TIMEOUT_S)


class _Keeper:
    """The state of the process."""

    def __init__(self, reference: Path, kept: KeptResults) -> None:
        self._reference, self._kept = reference, kept

    def keep(self, problem: ProblemInstance) -> None:
        """Compute and keep the results of a problem, unless they are on disk or the reference is fast."""
        prepare(problem, self._reference, self._kept)
