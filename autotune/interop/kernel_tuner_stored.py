"""Kernel Tuner's stored results: the best few of each device and problem size. They are read, not written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from autotune.errors import InputError
from autotune.interop.files import config, mapping
from autotune.interop.kernel_tuner_cache import SIZE_NAMES
from autotune.interop.recording import RecordedResult, Recording, domains, recorded_number
from autotune.model import Sizes
from autotune.trials import Status

NAME = "kernel-tuner-stored"


def is_stored(data: Mapping[str, Any]) -> bool:
    """Whether a JSON object looks like a file of this format."""
    return {"version_number", "tunable_parameters", "data"} <= data.keys()


def read(data: Mapping[str, Any], path: Path) -> tuple[Recording, ...]:
    """A recording for each device and problem size; raises InputError naming the entry.

    The format writes a device's name with underscores for everything but letters and digits.
    """
    if data.get("objective") != "time":
        raise InputError(f"{path}: objective: expected time, found {data.get('objective')!r}")
    names, rows = data["tunable_parameters"], data["data"]
    if not isinstance(names, list) or not isinstance(rows, list) or not rows:
        raise InputError(f"{path}: data: expected a list with an entry for each configuration")
    found: dict[tuple[str, str], list[RecordedResult]] = {}
    for number, row in enumerate(rows):
        place = f"data[{number}]"
        entry = mapping(row, path, place)
        values = mapping(entry.get("tunable_parameters"), path, f"{place}.tunable_parameters")
        time_ms = recorded_number(entry.get("time"))
        if time_ms is None:
            raise InputError(f"{path}: {place}.time: expected a number, found {entry.get('time')!r}")
        key = str(entry.get("device_name")).replace("_", " ").strip(), str(entry.get("problem_size"))
        result = RecordedResult(config(values, names, path, place), Status.OK, time_ms)
        found.setdefault(key, []).append(result)
    return tuple(
        Recording(
            kernel=str(data.get("kernel_name")),
            device=device,
            sizes=_sizes(size),
            parameters=domains(names, [result.config for result in results]),
            results=tuple(results),
            format=NAME,
        )
        for (device, size), results in found.items()
    )


def _sizes(text: str) -> Sizes | None:
    extents = text.split("x")
    if len(extents) > len(SIZE_NAMES) or not all(extent.isdigit() and int(extent) for extent in extents):
        return None
    return dict(zip(SIZE_NAMES, map(int, extents), strict=False))
