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
    Costs,
    RecordedResult,
    Recording,
    domains,
    recorded_config,
    recorded_number,
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
    """Whether a JSON object looks like a file of this format."""
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
    results = tuple(_result(row, number, names, unit_ms) for number, row in enumerate(rows))
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
    own = recording.extras if recording.format == NAME else {}
    metadata: dict[str, Any] = {"timeunit": "milliseconds"}
    metadata |= {"kernel": recording.kernel, "device": recording.device}
    if recording.sizes is not None:
        metadata["sizes"] = dict(recording.sizes)
    data = {"schema_version": _VERSION, **own, "metadata": metadata | own.get("metadata", {})}
    data["results"] = [
        _row(result, result.extras if recording.format == NAME else {}) for result in recording.results
    ]
    return json.dumps(data, indent=1) + "\n"


def _result(row: Any, number: int, names: list[str], unit_ms: float) -> RecordedResult:
    place = f"results[{number}]"
    extras = dict(values.mapping(row, place))
    tried = recorded_config(values.mapping(extras.pop("configuration", None), place), names, place)
    times = dict(values.mapping(extras.pop("times", {}), f"{place}.times"))
    status = _STATUS[values.choice(_STATUS)(extras.pop("invalidity", "correct"), f"{place}.invalidity")]
    measurements = list(_MEASUREMENTS(extras.pop("measurements", []), f"{place}.measurements"))
    time = next((item for item in measurements if item.get("name") == "time"), None)
    if time is not None and (status is Status.OK or isinstance(time.get("value"), str)):
        measurements.remove(time)
    else:
        time = {"value": "no time is recorded"} if status is Status.OK else None
    time_ms, detail = None, ""
    if time is not None:
        scale = _unit_ms(time["unit"], f"{place}: time") if time.get("unit") else unit_ms
        value = recorded_number(time.get("value"))
        time_ms, detail = (None, str(time.get("value"))) if value is None else (value * scale, "")
        kept = time if scale == 1.0 else time | {"unit": "ms"}
        extras["time"] = _TIME | {name: item for name, item in kept.items() if name != "value"}
    if time_ms is None and status is Status.OK:
        status = Status.LAUNCH_ERROR
    extras = _defaults(status) | extras | {"times": times, "measurements": measurements}
    samples, costs = _samples(times, unit_ms), _costs(times, unit_ms)
    return RecordedResult(tried, status, time_ms, detail, samples, costs, extras)


def _samples(times: dict[str, Any], unit_ms: float) -> tuple[float, ...]:
    """Remove and return the times of runs; leave anything else of that name."""
    numbers = [recorded_number(item) for item in values.items(times.get("runtimes", []), "runtimes")]
    found = tuple(number * unit_ms for number in numbers if number is not None)
    if len(found) != len(numbers):
        return ()
    if found:
        del times["runtimes"]
    return found


def _costs(times: dict[str, Any], unit_ms: float) -> Costs:
    """Remove and return the costs of the phases."""
    found = {}
    for phase, name in _PHASES.items():
        value = recorded_number(times.get(phase))
        if value is not None:
            found[name] = value * unit_ms
            del times[phase]
    return Costs(**found)


def _row(result: RecordedResult, extras: Mapping[str, Any]) -> dict[str, Any]:
    times = {phase: getattr(result.costs, name) for phase, name in _PHASES.items()}
    times = {phase: value for phase, value in times.items() if value is not None}
    if result.samples_ms:
        times["runtimes"] = list(result.samples_ms)
    value = result.detail if result.time_ms is None else result.time_ms
    measured = [_TIME | extras.get("time", {}) | {"value": value}] if value != "" else []
    return {
        "configuration": dict(result.config),
        **_defaults(result.status),
        **{name: item for name, item in extras.items() if name != "time"},
        "times": times | extras.get("times", {}),
        "invalidity": _INVALIDITY[result.status],
        "measurements": measured + extras.get("measurements", []),
    }


def _defaults(status: Status) -> dict[str, Any]:
    """Entries that the format requires and a recording need not have."""
    return {"correctness": int(status is Status.OK), "objectives": ["time"]}


def _unit_ms(unit: object, place: str) -> float:
    if not isinstance(unit, str) or unit.lower() not in _TO_MS:
        raise values.Damaged(place, "a unit: ms, s, us or ns", unit)
    return _TO_MS[unit.lower()]
