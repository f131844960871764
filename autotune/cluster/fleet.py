"""The devices of a Dask cluster as the search sees them: work items go out, outcomes return in any order.

Dask chooses the device. Every Dask worker holds one device; see `device_host`.
"""

from __future__ import annotations

import asyncio
import itertools
import pickle
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import distributed

from autotune.cluster.device_host import DeviceHost, HostSetting, evaluate, on_host
from autotune.cluster.travelling_files import paths_of
from autotune.errors import SetupError
from autotune.evaluation.fleet import DeviceGone, Fleet, FleetWorker
from autotune.evaluation.job_runner import JobDropped, JobKills
from autotune.evaluation.work_item import ItemResult, WorkItem
from autotune.problem.workload import Workload

# Short work items are sent together, because any task costs this process some milliseconds.
MIN_TASK_S = 0.2
TASK_S_PER_DEVICE = 0.025  # with more devices, each gets fewer and longer tasks
MAX_ITEMS = 100
_SMOOTHING = 0.3
MAX_ALONE_S = 60.0  # without any device, before the search ends


class ClusterFleet(Fleet):
    """The devices that the workers of a cluster have claimed."""

    def __init__(
        self, client: distributed.Client, setting: HostSetting, on_lost: Callable[[str, str], None]
    ) -> None:
        """Claim the devices; raises SetupError if there are none. `on_lost` as for `Fleet`."""
        super().__init__(on_lost)
        self._client = client
        self._setting = setting
        self._tasks: dict[Future[list[ItemResult]], distributed.Future] = {}  # under way
        self._stranded: set[str] = set()  # keys of tasks
        self._numbers = itertools.count()
        self.devices: dict[str, str] = {}  # and the Dask worker of each
        self._seen_s = time.monotonic()
        self._cost_s = MIN_TASK_S  # mean time of a work item
        self._files: dict[str, bytes] = {}  # files that the workers have in addition to the setting's
        client.register_plugin(DeviceHost(setting), name=setting.name)
        self._find_devices()
        if not self.devices:
            raise SetupError(f"{client.scheduler.address}: none of its workers has a device for this search")

    @property
    def names(self) -> Collection[str]:
        """The devices that were there when they were last looked for."""
        return self.devices.keys()

    def admit(self, devices: Collection[str]) -> None:
        """Go on with these devices only; workers that join later may claim no others."""
        name = self._setting.name
        dropped = {worker for device, worker in self.devices.items() if device not in devices}
        self._client.set_metadata([name], list(devices))
        self._find_devices()  # workers that are gone cannot be asked
        if others := list(dropped & set(self.devices.values())):
            self._client.run(on_host, name, "give_back", workers=others, on_error="ignore")
            self._find_devices()
        for worker, keys in self._client.processing().items():
            self._stranded.update(keys if worker in dropped else ())

    def stranded(self) -> list[Future[list[ItemResult]]]:
        """Drop and return the tasks that wait for a device that was left out."""
        keys, self._stranded = self._stranded, set()
        return self._drop(lambda task: task.key in keys)

    def without_device(self) -> list[Future[list[ItemResult]]]:
        """Drop and return the tasks that wait for a worker although there are some.

        Dask assigns waiting tasks to a worker when it joins, before it offers its device. Raises SetupError
        if the scheduler is gone, or no device has been there for a while.
        """
        self._check()
        if not self.devices:
            return []
        placed = set(itertools.chain.from_iterable(self._client.processing().values()))
        return self._drop(lambda task: not task.done() and task.key not in placed)

    @property
    def job_items(self) -> int:
        """Number of work items that one job should have."""
        task_s = max(MIN_TASK_S, TASK_S_PER_DEVICE * self.count)
        return min(MAX_ITEMS, max(1, int(task_s / max(self._cost_s, 1e-3))))

    def submit(self, items: Sequence[WorkItem], timeout_s: float) -> Future[list[ItemResult]]:
        """Send work items to whichever device is free next, as one task of Dask; `result` takes the future.

        It is done once the outcomes are here: Dask repeats tasks that a lost worker took with it.
        """
        name = self._setting.name
        self._send_files(workload for item in items for workload in (*item.verify_workloads, item.workload))
        task = self._client.submit(
            evaluate,
            name,
            pickle.dumps(items),  # Dask would search them for futures, and pickle them more slowly
            timeout_s,
            key=f"trial-{self._setting.search}-{next(self._numbers)}",
            resources={name: 1},
            pure=False,
        )
        # in Dask's thread: it may wait there for a stopped worker, while others get work
        outcomes = self._client.gather(task, asynchronous=True)
        future = asyncio.run_coroutine_threadsafe(outcomes, self._client.loop.asyncio_loop)
        self._tasks[future] = task
        return future

    def result(self, future: Future[list[ItemResult]]) -> list[ItemResult]:
        """The outcomes of a finished job; raises as `JobRunner.result` does."""
        task = self._tasks.pop(future)
        try:
            results = future.result()
        except DeviceGone as error:
            self.leave_out(error.device, error.reason)
            raise JobDropped from None
        except distributed.KilledWorker:
            raise JobKills from None
        except (OSError, distributed.client.FutureCancelledError):
            if task.status == "error":  # the task raised it
                raise
            raise self._disconnected() from None
        self._seen_s = time.monotonic()
        for result in results:
            self._cost_s += _SMOOTHING * (result.cost_s - self._cost_s)
        return results

    def _check(self) -> None:
        if self._client.status != "running":
            raise self._disconnected()
        self._find_devices()
        if self.devices:
            self._seen_s = time.monotonic()
        elif time.monotonic() - self._seen_s > MAX_ALONE_S:
            raise SetupError(
                f"{self._client.scheduler.address}: no worker with a device for {MAX_ALONE_S:g} s; "
                "start some, then the same command resumes"
            )

    def present(self) -> list[str]:
        """The devices present now; raises SetupError if there are none."""
        self._find_devices()
        if not self.devices:
            raise SetupError("no worker with a device is left; start some, then the same command resumes")
        return list(self.devices)

    def worker_of(self, device: str) -> FleetWorker:
        """One of the devices, for runs that must share a device."""
        name, address = self._setting.name, self.devices[device]

        def call(method: str, arguments: tuple[Any, ...], options: dict[str, Any]) -> Any:
            loaded = (*arguments, *options.get("workloads", ()))
            self._send_files(item for item in loaded if isinstance(item, Workload))
            # directly, not as a task: that takes 2 ms instead of 20, and a last round makes hundreds of calls
            try:
                found = self._client.run(on_host, name, "call", method, arguments, options, workers=[address])
            except OSError as error:
                raise SetupError(f"its worker is gone ({error})") from None
            return found[address]

        return FleetWorker(device, call)

    def _send_files(self, workloads: Iterable[Workload]) -> None:
        """Send the files that the workloads read and the workers lack."""
        known = self._files.keys() | self._setting.files.keys()
        missing = {path: Path(path).read_bytes() for path in paths_of(workloads) if path not in known}
        self._files |= missing
        self._give_files(missing, self.devices.values())

    def _give_files(self, files: Mapping[str, bytes], workers: Iterable[str]) -> None:
        """Send files to workers that hold a device; a stopped one is noticed later."""
        if files and (there := list(workers)):
            name = self._setting.name
            self._client.run(on_host, name, "take_files", files, workers=there, on_error="ignore")

    def _find_devices(self) -> None:
        """Find the devices; only new workers are asked, because a stopped one never answers."""
        # not the client's `scheduler_info`, which its own query without workers may replace meanwhile
        try:
            workers = self._client.sync(self._client.scheduler.identity, n_workers=-1)["workers"]
        except OSError:
            raise self._disconnected() from None
        offering = {address for address, info in workers.items() if info["resources"].get(self._setting.name)}
        known = {device: address for device, address in self.devices.items() if address in offering}
        fresh = list(offering - set(known.values()))
        if fresh:
            name = self._setting.name
            asked = self._client.run(on_host, name, "claimed_device", workers=fresh, on_error="ignore")
            joined = {device: address for address, device in asked.items() if device}
            self._give_files(self._files, joined.values())  # those that it was not started with
            known |= joined
        self.devices = dict(sorted(known.items()))

    def _drop(self, is_meant: Callable[[distributed.Future], bool]) -> list[Future[list[ItemResult]]]:
        """Cancel tasks; the caller sends them again."""
        futures = [future for future, task in self._tasks.items() if is_meant(task)]
        if futures:  # to cancel none takes Dask just as long, and this is called after every task
            self._client.cancel([self._tasks.pop(future) for future in futures])
        return futures

    def _disconnected(self) -> SetupError:
        return SetupError("the Dask scheduler is gone; once it is back, the same command resumes")


@contextmanager
def open_fleet(
    client: distributed.Client, setting: HostSetting, on_lost: Callable[[str, str], None]
) -> Iterator[ClusterFleet]:
    """Claim the devices of a cluster as `ClusterFleet` does, and give them back at the end."""
    try:
        yield ClusterFleet(client, setting, on_lost)
    finally:
        if client.status == "running":
            with suppress(ValueError, OSError):  # a restarted scheduler does not know the search
                client.unregister_worker_plugin(setting.name)
