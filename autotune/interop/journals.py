"""Journals of autotune as recordings, and recordings as journals, from which searches can start.

An imported time becomes a measurement of one sample. The keys of such rows mark them as imported, so that no
search takes them for its own trials.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from autotune.core import json_values as values
from autotune.core.json_values import is_name
from autotune.core.runs_folder import RUNS, problem_in_name
from autotune.core.trials import Rule, Trial
from autotune.errors import InputError, WriteError
from autotune.evaluation.identity import header_sizes, sizes_text
from autotune.evaluation.journal import VERSION, held_journal, parse_journal
from autotune.evaluation.journal_rows import encode_trial
from autotune.hardware.names import slug
from autotune.interop.files import encoded, read_text
from autotune.interop.recording import Costs, RecordedResult, Recording, domains, trial_of
from autotune.processes.files import replace_file, require_unlinked

NAME = "journal"
IMPORTED = "imported"  # prefix of the keys of imported rows


def is_journal(text: str) -> bool:
    """True if a text looks like a journal."""
    return text.startswith('{"journal":')


def read(text: str, path: Path) -> Recording:
    """Read the trials of a journal; raises InputError if there are none, or if their parameters differ."""
    header, trials, *_ = parse_journal(text, path)
    if not trials:
        raise InputError(f"{path}: holds no trial; name another journal, or search first")
    names = list(trials[0].config)
    for trial in trials:
        if set(trial.config) != set(names):
            raise InputError(f"{path}: {trial.config} has other parameters than {trials[0].config}")
    dtype, data = (header.get(name) for name in ("dtype", "data"))
    return Recording(
        kernel=values.text(header.get("kernel", path.stem), "kernel"),
        device=values.text(header.get("device", "unknown"), "device"),
        sizes=header_sizes(header),
        parameters=domains(names, [trial.config for trial in trials]),
        results=tuple(_result(trial) for trial in trials),
        dtype=dtype if isinstance(dtype, str) else None,
        data=data if isinstance(data, str) else None,
    )


def write(recording: Recording) -> str:
    """The text of a journal, which `read` turns into the same recording."""
    header = {"journal": VERSION, "kernel": recording.kernel, "device": recording.device, "source": IMPORTED}
    sizes = None if recording.sizes is None else sizes_text(recording.sizes)
    known = {"sizes": sizes, "dtype": recording.dtype, "data": recording.data}
    header |= {name: text for name, text in known.items() if text is not None}
    rows: list[dict[str, Any]] = [header, *({"trial": _row(result)} for result in recording.results)]
    return "".join(json.dumps(row, separators=(",", ":"), allow_nan=False) + "\n" for row in rows)


def store(recording: Recording, path: Path | None, *, fresh: bool) -> Path:
    """Write a recording as a journal and return the path.

    The default is `runs/KERNEL.DEVICE.PROBLEM.imported.jsonl`, with what is known of the problem.

    Raises:
        InputError: The file holds other rows, and `fresh` is not set.
        WriteError: It cannot be written.
    """
    kernel = recording.kernel if is_name(recording.kernel) else slug(recording.kernel)
    dtype, data = (slug(text) if text else "" for text in (recording.dtype, recording.data))
    problem = problem_in_name(recording.sizes or {}, dtype, data)
    name = ".".join(filter(None, (kernel, slug(recording.device), problem, IMPORTED, "jsonl")))
    path = path or RUNS / name
    text = write(recording)
    try:
        if path.exists() and not fresh and read_text(path) != text:
            raise InputError(f"{path}: holds other results; replace them with --fresh, or use --journal FILE")
        require_unlinked(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with held_journal(path):
            replace_file(path, encoded(text, path))
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error.strerror}") from None
    return path


def _result(trial: Trial) -> RecordedResult:
    return RecordedResult(
        config=trial.config,
        status=trial.status,
        time_ms=trial.time_ms,
        detail=trial.detail,
        samples_ms=trial.measurement.samples_ms if trial.measurement else (),
        costs=Costs(
            compile_ms=trial.compile_ms, benchmark_ms=max(0.0, 1e3 * trial.cost_s - trial.compile_ms)
        ),
    )


def _row(result: RecordedResult) -> dict[str, Any]:
    return encode_trial(replace(trial_of(result, Rule.IMPORTED), key=f"{IMPORTED}:{result.config.key}"))
