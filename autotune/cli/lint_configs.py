"""Check files of configurations that vLLM and SGLang read: no GPU and no framework is needed."""

from __future__ import annotations

import argparse
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.errors import AutotuneError
from autotune.frameworks import FORMATS
from autotune.frameworks.lint import Kind, files_of, lint, summary

EXAMPLE = "autotune lint-configs 'E=8,N=4096,device_name=NVIDIA_H200.json'"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("paths", metavar="FILE|DIR", nargs="+", type=Path, help="files, or folders of files")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        metavar="FORMAT",
        help=f"the format of all files: {', '.join(FORMATS)} (default: by each file's name and folder)",
    )
    parser.add_argument("--kind", choices=[*Kind], action="append", help="findings to list (default: all)")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """List findings; the exit code is 1 if a file is broken."""
    files = [file for path in parsed.paths for file in files_of(path)]
    findings = [*lint(files, FORMATS.get(parsed.format))]
    shown = [finding for finding in findings if finding.kind in (parsed.kind or Kind)]
    rows = [(str(finding.path), finding.kind.value, finding.text) for finding in shown]
    if parsed.json:
        emit([dict(zip(("file", "kind", "finding"), row, strict=True)) for row in rows])
    else:
        emit(*map(": ".join, rows), summary(len(files), findings))
    broken = {finding.path for finding in findings if finding.kind is Kind.BROKEN}
    if broken:
        raise AutotuneError(f"{len(broken)} of {len(files)} files are broken")
