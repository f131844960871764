"""The command line: parse, call one function of a lower layer, print. One short function per verb.

Exit codes: 0 done, 1 something failed, 2 the input was wrong (nothing was written then), 130 interrupted.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import warnings
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Any, NoReturn

from autotune import __version__
from autotune import options as opt
from autotune.errors import AutotuneError, InputError, NoConfig
from autotune.trials import Budget

Verb = Callable[[argparse.Namespace], None]


class _Parser(argparse.ArgumentParser):
    """Reports wrong usage in one line, like every other wrong input; options are written in full."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings, allow_abbrev=False)

    def error(self, message: str) -> NoReturn:
        raise InputError(f"{message} (see `{self.prog} --help`)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    warnings.showwarning = _show_warning
    signal.signal(signal.SIGTERM, _terminate)
    try:
        parsed = _parser().parse_args(arguments)
        parsed.verb(parsed)
        sys.stdout.flush()
    except InputError as error:
        return _fail(error, 2)
    except AutotuneError as error:
        return _fail(error, 1)
    except KeyboardInterrupt:
        print("autotune: interrupted; the same command resumes", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader of our output, `head` say, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def search(parsed: argparse.Namespace) -> None:
    """Tune a kernel: search its space, verify and time, keep the best in the cache."""
    from autotune import report
    from autotune.progress import SearchProgress
    from autotune.rig import Options
    from autotune.session import search
    from autotune.targets import bind_target

    options = Options(
        engine=parsed.engine,
        strategy=parsed.strategy,
        budget=opt.budget(parsed),
        seed=parsed.seed,
        timeout_s=parsed.timeout,
        compile_timeout_s=parsed.compile_timeout,
        workers=parsed.workers,
        journal=parsed.journal,
        fresh=parsed.fresh,
        cache=parsed.cache,
    )
    with SearchProgress() as progress:
        result = search(bind_target(opt.target(parsed)), options, progress)
    _print(report.result_json(result) if parsed.json else report.result_text(result))


def ladder(parsed: argparse.Namespace) -> None:
    """Run the landmarks of a space: the named steps of its ladder, beside the tuned best."""
    from autotune import report
    from autotune.loader import best_config
    from autotune.progress import SearchProgress
    from autotune.rig import Options
    from autotune.session import ladder
    from autotune.targets import bind_target

    bound = bind_target(opt.target(parsed))
    options = Options(
        budget=Budget(),
        timeout_s=parsed.timeout,
        compile_timeout_s=parsed.compile_timeout,
        journal=parsed.journal,
        fresh=parsed.fresh,
    )
    with SearchProgress() as progress:
        rungs = ladder(bound, options, progress)
    try:
        problem = bound.space.problem
        known = best_config(
            bound.spec.kernel,
            bound.device,
            dtype=problem.dtype,
            strict=True,
            cache=parsed.cache,
            **problem.sizes,
        )
        best = (known.config, known.time_ms) if known.time_ms is not None else None
    except NoConfig:  # not tuned yet: the ladder stands alone
        best = None
    if parsed.json:
        _print(
            [
                {"step": name, "time_ms": trial.time_ms, "status": trial.status.value, "detail": trial.detail}
                for name, trial in rungs
            ]
        )
    else:
        report.console().print(report.ladder_table(bound.space, rungs, best))


def best(parsed: argparse.Namespace) -> None:
    """Show what the cache serves for a kernel on a device, as best_config does."""
    from autotune.loader import best_config
    from autotune.targets import resolve_device

    sizes = opt.sizes(parsed)
    device = resolve_device(parsed.device, parsed.cache)
    found = best_config(
        parsed.kernel, device, dtype=parsed.dtype, strict=parsed.strict, cache=parsed.cache, **sizes
    )
    if parsed.json:
        match = asdict(found.match) | {"tier": found.match.tier.value}
        _print(
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
    _print("\n".join([*lines, " ".join(found.flags)]))


def devices(parsed: argparse.Namespace) -> None:
    """List the devices that --device accepts."""
    from autotune import report
    from autotune.targets import find_devices

    found = [(str(address), info) for address, info in find_devices()]
    if parsed.json:
        _print([{"device": address, **asdict(info)} for address, info in found])
    else:
        report.console().print(report.devices_table(found))


def space(parsed: argparse.Namespace) -> None:
    """Describe a space on a device: sizes, what each constraint removes, and what looks like a mistake."""
    from autotune import report
    from autotune.space import constraint_report, lint
    from autotune.targets import bind_target

    bound = bind_target(opt.target(parsed))
    if parsed.config is not None:
        config = opt.config(parsed.config, bound.spec)
        reasons = bound.space.why_invalid(config)
        if parsed.json:
            _print({"config": dict(config), "valid": not reasons, "reasons": reasons})
        else:
            _print("\n".join(reasons) if reasons else f"valid: {config}")
        return
    constraints = constraint_report(bound.space)
    findings = lint(bound.space, bound.source.text, constraints)
    if parsed.json:
        _print(report.space_json(bound.space, constraints, findings))
    else:
        report.print_space(bound.space, bound.device, constraints, findings)


def show(parsed: argparse.Namespace) -> None:
    """Show the trials of a journal."""
    from autotune import report
    from autotune.journal import encode_trial, read_trials

    trials = read_trials(parsed.journal)
    chosen = opt.select(trials, parsed)
    if parsed.json:
        _print([encode_trial(trial) for trial in chosen])
    else:
        report.console().print(report.trials_table(chosen))
        print(f"{len(chosen)} of {len(trials)} trials", file=sys.stderr)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="autotune",
        description="Find, verify, remember and serve the fastest configuration of a GPU kernel.",
        epilog="Start with:  autotune search spaces/reduce.yaml",
    )
    parser.add_argument("--version", action="version", version=f"autotune {__version__}")
    verbs = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    opt.add_search(_verb(verbs, search, "autotune search spaces/reduce.yaml --budget 200"))
    opt.add_best(_verb(verbs, best, "autotune best reduce --size n=1000000"))
    opt.add_devices(_verb(verbs, devices, "autotune devices"))
    opt.add_space(_verb(verbs, space, "autotune space spaces/reduce.yaml --config BLOCK_SIZE=96,UNROLL=4"))
    opt.add_ladder(_verb(verbs, ladder, "autotune ladder spaces/reduce.yaml"))
    opt.add_show(_verb(verbs, show, "autotune show runs/FILE.jsonl --where 'BLOCK_SIZE >= 256' --limit 20"))
    return parser


def _verb(verbs: Any, function: Verb, example: str) -> argparse.ArgumentParser:
    """A subcommand named after its function, described by its docstring."""
    text = (function.__doc__ or "").strip()
    parser: argparse.ArgumentParser = verbs.add_parser(
        function.__name__,
        help=text.split(":")[0].rstrip("."),
        description=text,
        epilog=f"Example: {example}",
    )
    parser.set_defaults(verb=function)
    return parser


def _print(what: Any) -> None:
    print(what if isinstance(what, str) else json.dumps(what, indent=2, default=str))


def _fail(error: AutotuneError, code: int) -> int:
    text = " ".join(str(error).split()) if code == 2 else str(error)
    print(f"autotune: {text}", file=sys.stderr)
    return code


def _terminate(*_: Any) -> NoReturn:
    """End as an exception does, so that children and temporary files go too."""
    raise SystemExit(128 + signal.SIGTERM)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    print(f"warning: {message}", file=sys.stderr)
