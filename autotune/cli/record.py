"""Run a program, and note its kernels under @triton.autotune: their keys, types and tuning times.

What `best_config` and `load_kernel` do not find in the cache is added to its requests.
"""

from __future__ import annotations

import argparse
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit, say
from autotune.core.text import count_text
from autotune.errors import InputError, SetupError
from autotune.recording.tunings import DEFAULT, Tuning, read_recorded
from autotune.serving.cache import writable_root
from autotune.serving.miss_log import read_misses

EXAMPLE = "autotune record -- python train.py"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "command", nargs="+", metavar="PROGRAM", help="the program with its arguments, after --"
    )
    where = "where to note; what the file has is kept (default %(default)s)"
    opt.add_output(parser, where, default=Path(DEFAULT))
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    from autotune.recording import startup
    from autotune.serving.lookup import RECORD

    file = parsed.output.absolute()
    if file.exists():
        read_recorded(file)  # a damaged one is found before the program runs
    folders = [*startup.__path__, os.environ.get("PYTHONPATH", "")]
    before = _requests()
    environment = os.environ | {RECORD: str(file), "PYTHONPATH": os.pathsep.join(filter(None, folders))}
    try:
        code = subprocess.run(parsed.command, env=environment, check=False).returncode
    except OSError as error:
        raise InputError(f"{parsed.command[0]}: cannot be run: {error.strerror}") from None
    tunings = read_recorded(file) if file.exists() else ()
    if code and not tunings:
        raise SetupError(
            f"{parsed.command[0]}: ended with exit code {code} before a kernel under @triton.autotune was "
            "tuned; Triton tunes on a GPU only"
        )
    emit([_json(tuning) for tuning in tunings] if parsed.json else recorded_text(tunings, parsed.output))
    if new := _requests() - before:
        say(f"{count_text(len(new), 'request')} without an exact result; tune: autotune search --wanted")
    if code:
        raise SetupError(f"{parsed.command[0]}: ended with exit code {code}")


def recorded_text(tunings: Sequence[Tuning], path: Path) -> str:
    """Each kernel with its keys and tuning time, and how to go on."""
    if not tunings:
        return "no kernel under @triton.autotune was tuned"
    kernels: dict[tuple[str, str], list[Tuning]] = {}
    for tuning in tunings:
        kernels.setdefault((tuning.function, tuning.file), []).append(tuning)
    lines = []
    for (function, file), mine in sorted(kernels.items(), key=lambda item: -_seconds(item[1])):
        lines.append(f"{function}: {count_text(len(mine), 'key')}, {_seconds(mine):.1f} s of tuning; {file}")
        lines += [f"  {', '.join(map(str, tuning.key))}: {tuning.seconds:.1f} s" for tuning in mine]
    total = f"{count_text(len(kernels), 'kernel')}, {count_text(len(tunings), 'key')}"
    return "\n".join([*lines, f"{total}, {_seconds(tunings):.1f} s of tuning, in {path}"])


def _requests() -> set[str]:
    """The requests that programs did not find in the cache, as lines."""
    return {miss.line for miss in read_misses(writable_root(None))}


def _seconds(tunings: Sequence[Tuning]) -> float:
    return sum(tuning.seconds for tuning in tunings)


def _json(tuning: Tuning) -> dict[str, object]:
    return {
        "kernel": tuning.function,
        "file": tuning.file,
        "key": list(tuning.key),
        "seconds": tuning.seconds,
    }
