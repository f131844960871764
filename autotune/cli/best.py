"""Show what the cache serves for a kernel on a device, as best_config does."""

from __future__ import annotations

import argparse
import warnings
from dataclasses import asdict
from typing import Any

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.cli.sizes import parse_sizes
from autotune.core.escapes import terminal_text
from autotune.core.packaged import packaged_folder
from autotune.core.records import Tier
from autotune.serving.best import Best

EXAMPLE = "autotune best reduce --size n=1000000"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("kernel", type=opt.kernel, help="name of the kernel, its space file or a journal")
    parser.add_argument(
        "-d",
        "--device",
        help="opencl:0, a name or a slug, even of a device without results (default: as for search)",
    )
    opt.add_problem(parser)
    opt.add_data(parser)
    parser.add_argument(
        "--strict", action="store_true", help="accept only this device and exactly these sizes"
    )
    parser.add_argument(
        "--min-match",
        metavar="TIER",
        choices=[tier.value for tier in Tier],
        default=Tier.DEFAULT.value,
        help="the loosest match to accept, such as same_vendor (without it: any)",
    )
    parser.add_argument(
        "--flags",
        action="store_true",
        help="print only compiler options, for nvcc or make, with the folder of portable.h",
    )
    opt.add_cache(parser, "where to look for results")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    from autotune.devices.listing import resolve_device
    from autotune.serving.lookup import best_config

    sizes = parse_sizes(parsed.size)
    device = resolve_device(parsed.device, parsed.cache)
    best = best_config(
        parsed.kernel,
        device,
        dtype=parsed.dtype,
        strict=parsed.strict,
        min_match=Tier(parsed.min_match),
        on_miss=None,
        cache=parsed.cache,
        data=parsed.data,
        **sizes,
    )
    if parsed.flags:
        if not best.match.tier.reaches(Tier.NEAREST_SIZE):
            found_text = f"{best.match.tier.value}: {best.match.detail}"
            warnings.warn(f"{found_text}; to refuse it, add --min-match nearest_size", stacklevel=1)
        flags = (f"-I{packaged_folder('kernels')}", *best.flags)
        print(terminal_text(" ".join(flags)))  # in one line, to be copied
    else:
        emit(best_json(best) if parsed.json else best_text(best))


def best_json(best: Best) -> dict[str, Any]:
    return {
        "config": dict(best),
        "defines": best.defines,
        "match": asdict(best.match) | {"tier": best.match.tier.value},
        "digest": best.digest,
        "time_ms": best.time_ms,
        "expected_slowdown": best.expected_slowdown,
        "slowdown_at_most": best.slowdown_at_most,
        "stale": best.stale_reasons,
    }


def best_text(best: Best) -> str:
    """The configuration, how well it fits, and what is stale."""
    match = best.match
    where = "" if match.tier is Tier.EXACT else " there"
    time_text = f"{best.time_ms:.4g} ms{where}" if best.time_ms is not None else "not timed"
    lines = [str(best.config), f"{match.tier.value}: {match.detail} ({time_text})"]
    if best.expected_slowdown is None:
        lines.append("expected slowdown: unknown; `autotune search` for this device and size finds the best")
    elif best.match.tier is not Tier.EXACT:
        most = best.slowdown_at_most
        bound = (
            f"at most {most:.3g} in nine of ten cases" if most else "no bound is known from so few results"
        )
        lines.append(f"expected slowdown: {best.expected_slowdown:.3g} times; {bound}")
    lines += [f"stale: {reason}" for reason in best.stale_reasons]
    return "\n".join(lines)
