"""What `autotune import` prints: a line about results, a space as the sections of a space file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from autotune.core.text import count_text
from autotune.interop import Recording
from autotune.space import SpaceSpec

NEXT_STEPS = (
    "Imported results are not verified, so `autotune best` ignores them. `autotune search` and `autotune "
    "adopt` start from them and store what they verify; `autotune compare KERNEL --imported FILE` shows them "
    "beside the cache."
)


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
