"""Show searches in one HTML file, which needs no network, with charts, filters and a table of all trials.

With --figure, draw one figure for a paper or a page. With --live, serve the journals and caches of a folder
to browsers on this machine until Ctrl-C, also while a search runs; the pages cannot change anything.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import suppress
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.cli.sizes import parse_sizes
from autotune.core.text import count_text
from autotune.errors import InputError
from autotune.report.figures import save

EXAMPLE = "autotune report runs/FILE.jsonl -o report.html"
FIGURES = ("progress", "ladder", "roofline", "heat-map")
_PORT = 8321


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "names",
        metavar="JOURNAL|KERNEL",
        nargs="*",
        type=opt.results,
        help="files with recorded results, such as a journal, or kernels, for their newest journal in runs/ "
        "and their results in the cache; several are compared",
    )
    opt.add_output(parser, "where to write it (default: report.html; for a figure, KIND.svg)")
    parser.add_argument(
        "--space",
        metavar="FILE",
        type=Path,
        help="the kernel's space file, for ladder, occupancy and rates (default: the packaged one, if any)",
    )
    parser.add_argument(
        "--timeline",
        metavar="FILE",
        type=Path,
        help="draw what every process did, from a file that `autotune search --timeline` wrote",
    )
    opt.add_cache(parser, "where to look for results of other devices")
    _add_figure(parser.add_argument_group("with --figure"))
    _add_live(parser.add_argument_group("with --live"))


def _add_figure(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--figure",
        metavar="KIND",
        choices=FIGURES,
        help=f"draw one figure as .svg, .png or .pdf: {', '.join(FIGURES[:-1])} or {FIGURES[-1]}; ladder "
        "also reads what `autotune run --landmarks --json` printed",
    )
    group.add_argument("--title", help="the title (default: kernel, problem and device)")
    group.add_argument("--device", metavar="NAME", help="show only this device's results")
    opt.add_sizes(group, "show only results at this problem size; repeat for further sizes")
    group.add_argument("--x", metavar="PARAMETER", help="the columns of a heat map")
    group.add_argument("--y", metavar="PARAMETER", help="the rows of a heat map")


def _add_live(group: argparse._ArgumentGroup) -> None:
    group.add_argument(
        "--live",
        action="store_true",
        help="serve the pages of a folder (default: the current one) and of its subfolders",
    )
    group.add_argument(
        "--port",
        metavar="N",
        type=opt.at_least(0),
        default=_PORT,
        help="port to listen on; 0 takes any free port (default %(default)s)",
    )


def run(parsed: argparse.Namespace) -> None:
    if parsed.live:
        opt.require_unset(parsed, "--live serves pages", "output", "space", "cache", "figure", "timeline")
        _show_live(parsed)
        return
    if not parsed.figure:
        opt.require_unset(parsed, "only --figure takes these", "title", "device", "size", "x", "y")
    if not parsed.names:
        raise InputError(f"name a journal or a kernel; for example: {EXAMPLE}")
    if parsed.figure:
        opt.require_unset(parsed, "no --figure shows a timeline", "timeline")
        _draw_figure(parsed)
    else:
        _write_page(parsed)


def _write_page(parsed: argparse.Namespace) -> None:
    from autotune.report.gather import gather
    from autotune.report.page import write_page
    from autotune.report.search_page import report_html

    gathered = gather(parsed.names, parsed.cache, parsed.space)
    html = report_html(gathered, parsed.timeline)
    done = write_page(parsed.output or Path("report.html"), html)
    trials = sum(len(search.trials) for search in gathered.searches)
    emit(f"{done}: {count_text(trials, 'trial')} ({len(html) / 1e6:.1f} MB)")


def _draw_figure(parsed: argparse.Namespace) -> None:
    from autotune.report.plots import KINDS, Plot

    if parsed.figure != "heat-map":
        opt.require_unset(parsed, "--x and --y are for --figure heat-map", "x", "y")
    plot = Plot(
        sources=parsed.names,
        cache=parsed.cache,
        space=parsed.space,
        title=parsed.title,
        x=parsed.x,
        y=parsed.y,
        device=parsed.device,
        sizes=parse_sizes(parsed.size),
    )
    path = opt.figure_file(str(parsed.output or f"{parsed.figure}.svg"))
    save(KINDS[parsed.figure](plot), path)
    emit(f"wrote {path}: {parsed.figure}")


def _show_live(parsed: argparse.Namespace) -> None:
    """Serve the pages of a folder until Ctrl-C; raises InputError for more than one."""
    from autotune.report.folder import ExploredFolder
    from autotune.report.server import ExploreServer

    if len(parsed.names) > 1:
        raise InputError("--live shows one folder, with the folders in it; name one")
    folder = ExploredFolder(Path(*parsed.names))
    with ExploreServer(folder, parsed.port) as server, suppress(KeyboardInterrupt):
        count = len(folder.sources())
        emit(f"{server.url} shows {count:,} searches and kernels of {folder.root}; Ctrl-C ends it")
        sys.stdout.flush()
        server.serve_forever()
