"""Kernel Tuner's cache files: one JSON object that is left open while a tuning run goes on.

A failure is a text under the objective's name in older files and under `__error__` in newer ones. Times are
milliseconds.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotune.errors import InputError
from autotune.interop.files import config, mapping, parse_json
from autotune.interop.recording import Costs, RecordedResult, Recording, domains, recorded_number
from autotune.model import Parameter, Sizes
from autotune.trials import Status

NAME = "kernel-tuner"
_ERROR = "__error__"
_RUNTIME = "RuntimeFailedConfig"
_STATUS = {
    _RUNTIME: Status.LAUNCH_ERROR,
    "CompilationFailedConfig": Status.COMPILE_ERROR,
    "InvalidConfig": Status.PRUNED,
}
_FAILURE = {status: text for text, status in _STATUS.items()} | {
    Status.COMPILE_TIMEOUT: "CompilationFailedConfig"
}
_COSTS = {
    "compile_time": "compile_ms",
    "benchmark_time": "benchmark_ms",
    "framework_time": "framework_ms",
    "verification_time": "verification_ms",
    "strategy_time": "search_ms",
}
_HEADER = ("device_name", "kernel_name", "tune_params_keys", "tune_params", "cache")
SIZE_NAMES = ("problem_size_x", "problem_size_y", "problem_size_z")  # as its kernels know them


def is_kernel_tuner_cache(text: str) -> bool:
    """Whether a text looks like a file of this format, closed or not."""
    return '"tune_params_keys"' in text[:100_000]


def parse(text: str, path: Path) -> dict[str, Any]:
    """The JSON object of a file; one that a run has left open is closed first. Raises InputError."""
    text = text.rstrip()
    try:
        return mapping(json.loads(text), path, "the file")
    except ValueError:
        return parse_json(text.rstrip(",") + "}\n}", path)


def read(data: Mapping[str, Any], path: Path) -> Recording:
    """The results of a file. Raises InputError naming the entry."""
    for name in _HEADER:
        if name not in data:
            raise InputError(f"{path}: {name}: expected an entry, as Kernel Tuner writes it")
    objective = data.get("objective", "time")
    objective = objective if isinstance(objective, str) else next(iter(objective), "time")
    names = list(data["tune_params_keys"])
    rows = mapping(data["cache"], path, "cache")
    results = tuple(
        _result(mapping(row, path, f"cache[{key}]"), names, objective, path, f"cache[{key}]")
        for key, row in rows.items()
    )
    if not results:
        raise InputError(f"{path}: cache: expected an entry for each configuration, found none")
    return Recording(
        kernel=str(data["kernel_name"]),
        device=str(data["device_name"]),
        sizes=_sizes(data.get("problem_size")),
        parameters=_parameters(mapping(data["tune_params"], path, "tune_params"), names, results),
        results=results,
        format=NAME,
        extras={name: value for name, value in data.items() if name not in (*_HEADER[:3], "cache")}
        | {"errors": _ERROR if any(_ERROR in row for row in rows.values()) else objective},
    )


def write(recording: Recording) -> str:
    """The text of a finished file, laid out so that Kernel Tuner can go on from it."""
    own = dict(recording.extras) if recording.format == NAME else {}
    error_key = own.pop("errors", _ERROR)
    names = [parameter.name for parameter in recording.parameters]
    header = {
        "device_name": recording.device,
        "kernel_name": recording.kernel,
        "problem_size": list((recording.sizes or {}).values()),
        "tune_params_keys": names,
        "tune_params": {parameter.name: list(parameter.values) for parameter in recording.parameters},
        "objective": "time",
    }
    rows = []
    for result in recording.results:
        row = _row(result, result.extras if recording.format == NAME else {}, error_key)
        key = ",".join(str(result.config[name]) for name in names)
        rows.append(json.dumps({key: row})[1:-1])
    opened = json.dumps(header | own | {"cache": {}}, indent="").removesuffix("}\n}")
    return f"{opened}\n" + ",\n".join(rows) + "}\n}"


def _result(
    row: Mapping[str, Any], names: list[str], objective: str, path: Path, place: str
) -> RecordedResult:
    values = config(row, names, path, place)
    extras = {name: item for name, item in row.items() if name not in values}
    failure = next((key for key in (_ERROR, objective, "time") if isinstance(row.get(key), str)), None)
    time_ms = recorded_number(row.get("time")) if failure is None else None
    status, detail = Status.OK, ""
    if time_ms is None:
        if failure is None and "time" not in row:
            raise InputError(f"{path}: {place}: expected a time or an error; autotune compares times only")
        detail = str(extras.pop(failure)) if failure else _RUNTIME
        status = _STATUS.get(detail, Status.LAUNCH_ERROR)
    if failure is None:
        extras.pop("time", None)
    samples = [recorded_number(item) for item in row.get("times", ())]
    found = tuple(sample for sample in samples if sample is not None)
    if found and len(found) == len(samples):
        del extras["times"]
    else:
        found = ()
    costs = {name: recorded_number(row.get(key)) for key, name in _COSTS.items()}
    for key, name in _COSTS.items():
        if costs[name] is not None:
            del extras[key]
    return RecordedResult(values, status, time_ms, detail, found, Costs(**costs), extras)


def _row(result: RecordedResult, extras: Mapping[str, Any], error_key: str) -> dict[str, Any]:
    row: dict[str, Any] = dict(result.config)
    if result.time_ms is not None:
        row["time"] = result.time_ms
    else:
        is_theirs = result.detail.isidentifier() and result.detail.endswith("Config")
        row[error_key] = result.detail if is_theirs else _FAILURE.get(result.status, _RUNTIME)
    if result.samples_ms:
        row["times"] = list(result.samples_ms)
    costs = {key: getattr(result.costs, name) for key, name in _COSTS.items()}
    return row | {key: value for key, value in costs.items() if value is not None} | dict(extras)


def _parameters(
    declared: Mapping[str, Any], names: list[str], results: tuple[RecordedResult, ...]
) -> tuple[Parameter, ...]:
    """The declared values where every recorded one is among them, else those that occur."""
    occurring = domains(names, [result.config for result in results])
    parameters = []
    for parameter in occurring:
        listed = declared.get(parameter.name)
        values = tuple(listed) if isinstance(listed, list) else ()
        if not all(isinstance(value, bool | int | float | str) for value in values):
            values = ()
        is_whole = set(parameter.values) <= set(values) and len(set(values)) == len(values)
        parameters.append(Parameter(parameter.name, values) if is_whole else parameter)
    return tuple(parameters)


def _sizes(problem_size: object) -> Sizes | None:
    extents = [problem_size] if isinstance(problem_size, int) else problem_size
    if not isinstance(extents, list) or not extents or len(extents) > len(SIZE_NAMES):
        return None
    if not all(isinstance(extent, int) and extent >= 1 for extent in extents):
        return None
    return dict(zip(SIZE_NAMES, extents, strict=False))
