"""Compare what was tuned on several devices: times, parameters that flip, and how far results carry over."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit

EXAMPLE = "autotune compare reduce --plot reduce.svg"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("kernel", help="name of the kernel, as in its space file")
    opt.add_problem(parser)
    opt.add_cache(parser, "the cache to look in")
    parser.add_argument(
        "--imported",
        metavar="FILE",
        type=Path,
        nargs="+",
        default=[],
        help="compare with what others measured, too: T4 results, Kernel Tuner caches, journals of `import`",
    )
    parser.add_argument("--markdown", action="store_true", help="print tables in Markdown")
    opt.add_plot(parser, "write who is how fast with whose best as a heat map, too")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Run the command."""
    from autotune.compare import compare, left_out, problem_of, select
    from autotune.errors import NoConfig
    from autotune.holdings import holders
    from autotune.imported import imported
    from autotune.interop.files import write_text
    from autotune.report.compare import comparison_json, comparison_markdown, print_comparison
    from autotune.report.heat_map import heat_map

    sizes = opt.sizes(parsed)
    try:
        found = holders(parsed.kernel, parsed.cache)
    except NoConfig:
        if not parsed.imported:
            raise
        found = []
    # What a file leaves open is taken to be as the cache's results are: only so can it stand beside them.
    likely = problem_of(found, sizes, parsed.dtype) or problem_of(found, {}, parsed.dtype)
    dtype, named_sizes = likely or (parsed.dtype, ())
    found += imported(parsed.kernel, parsed.imported, sizes or dict(named_sizes), dtype)
    selected = select(found, sizes, parsed.dtype)
    comparison = compare(parsed.kernel, selected)
    if parsed.plot is not None:
        write_text(parsed.plot, heat_map(comparison.matrix))
    if parsed.json:
        emit(comparison_json(comparison))
    elif parsed.markdown:
        emit(comparison_markdown(comparison))
    else:
        print_comparison(comparison)
    if others := left_out(found, selected):
        listed = ", ".join(f"{folder} ({problems})" for folder, problems in others.items())
        print(f"not compared, of another problem: {listed}", file=sys.stderr)
