"""Kernel Tuner's cache files: one JSON object, which is not closed while a tuning run goes on.

A failure is a text, under the objective's name in older files and under `__error__` in newer ones. Times are
in milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from autotune.core import json_values as values
from autotune.core.records import Sizes
from autotune.core.trials import Status, Trial
from autotune.interop.recording import (
    CostNames,
    Recording,
    domains,
    imported_trial,
    recorded_config,
    recorded_number,
)

_ERROR = "__error__"
_RUNTIME = "RuntimeFailedConfig"
_STATUS = {
    _RUNTIME: Status.LAUNCH_ERROR,
    "CompilationFailedConfig": Status.COMPILE_ERROR,
    "InvalidConfig": Status.INVALID,
}
_FAILURE = {status: text for text, status in _STATUS.items()} | {
    Status.COMPILE_TIMEOUT: "CompilationFailedConfig",
    Status.MISSES_REQUIREMENT: "InvalidConfig",
}
_COSTS = CostNames("compile_time", "benchmark_time", ("framework_time", "verification_time"), "times")
_NAMES = "problem_size_names"  # of our own: a cache of Kernel Tuner has the extents only
_HEADER = ("device_name", "kernel_name", "tune_params_keys", "tune_params", "cache")
SIZE_NAMES = ("x", "y", "z")  # of the extents of `problem_size`, as in a script that tunes here


def is_kernel_tuner_cache(text: str) -> bool:
    """True if a text looks like a file of this format, closed or not."""
    return '"tune_params_keys"' in text[:100_000]


def parse(text: str) -> dict[str, Any]:
    """Parse a file, which may lack the closing braces; raises ValueError."""
    text = text.rstrip()
    try:
        return values.load_object(text)
    except values.NoJson:
        return values.load_object(text.rstrip(",") + "}\n}")


def read(data: Mapping[str, Any]) -> Recording:
    """Read the results of a file; raises Damaged naming the entry."""
    for name in _HEADER:
        if name not in data:
            raise values.Damaged(name, "an entry, as Kernel Tuner writes it", None)
    objective = data.get("objective", "time")
    if not isinstance(objective, str):
        objective = next(iter(values.list_of(values.text)(objective, "objective")), "time")
    names = values.distinct_names(
        values.items(data["tune_params_keys"], "tune_params_keys"), "tune_params_keys"
    )
    rows = values.mapping_of(values.mapping, values.text)(data["cache"], "cache")
    trials = tuple(_trial(row, f"cache[{key}]", names, objective) for key, row in rows.items())
    if not trials:
        raise values.Damaged("cache", "an entry for each configuration", {})
    return Recording(
        kernel=values.text(data["kernel_name"], "kernel_name"),
        device=values.text(data["device_name"], "device_name"),
        sizes=_sizes(data.get("problem_size"), data.get(_NAMES)),
        parameters=domains(names, [trial.config for trial in trials]),
        trials=trials,
    )


def write(recording: Recording) -> str:
    """The text of a file in the layout that Kernel Tuner can continue from."""
    names = [parameter.name for parameter in recording.parameters]
    sizes = recording.sizes or {}
    header: dict[str, Any] = {
        "device_name": recording.device,
        "kernel_name": recording.kernel,
        "problem_size": list(sizes.values()),
        "tune_params_keys": names,
        "tune_params": {parameter.name: list(parameter.values) for parameter in recording.parameters},
        "objective": "time",
    }
    if tuple(sizes) != SIZE_NAMES[: len(sizes)]:
        header[_NAMES] = list(sizes)
    rows = []
    for trial in recording.trials:
        key = ",".join(str(trial.config[name]) for name in names)
        rows.append(json.dumps({key: _row(trial)})[1:-1])
    opened = json.dumps(header | {"cache": {}}, indent="").removesuffix("}\n}")
    return f"{opened}\n" + ",\n".join(rows) + "}\n}"


def _trial(row: Mapping[str, Any], place: str, names: list[str], objective: str) -> Trial:
    config = recorded_config(row, names, place)
    entries = {name: item for name, item in row.items() if name not in config}
    errors = (entries.get(key) for key in (_ERROR, objective, "time"))
    error = next((text for text in errors if isinstance(text, str)), None)
    if error is None and "time" not in entries:  # where a parameter has this name, too
        raise values.Damaged(place, "a time or an error; other objectives are not supported", dict(row))
    time_ms = None if error else recorded_number(entries["time"])
    detail = error or (_RUNTIME if time_ms is None else "")
    status = Status.OK if time_ms is not None else _STATUS.get(detail, Status.LAUNCH_ERROR)
    return imported_trial(config, status, time_ms, detail, **_COSTS.read(entries, place))


def _row(trial: Trial) -> dict[str, Any]:
    row: dict[str, Any] = dict(trial.config)
    if trial.time_ms is not None:
        row["time"] = trial.time_ms
    else:
        is_theirs = trial.detail.isidentifier() and trial.detail.endswith("Config")
        row[_ERROR] = trial.detail if is_theirs else _FAILURE.get(trial.status, _RUNTIME)
    return row | _COSTS.written(trial)


def _sizes(problem_size: object, named: object) -> Sizes | None:
    extents = [problem_size] if isinstance(problem_size, int) else problem_size
    names = SIZE_NAMES if named is None else values.distinct_names(values.items(named, _NAMES), _NAMES)
    if not isinstance(extents, list) or not extents or len(extents) > len(names):
        return None
    if not all(type(extent) is int and 1 <= extent < values.INT64_END for extent in extents):
        return None
    return dict(zip(names, extents, strict=False))
