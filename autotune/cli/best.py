"""Show what the cache serves for a kernel on a device, as best_config does."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from autotune.cli import options as opt
from autotune.cli.output import emit

EXAMPLE = "autotune best reduce --size n=1000000"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("kernel", help="name of the kernel, as in its space file")
    parser.add_argument(
        "--device",
        help="opencl:0, a name or a slug (default: as `search`)",
    )
    opt.add_problem(parser)
    parser.add_argument(
        "--strict", action="store_true", help="accept only this device and exactly these sizes"
    )
    opt.add_cache(parser, "the cache to look in")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Run the command."""
    from autotune.loader import best_config
    from autotune.targets import resolve_device

    sizes = opt.sizes(parsed)
    device = resolve_device(parsed.device, parsed.cache)
    found = best_config(
        parsed.kernel, device, dtype=parsed.dtype, strict=parsed.strict, cache=parsed.cache, **sizes
    )
    if parsed.json:
        match = asdict(found.match) | {"tier": found.match.tier.value}
        emit(
            {
                "config": dict(found),
                "defines": found.defines,
                "match": match,
                "time_ms": found.time_ms,
                "stale": found.stale_reasons,
            }
        )
        return
    time_text = f"{found.time_ms:.4g} ms" if found.time_ms is not None else "not timed"
    how = f"{found.match.tier.value}: {found.match.detail} ({time_text})"
    lines = [str(found.config), how, *(f"stale: {reason}" for reason in found.stale_reasons)]
    emit("\n".join([*lines, " ".join(found.flags)]))
