"""Draws one figure of a search, or of several, for a paper or a page."""

from __future__ import annotations

import argparse

from autotune.cli import options as opt
from autotune.cli.output import emit

KINDS = ("progress", "ladder", "roofline", "heat-map", "importance", "sweep")


def add_figure(parser: argparse.ArgumentParser) -> None:
    """Add the options of a figure."""
    group = parser.add_argument_group("with --figure")
    group.add_argument(
        "--figure",
        metavar="KIND",
        choices=KINDS,
        help=f"draw one figure as .svg, .png or .pdf: {', '.join(KINDS[:-1])} or {KINDS[-1]}; ladder also "
        "takes what `autotune run --landmarks --json` printed",
    )
    group.add_argument("--title", help="the title (default: kernel, problem and device)")
    group.add_argument("--device", metavar="NAME", help="show this device's results only")
    opt.add_sizes(group, "show results at this problem size only; repeat for further sizes")
    group.add_argument("--x", metavar="PARAMETER", help="the columns of a heat map")
    group.add_argument("--y", metavar="PARAMETER", help="the rows of a heat map")


def draw_figure(parsed: argparse.Namespace) -> None:
    """Draw the figure and write it."""
    from autotune.report.figures import save
    from autotune.report.plots import Plot, draw

    if parsed.figure != "heat-map":
        opt.require_unset(parsed, "--x and --y belong to heat-map", "x", "y")
    plot = Plot(
        sources=parsed.names,
        cache=parsed.cache,
        space=parsed.space,
        title=parsed.title,
        x=parsed.x,
        y=parsed.y,
        device=parsed.device,
        sizes=opt.sizes(parsed),
    )
    path = opt.figure_file(str(parsed.output or f"{parsed.figure}.svg"))
    save(draw(parsed.figure, plot), path)
    emit(f"wrote {path}: {parsed.figure}")
