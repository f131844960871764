"""Devices as a table."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from autotune.model import DeviceInfo
from autotune.report.tables import table


def devices_table(devices: Sequence[tuple[str, DeviceInfo]]) -> Table:
    """What `--device` accepts, and what each device is."""
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
