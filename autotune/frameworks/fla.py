"""The configurations of flash-linear-attention, as version 0.5.2 reads them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autotune.core import json_values as values
from autotune.errors import InputError
from autotune.frameworks.planned_file import PlannedFile, package_folders
from autotune.frameworks.programs import ProgramFormat, ServedTuning
from autotune.processes.files import read_foreign
from autotune.recording.tunings import Plain, Tuning


def _name(device: str) -> str:
    return re.sub(r"[^0-9A-Za-z]+", "_", device).strip("_")


def _root() -> Path:
    for place in package_folders("fla"):
        return place / "configs"
    raise InputError("fla: not found among this Python's packages; write to a folder with -o")


def _refused(tuning: Tuning) -> str:
    has_others = any(isinstance(value, str) and value.startswith("<") for value in tuning.key)
    return "a value of the kernel's key is no number, text or truth value" if has_others else ""


def _planned(folder: Path, answers: Sequence[ServedTuning]) -> Iterator[PlannedFile]:
    """A file for each kernel with an entry for each key; what is there stays."""
    for function in dict.fromkeys(answer.tuning.function for answer in answers):
        mine = [answer for answer in answers if answer.tuning.function == function]
        path = folder / f"{function}.json"
        old = read_foreign(path, _read, "fla would not read it") if path.exists() else {}
        entries = dict(_entries(old))
        results = {}
        for answer in mine:
            name = _digest(answer.tuning.key)
            entries[name] = {
                "autotune_key": list(answer.tuning.key),
                "config": dict(answer.content),
                "best_timing": answer.times_ms,
            }
            results[name] = answer.entry, answer.served
        kept = tuple(sorted(entries.keys() - results.keys()))
        head = {"kernel_name": function, "triton_version": mine[-1].tuning.triton}
        text = json.dumps({**old, **head, "autotune_entries": entries}, indent=2) + "\n"
        yield PlannedFile(path, text, results, kept)


def _digest(key: Sequence[Plain]) -> str:
    text = json.dumps(list(key), separators=(",", ":"), sort_keys=True)
    return hashlib.md5(text.encode(), usedforsecurity=False).hexdigest()


def _read(text: str) -> Mapping[str, Any]:
    """Read a file as the look-up does; raises Damaged or NoJson for what it would not accept."""
    content = values.load_object(text)
    values.nullable(values.mapping)(content.get("default_config"), "default_config")
    for name, entry in values.mapping(_entries(content), "autotune_entries").items():
        values.mapping(values.mapping(entry, name).get("config"), f"{name}.config")
    return content


def _entries(content: Mapping[str, Any]) -> Any:
    entries = content.get("autotune_entries")
    return {} if entries is None else entries


FORMAT = ProgramFormat(package="fla", root=_root, subfolder=_name, planned=_planned, refused=_refused)
