"""Describe a space on a device: sizes, what each constraint removes, and what looks like a mistake."""

from __future__ import annotations

import argparse

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.errors import InputError
from autotune.model import Config, Value
from autotune.space import SpaceSpec
from autotune.suggestions import hint

EXAMPLE = "autotune space spaces/reduce.yaml --config BLOCK_SIZE=96,UNROLL=4"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    opt.add_target(parser)
    parser.add_argument(
        "--config",
        metavar="A=1,B=x",
        help="say whether this configuration is valid, and why not; the rest is the default's",
    )
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Run the command."""
    from autotune.report.space import print_space, space_json
    from autotune.space import constraint_report, lint
    from autotune.targets import bind_target

    bound = bind_target(opt.target(parsed))
    if parsed.config is not None:
        config = _config(parsed.config, bound.spec)
        reasons = bound.space.why_invalid(config)
        if parsed.json:
            emit({"config": dict(config), "valid": not reasons, "reasons": reasons})
        else:
            emit("\n".join(reasons) if reasons else f"valid: {config}")
        return
    constraints = constraint_report(bound.space)
    findings = lint(bound.space, bound.source.text, constraints)
    if parsed.json:
        emit(space_json(bound.space, constraints, findings))
    else:
        print_space(bound.space, bound.device, constraints, findings)


def _config(text: str, spec: SpaceSpec) -> Config:
    """`BLOCK_SIZE=96,UNROLL=4` over the space's default; values are read as the space writes them."""
    values: dict[str, Value] = dict(spec.default)
    written = {item.name: {str(value).lower(): value for value in item.values} for item in spec.parameters}
    for part in filter(None, text.replace(",", " ").split()):
        name, separator, value = part.partition("=")
        if not separator:
            raise InputError(f"--config {part}: expected NAME=VALUE, such as BLOCK_SIZE=128")
        if name not in values:
            raise InputError(f"--config {part}: unknown parameter{hint(name, values)}")
        values[name] = written.get(name, {}).get(value.lower(), value)
    return Config(values)
