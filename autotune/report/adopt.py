"""What `autotune adopt` prints where a search has been before."""

from __future__ import annotations

from typing import Any

from autotune.model import Entry
from autotune.report.tables import problem_text
from autotune.targets import Bound


def known_text(bound: Bound, entry: Entry) -> str:
    """That nothing was run, and why."""
    origin = entry.provenance
    return (
        f"{bound.spec.kernel} on {bound.device.name}, {problem_text(bound.space)}: tuned already, with "
        f"{origin.trials} trials of {origin.engine}; nothing was run\n"
        f"best    {entry.time_ms:.4g} ms: {entry.config}"
    )


def known_json(entry: Entry) -> dict[str, Any]:
    """The same for scripts."""
    return {"adopted": False, "config": dict(entry.config), "time_ms": entry.time_ms}
