"""What runs in a Dask worker: it claims one device of its machine, and evaluates configurations on it.

The device is used by a process of its own, as in a search on one device. So a kernel that crashes or hangs
costs neither the Dask worker nor what it holds.
"""

from __future__ import annotations

import asyncio
import os
import re
import socket
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import distributed

from autotune.devices import Address, cold_environment
from autotune.evaluation.kept_results import KeptResults
from autotune.evaluation.work_item import Outcome, ProblemInstance, WorkItem
from autotune.evaluation.worker import Worker
from autotune.evaluation.wrong_result import WrongArrays
from autotune.processes.files import hold
from autotune.processes.temporary_folder import scratch_folder


@dataclass(frozen=True)
class HostSetting:
    """What the workers of a search need to know.

    Attributes:
        search: Identifies the search.
        list_addresses: Lists the devices of a machine that may be claimed.
        reference: The reference file.
        reference_text: Its content, for machines that do not have the file.
        problems: The first problems of every device process.
        wrong: Saves the arrays of wrong results.
        kept: Keeps the results of slow references.
        left_out: Names of devices that take no part.
    """

    search: str
    list_addresses: Callable[[], Sequence[Address]]
    reference: Path
    reference_text: bytes
    problems: tuple[ProblemInstance, ...]
    wrong: WrongArrays | None = None
    kept: KeptResults | None = None
    left_out: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The name of the plugin and of the resource that a worker with a device has."""
        return f"autotune-{self.search}"


@dataclass(frozen=True)
class Evaluated:
    """The outcome of a work item, the device that ran it, and how long that took."""

    outcome: Outcome
    device: str
    cost_s: float


class DeviceHost(distributed.WorkerPlugin):  # type: ignore[misc]
    """Holds the device of one Dask worker; workers that find no free device are left without."""

    def __init__(self, setting: HostSetting) -> None:
        self._setting = setting
        self._worker: Worker | None = None
        self.device: str | None = None

    async def setup(self, worker: distributed.Worker) -> None:
        """Claim a device and offer it to the scheduler as a resource."""
        self._opened = ExitStack()
        scratch = Path(self._opened.enter_context(scratch_folder()))
        address = await asyncio.to_thread(self._claim)
        if address is None:
            return
        setting = self._setting
        self._worker = Worker(
            address,
            _local_file(setting.reference, setting.reference_text, scratch),
            setting.problems,
            cold_environment(str(scratch)),
            wrong=setting.wrong,
            kept=setting.kept,
        )
        self._opened.callback(self._worker.close)
        await worker.set_resources(**{setting.name: 1})

    async def teardown(self, worker: distributed.Worker) -> None:
        """End the device process and give the device back."""
        await worker.set_resources(**{self._setting.name: 0})
        self._opened.close()

    def evaluate(self, item: WorkItem, timeout_s: float) -> Evaluated:
        """Verify and time one configuration."""
        began = time.perf_counter()
        worker = self.worker
        failure = worker.begin_item(item, timeout_s)
        outcome = worker.finish_item() if failure is None else Outcome(failure)
        return Evaluated(outcome, self.device or "", time.perf_counter() - began)

    @property
    def worker(self) -> Worker:
        """The device process."""
        assert self._worker is not None, "no task is sent to a worker without a device"
        return self._worker

    def _claim(self) -> Address | None:
        """The first device that no other worker of the search holds on this machine."""
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "")
        for address in self._setting.list_addresses():
            device = f"{socket.gethostname()}/{address}" + (f" of {visible}" if visible else "")
            if device in self._setting.left_out:
                continue
            file = re.sub(r"[^\w.-]", "-", f"{self._setting.name}-{device}.lock")
            path = Path(tempfile.gettempdir()) / file
            descriptor = os.open(path, os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            if hold(descriptor, wait=False):
                self._opened.callback(os.close, descriptor)
                self._opened.callback(path.unlink, missing_ok=True)
                self.device = device
                return address
            os.close(descriptor)
        return None


def evaluate(name: str, items: Sequence[WorkItem], timeout_s: float) -> list[Evaluated]:
    """Evaluate work items on the device of this Dask worker; `name` is the plugin's."""
    return [_host(name).evaluate(item, timeout_s) for item in items]


async def call_worker(
    name: str,
    method: str,
    arguments: tuple[Any, ...],
    options: dict[str, Any],
    dask_worker: distributed.Worker,
) -> Any:
    """Call a method of the device process's worker, or read a property, while the Dask worker goes on."""
    worker = cast(DeviceHost, dask_worker.plugins[name]).worker

    def call() -> Any:
        found = getattr(worker, method)
        return found(*arguments, **options) if callable(found) else found

    return await asyncio.to_thread(call)


def claimed_device(name: str, dask_worker: distributed.Worker) -> str | None:
    """The device that a Dask worker has claimed, if any."""
    host = dask_worker.plugins.get(name)
    return cast(DeviceHost, host).device if host is not None else None


def _host(name: str) -> DeviceHost:
    return cast(DeviceHost, distributed.get_worker().plugins[name])


def _local_file(path: Path, content: bytes, scratch: Path) -> Path:
    """A file of the searching machine: itself where this machine has it, else a copy."""
    try:
        if path.read_bytes() == content:
            return path
    except OSError:
        pass
    copy = scratch / path.name
    copy.write_bytes(content)
    return copy
