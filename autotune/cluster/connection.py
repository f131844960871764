"""Connects to a Dask cluster for searches on devices of other machines, or starts one in a batch system."""

from __future__ import annotations

import logging
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from autotune.core.extras import naming_extra
from autotune.core.records import DeviceInfo
from autotune.core.stages import OnStage, Stage
from autotune.devices import BACKENDS, Address, choose
from autotune.devices.listing import find_devices
from autotune.errors import InputError, SetupError
from autotune.evaluation.instance import environment
from autotune.processes.scratch_folder import scratch_folder

with naming_extra():
    import dask
    import distributed

CONNECT_TIMEOUT_S = 15.0
MAX_SILENT_S = 60  # without a heartbeat of a worker; then its trials go to others
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
def open_each_model(
    text: str, device: str | None, on_stage: OnStage, warn: Callable[[str], None]
) -> Iterator[list[Cluster]]:
    """Connect to a cluster, or start one: `tcp://HOST:PORT`, `slurm` or `slurm:JOBS`.

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
        devices_here = [item for devices in listed.values() for item in devices]
        chosen_address, chosen = choose(device, devices_here)
        models: dict[str, tuple[Address, DeviceInfo]] = {}
        for address, info in ((chosen_address, chosen), *devices_here):
            if (address.backend, info.kind) == (chosen_address.backend, chosen.kind):
                models.setdefault(info.slug, (address, info))
        cluster = Cluster(client, chosen_address, chosen, list)
        yield [
            replace(cluster, address=address, info=info, list_addresses=partial(alike, address.backend, info))
            for address, info in models.values()
        ]


def alike(backend: str, info: DeviceInfo) -> list[Address]:
    """The devices of this machine that are like a given one: same model, driver and limits."""
    expected = environment(info, "")
    return [address for address, device in find_devices((backend,)) if environment(device, "") == expected]


def _client(text: str, opened: ExitStack) -> distributed.Client:
    """Connect to the scheduler that `--cluster` names, or start one, and wait for workers."""
    jobs = re.fullmatch("slurm(?::([1-9][0-9]{0,3}))?", text)
    if "://" not in text and jobs is None:
        raise InputError(
            f"--cluster {text}: expected tcp://HOST:PORT, slurm or slurm:JOBS; "
            "--devices names devices of this machine"
        )
    scheduler = text if jobs is None else _slurm(text, int(jobs[1] or 1), opened)
    try:
        client = opened.enter_context(distributed.Client(scheduler, timeout=CONNECT_TIMEOUT_S))
        client.wait_for_workers(1, timeout=WORKERS_TIMEOUT_S)
    except (OSError, distributed.TimeoutError) as error:
        raise SetupError(f"--cluster {text}: {error or 'no worker came'}") from None
    return client


def _slurm(text: str, jobs: int, opened: ExitStack) -> Any:
    """A scheduler in this process, with the given number of SLURM jobs as workers."""
    with naming_extra():
        import dask_jobqueue
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
