"""Export results for other tools: T4, Kernel Tuner, Optuna, C headers, frameworks, programs, CLBlast."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit, say
from autotune.core.text import count_text
from autotune.errors import InputError
from autotune.frameworks import FORMATS
from autotune.frameworks.export import ExportRequest, export, installed_folder
from autotune.frameworks.planned_file import PlannedFile, restore

EXAMPLE = "autotune export runs/FILE.jsonl --format t4 -o results.json"
HEADER = "c-header"
STUDY = "optuna"
CLBLAST = "clblast"
PROGRAMS = ("triton-cache", "fla")  # files that programs look in when they have recorded what they ask for
_FORMATS = ("t4", "kernel-tuner", STUDY, "journal", HEADER, *FORMATS, *PROGRAMS, CLBLAST)
_KINDS = {  # the name of a format's file, and its suffixes; a study is added to an existing file
    "t4": ("a file of T4 results", (".json",)),
    "kernel-tuner": ("a cache of Kernel Tuner", (".json",)),
    "journal": ("a journal", (".jsonl",)),
    HEADER: ("a header", (".h", ".hpp")),
}
_TAKEN_BY = {  # the formats of options that not all have
    "quantization": (*FORMATS,),
    "device_name": (*FORMATS, CLBLAST),
    "recorded": PROGRAMS,
    "install": (*FORMATS, *PROGRAMS),
    "restore": (*FORMATS, *PROGRAMS),
    "data": (HEADER, *FORMATS, *PROGRAMS, CLBLAST),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "source",
        metavar="KERNEL|FILE",
        help="a kernel's name, its space file or a journal; or another file with recorded results",
    )
    parser.add_argument(
        "--format", required=True, choices=_FORMATS, metavar="FORMAT", help=", ".join(_FORMATS)
    )
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="where to write; a name that ends in .gz compresses the file; for frameworks, programs and "
        "CLBlast a folder, whose files get the results",
    )
    opt.add_data(parser)
    opt.add_cache(parser, "where to look for the results of a kernel")
    parser.add_argument(
        "--recorded",
        metavar="FILE",
        type=Path,
        help=f"for {' and '.join(PROGRAMS)}: the file that `autotune record` wrote",
    )
    group = parser.add_argument_group("files of frameworks and programs")
    group.add_argument(
        "--install",
        action="store_true",
        help="write where the framework or Triton looks, instead of -o; keep the old files",
    )
    group.add_argument(
        "--restore", action="store_true", help="put back the files that --install replaced for this kernel"
    )
    group.add_argument(
        "--device-name",
        metavar="NAME",
        help="the framework's name for the device (default: the name in the results)",
    )
    group.add_argument(
        "--quantization",
        metavar="NAME",
        help="dtype in the files' names; '' for none (default: fp8_w8a8 if sizes have blocks, else none)",
    )


def run(parsed: argparse.Namespace) -> None:
    from autotune.analysis.find_journal import find_journal
    from autotune.interop import WRITERS, optuna_study, read_recording
    from autotune.interop.c_header import header
    from autotune.interop.files import require_own_kind, write_text

    others = [name for name, formats in _TAKEN_BY.items() if parsed.format not in formats]
    opt.require_unset(parsed, f"--format {parsed.format}", *others)
    if parsed.format in (HEADER, *FORMATS, *PROGRAMS, CLBLAST):  # of what the cache serves
        parsed.source = opt.kernel(parsed.source)
    if parsed.format in (*FORMATS, *PROGRAMS):
        _export_to_folder(parsed)
        return
    if parsed.output is None:
        parsed.parser.error("the following arguments are required: -o/--output")
    if parsed.format in _KINDS:
        require_own_kind(Path(parsed.output), *_KINDS[parsed.format], "-o")
    if parsed.format == CLBLAST:
        from autotune.frameworks.clblast import export_clblast

        done = export_clblast(
            parsed.source, Path(parsed.output), parsed.device_name, parsed.data, parsed.cache
        )
        emit("\n".join(map(_written_text, done)))
        return
    if parsed.format == HEADER:
        write_text(Path(parsed.output), header(parsed.source, parsed.cache, parsed.data))
        emit(f"wrote {parsed.output}: the tuned results of {parsed.source}")
        return
    source = find_journal(opt.results(parsed.source))
    if not source.is_file():
        raise InputError(
            f"{source}: no such file; --format {parsed.format} takes recorded results, such as runs/FILE"
        )
    recording = read_recording(source)
    if parsed.format == STUDY:
        name = optuna_study.export(recording, Path(parsed.output))
        emit(f"{count_text(len(recording.trials), 'trial')} in the study {name!r} of {parsed.output}")
    else:
        write_text(Path(parsed.output), WRITERS[parsed.format](recording))
        emit(f"wrote {parsed.output}: {count_text(len(recording.trials), 'result')}")


def _export_to_folder(parsed: argparse.Namespace) -> None:
    """Write or restore the files of a framework or of a program."""
    if (parsed.output is not None) + parsed.install + parsed.restore != 1:
        raise InputError(
            f"--format {parsed.format}: give one of -o DIR, --install, which writes where the results are "
            "read, and --restore, which undoes --install"
        )
    folder = None if parsed.install else Path(parsed.output or "")
    if parsed.format in FORMATS:
        form = FORMATS[parsed.format]
        if parsed.restore:
            _restore(parsed.source, installed_folder(form))
            return
        request = ExportRequest(parsed.source, form, parsed.device_name, parsed.quantization, parsed.data)
        emit("\n".join(_written_text(file, "M = ") for file in export(request, folder, parsed.cache)))
        return
    from autotune.frameworks import fla, triton_cache
    from autotune.frameworks.programs import export_program
    from autotune.recording.tunings import read_recorded

    program = {"triton-cache": triton_cache, "fla": fla}[parsed.format].FORMAT
    if parsed.restore:
        _restore(parsed.source, program.root())
        return
    if parsed.recorded is None:
        raise InputError(
            f"--format {parsed.format}: add --recorded FILE, which this command writes: "
            "autotune record -- python PROGRAM.py"
        )
    tunings = read_recorded(parsed.recorded)
    written, left_out = export_program(parsed.source, program, tunings, folder, parsed.cache, parsed.data)
    emit("\n".join(map(_written_text, written)))
    for reason in left_out:
        say(f"left out: {reason}")


def _restore(kernel: str, root: Path) -> None:
    emit("\n".join(f"{path}: as it was" for path in restore(kernel, root)))


def _written_text(written: PlannedFile, key: str = "") -> str:
    """What was written to a file; `key` is the name of what its keys are values of."""
    parts = [f"tuned {key}{_listed(sorted(written.results))}"]
    if written.known:
        parts.append(f"{key}{_listed(written.known)} keep what was served before, which is not slower")
    if written.kept:
        parts.append(f"left {key}{_listed(written.kept)} as they were")
    return f"{written.path}: {'; '.join(parts)}"


def _listed(keys: Iterable[int | str]) -> str:
    return ", ".join(map(str, keys))
