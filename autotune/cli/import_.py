"""Import results that others measured: T4 results, Kernel Tuner caches and T1 spaces become ours."""

from __future__ import annotations

import argparse
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.errors import InputError

EXAMPLE = "autotune import A100_T4.json.gz --kernel convolution --device 'NVIDIA A100'"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="T4 results, a Kernel Tuner cache or a T1 input, gzipped or not",
    )
    parser.add_argument(
        "--kernel", metavar="NAME", help="the kernel's name here (default: what the file says)"
    )
    parser.add_argument(
        "--device", metavar="NAME", help="the device's name here (default: what the file says)"
    )
    parser.add_argument(
        "--journal",
        metavar="FILE",
        type=Path,
        help="where the results are recorded (default: a file in runs/)",
    )
    parser.add_argument("--fresh", action="store_true", help="replace a journal of that name")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Run the command."""
    from dataclasses import replace

    from autotune.interop import journals, read_recording, read_t1
    from autotune.report.interop import imported_json, imported_text, space_text

    if parsed.journal and len(parsed.files) > 1:
        raise InputError("--journal FILE takes the results of one file; import them one by one")
    done = []
    for path in parsed.files:
        space = read_t1(path)
        if space is not None:
            emit(space_text(space))
            continue
        recording = read_recording(path)
        recording = replace(
            recording, kernel=parsed.kernel or recording.kernel, device=parsed.device or recording.device
        )
        journal = journals.store(recording, parsed.journal, fresh=parsed.fresh)
        done.append(imported_json(recording, journal) if parsed.json else imported_text(recording, journal))
    if done:
        emit(done if parsed.json else "\n".join(map(str, done)))
