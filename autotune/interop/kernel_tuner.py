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
from autotune.core.trials import Status
from autotune.interop.recording import (
    RecordedResult,
    Recording,
    domains,
    recorded_config,
    recorded_costs,
    recorded_number,
    recorded_samples,
    written_costs,
)

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
}
_NAMES = "problem_size_names"  # of our own: a cache of Kernel Tuner has the extents only
_HEADER = ("device_name", "kernel_name", "tune_params_keys", "tune_params", "cache")
SIZE_NAMES = ("problem_size_x", "problem_size_y", "problem_size_z")  # as its kernels name them


def is_kernel_tuner_cache(text: str) -> bool:
    """True if a text looks like a file of this format, closed or not."""
    return '"tune_params_keys"' in text[:100_000]


def parse(text: str) -> dict[str, Any]:
    """Parse a file, which may lack the closing braces; raises ValueError."""
    text = text.rstrip()
    try:
        data = values.load(text)
    except values.NoJson:
        data = values.load(text.rstrip(",") + "}\n}")
    parsed: dict[str, Any] = values.mapping(data, "")
    return parsed


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
    results = tuple(_result(row, f"cache[{key}]", names, objective) for key, row in rows.items())
    if not results:
        raise values.Damaged("cache", "an entry for each configuration", {})
    return Recording(
        kernel=values.text(data["kernel_name"], "kernel_name"),
        device=values.text(data["device_name"], "device_name"),
        sizes=_sizes(data.get("problem_size"), data.get(_NAMES)),
        parameters=domains(names, [result.config for result in results]),
        results=results,
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
    for result in recording.results:
        key = ",".join(str(result.config[name]) for name in names)
        rows.append(json.dumps({key: _row(result)})[1:-1])
    opened = json.dumps(header | {"cache": {}}, indent="").removesuffix("}\n}")
    return f"{opened}\n" + ",\n".join(rows) + "}\n}"


def _result(row: Mapping[str, Any], place: str, names: list[str], objective: str) -> RecordedResult:
    config = recorded_config(row, names, place)
    entries = {name: item for name, item in row.items() if name not in config}
    errors = (entries.get(key) for key in (_ERROR, objective, "time"))
    error = next((text for text in errors if isinstance(text, str)), None)
    if error is None and "time" not in entries:  # where a parameter has this name, too
        raise values.Damaged(place, "a time or an error; other objectives are not supported", dict(row))
    time_ms = None if error else recorded_number(entries["time"])
    detail = error or (_RUNTIME if time_ms is None else "")
    return RecordedResult(
        config=config,
        status=Status.OK if time_ms is not None else _STATUS.get(detail, Status.LAUNCH_ERROR),
        time_ms=time_ms,
        detail=detail,
        samples_ms=recorded_samples(entries.get("times", []), f"{place}.times"),
        costs=recorded_costs(entries, _COSTS),
    )


def _row(result: RecordedResult) -> dict[str, Any]:
    row: dict[str, Any] = dict(result.config)
    if result.time_ms is not None:
        row["time"] = result.time_ms
    else:
        is_theirs = result.detail.isidentifier() and result.detail.endswith("Config")
        row[_ERROR] = result.detail if is_theirs else _FAILURE.get(result.status, _RUNTIME)
    if result.samples_ms:
        row["times"] = list(result.samples_ms)
    return row | written_costs(result.costs, _COSTS)


def _sizes(problem_size: object, named: object) -> Sizes | None:
    extents = [problem_size] if isinstance(problem_size, int) else problem_size
    names = SIZE_NAMES if named is None else values.distinct_names(values.items(named, _NAMES), _NAMES)
    if not isinstance(extents, list) or not extents or len(extents) > len(names):
        return None
    if not all(type(extent) is int and 1 <= extent < values.INT64_END for extent in extents):
        return None
    return dict(zip(names, extents, strict=False))
