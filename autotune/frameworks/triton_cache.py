"""Triton's own cache of tuned configurations, as versions 3.6 and 3.9 read it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from autotune.frameworks.planned_file import PlannedFile
from autotune.frameworks.programs import ProgramFormat, ServedTuning
from autotune.recording.tunings import READ_BY, Tuning, is_known, triton_folder


def _refused(tuning: Tuning) -> str:
    if not is_known(tuning.triton) or not tuning.digest:
        return f"expected Triton {' or '.join(READ_BY)}, whose cache is known, found {tuning.triton}"
    return "" if tuning.key else "the kernel's key is empty, so Triton keeps nothing"


def _planned(folder: Path, answers: Sequence[ServedTuning]) -> Iterator[PlannedFile]:
    """A file for each key, with one configuration: what the program timed is not comparable with it."""
    for answer in answers:
        text = json.dumps({"key": answer.tuning.key, "configs_timings": [[answer.content, answer.times_ms]]})
        yield PlannedFile(
            folder / answer.tuning.place, text, {answer.tuning.label: (answer.entry, answer.served)}
        )


FORMAT = ProgramFormat(
    package="triton", root=triton_folder, subfolder=lambda device: "", planned=_planned, refused=_refused
)
