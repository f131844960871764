"""What was imported: results as a line, a foreign space as the sections of a space file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from autotune.interop import Recording
from autotune.space import SpaceSpec

NEXT_STEPS = (
    "None of this is verified, so `autotune best` does not know it. `autotune search` and `autotune adopt` "
    "start from it and store what they verify; `autotune compare KERNEL --imported FILE` shows it beside "
    "the cache."
)


def imported_text(recording: Recording, journal: Path) -> str:
    """How many results, how many of them succeeded, the best, and where they are now."""
    timed = sum(result.time_ms is not None for result in recording.results)
    best = recording.best
    found = f"best {best.time_ms:.6g} ms with {best.config}" if best else "none of them has a time"
    return (
        f"{recording.kernel} on {recording.device}: {len(recording.results):,} results, "
        f"{timed:,} with a time; {found}; recorded in {journal}"
    )


def imported_json(recording: Recording, journal: Path) -> dict[str, Any]:
    """The same as JSON values."""
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
    """Parameters, constraints and default as YAML: the sections of a space file that a T1 input settles."""
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
