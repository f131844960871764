"""List the devices that --device accepts.

With --measure, measure what a device can reach: bandwidth, arithmetic, atomics and latency. The figures are
kept in the cache with the device's results; reports draw them as ceilings. With --lesson, work out from these
figures how much must be in flight to hide latency, and how registers limit occupancy.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.latency_lesson import lesson
from autotune.cli.output import emit
from autotune.cli.tables import Table, table
from autotune.core.records import Config, DeviceInfo
from autotune.core.text import per_second
from autotune.devices import CPU_ADVICE
from autotune.serving.cache import writable_root
from autotune.serving.ceilings import BYTES, OPERATIONS, Ceiling, known_ceilings

EXAMPLE = "autotune devices"


def add_options(parser: argparse.ArgumentParser) -> None:
    mode = parser.add_mutually_exclusive_group()
    mode.add_argument("--measure", action="store_true", help="measure what a device can reach")
    mode.add_argument("--lesson", action="store_true", help="print a page on Little's law and occupancy")
    opt.add_device(parser)
    parser.add_argument("--only", metavar="WORD", help="measure only figures with this word in their name")
    opt.add_cache(parser, "where the figures are kept")
    opt.add_verbosity(parser)
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    if parsed.measure:
        _measure(parsed)
    elif parsed.lesson:
        _teach(parsed)
    else:
        why = "without --measure and --lesson, all devices are listed"
        opt.require_unset(parsed, why, "device", "only", "cache")
        _list(parsed)


def _list(parsed: argparse.Namespace) -> None:
    from autotune.devices.listing import find_devices

    devices = [(str(address), info) for address, info in find_devices()]
    shown = devices_table(devices) if devices else f"no device found; for one, {CPU_ADVICE}"
    emit([{"device": address, **asdict(info)} for address, info in devices] if parsed.json else shown)


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


def _measure(parsed: argparse.Namespace) -> None:
    """Measure, keep and print the figures; older figures stay unless they are measured again."""
    from autotune.devices.listing import find_device
    from autotune.diagnosis.ceilings import keep_ceilings, measure_ceilings

    address, device = find_device(parsed.device)
    root = Path(writable_root(parsed.cache))
    only = (parsed.only or "").lower()
    with opt.progress(parsed) as progress:
        ceilings = list(
            measure_ceilings(address, device, progress.stage, lambda probe: only in probe.name.lower())
        )
    path = keep_ceilings(root, device, ceilings)
    shown = (ceilings_table(ceilings), f"kept    {path}")
    emit([asdict(ceiling) for ceiling in ceilings] if parsed.json else shown)


def _teach(parsed: argparse.Namespace) -> None:
    """Print a page of Little's law and occupancy for a device, from the figures that are kept."""
    from autotune.devices.listing import find_device

    opt.require_unset(parsed, "--lesson prints a page of all figures", "json", "only")
    _, device = find_device(parsed.device)
    emit(*lesson(device, known_ceilings(device.slug, parsed.cache)))


def ceilings_table(ceilings: Sequence[Ceiling]) -> Table:
    """Make a table of figures, with the driver's own figure if there is one."""
    rows = [
        (
            ceiling.name,
            _ceiling_text(ceiling),
            f"{ceiling.value / ceiling.nominal:.0%}" if ceiling.nominal else "",
            str(Config(ceiling.config)),
        )
        for ceiling in ceilings
    ]
    return table(("ceiling", "measured", "of nominal", "with"), rows)


def _ceiling_text(ceiling: Ceiling) -> str:
    if ceiling.unit == BYTES:
        return per_second(ceiling.value, "B/s")
    if ceiling.unit == OPERATIONS:
        return per_second(ceiling.value, "/s")
    return f"{ceiling.value * 1e9:.4g} ns" if ceiling.value < 1e-5 else f"{ceiling.value * 1e6:.4g} us"
