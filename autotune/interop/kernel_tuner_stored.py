"""Kernel Tuner's stored results, the best few of each device and problem size; only read, not written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from autotune.core import json_values as values
from autotune.core.records import Sizes
from autotune.core.trials import Status
from autotune.interop.kernel_tuner import SIZE_NAMES
from autotune.interop.recording import RecordedResult, Recording, domains, recorded_config, recorded_number

NAME = "kernel-tuner-stored"
_EXTENT = re.compile("[1-9][0-9]{0,17}")


def is_stored(data: Mapping[str, Any]) -> bool:
    """Whether a JSON object looks like a file of this format."""
    return {"version_number", "tunable_parameters", "data"} <= data.keys()


def read(data: Mapping[str, Any]) -> tuple[Recording, ...]:
    """Read a recording for each device and problem size; raises Damaged naming the entry.

    In device names the format has underscores instead of anything but letters and digits.
    """
    values.choice(("time",))(data.get("objective"), "objective")
    kernel = values.text(data.get("kernel_name"), "kernel_name")
    names = values.distinct_names(
        values.items(data["tunable_parameters"], "tunable_parameters"), "tunable_parameters"
    )
    rows = values.items(data["data"], "data")
    if not rows:
        raise values.Damaged("data", "an entry for each configuration", rows)
    found: dict[tuple[str, str], list[RecordedResult]] = {}
    for number, row in enumerate(rows):
        place = f"data[{number}]"
        entry = values.mapping(row, place)
        tried = values.mapping(entry.get("tunable_parameters"), f"{place}.tunable_parameters")
        time_ms = recorded_number(entry.get("time"))
        if time_ms is None:
            raise values.Damaged(f"{place}.time", "a number", entry.get("time"))
        key = str(entry.get("device_name")).replace("_", " ").strip(), str(entry.get("problem_size"))
        result = RecordedResult(recorded_config(tried, names, place), Status.OK, time_ms)
        found.setdefault(key, []).append(result)
    return tuple(
        Recording(
            kernel=kernel,
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
    if len(extents) > len(SIZE_NAMES) or not all(map(_EXTENT.fullmatch, extents)):
        return None
    return dict(zip(SIZE_NAMES, map(int, extents), strict=False))
