"""Show searches: write one HTML file with charts, filters and a table of all trials, which needs no network.

With --figure, draw one figure for a paper or a page. With --live, show the journals and caches of a folder in
a browser, also while a search runs, until Ctrl-C; the pages are served to this machine only, and cannot
change anything.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.figure import add_figure, draw_figure
from autotune.cli.live import add_live, show_live
from autotune.cli.output import emit
from autotune.core.text import count_text
from autotune.errors import InputError

EXAMPLE = "autotune report runs/FILE.jsonl -o report.html"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names",
        metavar="JOURNAL|KERNEL",
        nargs="*",
        type=opt.results,
        help="files with recorded results, such as a journal, or kernels: their newest journal in runs/ "
        "and their results in the cache; several are compared",
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=Path,
        help="where to write it (default: report.html; for a figure, its kind and .svg)",
    )
    parser.add_argument(
        "--space",
        metavar="FILE",
        type=Path,
        help="the kernel's space file: for ladder, occupancy and rates (default: a packaged one of it)",
    )
    opt.add_cache(parser, "where to look for results of other devices")
    add_figure(parser)
    add_live(parser)


def run(parsed: argparse.Namespace) -> None:
    """Write the page or the figure, or serve the folder."""
    if parsed.live:
        opt.require_unset(parsed, "--live serves pages", "output", "space", "cache", "figure")
        show_live(parsed)
        return
    if not parsed.figure:
        opt.require_unset(parsed, "a page shows all", "title", "device", "size", "x", "y")
    if not parsed.names:
        raise InputError(f"name a journal or a kernel; for example: {EXAMPLE}")
    if parsed.figure:
        draw_figure(parsed)
    else:
        _write_page(parsed)


def _write_page(parsed: argparse.Namespace) -> None:
    """Write the report and print how many trials it shows."""
    from autotune.report.gather import gather
    from autotune.report.page import write_page
    from autotune.report.search_page import report_html

    gathered = gather(parsed.names, parsed.cache, parsed.space)
    html = report_html(gathered)
    done = write_page(parsed.output or Path("report.html"), html)
    trials = sum(len(search.trials) for search in gathered.searches)
    emit(f"{done}: {count_text(trials, 'trial')} ({len(html) / 1e6:.1f} MB)")
