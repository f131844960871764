"""List the devices that --device accepts."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.cli.tables import Table, table
from autotune.core.records import DeviceInfo

EXAMPLE = "autotune devices"


def add_options(parser: argparse.ArgumentParser) -> None:
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """List the devices of this machine."""
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
