"""List the devices that --device accepts."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from autotune.cli import options as opt
from autotune.cli.output import emit

EXAMPLE = "autotune devices"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Run the command."""
    from autotune.report.devices import devices_table
    from autotune.report.tables import console
    from autotune.targets import find_devices

    found = [(str(address), info) for address, info in find_devices()]
    if parsed.json:
        emit([{"device": address, **asdict(info)} for address, info in found])
    else:
        console().print(devices_table(found))
