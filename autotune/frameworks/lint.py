"""Check configuration files of frameworks, which needs neither the framework nor a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from autotune.core.text import count_text
from autotune.errors import InputError
from autotune.frameworks import format_of
from autotune.frameworks.config_file import (
    TILE,
    TOKENS,
    ConfigFile,
    Entry,
    Format,
    Shape,
    is_power_of_two,
    load,
)
from autotune.frameworks.planned_file import BESIDE
from autotune.hardware.names import known_gpu, traits_of_name

_LAST_WORKER = {2048, 3072, 4096}
_MAX_WARPS = 32


class Kind(StrEnum):
    """The consequence of a finding."""

    BROKEN = "broken"  # the framework fails, or computes a wrong result
    UNREAD = "unread"  # no look-up reads the file, or only after a change of settings
    INCOMPLETE = "incomplete"  # entries are missing, so that others serve in their place
    UNTRIED = "untried"  # the framework's default may be better, and its tuner could not know
    OTHER = "other"  # another kind of file, which is not checked


@dataclass(frozen=True)
class FileFinding:
    """A finding about a file."""

    path: Path
    kind: Kind
    text: str


def files_of(path: Path) -> list[Path]:
    """A file, or every JSON file of a folder that names a device; raises InputError without one."""
    if path.is_file():
        return [path]
    files = sorted(file for file in path.rglob("*device_name=*.json") if not file.name.endswith(BESIDE))
    if not files:
        raise InputError(
            f"{path}: no file, or a folder without files such as E=8,N=4096,device_name=NVIDIA_H200.json"
        )
    return files


def lint(paths: Iterable[Path], format_: Format | None = None) -> Iterator[FileFinding]:
    """Check files of one format; without one, its name and place decide for each file."""
    for path in paths:
        mine = format_ or format_of(path)
        shape = mine.shape(path.name) if mine else None
        if mine is None or shape is None:
            yield FileFinding(path, Kind.OTHER, "its name is of no format that is known here")
            continue
        architecture = traits_of_name(shape.device).architecture or ""
        if reason := mine.unasked(path.name) or mine.unread(shape, architecture):
            yield FileFinding(path, Kind.UNREAD, reason)
        try:
            content = load(mine, path)
        except InputError as error:
            yield FileFinding(path, Kind.BROKEN, str(error).removeprefix(f"{path}: "))
            continue
        for kind, text in _findings(mine, shape, content):
            yield FileFinding(path, kind, text)


def refusals(format_: Format, shape: Shape, entry: Entry) -> Iterator[str]:
    """The reasons why an entry cannot run on the device, or gives a wrong result."""
    for name in TILE[:3]:
        if not is_power_of_two(entry[name]):
            yield f"{name}={entry[name]} is no power of two"
    if not (is_power_of_two(warps := entry.get("num_warps", 4)) and int(warps) <= _MAX_WARPS):
        yield f"num_warps={warps} is not 1, 2, 4, 8, 16 or 32"
    yield from format_.refused(shape, entry)
    device = known_gpu(shape.device)
    if device is None or device.vendor != "NVIDIA":  # what stages take on AMD's GPUs is Triton's affair
        return
    if (needed := shared_bytes(shape, format_.launched(shape, entry))) > device.shared_bytes_per_block:
        yield (
            f"{entry.get('num_stages', 3)} stages need at least {needed:,} bytes of shared memory, a block "
            f"of {device.name} has {device.shared_bytes_per_block:,}"
        )


def shared_bytes(shape: Shape, entry: Entry) -> int:
    """The least shared memory of a kernel: tiles of every stage but the one that is being multiplied."""
    rows, columns, depth = (int(entry[name]) for name in TILE[:3])
    left, right = shape.operand_bytes
    return int((int(entry.get("num_stages", 3)) - 1) * depth * (rows * left + columns * right))


def _findings(format_: Format, shape: Shape, content: ConfigFile) -> Iterator[tuple[Kind, str]]:
    refused: dict[str, list[int]] = {}
    for tokens, entry in sorted(content.entries.items()):
        for reason in refusals(format_, shape, entry):
            refused.setdefault(reason, []).append(tokens)
    for reason, where in refused.items():
        yield Kind.BROKEN, f"M = {_listed(where)}: {reason}"
    yield from ((Kind.INCOMPLETE, text) for text in _missing(set(content.entries)))
    untried = [tokens for tokens in TOKENS if _is_untried(format_, shape, tokens, content.entries)]
    if untried:
        yield (
            Kind.UNTRIED,
            f"M = {_listed(untried)}: {format_.package}'s tuner does not try {format_.package}'s default, so "
            "the entry was never compared with it",
        )


def _missing(listed: set[int]) -> Iterator[str]:
    missing = [tokens for tokens in TOKENS if tokens not in listed]
    if listed == _LAST_WORKER:
        yield (
            "only M = 2048, 3072, 4096: the last worker of a tuning on several GPUs has replaced the file, "
            "and decoding runs with a configuration for prefill"
        )
    elif missing:
        yield f"no entry for M = {_listed(missing)}, so the nearest one serves"


def _is_untried(format_: Format, shape: Shape, tokens: int, entries: Mapping[int, Entry]) -> bool:
    """True if the tuner cannot find the default, and the file's entry is one that it can find."""
    default, entry = format_.default(shape, tokens), entries.get(tokens)
    if default is None or entry is None or format_.is_tried(shape, default):
        return False
    return format_.is_tried(shape, entry)


def _listed(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, numbers))


def summary(files: int, findings: Iterable[FileFinding]) -> str:
    """The number of files with each kind of finding."""
    listed = [*findings]
    of_kind = {kind: len({finding.path for finding in listed if finding.kind is kind}) for kind in Kind}
    parts = [f"{number:,} {kind.value}" for kind, number in of_kind.items() if number]
    clean = files - len({finding.path for finding in listed})
    return f"{count_text(files, 'file')}: {', '.join([*parts, f'{clean:,} without a finding'])}"
