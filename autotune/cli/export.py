"""Export results as T4, a Kernel Tuner cache, an Optuna study, a journal or a C header."""

from __future__ import annotations

import argparse
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.core.text import count_text
from autotune.errors import InputError

EXAMPLE = "autotune export runs/FILE.jsonl --format t4 -o results.json"
HEADER = "c-header"
STUDY = "optuna"
_KINDS = {  # the name of a format's file, and its suffixes; a study is added to an existing file
    "t4": ("a file of T4 results", (".json",)),
    "kernel-tuner": ("a cache of Kernel Tuner", (".json",)),
    "journal": ("a journal", (".jsonl",)),
    HEADER: ("a header", (".h", ".hpp")),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="KERNEL|FILE",
        help=f"for {HEADER} a kernel of the cache, else a file of recorded results, such as a journal",
    )
    parser.add_argument(
        "--format",
        required=True,
        choices=("t4", "kernel-tuner", STUDY, "journal", HEADER),
        help="the format to write",
    )
    where = f"where to write; a file that ends in .gz is compressed; for {STUDY} also the URL of a database"
    opt.add_output(parser, where, kind=str)
    opt.add_data(parser)
    opt.add_cache(parser, f"where to look for the results of {HEADER}")


def run(parsed: argparse.Namespace) -> None:
    """Write the file and describe its content."""
    from autotune.interop import WRITERS, optuna_study, read_recording
    from autotune.interop.c_header import header
    from autotune.interop.files import require_own_kind, write_text

    if parsed.format in _KINDS:
        require_own_kind(Path(parsed.output), *_KINDS[parsed.format], "-o")
    if parsed.format == HEADER:
        write_text(Path(parsed.output), header(parsed.source, parsed.cache, parsed.data))
        emit(f"the tuned results of {parsed.source} in {parsed.output}")
        return
    if parsed.data:
        raise InputError(f"--data is for {HEADER}; a file of recorded results is exported as it is")
    source = Path(parsed.source)
    if not source.is_file():
        raise InputError(
            f"{source}: no such file; --format {parsed.format} takes recorded results, such as runs/FILE"
        )
    recording = read_recording(source)
    if parsed.format == STUDY:
        name = optuna_study.export(recording, parsed.output)
        emit(f"{count_text(len(recording.results), 'trial')} in the study {name!r} of {parsed.output}")
    else:
        write_text(Path(parsed.output), WRITERS[parsed.format](recording))
        emit(f"{count_text(len(recording.results), 'result')} in {parsed.output}")
