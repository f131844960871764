"""Import results of other tools: T4 results, Kernel Tuner caches, and configurations of vLLM and SGLang."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.core.records import Config
from autotune.core.text import count_text
from autotune.core.trials import Status

if TYPE_CHECKING:  # it loads numpy
    from autotune.interop import Recording

EXAMPLE = "autotune import A100_T4.json.gz --kernel convolution --device A100"
NEXT_STEPS = (
    "They are not verified, so `autotune best` ignores them. `autotune search` starts from them and stores "
    "what it verifies; `autotune compare KERNEL --imported FILE` shows them next to the cache."
)


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files",
        metavar="FILE",
        nargs="+",
        type=Path,
        help="T4 results, a cache of Kernel Tuner or a journal, gzipped or not; or a file of vLLM or SGLang",
    )
    parser.add_argument(
        "--kernel",
        metavar="NAME",
        type=opt.kernel,
        help="name of the kernel, its space file or a journal (default: as in the file)",
    )
    parser.add_argument("--device", metavar="NAME", help="name of the device (default: as in the file)")
    parser.add_argument(
        "--journal", metavar="FILE", type=Path, help="where to record the results (default: a file in runs/)"
    )
    parser.add_argument("--fresh", action="store_true", help="replace the journal if it exists")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    from autotune.interop import journals, read_recording

    if len(parsed.files) > 1:
        opt.require_unset(parsed, "each of several files has a journal of its own", "journal")
    recordings = [_configurations(path) or read_recording(path) for path in parsed.files]
    done = []
    for recording in recordings:
        named = replace(
            recording, kernel=parsed.kernel or recording.kernel, device=parsed.device or recording.device
        )
        done.append((named, journals.store(named, parsed.journal, fresh=parsed.fresh)))
    shown = (*(imported_text(*pair) for pair in done), NEXT_STEPS)
    emit([imported_json(*pair) for pair in done] if parsed.json else shown)


def _configurations(path: Path) -> Recording | None:
    """The distinct configurations of a framework's file, without times; None for another file."""
    from autotune.frameworks import config_file, format_of
    from autotune.interop import Recording, imported_trial
    from autotune.interop.recording import domains

    form = format_of(path)
    shape = form.shape(path.name) if form else None
    if form is None or shape is None:
        return None
    configs = list(dict.fromkeys(Config(entry) for entry in config_file.load(form, path).entries.values()))
    names = list(configs[0])
    alike = [config for config in configs if set(config) == set(names)]
    trials = tuple(imported_trial(config, Status.OK) for config in alike)
    device = shape.device.replace("_", " ")
    return Recording(form.ready_space(shape), device, shape.sizes, domains(names, alike), trials)


def imported_text(recording: Recording, journal: Path) -> str:
    """Say how many results there are, how many succeeded, which is best, and where they were recorded."""
    timed = sum(trial.time_ms is not None for trial in recording.trials)
    best = recording.best
    best_text = f"best {best.time_ms:.6g} ms with {best.config}" if best else "none has a time"
    return (
        f"{recording.kernel} on {recording.device}: {count_text(len(recording.trials), 'result')}, "
        f"{timed:,} with a time; {best_text}; recorded in {journal}"
    )


def imported_json(recording: Recording, journal: Path) -> dict[str, Any]:
    best = recording.best
    return {
        "kernel": recording.kernel,
        "device": recording.device,
        "sizes": recording.sizes,
        "results": len(recording.trials),
        "timed": sum(trial.time_ms is not None for trial in recording.trials),
        "best": {"config": dict(best.config), "time_ms": best.time_ms} if best else None,
        "journal": str(journal),
    }
