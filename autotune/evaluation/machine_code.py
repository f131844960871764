"""Has PoCL make machine code in several processes, before configurations are verified and timed one by one.

PoCL makes the machine code of a kernel when it first runs, on one core, which takes longer than most trials,
and keeps it in a folder of the search. So each configuration runs once here, beside others. What comes of
that does not matter: the device process verifies it.
"""

from __future__ import annotations

from collections.abc import Mapping
from queue import Empty, SimpleQueue
from threading import Lock
from typing import TYPE_CHECKING

from autotune.core.trials import Binary
from autotune.errors import ChildFailed, ChildRaised
from autotune.evaluation.buffers import device_bytes
from autotune.evaluation.device_process import DeviceSetting, DeviceState
from autotune.problem.problem_instance import ProblemInstance, in_order
from autotune.processes.child import Child, kill_all

if TYPE_CHECKING:
    from autotune.evaluation.instance import KernelInstance

MAX_S = 10.0  # of a run
MAX_BYTES = 2**28  # of a problem's arrays, because every process has its own


class MachineCode:
    """Processes that run configurations; as many as threads call `make` at the same time."""

    def __init__(self, setting: DeviceSetting, environment: Mapping[str, str]) -> None:
        """Start nothing yet; the children have the variables that name the folder of machine code."""
        self._setting, self._environment = setting, environment
        self._idle: SimpleQueue[Child] = SimpleQueue()
        self._children: set[Child] = set()
        self._lock = Lock()  # of the set of children, which does not change after `close`
        self._closing = False

    def make(self, binary: Binary, instance: KernelInstance) -> None:
        """Run a configuration once where it is verified first; it may fail in any way."""
        problems = in_order(instance.checks, "cpu")
        if not problems or device_bytes(problems[0]) > MAX_BYTES or (child := self._child()) is None:
            return
        try:
            child.call(_run, binary, problems[0], timeout_s=MAX_S)
        except ChildRaised:
            pass
        except ChildFailed:
            child.kill()
            return
        self._idle.put(child)

    def _child(self) -> Child | None:
        """An idle child or a fresh one; None if there is none to be had."""
        try:
            return self._idle.get_nowait()
        except Empty:
            pass
        with self._lock:
            if self._closing:
                return None
            try:
                child = Child(DeviceState, self._setting, environment=self._environment)
            except OSError:
                return None
            self._children.add(child)
            return child

    def close(self) -> None:
        """Kill the processes."""
        with self._lock:
            self._closing = True
        kill_all(self._children)


def _run(state: DeviceState, binary: Binary, problem: ProblemInstance) -> None:
    buffers = state.buffers(problem)
    for guarded in buffers.arrays():
        guarded.restore()
    buffers.run(state.program(binary))
