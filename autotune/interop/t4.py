"""T4, the auto-tuning community's results format: JSON, one entry per configuration.

Source: the results schema, version 1.0.0, in the kernel_tuner package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotune.core import json_values as values
from autotune.core.trials import Status, Trial
from autotune.interop.recording import (
    CostNames,
    Recording,
    domains,
    imported_trial,
    recorded_config,
    recorded_number,
)

_VERSION = "1.0.0"
_TO_MS = dict.fromkeys(("", "ms", "milliseconds", "miliseconds"), 1.0) | {
    **dict.fromkeys(("s", "seconds"), 1e3),
    **dict.fromkeys(("us", "microseconds"), 1e-3),
    **dict.fromkeys(("ns", "nanoseconds"), 1e-6),
}
_STATUS = {
    "correct": Status.OK,
    "compile": Status.COMPILE_ERROR,
    "runtime": Status.LAUNCH_ERROR,
    "correctness": Status.WRONG_RESULT,
    "timeout": Status.TIMEOUT,
    "constraints": Status.INVALID,
}
_INVALIDITY = {status: text for text, status in _STATUS.items()} | {
    Status.COMPILE_TIMEOUT: "timeout",
    Status.OUT_OF_BOUNDS: "correctness",
    Status.CRASHED: "runtime",
    Status.MEASUREMENT_ERROR: "runtime",
    Status.MISSES_REQUIREMENT: "constraints",
}
_TIME = {"name": "time", "unit": "ms"}
_MEASUREMENTS = values.list_of(values.mapping)
_SIZES = values.nullable(values.mapping_of(values.size, values.name))  # null: the file does not say
_COSTS = CostNames("compilation", "benchmark", ("framework", "validation"), "runtimes")


def is_t4(data: Mapping[str, Any]) -> bool:
    """True if a JSON object looks like a file of this format."""
    return "results" in data


def read(data: Mapping[str, Any], path: Path) -> Recording:
    """Read the results of a file, with all times in milliseconds.

    The format names neither kernel nor device: they come from the metadata if autotune wrote the file, else
    from the path. Raises Damaged naming the entry.
    """
    rows = values.items(data["results"], "results")
    if not rows:
        raise values.Damaged("results", "an entry for each configuration", rows)
    metadata = values.mapping(data.get("metadata", {}), "metadata")
    unit_ms = _unit_ms(metadata.get("timeunit", ""), "metadata.timeunit")
    parameters = values.mapping(
        values.mapping(rows[0], "results[0]").get("configuration"), "results[0].configuration"
    )
    names = values.distinct_names(list(parameters), "results[0].configuration")
    trials = tuple(_trial(row, f"results[{number}]", names, unit_ms) for number, row in enumerate(rows))
    kernel = path.resolve().parent.name  # KERNEL/DEVICE_T4.json.gz, as the hub of recorded spaces has it
    device = path.name.split(".json")[0].removesuffix("_T4")
    return Recording(
        kernel=values.text(metadata.get("kernel", kernel), "metadata.kernel"),
        device=values.text(metadata.get("device", device), "metadata.device"),
        sizes=_SIZES(metadata.get("sizes"), "metadata.sizes"),
        parameters=domains(parameters, [trial.config for trial in trials]),
        trials=trials,
    )


def write(recording: Recording) -> str:
    """The text of a file, which `read` turns into the same trials, whatever its path."""
    metadata: dict[str, Any] = {"kernel": recording.kernel, "device": recording.device}
    if recording.sizes is not None:
        metadata["sizes"] = dict(recording.sizes)
    metadata["timeunit"] = "milliseconds"
    rows = [_row(trial) for trial in recording.trials]
    return json.dumps({"schema_version": _VERSION, "metadata": metadata, "results": rows}, indent=1) + "\n"


def _trial(value: Any, place: str, names: list[str], unit_ms: float) -> Trial:
    row = values.mapping(value, place)
    times = values.mapping(row.get("times", {}), f"{place}.times")
    status = _STATUS[values.choice(_STATUS)(row.get("invalidity", "correct"), f"{place}.invalidity")]
    measurements = _MEASUREMENTS(row.get("measurements", []), f"{place}.measurements")
    empty: dict[str, Any] = {}
    time = next((item for item in measurements if item.get("name") == "time"), empty)
    result = time.get("value", "no time is recorded" if status is Status.OK else "")
    detail, time_ms = result if isinstance(result, str) else "", None
    if status is Status.OK and (number := recorded_number(result)) is not None:
        time_ms = number * (_unit_ms(time["unit"], f"{place}: time") if time.get("unit") else unit_ms)
    elif status is Status.OK:
        status, detail = Status.LAUNCH_ERROR, str(result)
    config = recorded_config(values.mapping(row.get("configuration"), place), names, place)
    return imported_trial(config, status, time_ms, detail, **_COSTS.read(times, f"{place}.times", unit_ms))


def _row(trial: Trial) -> dict[str, Any]:
    value = trial.detail if trial.time_ms is None else trial.time_ms
    return {
        "configuration": dict(trial.config),
        "correctness": int(trial.status is Status.OK),  # required, as the objectives are
        "objectives": ["time"],
        "times": _COSTS.written(trial),
        "invalidity": _INVALIDITY[trial.status],
        "measurements": [_TIME | {"value": value}] if value != "" else [],
    }


def _unit_ms(unit: object, place: str) -> float:
    if not isinstance(unit, str) or unit.lower() not in _TO_MS:
        raise values.Damaged(place, "a unit: ms, s, us or ns", unit)
    return _TO_MS[unit.lower()]
