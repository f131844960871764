"""Runs configurations under NVIDIA's compute-sanitizer, which finds errors that results do not show.

A kernel that reads past its shared memory, races, or reads unwritten memory usually runs, and its result may
be right by luck. The sanitizer runs it on small problems, in separate processes for each tool. Arrays have no
guard zones, and arrays that a kernel should write first have no initial values.
"""

from __future__ import annotations

import math
import os
import re
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path

from autotune.checks.host_sanitizer import program_version
from autotune.compilers.nvidia_tools import find_tool
from autotune.core.outcomes import NO_TIME, PASSED, Outcome, Outcomes, Unchecked
from autotune.core.trials import Binary, Failure, Status
from autotune.devices import Address
from autotune.errors import ChildDied, ChildRaised, ChildTimeout
from autotune.evaluation.device_process import (
    DeviceSetting,
    DeviceState,
    open_device,
    run_and_reset_clocks,
    run_bare,
)
from autotune.problem.workload import Workload
from autotune.processes.child import Child, kill_all, was_killed
from autotune.processes.deadline import Deadline

TOOLS = ("memcheck", "racecheck", "initcheck", "synccheck")
TIMEOUT_S = 60.0  # to open the device, and of one run: under the sanitizer it is up to a hundred times slower
RUNS_OF_PROCESS = 6  # the most runs per process: more are divided among parallel processes
BROKEN = Unchecked("it does not work here")
_FOUND = 86  # the exit code that the sanitizer is told to use for a finding
_FINDING = re.compile(
    r"^=+ (?:Error: |(?P<warning>Warning: ))?"
    r"(?P<what>(?:Invalid|Misaligned|Program hit|Potential|Barrier|Divergent|Uninitialized).*)\n",
    re.MULTILINE,
)

Run = tuple[Binary, tuple[Workload, ...]]  # a configuration, and the problems to run it on


def _room() -> threading.Semaphore:
    """Room for as many processes as there are cores, or tools: each has a context on the GPU."""
    return threading.Semaphore(max(len(TOOLS), len(os.sched_getaffinity(0))))


@dataclass(frozen=True)
class Sanitizer:
    """The sanitizer for the device of one search."""

    program: str
    address: Address
    reference: Path
    _standing_by: dict[str, Child] = field(default_factory=dict, init=False, compare=False)  # by tool
    _room: threading.Semaphore = field(default_factory=_room, init=False, compare=False)

    @property
    def version(self) -> str:
        """The program's name and version."""
        return program_version(self.program, "--version")

    @contextmanager
    def standing_by(self) -> Iterator[None]:
        """During the block, a process of each tool stands by for checks: Python's start takes half a second.

        None opens the device before its check begins.
        """
        try:
            self._standing_by.update((tool, self._new_child(tool)) for tool in TOOLS)
            yield
        finally:
            kill_all([self._standing_by.popitem()[1] for _ in range(len(self._standing_by))])

    def check(self, runs: Sequence[Run], deadline: Deadline) -> list[Outcomes]:
        """Run configurations under each tool, and return the outcomes of each run by tool.

        A finding makes the launch fail, so errors of the run are ignored: the sanitizer's exit code and
        report decide.
        """
        parts = list(product(TOOLS, range(0, len(runs), RUNS_OF_PROCESS)))

        def check(part: tuple[str, int]) -> list[Outcome]:
            tool, start = part
            return self._check(tool, runs[start : start + RUNS_OF_PROCESS], deadline)

        with ThreadPoolExecutor() as threads:
            results = list(threads.map(check, parts))
        by_config: list[dict[str, Outcome]] = [{} for _ in runs]
        for (tool, start), outcomes in zip(parts, results, strict=True):
            for place, outcome in enumerate(outcomes, start):
                by_config[place][tool] = outcome
        return list(by_config)

    def _check(self, tool: str, runs: Sequence[Run], deadline: Deadline) -> list[Outcome]:
        """Outcomes of one tool: in one process for all runs, then, if it finds something, in one for each.

        The tool does not say which run shows it: the exit code comes last, and the report may come after the
        next run. If a run breaks the process without a finding, later runs get another process.
        """
        try:
            with self._room:
                code, output, begun, ended = self._run(tool, runs, deadline)
                if was_killed(code):
                    code, output, begun, ended = self._run(tool, runs, deadline)
        except ChildTimeout:
            return [NO_TIME] * len(runs)
        if code != _FOUND:
            if not begun:
                return [BROKEN] * len(runs)
            outcomes = [PASSED] * ended + [BROKEN] * (begun - ended)  # what broke the process is not checked
            return outcomes + (self._check(tool, runs[begun:], deadline) if begun < len(runs) else [])
        if len(runs) > 1:  # one of them is wrong: to find out which may take longer
            unlimited = replace(deadline, at_s=math.inf)
            with ThreadPoolExecutor(len(runs)) as threads:
                return list(threads.map(lambda run: self._check(tool, [run], unlimited)[0], runs))
        first = _FINDING.search(output)
        if first is None:  # the tool itself failed: some do not know launches by kernels
            return [BROKEN]
        error = first["what"].strip(" :")
        status = Status.OUT_OF_BOUNDS if tool == "memcheck" else Status.WRONG_RESULT
        return [Failure(status, f"compute-sanitizer found: {error}")]

    def _run(self, tool: str, runs: Sequence[Run], deadline: Deadline) -> tuple[int, str, int, int]:
        """Return the sanitizer's exit code and output, and how many runs began and ended.

        No run begins if the tool does not work, or the device cannot be opened under it. An error that the
        tool has printed counts even if the tool does not end. Raises ChildTimeout.
        """
        begun, ended = 0, 0
        child = self._standing_by.pop(tool, None) or self._new_child(tool)
        try:
            with deadline.holding(partial(child.kill, waits=False)):
                with suppress(ChildDied, ChildRaised):
                    child.call(open_device, timeout_s=deadline.left_s(TIMEOUT_S))
                    for binary, workloads in runs:
                        begun += 1
                        for workload in workloads:
                            limit_s = deadline.left_s(TIMEOUT_S)
                            child.call(run_and_reset_clocks, run_bare, binary, workload, timeout_s=limit_s)
                        ended += 1
                return *child.finish(deadline.left_s(TIMEOUT_S)), begun, ended
        except ChildTimeout:
            printed = child.printed()
            if not _has_found(printed):
                raise
            return _FOUND, printed, begun, ended
        finally:
            child.kill()

    def _new_child(self, tool: str) -> Child:
        # racecheck's default report, of pairs of source lines, misses races
        report = ("--racecheck-report", "all") if tool == "racecheck" else ()
        options = ("--tool", tool, "--error-exitcode", str(_FOUND), "--print-limit", "1", *report)
        options += ("--show-backtrace", "no")  # of one for each of 131,072 threads it did not end in a minute
        setting = DeviceSetting(self.address, self.reference)
        return Child(DeviceState, setting, wrapper=(self.program, *options))


def _has_found(printed: str) -> bool:
    """True if a tool has printed an error; whether a warning counts is said by its exit code alone."""
    return any(not finding["warning"] for finding in _FINDING.finditer(printed))


def find_sanitizer(address: Address) -> str | None:
    """Return the path of compute-sanitizer; None if it is not installed, or if the device is not NVIDIA's."""
    return find_tool("compute-sanitizer") if address.is_nvidia else None
