"""The record of planted mistakes, and its file in runs/, which a report shows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from autotune.core import json_values as values
from autotune.core.runs_folder import RUNS
from autotune.processes.files import write_output

CAUGHT, MISSED = "caught", "missed"
EQUIVALENT = "equivalent"  # nothing shows it
_SCHEMA = 1


@dataclass(frozen=True)
class Planted:
    """A mistake that was planted."""

    kind: str  # one of KINDS
    place: str  # the file and the line
    was: str  # the code without it
    now: str  # the code with it
    verdict: str  # CAUGHT, MISSED or EQUIVALENT
    detail: str = ""  # how it showed; empty if it did not
    mend: str = ""  # how the space can see it, if it was missed


@dataclass(frozen=True)
class Strength:
    """The planted mistakes of a space, and the number of those that no time was left to plant."""

    planted: tuple[Planted, ...]
    left: int = 0

    def of(self, verdict: str, kind: str | None = None) -> list[Planted]:
        """The mistakes with a verdict, of a kind if one is named."""
        return [item for item in self.planted if item.verdict == verdict and kind in (None, item.kind)]

    @property
    def kinds(self) -> list[str]:
        """The kinds that were planted."""
        return list(dict.fromkeys(mistake.kind for mistake in self.planted))

    @property
    def score(self) -> float | None:
        """The share of caught mistakes among those that something shows.

        None without any, and where most mistakes were not tried: the first of a run show too little.
        """
        caught, shown = len(self.of(CAUGHT)), len(self.of(CAUGHT)) + len(self.of(MISSED))
        return caught / shown if shown and self.left <= len(self.planted) else None


_READERS = {
    **dict.fromkeys(("kind", "place", "was", "now", "detail", "mend"), values.text),
    "verdict": values.choice((CAUGHT, MISSED, EQUIVALENT)),
}


def strength_json(strength: Strength) -> dict[str, Any]:
    """The record as JSON."""
    planted = [asdict(mistake) for mistake in strength.planted]
    return {"schema": _SCHEMA, "score": strength.score, "not_tried": strength.left, "planted": planted}


def strength_file(kernel: str, device: str, runs: Path = RUNS) -> Path:
    """The file of a kernel's record on the device with a slug."""
    return runs / f"{kernel}.{device}.strength.json"


def keep(strength: Strength, path: Path) -> None:
    """Write a record."""
    write_output(path, json.dumps(strength_json(strength), indent=1) + "\n")


def read(path: Path) -> Strength | None:
    """The record of a file; None where there is none or it is damaged."""
    try:
        data = values.load_object(path.read_text(encoding="utf-8"), _SCHEMA)
        rows = values.items(data.get("planted"), "planted")
        planted = tuple(values.record(Planted, _READERS, (), row, "planted") for row in rows)
        return Strength(planted, values.integer(data.get("not_tried"), "not_tried")) if planted else None
    except (OSError, ValueError):
        return None
