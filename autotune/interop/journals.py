"""Journals of autotune as recordings, and recordings as journals, from which searches can start.

The keys of the rows of such a journal mark them as imported: no search takes them for its own trials.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from autotune.core import json_values as values
from autotune.core.json_values import is_name
from autotune.core.runs_folder import RUNS, problem_in_name
from autotune.core.trials import Failure, Trial
from autotune.errors import InputError
from autotune.evaluation.identity import header_sizes, sizes_text
from autotune.evaluation.journal import VERSION, locked_journal, parse_journal
from autotune.evaluation.journal_rows import encode_trial
from autotune.hardware.names import slug
from autotune.interop.files import encoded, read_text
from autotune.interop.recording import IMPORTED, Recording, domains
from autotune.processes.files import replace_file, require_unlinked, writing


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
        trials=tuple(_imported(trial) for trial in trials),
        dtype=dtype if isinstance(dtype, str) else None,
        data=data if isinstance(data, str) else None,
    )


def write(recording: Recording) -> str:
    """The text of a journal, which `read` turns into the same recording."""
    header = {"journal": VERSION, "kernel": recording.kernel, "device": recording.device, "source": IMPORTED}
    sizes = None if recording.sizes is None else sizes_text(recording.sizes)
    known = {"sizes": sizes, "dtype": recording.dtype, "data": recording.data}
    header |= {name: text for name, text in known.items() if text is not None}
    rows: list[dict[str, Any]] = [header, *({"trial": encode_trial(trial)} for trial in recording.trials)]
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
    with writing(path):
        if path.exists() and not fresh and read_text(path) != text:
            raise InputError(f"{path}: holds other results; replace them with --fresh, or use --journal FILE")
        require_unlinked(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked_journal(path):
            replace_file(path, encoded(text, path))
    return path


def _imported(trial: Trial) -> Trial:
    """A trial without what only holds on the machine that made it."""
    return Trial(
        config=trial.config,
        key=f"{IMPORTED}:{trial.config.key}",
        failure=trial.failure and Failure(trial.status, trial.detail),
        note=trial.note,
        measurement=trial.measurement,
        compile_ms=trial.compile_ms,
        cost_s=max(trial.cost_s, trial.compile_ms / 1e3),
    )
