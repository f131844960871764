"""Several devices that run the jobs of one search: what all have in common, and those of this machine."""

from __future__ import annotations

import os
import socket
from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from queue import SimpleQueue
from typing import Any

from autotune.core.stages import Stage
from autotune.core.trials import Failure
from autotune.devices import Address
from autotune.errors import BrokenReference, NoMemory, SetupError
from autotune.evaluation.job_runner import JobDropped, JobRunner
from autotune.evaluation.work_item import ItemResult, Laps, WorkItem
from autotune.evaluation.worker import Worker
from autotune.problem.workload import Workload

MIN_UNDER_WAY = 8
QUEUED = 2  # jobs per device: one runs and one waits, so no device waits for this process

RemoteCall = Callable[[str, tuple[Any, ...], dict[str, Any]], Any]
"""Calls a method of a worker, or reads a property."""


class DeviceGone(SetupError):
    """A device or its worker is gone, or its problem cannot be prepared; names the device and the reason."""

    def __init__(self, device: str, reason: SetupError | NoMemory) -> None:
        super().__init__(device, reason)
        self.device, self.reason = device, reason

    def __str__(self) -> str:
        return f"{self.device}: {self.reason}"


def device_name(address: Address) -> str:
    """The name of a device of this machine among those of all machines: `node1/cuda:1`."""
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
    return f"{socket.gethostname()}/{address}" + (f" of {visible}" if visible else "")


def call_worker(worker: Worker, method: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Call a method of a worker, or read a property."""
    member = getattr(worker, method)
    return member(*arguments, **options) if callable(member) else member


class FleetWorker:
    """The worker of one device of a fleet, with the methods of `Worker`; these raise DeviceGone."""

    def __init__(self, device: str, call: RemoteCall) -> None:
        """`call` raises SetupError or NoMemory once the device is gone."""
        self._device, self._call_it = device, call
        self._compared: frozenset[str] | None = None

    @property
    def compared(self) -> frozenset[str]:
        """The arrays that the reference returns."""
        if self._compared is None:
            self._compared = frozenset(self._call("compared"))
        return self._compared

    def load(self, *workloads: Workload) -> Failure | None:
        """As `Worker.load`."""
        failure: Failure | None = self._call("load", *workloads)
        return failure

    def run(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """As `Worker.run`."""
        return self._call("run", function, *arguments, **options)

    def replace_if_used(self) -> None:
        """As `Worker.replace_if_used`."""
        self._call("replace_if_used")

    def discard_child(self) -> None:
        """As `Worker.discard_child`."""
        self._call("discard_child")

    def _call(self, method: str, *arguments: Any, **options: Any) -> Any:
        return or_gone(self._device, partial(self._call_it, method, arguments, options))


def or_gone(device: str, call: Callable[[], Any]) -> Any:
    """The answer of a call that uses a device; raises DeviceGone if another device may succeed."""
    try:
        return call()
    except BrokenReference:
        raise
    except (SetupError, NoMemory) as error:  # other programs may use this device's memory
        raise DeviceGone(device, error) from None


class Fleet(JobRunner):
    """Several devices that run jobs, and each of which can be used alone."""

    stage = Stage("measuring on several devices")
    is_here = False  # True for devices of this machine, whose processes read its files

    def __init__(self, on_lost: Callable[[str, str], None]) -> None:
        """`on_lost` is called with a device that fails later, and the reason."""
        self._on_lost = on_lost
        self.laps = Laps()

    @property
    @abstractmethod
    def names(self) -> Collection[str]:
        """The devices now, or a moment ago."""

    def present(self) -> list[str]:
        """The devices present now; raises SetupError if there are none."""
        return list(self.names)

    @abstractmethod
    def worker_of(self, device: str) -> FleetWorker:
        """One of the devices, for runs that must share a device."""

    @property
    def worker(self) -> FleetWorker:
        """The first of the devices."""
        return self.worker_of(next(iter(self.names)))

    @abstractmethod
    def admit(self, devices: Collection[str]) -> None:
        """Go on with these devices only."""

    def leave_out(self, device: str, reason: SetupError | NoMemory) -> None:
        """Go on without a device that fails; raises an error of the reason's kind if it is the last one."""
        if device not in self.names:  # it was left out already
            return
        if len(self.names) == 1:
            if isinstance(reason, NoMemory):
                raise NoMemory(f"{device}: {reason}")
            raise SetupError(
                f"no device is left: {device}: {reason}; once one works, the same command resumes"
            )
        self._on_lost(device, str(reason))
        self.admit(set(self.names) - {device})

    @property
    def count(self) -> int:
        """The number of devices."""
        return max(1, len(self.names))

    @property
    def parallel(self) -> int:
        """Number of configurations under way that keeps devices and compilers busy."""
        return max(MIN_UNDER_WAY, self.slots)

    @property
    def slots(self) -> int:
        """Number of jobs that keeps all devices busy."""
        return QUEUED * self.count


class LocalFleet(Fleet):
    """Devices of this machine, each with a worker of its own; whichever is free takes the next job.

    A thread waits for each worker. The first job begins as soon as one device is open, whichever that is.
    """

    is_here = True
    job_items = 1

    def __init__(self, workers: Mapping[Address, Worker], on_lost: Callable[[str, str], None]) -> None:
        """Take workers that have begun to open their devices."""
        super().__init__(on_lost)
        self._workers = {device_name(address): worker for address, worker in workers.items()}
        self._laps = {name: Laps() for name in self._workers}
        self._free: SimpleQueue[str] = SimpleQueue()
        self._threads = ThreadPoolExecutor(len(workers), thread_name_prefix="device")
        self._opening = {
            name: self._threads.submit(self._open, name, worker) for name, worker in self._workers.items()
        }

    @property
    def names(self) -> Collection[str]:
        """The devices in use."""
        return self._workers.keys()

    def worker_of(self, device: str) -> FleetWorker:
        """One of the devices, which has no job meanwhile."""
        worker, opening = self._workers[device], self._opening[device]

        def call(method: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
            opening.result()
            return call_worker(worker, method, arguments, options)

        return FleetWorker(device, call)

    def admit(self, devices: Collection[str]) -> None:
        """Go on with these devices only, and end the processes of the others."""
        for device in self._workers.keys() - set(devices):
            self._workers.pop(device).end(waits=False)

    def submit(self, items: Sequence[WorkItem], timeout_s: float) -> Future[list[ItemResult]]:
        """Give a work item to whichever device is free next."""
        (item,) = items
        return self._threads.submit(self._run, item, timeout_s)

    def result(self, future: Future[list[ItemResult]]) -> list[ItemResult]:
        """The outcomes of a finished job; raises JobDropped if its device is gone."""
        try:
            return future.result()
        except DeviceGone as error:
            self.leave_out(error.device, error.reason)
            raise JobDropped from None

    def close(self) -> None:
        """Begin no further job; one that runs ends with its worker."""
        for _ in self._opening:
            self._free.put("")
        self._threads.shutdown(wait=False, cancel_futures=True)

    def _open(self, device: str, worker: Worker) -> None:
        """Wait until a device is open; if that fails, the first job there tries again, and tells why."""
        try:
            _ = worker.compared
        finally:
            self._free.put(device)

    def _run(self, item: WorkItem, timeout_s: float) -> list[ItemResult]:
        """Run a work item."""
        while (worker := self._workers.get(device := self._free.get())) is None:
            if not device:
                raise JobDropped  # the search has ended
        outcome = or_gone(device, lambda: worker.run_item(item, timeout_s))
        result = ItemResult(outcome, device, self._laps[device].next_s())
        self._free.put(device)
        return [result]
