"""Journals of autotune as recordings, and recordings as journals, from which searches can start.

An imported time becomes a measurement of one sample. The keys of such rows mark them as imported, so that no
search takes them for its own trials.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from autotune.core import json_values as values
from autotune.core.json_values import is_name
from autotune.core.runs_folder import RUNS, problem_in_name, require_unlinked
from autotune.core.trials import Rule, Trial
from autotune.errors import InputError, WriteError
from autotune.evaluation.identity import header_sizes, sizes_text
from autotune.evaluation.journal import VERSION, held_journal, parse_journal
from autotune.evaluation.journal_rows import encode_trial
from autotune.hardware.names import slug
from autotune.interop.files import encoded, read_text
from autotune.interop.recording import Costs, RecordedResult, Recording, domains, trial_of
from autotune.processes.files import replace_file

NAME = "journal"
IMPORTED = "imported"  # prefix of the keys of imported rows


def is_journal(text: str) -> bool:
    """True if a text looks like a journal."""
    return text.startswith('{"journal":')


def read(text: str, path: Path) -> Recording:
    """Read the trials of a journal; raises InputError if there are none, or if their parameters differ."""
    header, trials, *_ = parse_journal(text, path)
    if not trials:
        raise InputError(f"{path}: holds no trial")
    names = list(trials[0].config)
    for trial in trials:
        if set(trial.config) != set(names):
            raise InputError(f"{path}: {trial.config} has other parameters than {trials[0].config}")
    own = ("journal", "kernel", "device", "sizes")
    return Recording(
        kernel=values.text(header.get("kernel", path.stem), "kernel"),
        device=values.text(header.get("device", "unknown"), "device"),
        sizes=header_sizes(header),
        parameters=domains(names, [trial.config for trial in trials]),
        results=tuple(_result(trial) for trial in trials),
        format=NAME,
        extras={name: value for name, value in header.items() if name not in own},
    )


def write(recording: Recording) -> str:
    """The text of a journal, which `read` turns into the same recording."""
    own = recording.in_format(NAME)
    header = {"journal": VERSION, "kernel": own.kernel, "device": own.device}
    if own.sizes is not None:
        header["sizes"] = sizes_text(own.sizes)
    extras = dict(own.extras) if recording.format == NAME else {"source": IMPORTED}
    rows: list[dict[str, Any]] = [header | extras, *({"trial": _row(result)} for result in own.results)]
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
    extras = encode_trial(trial)
    for name in ("config", "status", "detail", "compile_ms", "cost_s"):
        extras.pop(name, None)
    samples: tuple[float, ...] = ()
    if trial.measurement is not None:
        samples = trial.measurement.samples_ms
        extras["measurement"] = {k: v for k, v in extras["measurement"].items() if k != "samples_ms"}
    return RecordedResult(
        config=trial.config,
        status=trial.status,
        time_ms=trial.time_ms,
        detail=trial.detail,
        samples_ms=samples,
        costs=Costs(
            compile_ms=trial.compile_ms, benchmark_ms=max(0.0, 1e3 * trial.cost_s - trial.compile_ms)
        ),
        extras=extras | {"cost_s": trial.cost_s},
    )


def _row(result: RecordedResult) -> dict[str, Any]:
    row: dict[str, Any] = {
        "config": dict(result.config),
        "key": f"{IMPORTED}:{result.config.key}",
        "status": result.status.value,
        "detail": result.detail,
        "compile_ms": result.costs.compile_ms or 0.0,
        "cost_s": result.cost_s,
        **{name: value for name, value in result.extras.items() if name != "measurement"},
    }
    if "measurement" in result.extras:
        row["measurement"] = {**result.extras["measurement"], "samples_ms": result.samples_ms}
    elif result.time_ms is not None:
        row["measurement"] = encode_trial(trial_of(result, Rule.IMPORTED))["measurement"]
    return {name: value for name, value in row.items() if value or name == "status"}
