"""Import results and spaces of other tools: T4 results, Kernel Tuner caches, T1 spaces."""

from __future__ import annotations

import argparse
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.errors import InputError

EXAMPLE = "autotune import A100_T4.json.gz --kernel convolution --device 'NVIDIA A100'"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `autotune import`."""
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="T4 results, a cache or stored results of Kernel Tuner, or a T1 input; may be gzipped",
    )
    parser.add_argument("--kernel", metavar="NAME", help="name of the kernel (default: as in the file)")
    parser.add_argument("--device", metavar="NAME", help="name of the device (default: as in the file)")
    parser.add_argument(
        "--journal",
        metavar="FILE",
        type=Path,
        help="where to record the results (default: a file in runs/)",
    )
    parser.add_argument("--fresh", action="store_true", help="replace the journal if it exists")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    """Record imported results as journals and print imported spaces."""
    from dataclasses import replace

    from autotune.cli._interop import NEXT_STEPS, imported_json, imported_text, space_text
    from autotune.interop import journals, read_recordings, read_t1

    spaces = {path: read_t1(path) for path in parsed.files}
    found = [
        recording for path, space in spaces.items() if space is None for recording in read_recordings(path)
    ]
    if parsed.journal and len(found) > 1:
        raise InputError("--journal FILE takes the results of one device and problem; leave it out")
    done = []
    for recording in found:
        named = replace(
            recording, kernel=parsed.kernel or recording.kernel, device=parsed.device or recording.device
        )
        done.append((named, journals.store(named, parsed.journal, fresh=parsed.fresh)))
    for space in filter(None, spaces.values()):
        emit(space_text(space))
    if parsed.json and done:
        emit([imported_json(*one) for one in done])
    elif done:
        emit("\n".join((*(imported_text(*one) for one in done), NEXT_STEPS)))
