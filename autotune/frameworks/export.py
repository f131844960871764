"""Results of the cache as the files of vLLM and SGLang."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from autotune.core.records import Config, Entry, KernelRecord
from autotune.core.text import hint
from autotune.errors import InputError
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
from autotune.frameworks.installed import InstalledConfigs
from autotune.frameworks.lint import refusals
from autotune.frameworks.planned_file import (
    PlannedFile,
    exported_records,
    package_folders,
    require_not_installed,
    write,
)
from autotune.serving.cache import Folder
from autotune.serving.device_records import DeviceRecord


@dataclass(frozen=True)
class ExportRequest:
    """The results to export."""

    kernel: str
    format: Format
    device: str | None = None  # a name for the files' names; None takes the one of the results
    quantization: str | None = None  # for the files' names; None: `fp8_w8a8` with blocks, else nothing
    data: str | None = None  # the content of the inputs that was tuned for; None takes the newest result


def export(request: ExportRequest, folder: Path | None, cache: Folder | None = None) -> list[PlannedFile]:
    """Merge results into a folder's files, or without one into the installed framework's.

    Old files of the framework are kept.

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
    files = (file for known in records for file in _planned(request, known, root))
    return write(request.kernel, files, keeps_old=folder is None)


def installed_folder(format_: Format) -> Path:
    """The folder of the installed framework's files, found without importing it; raises InputError."""
    for place in package_folders(format_.package):
        if (place / format_.folder).is_dir():
            return place / format_.folder
    raise InputError(
        f"{format_.package}/{format_.folder}: not found among this Python's packages; run this in the "
        f"environment of {format_.package}, or write to a folder with -o"
    )


def _planned(request: ExportRequest, tuned: DeviceRecord, root: Path) -> Iterator[PlannedFile]:
    """The files of a device; raises InputError."""
    form = request.format
    if request.device is None and (tuned.device.backend, tuned.device.kind) != ("cuda", "gpu"):
        raise InputError(f"{tuned.device.name}: give {form.package}'s name of this device with --device-name")
    for path, entries in _files(request, tuned, root).items():
        shape = form.shape(path.name)
        assert shape is not None
        old = load(form, path) if path.exists() else ConfigFile({})
        results = {}
        installed = InstalledConfigs(form, request.device or tuned.device.name, shape.quantization)
        for tokens, entry in entries.items():
            _, now = installed.entry(entry.sizes) or ("", None)
            known = (old.entries.get(tokens), now, tuned.record.default)
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
        yield PlannedFile(path, text, results, tuple(sorted(set(old.entries) - set(results))))


def _files(request: ExportRequest, tuned: DeviceRecord, root: Path) -> dict[Path, dict[int, Entry]]:
    """The newest result for each file and number of tokens; raises InputError."""
    form = request.format
    _check_names(form, tuned.record)
    newest: dict[Path, dict[int, Entry]] = {}
    for entry in tuned.record.entries:
        sizes = {name: entry.sizes[name] for name in (*form.sizes, *BLOCKS) if name in entry.sizes}
        asked = request.quantization
        quantization = quantization_of(sizes) if asked is None else asked
        name = form.name_of(sizes, request.device or tuned.device.name, quantization)
        if reason := form.unasked(name):
            raise InputError(f"{name}: {reason}; choose another dtype with --quantization")
        place = root / form.subfolder.format(version=_version(entry).replace(".", "_"))
        newest.setdefault(place / name, {})[entry.sizes[KEY]] = entry
    return newest


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
            f"{record.kernel}: lacks {', '.join(dict.fromkeys(missing))}, which files of {form.name} need"
        )


def _version(entry: Entry) -> str:
    """The version of Triton that a result was found with; raises InputError."""
    match = re.search(r"triton (\d+(?:\.\d+)+)", entry.provenance.compiler, re.IGNORECASE)
    if match is None:
        raise InputError(f"expected a result compiled with Triton, found {entry.provenance.compiler!r}")
    return match[1]
