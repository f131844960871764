"""Check this machine for tuning: devices, compilers, tools, clocks and folders, each with what to do."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.cli.tables import table
from autotune.core.launch_plan import DIALECTS, PYTHON
from autotune.core.runs_folder import RUNS
from autotune.devices import BACKENDS
from autotune.errors import SetupError

EXAMPLE = "autotune doctor"


def add_options(parser: argparse.ArgumentParser) -> None:
    opt.add_cache(parser, "the cache to check")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Print all findings; fails if one of them keeps searches from running."""
    from autotune.analysis.health import Severity, examine
    from autotune.devices.listing import find_devices

    devices = find_devices()
    findings = examine(devices, parsed.cache, RUNS)
    if parsed.json:
        emit([asdict(finding) | {"state": finding.state.value} for finding in findings])
    else:
        rows = [(item.state.value, item.subject, item.detail, item.advice) for item in findings]
        emit(table(("", "what", "found", "to do"), rows))
    problems = [finding.subject for finding in findings if finding.state is Severity.PROBLEM]
    if problems:
        raise SetupError(f"problems with {', '.join(dict.fromkeys(problems))}")
    if not parsed.json:
        works = {finding.subject for finding in findings if finding.state is Severity.GOOD}
        taken = {
            dialect
            for address, _ in devices
            if str(address) in works
            for dialect in BACKENDS[address.backend].accepts
        }
        can, cannot = (
            [dialect for dialect in DIALECTS if dialect != PYTHON and (dialect in taken) is is_taken]
            for is_taken in (True, False)
        )
        emit(f"this machine can tune kernels in {' and '.join(can)}")
        if cannot:
            those = " and ".join(cannot)
            emit(
                f"no device here takes kernels in {those}: `autotune space SPACE --run` runs them on the CPU"
            )
