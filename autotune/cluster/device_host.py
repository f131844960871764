"""The part of a search that runs in a Dask worker: claims a device, and evaluates configurations on it.

A separate process uses the device, as in a search on one device. So a kernel that crashes or hangs costs
neither the Dask worker nor its data.
"""

from __future__ import annotations

import asyncio
import errno
import hashlib
import pickle
import socket
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import distributed

from autotune.cluster.travelling_files import TravellingFiles
from autotune.devices import Address
from autotune.errors import SetupError
from autotune.evaluation.device_process import DeviceSetting
from autotune.evaluation.fleet import DeviceGone, call_worker, device_name, or_gone
from autotune.evaluation.work_item import ItemResult, Laps, WorkItem
from autotune.evaluation.worker import Worker
from autotune.problem.workload import Workload
from autotune.processes.scratch_folder import scratch_folder


@dataclass(frozen=True)
class HostSetting:
    """Settings of a search for its workers."""

    search: str
    run: str  # the command: a Dask worker holds one device for all its searches
    list_addresses: Callable[[], Sequence[Address]]  # devices of a machine that may be claimed
    process: DeviceSetting  # but for its device; the reference is an absolute path
    files: Mapping[str, bytes]  # content of the reference and the problems' files, by path

    @property
    def name(self) -> str:
        """The name of the plugin, and of the resource that a worker with a device offers."""
        return f"autotune-{self.search}"


_CLAIMING = threading.Lock()  # a process may host several Dask workers, and a worker several searches


class DeviceHost(distributed.WorkerPlugin):  # type: ignore[misc]
    """Holds the device of one Dask worker; a worker that finds no free device gets none."""

    def __init__(self, setting: HostSetting) -> None:
        self._setting = setting
        self._worker: Worker | None = None
        self.device: str | None = None

    async def setup(self, worker: distributed.Worker) -> None:
        """Claim a device and offer it to the scheduler as a resource."""
        setting, self._dask_worker = self._setting, worker
        self._opened = ExitStack()
        scratch = self._opened.enter_context(scratch_folder())
        admitted = await worker.scheduler.get_metadata(keys=[setting.name], default=None)
        address = await asyncio.to_thread(self._claim, admitted, worker)
        if address is None:
            return
        self.files = TravellingFiles(Path(scratch))
        self.files.add(setting.files)
        reference = Path(self.files.path(str(setting.process.reference)))
        workloads = tuple(map(self.files.workload, setting.process.workloads))
        own = replace(setting.process, address=address, reference=reference, workloads=workloads)
        self._worker = Worker(own)
        self._opened.callback(self._worker.end)
        self._laps = Laps()
        await worker.set_resources(**{setting.name: 1})

    async def teardown(self, worker: distributed.Worker) -> None:
        """Take no further part in the search, at its end."""
        await self.give_back()

    async def give_back(self) -> None:
        """End the device process and give the device back."""
        with self._opened:  # closed even if the scheduler has dropped this worker
            if self.device is not None:
                self.device = None
                await self._dask_worker.set_resources(**{self._setting.name: 0})

    def evaluate(self, item: WorkItem, timeout_s: float) -> ItemResult:
        """Verify and time one configuration; raises DeviceGone."""
        worker, device = self.worker, self.device
        if device is None:  # Dask began the task before it heard of that
            raise DeviceGone("", SetupError("it was given back"))
        outcome = or_gone(device, lambda: worker.run_item(self.files.item(item), timeout_s))
        return ItemResult(outcome, device, self._laps.next_s())

    async def call(self, method: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
        """Call a method of the device process's worker, or read a property; other calls go on meanwhile."""
        here = tuple(self.files.workload(item) if isinstance(item, Workload) else item for item in arguments)
        if "workloads" in options:
            options = {**options, "workloads": tuple(map(self.files.workload, options["workloads"]))}
        return await asyncio.to_thread(call_worker, self.worker, method, here, options)

    async def take_files(self, files: Mapping[str, bytes]) -> None:
        """Store files that later problems read."""
        if self.device is not None:
            self.files.add(files)

    async def claimed_device(self) -> str | None:
        """The device that the Dask worker has claimed, if any."""
        return self.device

    @property
    def worker(self) -> Worker:
        """The device process."""
        assert self._worker is not None, "no task is sent to a worker without a device"
        return self._worker

    def _claim(self, admitted: Collection[str] | None, worker: distributed.Worker) -> Address | None:
        """The first device on this machine that no other worker of the search holds.

        Once devices were compared, only those that were `admitted` may be claimed.
        """
        addresses = self._setting.list_addresses()
        with _CLAIMING:
            others = [plugin for plugin in list(worker.plugins.values()) if isinstance(plugin, DeviceHost)]
            if any(plugin.device and plugin._setting.run == self._setting.run for plugin in others):
                return None
            for address in addresses:
                device = device_name(address)
                if admitted is not None and device not in admitted:
                    continue
                claim = _claimed(f"{self._setting.name} {device}")
                if claim is not None:
                    self._opened.enter_context(claim)
                    self.device = device
                    return address
        return None


def _claimed(name: str) -> socket.socket | None:
    """Claim a name among the processes of this machine until the socket is closed; None if it is taken.

    The claim is a socket name on which nobody listens. Linux forgets it with the process, however that ends,
    and no file is left. Other users can read the name, but cannot guess others from it.
    """
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind("\0autotune-" + hashlib.sha256(name.encode()).hexdigest())
    except OSError as error:
        claim.close()
        if error.errno != errno.EADDRINUSE:
            raise
        return None
    return claim


def evaluate(name: str, items: bytes, timeout_s: float) -> list[ItemResult]:
    """Evaluate pickled work items on the device of this Dask worker; `name` is the plugin's."""
    host = cast(DeviceHost, distributed.get_worker().plugins[name])
    return [host.evaluate(item, timeout_s) for item in pickle.loads(items)]


async def on_host(name: str, method: str, *arguments: Any, dask_worker: distributed.Worker) -> Any:
    """Call a method of a Dask worker's device host, which is the plugin of this name."""
    return await getattr(dask_worker.plugins[name], method)(*arguments)
