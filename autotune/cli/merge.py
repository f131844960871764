"""Unite caches and journals of several machines: nothing is lost, and no order matters."""

from __future__ import annotations

import argparse
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit

EXAMPLE = "autotune merge node1/cache node2/cache --into cache"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "folders",
        metavar="DIR",
        nargs="+",
        type=Path,
        help="a cache, a folder of journals, or one with both inside; left as it is",
    )
    parser.add_argument(
        "--into",
        metavar="DIR",
        type=Path,
        required=True,
        help="where the united files go, together with what is there already",
    )
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Run the command."""
    from autotune.merge_files import merge_folders
    from autotune.report.merge import merged_json, merged_text

    merged = merge_folders(parsed.folders, parsed.into)
    emit(merged_json(merged) if parsed.json else merged_text(merged))
