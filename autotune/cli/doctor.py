"""Check this machine for tuning: devices, compilers, tools, clocks and folders, each with what to do."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.cli.tables import table
from autotune.core.runs_folder import RUNS
from autotune.errors import SetupError

EXAMPLE = "autotune doctor"


def add_options(parser: argparse.ArgumentParser) -> None:
    opt.add_cache(parser, "the cache to check")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Print all findings; fails if one of them keeps searches from running."""
    from autotune.analysis.health import Severity, examine
    from autotune.devices.listing import find_devices

    findings = examine(find_devices(), parsed.cache, RUNS)
    if parsed.json:
        emit([asdict(finding) | {"state": finding.state.value} for finding in findings])
    else:
        rows = [(item.state.value, item.subject, item.detail, item.advice) for item in findings]
        emit(table(("", "what", "found", "to do"), rows))
    problems = [finding.subject for finding in findings if finding.state is Severity.PROBLEM]
    if problems:
        raise SetupError(f"problems with {', '.join(dict.fromkeys(problems))}")
    if not parsed.json:
        emit("nothing keeps searches from running here")
