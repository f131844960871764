"""List the devices that --device accepts.

With --measure, measure what a device can reach: bandwidth, arithmetic, atomics and latency. The figures are
kept in the cache with the device's results; reports draw them as ceilings. With --lesson, work out from them
what has to be in flight to hide latencies, and which registers limit what is resident.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from autotune.cli import options as opt
from autotune.cli.ceilings import measure, teach
from autotune.cli.output import emit
from autotune.cli.tables import Table, table
from autotune.core.records import DeviceInfo

EXAMPLE = "autotune devices"


def add_options(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--measure", action="store_true", help="measure what a device can reach")
    what.add_argument("--lesson", action="store_true", help="work Little's law and occupancy, as a page")
    opt.add_device(parser)
    parser.add_argument("--only", metavar="WORD", help="measure only figures with this word in their name")
    opt.add_cache(parser, "where the figures are kept")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """List the devices of this machine, or measure one."""
    if parsed.measure:
        measure(parsed)
    elif parsed.lesson:
        teach(parsed)
    else:
        why = "without --measure and --lesson, all devices are listed"
        opt.require_unset(parsed, why, "device", "only", "cache")
        _list(parsed)


def _list(parsed: argparse.Namespace) -> None:
    from autotune.devices.listing import find_devices

    found = [(str(address), info) for address, info in find_devices()]
    if parsed.json:
        emit([{"device": address, **asdict(info)} for address, info in found])
    else:
        emit(devices_table(found))


def devices_table(devices: Sequence[tuple[str, DeviceInfo]]) -> Table:
    """Make a table of the names that `--device` accepts, with each device's description."""
    rows = [
        (
            address,
            info.name,
            info.kind,
            str(info.compute_units),
            f"{info.memory_bytes / 2**30:.1f}",
            info.runtime,
        )
        for address, info in devices
    ]
    return table(("device", "name", "kind", "units", "GiB", "runtime"), rows)
