"""Opens what several devices are searched with: a Dask cluster, started here or running already."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from autotune.devices import Address, choose
from autotune.errors import InputError, MissingExtra
from autotune.evaluation.instance import environment
from autotune.tuning.task import find_devices

try:
    import distributed
except ImportError:
    raise MissingExtra("distributed", "cluster") from None

ALL = "all"


@dataclass(frozen=True)
class Cluster:
    """A connected cluster.

    Attributes:
        client: Dask's client.
        list_addresses: Lists the devices that workers of a machine may claim.
    """

    client: distributed.Client
    list_addresses: Callable[[], Sequence[Address]]


def local_devices(text: str) -> tuple[Address, ...]:
    """The devices that `--devices` names; raises InputError unless all of them are of one model.

    `all` stands for all devices that are like the first GPU.
    """
    found = find_devices()
    if text == ALL:
        first, info = choose(None, found)
        return tuple(
            address
            for address, other in found
            if address.backend == first.backend and environment(other, "") == environment(info, "")
        )
    chosen = dict(choose(name, found) for name in text.split(","))
    (first, info), *others = chosen.items()
    for address, other in others:
        expected, own = environment(info, ""), environment(other, "")
        differing = [f"{key} {own[key]}, not {expected[key]}" for key in own if own[key] != expected[key]]
        if differing:
            raise InputError(f"--devices {text}: {address} is not like {first}: {'; '.join(differing)}")
    return tuple(chosen)


@contextmanager
def open_devices(addresses: Sequence[Address]) -> Iterator[Cluster]:
    """Start a scheduler and a Dask worker for each device in this process."""
    _be_quiet()
    with (
        distributed.LocalCluster(
            n_workers=len(addresses),
            threads_per_worker=1,
            processes=False,
            dashboard_address=None,
            silence_logs=logging.CRITICAL,
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield Cluster(client, partial(tuple[Address, ...], addresses))


def _be_quiet() -> None:
    """Dask reports lost workers in its log; a search reports them itself."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
