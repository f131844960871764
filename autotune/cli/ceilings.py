"""Measures the ceilings of a device, and makes their table."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.latency_lesson import lesson
from autotune.cli.output import emit
from autotune.cli.tables import Table, table
from autotune.core.records import Config
from autotune.core.text import per_second
from autotune.serving.ceilings import BYTES, OPERATIONS, Ceiling, known_ceilings


def measure(parsed: argparse.Namespace) -> None:
    """Measure, keep and print the figures; older figures stay unless they are measured again."""
    from autotune.cli.progress import SearchProgress
    from autotune.devices.listing import find_device
    from autotune.diagnosis.ceilings import keep_ceilings, measure_ceilings
    from autotune.serving.cache import writable_root

    address, device = find_device(parsed.device)
    root = Path(writable_root(parsed.cache))
    only = (parsed.only or "").lower()
    with SearchProgress() as progress:
        found = list(
            measure_ceilings(address, device, progress.stage, lambda probe: only in probe.name.lower())
        )
    path = keep_ceilings(root, device, found)
    if parsed.json:
        emit([asdict(one) for one in found])
    else:
        emit(ceilings_table(found), f"kept    {path}")


def teach(parsed: argparse.Namespace) -> None:
    """Print a page of Little's law and occupancy for a device, from the figures that are kept."""
    from autotune.devices.listing import find_device

    opt.require_unset(parsed, "--lesson is a page of all figures", "json", "only")
    _, device = find_device(parsed.device)
    emit(*lesson(device, known_ceilings(device.slug, parsed.cache)))


def ceilings_table(ceilings: Sequence[Ceiling]) -> Table:
    """Make a table of figures, with the driver's own figure if there is one."""
    rows = [
        (
            one.name,
            _text(one),
            f"{one.value / one.nominal:.0%}" if one.nominal else "",
            str(Config(one.config)),
        )
        for one in ceilings
    ]
    return table(("ceiling", "measured", "of nominal", "with"), rows)


def _text(one: Ceiling) -> str:
    if one.unit == BYTES:
        return per_second(one.value, "B/s")
    if one.unit == OPERATIONS:
        return per_second(one.value, "/s")
    return f"{one.value * 1e9:.4g} ns" if one.value < 1e-5 else f"{one.value * 1e6:.4g} us"
