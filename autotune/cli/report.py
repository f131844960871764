"""Write a report: one HTML file with charts, filters and a table of all trials, which needs no network."""

from __future__ import annotations

import argparse
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit

EXAMPLE = "autotune report runs/FILE.jsonl -o report.html"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `autotune report`."""
    parser.add_argument(
        "names",
        metavar="JOURNAL|KERNEL",
        nargs="+",
        help="files with recorded results, such as a journal, or kernels of the cache; several are compared",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        default=Path("report.html"),
        help="where to write it (default %(default)s)",
    )
    parser.add_argument(
        "--space",
        metavar="FILE",
        type=Path,
        help="the kernel's space file: for ladder, occupancy and rates (default: a packaged one of it)",
    )
    opt.add_cache(parser, "where results of other devices are looked up")


def run(parsed: argparse.Namespace) -> None:
    """Write the report and print how many trials it shows.

    Raises InputError if the file to write exists and is not a report.
    """
    from autotune.errors import InputError
    from autotune.interop.files import write_text
    from autotune.report.gather import gather
    from autotune.report.page import is_report, report_html

    is_replaced = parsed.output.is_file()
    if is_replaced and not is_report(parsed.output):
        raise InputError(f"{parsed.output}: exists and is not a report; choose another file with -o")
    gathered = gather(parsed.names, parsed.cache, parsed.space)
    html = report_html(gathered)
    write_text(parsed.output, html)
    trials = sum(len(search.trials) for search in gathered.searches)
    verb = "replaced" if is_replaced else "wrote"
    shown = f"{trials:,} trial{'s'[: trials != 1]}"
    emit(f"{verb} {parsed.output}: {shown} ({len(html) / 1e6:.1f} MB)")
