"""Write a report: one HTML file with charts, filters and a table of all trials, which needs no network."""

from __future__ import annotations

import argparse
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.core.text import count_text

EXAMPLE = "autotune report runs/FILE.jsonl -o report.html"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names",
        metavar="JOURNAL|KERNEL",
        nargs="+",
        help="files with recorded results, such as a journal, or kernels: their newest journal in runs/ "
        "and their results in the cache; several are compared",
    )
    opt.add_output(parser, "where to write it (default %(default)s)", default=Path("report.html"))
    parser.add_argument(
        "--space",
        metavar="FILE",
        type=Path,
        help="the kernel's space file: for ladder, occupancy and rates (default: a packaged one of it)",
    )
    opt.add_cache(parser, "where to look for results of other devices")


def run(parsed: argparse.Namespace) -> None:
    """Write the report and print how many trials it shows."""
    from autotune.report.gather import gather
    from autotune.report.page import write_page
    from autotune.report.search_page import report_html

    gathered = gather(parsed.names, parsed.cache, parsed.space)
    html = report_html(gathered)
    done = write_page(parsed.output, html)
    trials = sum(len(search.trials) for search in gathered.searches)
    emit(f"{done}: {count_text(trials, 'trial')} ({len(html) / 1e6:.1f} MB)")
