"""Write the cache's results into files that a framework reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from autotune.core import json_values as values
from autotune.core.frozen import replace
from autotune.core.records import Config, Entry, KernelRecord
from autotune.core.text import hint
from autotune.core.version import __version__
from autotune.errors import InputError, WriteError
from autotune.frameworks.config_file import (
    BLOCKS,
    KEY,
    OPTIONS,
    SWITCHES,
    TILE,
    ConfigFile,
    Format,
    load,
    quantization_of,
)
from autotune.frameworks.incumbents import Incumbents, package_folders
from autotune.frameworks.lint import BESIDE, refusals
from autotune.processes.files import locked, replace_file
from autotune.serving.cache import Folder
from autotune.serving.device_records import DeviceRecord, device_records

_BEFORE = ".before-autotune"  # ends the name of an installed file's copy; an empty one: there was none
_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class Request:
    """The results to export.

    Attributes:
        kernel: Of the cache.
        format: Of the files.
        device: A device's name for the files' names; None takes the one of the results.
        quantization: For the files' names; None: `fp8_w8a8` with blocks, else nothing.
        data: The content of the inputs that was tuned for; None takes the newest result.
    """

    kernel: str
    format: Format
    device: str | None = None
    quantization: str | None = None
    data: str | None = None


@dataclass(frozen=True)
class Written:
    """A file that was written.

    Attributes:
        path: The file.
        tuned: Keys with results: numbers of tokens, or what a program's kernel is called with.
        known: Of these, the ones where what was served before stays, as it is not slower.
        kept: Keys that only the file had.
    """

    path: Path
    tuned: tuple[int | str, ...]
    known: tuple[int | str, ...]
    kept: tuple[int | str, ...]


def export(request: Request, folder: Path | None, cache: Folder | None = None) -> list[Written]:
    """Merge results into a folder's files, or into those of the installed framework.

    Args:
        request: What to export.
        folder: Where the files lie; None stands for the installed framework, whose old files are kept.
        cache: Where results are looked for.

    Raises:
        InputError: Names are not those of the format, or the framework would not accept an entry.
        NoConfig: There are no results.
        CacheError: A file of the cache is damaged.
        WriteError: A file cannot be written.
    """
    if folder is not None:
        require_not_installed(folder, request.format.package)
    root = folder or installed_folder(request.format)
    records = exported_records(request.kernel, cache, request.data, request.device)
    plans = [plan for one in records for plan in _plans(request, one, root)]
    return [write(request.kernel, plan, keeps_old=folder is None) for plan in plans]


def exported_records(
    kernel: str, cache: Folder | None, data: str | None, device_name: str | None = None
) -> list[DeviceRecord]:
    """The devices with results, the newest result of each last.

    Args:
        kernel: Of the cache.
        cache: Where results are looked for.
        data: The content of the inputs that was tuned for; None takes any.
        device_name: A name that files are to give the device, which can be one only.

    Raises:
        InputError: There is no such result, or a name for several devices.
        NoConfig: There are no results.
        CacheError: A file of the cache is damaged.
    """
    found = []
    for one in device_records(kernel, cache):
        entries = [entry for entry in one.record.entries if data in (None, entry.data)]
        if entries:
            entries.sort(key=lambda entry: entry.provenance.tuned_at)
            found.append(one._replace(record=replace(one.record, entries=tuple(entries))))
    if not found:
        raise InputError(f"{kernel}: no result is for --data {data}")
    if device_name is not None and len(found) > 1:
        names = ", ".join(one.device.name for one in found)
        raise InputError(f"--device-name: there are results of several devices: {names}")
    return found


def restore(kernel: str, root: Path) -> list[Path]:
    """Put back a folder's files that exports of a kernel replaced; raises InputError without any."""
    done = []
    for old in sorted(root.rglob(f"*{_BEFORE}")):
        path = old.with_name(old.name.removesuffix(_BEFORE))
        if _provenance(_beside(path)).get("kernel") == kernel:
            with _writing(path):
                if old.stat().st_size:
                    replace_file(path, old.read_bytes())
                else:
                    path.unlink(missing_ok=True)
                _beside(path).unlink()
                old.unlink()
            done.append(path)
    if not done:
        raise InputError(f"{root}: no file was replaced by an export of {kernel}")
    return done


def installed_folder(format_: Format) -> Path:
    """The folder of the installed framework's files, found without importing it; raises InputError."""
    for place in package_folders(format_.package):
        if (place / format_.folder).is_dir():
            return place / format_.folder
    raise InputError(
        f"{format_.package}/{format_.folder}: not found among this Python's packages; run this in the "
        f"environment of {format_.package}, or write to a folder with -o"
    )


def require_not_installed(folder: Path, package: str) -> None:
    """Raise InputError for a folder of this package, or of any that is installed."""
    path = folder.resolve()
    is_of_package = any(path.is_relative_to(one) for one in package_folders(package))
    if is_of_package or any(one in path.parts for one in _INSTALLED):
        raise InputError(
            f"{folder}: belongs to an installed package; --install writes there, and keeps the old files"
        )


@dataclass(frozen=True)
class Plan:
    """The content of one file to be written, before anything is."""

    path: Path
    text: str
    results: Mapping[Any, tuple[Entry, Config]]  # by key, with the configuration that serves
    kept: tuple[Any, ...] = ()  # keys that only the file had
    beside: str = BESIDE  # ends the name of the file with the origin of its entries

    @property
    def origin(self) -> Path:
        """The file with the origin of its entries."""
        return _beside(self.path, self.beside)


def _plans(request: Request, one: DeviceRecord, root: Path) -> Iterator[Plan]:
    """The files of a device; raises InputError."""
    form = request.format
    if request.device is None and (one.device.backend, one.device.kind) != ("cuda", "gpu"):
        raise InputError(
            f"{one.device.name}: {form.package} may have another name for it: give that with --device-name"
        )
    for path, entries in _files(request, one, root).items():
        shape = form.shape(path.name)
        assert shape is not None
        old = load(form, path) if path.exists() else ConfigFile({})
        results = {}
        installed = Incumbents(form, request.device or one.device.name, shape.quantization)
        for tokens, entry in entries.items():
            _, now = installed.entry(entry.sizes) or ("", None)
            known = (old.entries.get(tokens), now, one.record.default)
            served = next(
                (Config(item) for item in known if item and Config(item) in entry.ties), entry.config
            )
            for reason in refusals(form, shape, served):
                raise InputError(f"{path.name}: M = {tokens}: {reason}")
            results[tokens] = entry, served
        merged = {**old.entries, **{tokens: dict(served) for tokens, (_, served) in results.items()}}
        head = dict(old.head)
        if form.heads and not set(old.entries) - set(results):  # others' entries may be of another version
            head[form.heads[0]] = max(_version(entry) for entry, _ in results.values())
        content = ConfigFile(merged, head)
        text = form.text(content)
        assert form.read(text) == content
        yield Plan(path, text, results, tuple(sorted(set(old.entries) - set(results))))


def _files(request: Request, one: DeviceRecord, root: Path) -> dict[Path, dict[int, Entry]]:
    """The newest result for each file and number of tokens; raises InputError."""
    form = request.format
    _check_names(form, one.record)
    found: dict[Path, dict[int, Entry]] = {}
    for entry in one.record.entries:
        sizes = {name: entry.sizes[name] for name in (*form.sizes, *BLOCKS) if name in entry.sizes}
        asked = request.quantization
        quantization = quantization_of(sizes) if asked is None else asked
        name = form.name_of(sizes, request.device or one.device.name, quantization)
        if reason := form.unasked(name):
            raise InputError(f"{name}: {reason}; name another one with --quantization")
        place = root / form.subfolder.format(version=_version(entry).replace(".", "_"))
        found.setdefault(place / name, {})[entry.sizes[KEY]] = entry
    return found


def _check_names(form: Format, record: KernelRecord) -> None:
    """Raise InputError for a kernel whose sizes or parameters have other names than the format's."""
    known = (*TILE, *OPTIONS, *SWITCHES)
    for name in sorted(record.parameter_names):
        if name not in known:
            raise InputError(f"{record.kernel}: {form.package} knows no parameter {name}{hint(name, known)}")
    missing = [name for name in TILE if name not in record.parameter_names]
    for entry in record.entries:
        missing += [name for name in (*form.sizes, KEY) if name not in entry.sizes]
        if (BLOCKS[0] in entry.sizes) != (BLOCKS[1] in entry.sizes):
            missing += BLOCKS
    if missing:
        raise InputError(
            f"{record.kernel}: has no {', '.join(dict.fromkeys(missing))}, which files of {form.name} need"
        )


def _version(entry: Entry) -> str:
    """The version of Triton that a result was found with; raises InputError."""
    match = re.search(r"triton (\d+(?:\.\d+)+)", entry.provenance.compiler, re.IGNORECASE)
    if match is None:
        raise InputError(f"{entry.provenance.compiler or 'unknown'}: the result's compiler is not Triton")
    return match[1]


def write(kernel: str, plan: Plan, *, keeps_old: bool) -> Written:
    """Write a file and, next to it, the origin of its entries; raises WriteError."""
    entries = dict(_provenance(plan.origin).get("entries", {}))
    known = []
    for key, (entry, served) in sorted(plan.results.items()):
        if served != entry.config:
            known.append(key)
        entries[str(key)] = {
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
    origin = {"kernel": kernel, "autotune": __version__, "entries": entries}
    old = plan.path.with_name(plan.path.name + _BEFORE)
    with _writing(plan.path):
        if keeps_old and not old.exists():
            replace_file(old, plan.path.read_bytes() if plan.path.exists() else b"")
        replace_file(plan.path, plan.text)
        replace_file(plan.origin, json.dumps(origin, indent=1) + "\n")
    return Written(plan.path, tuple(sorted(plan.results)), tuple(known), plan.kept)


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Hold the file's folder; raises WriteError."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with locked(path.parent):
            yield
    except OSError as error:
        raise WriteError(f"{path}: cannot be written: {error.strerror}") from None


def _beside(path: Path, end: str = BESIDE) -> Path:
    return path.with_name(path.name.removesuffix(".json") + end)


def _provenance(path: Path) -> dict[str, Any]:
    """What an earlier export wrote to such a file; empty without one."""
    with suppress(OSError, values.NoJson, values.Damaged, UnicodeDecodeError):
        found = values.mapping(values.load(path.read_text(encoding="utf-8")), "")
        return {**found, "entries": values.mapping(found.get("entries", {}), "entries")}
    return {}
