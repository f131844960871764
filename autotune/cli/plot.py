"""Draw one figure of a search, or of several, for a paper or a page."""

from __future__ import annotations

import argparse
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit

EXAMPLE = "autotune plot progress runs/FILE.jsonl -o progress.svg"
_KINDS = ("progress", "ladder", "roofline", "heat-map", "importance", "sweep")


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kind", choices=_KINDS, help="what to draw")
    parser.add_argument(
        "sources",
        metavar="JOURNAL|KERNEL",
        nargs="+",
        help="recorded results such as a journal, or a kernel of the cache; for ladder also what "
        "`autotune ladder --json` printed",
    )
    opt.add_output(parser, "where to write it: .svg, .png or .pdf", kind=opt.figure_file)
    parser.add_argument("--title", help="the title (default: kernel, problem and device)")
    parser.add_argument("--device", metavar="NAME", help="show this device's results only")
    opt.add_sizes(parser, "show results at this problem size only; repeat for further sizes")
    parser.add_argument("--x", metavar="PARAMETER", help="the columns of a heat map")
    parser.add_argument("--y", metavar="PARAMETER", help="the rows of a heat map")
    parser.add_argument(
        "--space", metavar="FILE", type=Path, help="the kernel's space file, for ladder and rates"
    )
    opt.add_cache(parser, "where to look for results")


def run(parsed: argparse.Namespace) -> None:
    """Draw the figure and write it."""
    from autotune.report.figures import save
    from autotune.report.plots import Plot, draw

    plot = Plot(
        sources=parsed.sources,
        cache=parsed.cache,
        space=parsed.space,
        title=parsed.title,
        x=parsed.x,
        y=parsed.y,
        device=parsed.device,
        sizes=opt.sizes(parsed),
    )
    save(draw(parsed.kind, plot), parsed.output)
    emit(f"{parsed.kind} in {parsed.output}")
