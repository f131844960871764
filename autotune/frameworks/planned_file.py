"""Files of other programs with results of the cache: what is in them, written as a whole, and put back."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from autotune.core import json_values as values
from autotune.core.records import Config, Entry
from autotune.core.version import __version__
from autotune.errors import InputError
from autotune.processes.files import locked, replace_file, writing
from autotune.serving.cache import Folder
from autotune.serving.device_records import DeviceRecord, device_records

BESIDE = ".provenance.json"  # ends the name of what is written next to a file
_BEFORE = ".before-autotune"  # ends the name of an installed file's copy; an empty one: there was none
_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class PlannedFile:
    """A file with results, before it is written.

    Results, with the configuration that serves, are by their key in the file: a number of tokens, or what a
    program's kernel is called with.
    """

    path: Path
    text: str
    results: Mapping[Any, tuple[Entry, Config]]
    kept: tuple[Any, ...] = ()  # keys that only the file had
    beside: str = BESIDE  # ends the name of the file with the origin of its entries

    @property
    def known(self) -> list[Any]:
        """The keys of results where what was served before stays, as it is not slower."""
        return sorted(key for key, (entry, served) in self.results.items() if served != entry.config)

    @property
    def origin(self) -> Path:
        """The file with the origin of its entries."""
        return _beside(self.path, self.beside)


def exported_records(
    kernel: str, cache: Folder | None, data: str | None, device_name: str | None = None
) -> list[DeviceRecord]:
    """The devices with results for inputs named `data`, or any, the newest result of each last.

    Raises:
        InputError: There is no such result, or a name for several devices.
        NoConfig: There are no results.
        CacheError: A file of the cache is damaged.
    """
    records = []
    for known in device_records(kernel, cache):
        entries = [entry for entry in known.record.entries if data in (None, entry.data)]
        if entries:
            entries.sort(key=lambda entry: entry.provenance.tuned_at)
            records.append(known._replace(record=replace(known.record, entries=tuple(entries))))
    if not records:
        raise InputError(f"{kernel}: has no result for --data {data}")
    if device_name is not None and len(records) > 1:
        names = ", ".join(known.device.name for known in records)
        raise InputError(f"--device-name: expected results of one device, found some of {names}")
    return records


def require_not_installed(folder: Path, package: str) -> None:
    """Raise InputError for a folder of this package, or of any that is installed."""
    path = folder.resolve()
    is_of_package = any(path.is_relative_to(place) for place in package_folders(package))
    if is_of_package or any(name in path.parts for name in _INSTALLED):
        raise InputError(
            f"{folder}: belongs to an installed package; to write there and keep its files, give --install"
        )


def package_folders(package: str) -> list[Path]:
    """The folders of an installed package, found without importing it; none without it."""
    spec = find_spec(package)
    return [Path(place).resolve() for place in (spec and spec.submodule_search_locations) or ()]


def write(kernel: str, files: Iterable[PlannedFile], *, keeps_old: bool) -> list[PlannedFile]:
    """Write files of a kernel's results, and the origin of their entries, once all are planned.

    Raises WriteError.
    """
    planned = list(files)
    for file in planned:
        entries = dict(_provenance(file.origin).get("entries", {}))
        entries |= {str(key): _origin(entry) for key, (entry, _) in sorted(file.results.items())}
        origin = {"kernel": kernel, "autotune": __version__, "entries": entries}
        old = file.path.with_name(file.path.name + _BEFORE)
        with writing(file.path):
            file.path.parent.mkdir(parents=True, exist_ok=True)
            with locked(file.path.parent):
                if keeps_old and not old.exists():
                    replace_file(old, file.path.read_bytes() if file.path.exists() else b"")
                replace_file(file.path, file.text)
                replace_file(file.origin, json.dumps(origin, indent=1) + "\n")
    return planned


def _origin(entry: Entry) -> dict[str, Any]:
    return {
        "time_ms": entry.time_ms,
        "default_time_ms": entry.default_time_ms,
        "fastest": dict(entry.config),
        "device_driver": entry.provenance.driver,
        "compiler": entry.provenance.compiler,
        "tuned_at": entry.provenance.tuned_at,
        "protocol": entry.provenance.protocol,
        "dtype": entry.dtype,
        "sizes": dict(entry.sizes),
        "data": entry.data,
    }


def restore(kernel: str, root: Path) -> list[Path]:
    """Put back a folder's files that exports of a kernel replaced; raises InputError without any."""
    done = []
    for old in sorted(root.rglob(f"*{_BEFORE}")):
        path = old.with_name(old.name.removesuffix(_BEFORE))
        if _provenance(_beside(path)).get("kernel") == kernel:
            with writing(path), locked(path.parent):
                if old.stat().st_size:
                    replace_file(path, old.read_bytes())
                else:
                    path.unlink(missing_ok=True)
                _beside(path).unlink()
                old.unlink()
            done.append(path)
    if not done:
        raise InputError(f"{root}: no export of {kernel} has replaced a file here")
    return done


def _beside(path: Path, end: str = BESIDE) -> Path:
    return path.with_name(path.name.removesuffix(".json") + end)


def _provenance(path: Path) -> dict[str, Any]:
    """What an earlier export wrote to such a file; empty without one."""
    with suppress(OSError, ValueError):
        content = values.load_object(path.read_text(encoding="utf-8"))
        return {**content, "entries": values.mapping(content.get("entries", {}), "entries")}
    return {}
