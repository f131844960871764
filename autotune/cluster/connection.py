"""Opens a Dask cluster for searches on several devices; it is started here, or runs already."""

from __future__ import annotations

import asyncio
import logging
import re
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from autotune.core.extras import missing_extra
from autotune.core.records import DeviceInfo
from autotune.core.stages import OnStage, Stage
from autotune.devices import BACKENDS, Address, choose
from autotune.devices.listing import find_devices
from autotune.errors import ChildFailed, InputError, MissingExtra, SetupError
from autotune.evaluation.instance import environment
from autotune.processes.child import Child, kill_all
from autotune.processes.fork_server import preload
from autotune.processes.scratch_folder import scratch_folder

try:
    import dask
    import distributed
except ImportError as error:
    raise missing_extra(error) or error from None

LOOPBACK = "127.0.0.1"
CONNECT_TIMEOUT_S = 15.0
MAX_SILENT_S = 60  # without a heartbeat of a worker; then its trials go to others
START_TIMEOUT_S = 60.0  # start of the workers on this machine
CHECK_S = 0.5  # between two checks for workers that have ended
WORKERS_TIMEOUT_S = 600.0  # a batch system may let jobs wait

_FOLDER = "temporary-directory"
SETTINGS = {  # of Dask's schedulers and workers
    "distributed.scheduler.worker-ttl": f"{MAX_SILENT_S} s",
    # Dask's own statistics take time and memory from the search
    "distributed.admin.low-level-log-length": 10,  # of messages; each holds a task
    "distributed.worker.profile.enabled": False,
    "distributed.admin.tick.interval": "1s",
    "distributed.admin.system-monitor.interval": "10s",
    "distributed.diagnostics.nvml": False,  # else it queries the GPU while kernels are timed
}


@dataclass(frozen=True)
class Cluster:
    """A connected cluster."""

    client: distributed.Client
    address: Address  # a device of the model to search with, possibly on another machine
    info: DeviceInfo
    list_addresses: Callable[[], Sequence[Address]]  # devices that workers of a machine may claim
    run: str = field(default_factory=lambda: uuid.uuid4().hex[:12])  # the command, with all its searches


@contextmanager
def _own_workers(count: int) -> Iterator[distributed.Client]:
    """Start a scheduler in this process and workers in child processes, and connect to them.

    They listen on the loopback interface, and their certificate is only in the memory of these processes,
    because Dask authenticates nobody and runs whatever it is sent.
    """
    preload((__name__,))
    own_folder = {"TMPDIR": dask.config.get(_FOLDER)}  # killed workers leave their files in it
    with ExitStack() as opened:
        cluster = opened.enter_context(_local_scheduler())
        client = opened.enter_context(distributed.Client(cluster))
        workers: list[Child] = []
        opened.callback(kill_all, workers)  # they have given their devices back
        for _ in range(count):
            worker = Child(_be_worker, cluster.scheduler_address, cluster.security, variables=own_folder)
            workers.append(worker)
            worker.ask(str)  # it answers when it has ended
        _wait_for(client, workers)
        yield client


def _local_scheduler() -> distributed.SpecCluster:
    """A scheduler in this process, without workers."""
    try:
        security = distributed.Security.temporary()
    except ImportError:
        raise MissingExtra("cryptography", "cluster") from None
    options = {"host": LOOPBACK, "protocol": "tls://", "security": security, "dashboard": False}
    return distributed.SpecCluster(
        scheduler={"cls": _Scheduler, "options": options}, security=security, silence_logs=logging.CRITICAL
    )


class _WithoutHttp:
    """Leaves out the HTTP server that schedulers and workers start even without a dashboard."""

    def start_http_server(self, *_: Any, **__: Any) -> None:
        """Start none: it would show the search to anyone."""


class _Scheduler(_WithoutHttp, distributed.Scheduler):  # type: ignore[misc]
    pass


class _Worker(_WithoutHttp, distributed.Worker):  # type: ignore[misc]
    pass


def _wait_for(client: distributed.Client, workers: Sequence[Child]) -> None:
    """Wait until the Dask workers of this machine have started; raises SetupError once one has ended."""
    deadline_s = time.monotonic() + START_TIMEOUT_S
    while True:
        try:
            client.wait_for_workers(len(workers), timeout=CHECK_S)
            return
        except distributed.TimeoutError:
            pass
        for worker in workers:
            if worker.has_answered:
                raise SetupError(f"a Dask worker of this machine has ended: {_last_words(worker)}")
        if time.monotonic() > deadline_s:
            raise SetupError(
                f"not all Dask workers of this machine have started within {START_TIMEOUT_S:g} s"
            )


def _last_words(worker: Child) -> str:
    try:
        worker.answer()
    except ChildFailed as error:
        return str(error)
    return "its scheduler is gone"


def _be_worker(scheduler: str, security: distributed.Security) -> None:
    """In a child process: run a Dask worker until the scheduler is gone."""
    preload(("autotune.evaluation.device_samples",))  # for its own child

    async def run() -> None:
        options = {"host": LOOPBACK, "security": security, "dashboard": False}
        worker = await _Worker(scheduler, nthreads=1, memory_limit=0, **options)
        await worker.finished()

    with _dask_settings():
        asyncio.run(run())


@contextmanager
def open_each_model(
    text: str, device: str | None, on_stage: OnStage, warn: Callable[[str], None]
) -> Iterator[list[Cluster]]:
    """Connect to a cluster, or start one: `tcp://HOST:PORT`, `slurm`, `slurm:JOBS` or `local:WORKERS`.

    Gives the cluster for each model of the backend and kind of the device, as `--device` names it among those
    of all workers; that device's model comes first. Warns of a scheduler that is open to others.

    Raises:
        InputError: There is no such kind of cluster, or no such device.
        SetupError: The scheduler does not answer, or no worker comes.
    """
    if "://" in text and not text.startswith(("tls://", "wss://")):  # Dask itself authenticates nobody
        warn(
            f"--cluster {text}: anyone who reaches this scheduler or its workers can run code on them; "
            "use tls://, or a network of your own"
        )
    on_stage(Stage(f"waiting for the workers of {text}"))
    with ExitStack() as opened:
        opened.enter_context(_dask_settings())
        client = _client(text, opened)
        on_stage(Stage("finding devices"))
        backend = (device or "").partition(":")[0]
        listed = client.run(find_devices, (backend,) if backend in BACKENDS else tuple(BACKENDS))
        found = [item for devices in listed.values() for item in devices]
        first, chosen = choose(device, found)
        models: dict[str, tuple[Address, DeviceInfo]] = {}
        for address, info in ((first, chosen), *found):
            if (address.backend, info.kind) == (first.backend, chosen.kind):
                models.setdefault(info.slug, (address, info))
        one = Cluster(client, first, chosen, list)
        yield [
            replace(one, address=address, info=info, list_addresses=partial(alike, address.backend, info))
            for address, info in models.values()
        ]


def alike(backend: str, info: DeviceInfo) -> list[Address]:
    """The devices of this machine that are like a given one: same model, driver and limits."""
    expected = environment(info, "")
    return [address for address, other in find_devices((backend,)) if environment(other, "") == expected]


def _client(text: str, opened: ExitStack) -> distributed.Client:
    """Connect to the scheduler that `--cluster` names, or start one, and wait for workers."""
    kind, _, count = text.partition(":")
    if "://" not in text and (
        kind not in ("local", "slurm") or (count and not re.fullmatch("[1-9][0-9]{0,3}", count))
    ):
        raise InputError(f"--cluster {text}: expected tcp://HOST:PORT, slurm, slurm:JOBS or local:WORKERS")
    if kind == "local":
        return opened.enter_context(_own_workers(int(count or 1)))
    scheduler = text if "://" in text else _slurm(text, int(count or 1), opened)
    try:
        client = opened.enter_context(distributed.Client(scheduler, timeout=CONNECT_TIMEOUT_S))
        client.wait_for_workers(1, timeout=WORKERS_TIMEOUT_S)
    except (OSError, distributed.TimeoutError) as error:
        raise SetupError(f"--cluster {text}: {error or 'no worker came'}") from None
    return client


def _slurm(text: str, jobs: int, opened: ExitStack) -> Any:
    """A scheduler in this process, with the given number of SLURM jobs as workers."""
    try:
        import dask_jobqueue
    except ImportError as error:
        raise missing_extra(error) or error from None
    try:
        cluster = opened.enter_context(dask_jobqueue.SLURMCluster())
        cluster.scale(jobs=jobs)
    except (ValueError, OSError, RuntimeError) as error:
        raise SetupError(
            f"--cluster {text}: {error}; its options are those of jobqueue.slurm in Dask's configuration"
        ) from None
    return cluster


@contextmanager
def _dask_settings() -> Iterator[None]:
    """Make Dask quiet, and keep its files in a folder that is removed at the end, or by the next run."""
    names = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == "distributed"]
    loggers = list(map(logging.getLogger, names))  # some have a level of their own
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)  # a search goes on without lost workers
    try:
        with scratch_folder() as scratch, dask.config.set(SETTINGS | {_FOLDER: scratch}):
            yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
