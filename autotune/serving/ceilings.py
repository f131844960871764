"""Measured ceilings of a device, kept as `ROOT/<gpu-slug>/device-ceilings.json` next to its results."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from autotune.core import json_values as values
from autotune.core.records import Value
from autotune.serving.cache import read_roots

FILE = "device-ceilings.json"  # no kernel has a hyphen in its name
_SCHEMA = 1
TENSOR = "bfloat16 tensor multiply-add"  # the name of a figure
BYTES, OPERATIONS, SECONDS = "bytes_per_s", "operations_per_s", "s"


@dataclass(frozen=True)
class Ceiling:
    """One figure: a rate in bytes or operations per second, or a time in seconds."""

    name: str  # such as "memory read"
    unit: str
    value: float
    sizes: Mapping[str, int]
    config: Mapping[str, Value]
    nominal: float | None = None  # according to the driver or the data sheet


_READERS = {
    "name": values.text,
    "unit": values.text,
    "value": values.amount,
    "sizes": values.mapping_of(values.size, values.name),
    "config": values.mapping_of(values.scalar, values.name),
    "nominal": values.nullable(values.amount),
}


def ceilings_text(ceilings: Sequence[Ceiling], measured_at: str) -> str:
    """The content of the file."""
    data = {"schema": _SCHEMA, "measured_at": measured_at, "ceilings": [asdict(item) for item in ceilings]}
    return json.dumps(data, indent=1) + "\n"


def read_ceilings(folder: Path) -> dict[str, Ceiling]:
    """The figures of a folder by name; empty if they were not measured or the file is damaged."""
    try:
        data = values.load_object((folder / FILE).read_text(), _SCHEMA)
        rows = values.items(data.get("ceilings"), "ceilings")
        ceilings = [values.record(Ceiling, _READERS, {"nominal"}, row, "ceilings") for row in rows]
    except (OSError, ValueError):
        return {}
    return {ceiling.name: ceiling for ceiling in ceilings}


def known_ceilings(folder: str, cache: Path | None) -> dict[str, Ceiling]:
    """The measured ceilings of a folder's device; the first cache that has a figure counts."""
    ceilings: dict[str, Ceiling] = {}
    for root in reversed(read_roots(cache)):
        ceilings |= read_ceilings(Path(root) / folder)
    return ceilings
