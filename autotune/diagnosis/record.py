"""The verdict of a diagnosis in a file of runs/, which a report shows."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from autotune.core import json_values as values
from autotune.core.runs_folder import RUNS, problem_in_name
from autotune.diagnosis.bound import WHAT_HELPS
from autotune.diagnosis.diagnose import Diagnosis
from autotune.diagnosis.foretold import foretold_text
from autotune.diagnosis.resource_use import use_text
from autotune.processes.files import write_output

_SCHEMA = 1


@dataclass(frozen=True)
class KeptDiagnosis:
    """A verdict with its evidence, in words."""

    problem: str  # sizes, element type and data, as `problem_in_name` has them
    origin: str  # what the configuration is, such as "the tuned best"
    config: str
    time_ms: float
    verdict: str  # what bounds it
    reason: str
    uses: tuple[str, ...]  # the share of each resource's ceiling that it reaches
    foretold: tuple[str, ...]  # times without one trouble each
    helps: str  # what helps against the verdict; empty where nothing is known


_READERS = {
    **dict.fromkeys(("problem", "origin", "config", "verdict", "reason", "helps"), values.text),
    **dict.fromkeys(("uses", "foretold"), values.list_of(values.text)),
    "time_ms": values.amount,
}


def diagnosis_file(kernel: str, device: str, runs: Path = RUNS) -> Path:
    """The file of a kernel's latest diagnosis on the device of a slug."""
    return runs / f"{kernel}.{device}.diagnosis.json"


def keep(diagnosis: Diagnosis, data: str, path: Path) -> None:
    """Write a diagnosis; `data` names the inputs' content."""
    kept = KeptDiagnosis(
        problem=problem_in_name(diagnosis.sizes, diagnosis.dtype, data),
        origin=diagnosis.origin,
        config=str(diagnosis.config),
        time_ms=diagnosis.time_ms,
        verdict=diagnosis.bound,
        reason=diagnosis.reason,
        uses=tuple(map(use_text, diagnosis.uses)),
        foretold=tuple(foretold_text(form, diagnosis.time_ms) for form in diagnosis.foretold),
        helps=WHAT_HELPS.get(diagnosis.bound, ""),
    )
    write_output(path, json.dumps({"schema": _SCHEMA, "diagnosis": asdict(kept)}, indent=1) + "\n")


def read(path: Path) -> KeptDiagnosis | None:
    """The diagnosis of a file; None where there is none or it is damaged."""
    try:
        data = values.load_object(path.read_text(encoding="utf-8"), _SCHEMA)
        return values.record(KeptDiagnosis, _READERS, (), data.get("diagnosis"), "diagnosis")
    except (OSError, ValueError):
        return None
