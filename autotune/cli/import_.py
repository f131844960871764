"""Import results and spaces of other tools: T4 results, Kernel Tuner caches, T1 spaces."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.core.text import count_text
from autotune.errors import InputError

if TYPE_CHECKING:  # these load numpy
    from autotune.interop import Recording
    from autotune.space import SpaceSpec

EXAMPLE = "autotune import A100_T4.json.gz --kernel convolution --device 'NVIDIA A100'"
NEXT_STEPS = (
    "Imported results are not verified, so `autotune best` ignores them. `autotune search` and `autotune "
    "adopt` start from them and store what they verify; `autotune compare KERNEL --imported FILE` shows them "
    "beside the cache."
)


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


def imported_text(recording: Recording, journal: Path) -> str:
    """Say how many results there are, how many succeeded, which is best, and where they were recorded."""
    timed = sum(result.time_ms is not None for result in recording.results)
    best = recording.best
    found = f"best {best.time_ms:.6g} ms with {best.config}" if best else "none has a time"
    return (
        f"{recording.kernel} on {recording.device}: {count_text(len(recording.results), 'result')}, "
        f"{timed:,} with a time; {found}; recorded in {journal}"
    )


def imported_json(recording: Recording, journal: Path) -> dict[str, Any]:
    """The same for scripts, as JSON values."""
    best = recording.best
    return {
        "kernel": recording.kernel,
        "device": recording.device,
        "sizes": recording.sizes,
        "results": len(recording.results),
        "timed": sum(result.time_ms is not None for result in recording.results),
        "best": {"config": dict(best.config), "time_ms": best.time_ms} if best else None,
        "journal": str(journal),
    }


def space_text(spec: SpaceSpec) -> str:
    """Write as YAML what a T1 input has of a space file: parameters, constraints and default."""
    import yaml

    sections = {
        "schema": 1,
        "kernel": spec.kernel,
        "parameters": {parameter.name: list(parameter.values) for parameter in spec.parameters},
        "constraints": [constraint.text for constraint in spec.constraints],
        "default": dict(spec.default),
    }
    if not spec.constraints:
        del sections["constraints"]
    return yaml.safe_dump(sections, sort_keys=False, default_flow_style=None, width=110).rstrip()
