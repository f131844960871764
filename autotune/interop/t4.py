"""T4, the auto-tuning community's results format: JSON, one entry per configuration.

Source: the results schema, version 1.0.0, in the kernel_tuner package.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotune.core import json_values as values
from autotune.core.trials import Status
from autotune.interop.recording import (
    RecordedResult,
    Recording,
    domains,
    recorded_config,
    recorded_number,
    take_costs,
    take_samples,
    written_costs,
)

NAME = "t4"
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
    "constraints": Status.PRUNED,
}
_INVALIDITY = {status: text for text, status in _STATUS.items()} | {
    Status.COMPILE_TIMEOUT: "timeout",
    Status.OUT_OF_BOUNDS: "correctness",
    Status.CRASHED: "runtime",
    Status.MEASUREMENT_ERROR: "runtime",
}
_OWN = ("kernel", "device", "sizes")  # metadata that autotune adds
_TIME = {"name": "time", "unit": "ms"}
_MEASUREMENTS = values.list_of(values.mapping)
_SIZES = values.nullable(values.mapping_of(values.size, values.name))  # null: the file does not say
_PHASES = {  # names of costs in the format
    "compilation": "compile_ms",
    "benchmark": "benchmark_ms",
    "framework": "framework_ms",
    "validation": "verification_ms",
    "search_algorithm": "search_ms",
}


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
    first = values.mapping(
        values.mapping(rows[0], "results[0]").get("configuration"), "results[0].configuration"
    )
    names = values.distinct_names(list(first), "results[0].configuration")
    results = tuple(_result(row, f"results[{number}]", names, unit_ms) for number, row in enumerate(rows))
    kernel = path.resolve().parent.name  # KERNEL/DEVICE_T4.json.gz, as the hub of recorded spaces has it
    device = path.name.split(".json")[0].removesuffix("_T4")
    extras = {name: value for name, value in data.items() if name not in ("results", "metadata")}
    unit = metadata["timeunit"] if unit_ms == 1.0 and "timeunit" in metadata else "milliseconds"
    kept = {name: value for name, value in metadata.items() if name not in _OWN}
    extras["metadata"] = kept | {"timeunit": unit}
    return Recording(
        kernel=values.text(metadata.get("kernel", kernel), "metadata.kernel"),
        device=values.text(metadata.get("device", device), "metadata.device"),
        sizes=_SIZES(metadata.get("sizes"), "metadata.sizes"),
        parameters=domains(first, [result.config for result in results]),
        results=results,
        format=NAME,
        extras={"schema_version": _VERSION} | extras,
    )


def write(recording: Recording) -> str:
    """The text of a file, which `read` turns into the same recording, whatever its path."""
    own = recording.in_format(NAME)
    metadata: dict[str, Any] = {"timeunit": "milliseconds", "kernel": own.kernel, "device": own.device}
    if own.sizes is not None:
        metadata["sizes"] = dict(own.sizes)
    metadata |= own.extras.get("metadata", {})
    data = {"schema_version": _VERSION, **own.extras, "metadata": metadata}
    data["results"] = [_row(result) for result in own.results]
    return json.dumps(data, indent=1) + "\n"


def _result(row: Any, place: str, names: list[str], unit_ms: float) -> RecordedResult:
    extras = dict(values.mapping(row, place))
    config = recorded_config(values.mapping(extras.pop("configuration", None), place), names, place)
    times = dict(values.mapping(extras.pop("times", {}), f"{place}.times"))
    status = _STATUS[values.choice(_STATUS)(extras.pop("invalidity", "correct"), f"{place}.invalidity")]
    measurements = list(_MEASUREMENTS(extras.pop("measurements", []), f"{place}.measurements"))
    time = _take_time(measurements, status)
    time_ms, detail = None, ""
    if time is not None:
        scale = _unit_ms(time["unit"], f"{place}: time") if time.get("unit") else unit_ms
        number = recorded_number(time.get("value"))
        time_ms = None if number is None else number * scale
        detail = str(time.get("value")) if number is None else ""
        converted = {} if scale == 1.0 else {"unit": "ms"}
        extras["time"] = {**_TIME, **time, **converted}
        extras["time"].pop("value", None)
    if time_ms is None and status is Status.OK:
        status = Status.LAUNCH_ERROR
    samples_ms = take_samples(times, "runtimes", f"{place}.times", unit_ms)
    costs = take_costs(times, _PHASES, unit_ms)
    return RecordedResult(
        config=config,
        status=status,
        time_ms=time_ms,
        detail=detail,
        samples_ms=samples_ms,
        costs=costs,
        extras=_required(status) | extras | {"times": times, "measurements": measurements},
    )


def _take_time(measurements: list[dict[str, Any]], status: Status) -> dict[str, Any] | None:
    """Remove and return the measurement of the time, whose value may be a text that says why there is none.

    The number that a failed configuration has is no time of it, and stays.
    """
    time = next((item for item in measurements if item.get("name") == "time"), None)
    if time is not None and (status is Status.OK or isinstance(time.get("value"), str)):
        measurements.remove(time)
        return time
    return {"value": "no time is recorded"} if status is Status.OK else None


def _row(result: RecordedResult) -> dict[str, Any]:
    times: dict[str, Any] = dict(written_costs(result.costs, _PHASES))
    if result.samples_ms:
        times["runtimes"] = list(result.samples_ms)
    value = result.detail if result.time_ms is None else result.time_ms
    measured = [_TIME | result.extras.get("time", {}) | {"value": value}] if value != "" else []
    return {
        "configuration": dict(result.config),
        **_required(result.status),
        **{name: item for name, item in result.extras.items() if name != "time"},
        "times": times | result.extras.get("times", {}),
        "invalidity": _INVALIDITY[result.status],
        "measurements": measured + result.extras.get("measurements", []),
    }


def _required(status: Status) -> dict[str, Any]:
    """Entries that the format requires and a recording need not have."""
    return {"correctness": int(status is Status.OK), "objectives": ["time"]}


def _unit_ms(unit: object, place: str) -> float:
    if not isinstance(unit, str) or unit.lower() not in _TO_MS:
        raise values.Damaged(place, "a unit: ms, s, us or ns", unit)
    return _TO_MS[unit.lower()]
