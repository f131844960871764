"""The records of one kernel in all caches, on all devices.

If a record's parameters differ from all records in earlier caches, it belongs to another kernel of the same
name and is ignored. Records of one cache may differ: they are versions of one kernel, and the newest one
describes the kernel as it is now.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext, suppress
from operator import attrgetter
from typing import NamedTuple

from autotune.core.records import DeviceInfo, KernelRecord
from autotune.core.text import nearest
from autotune.errors import CacheError, NoConfig
from autotune.serving.cache import Folder, kernels, read_roots
from autotune.serving.cache_reader import CacheReader

_SHOWN = 5  # names of kernels in a message


class DeviceRecord(NamedTuple):
    """A device in a cache, with a kernel's results on it."""

    folder: str
    device: DeviceInfo
    record: KernelRecord
    root: str = ""  # the cache's folder


def is_of_kernel(record: KernelRecord, earlier: Iterable[KernelRecord]) -> bool:
    """True if a record is of the same kernel as the records of an earlier cache."""
    return any(record.parameter_names == known.parameter_names for known in earlier)


def walk(
    reader: CacheReader, roots: Iterable[str], kernel: str, *, skip_damaged: bool = False
) -> list[DeviceRecord]:
    """Every device with results of a kernel, cache by cache; a device may be in several.

    Raises CacheError for a damaged file, unless `skip_damaged`.
    """
    walked: list[DeviceRecord] = []
    for root in roots:
        earlier = [device_record.record for device_record in walked]
        for folder in reader.every_folder(root):
            with suppress(CacheError) if skip_damaged else nullcontext():
                record = reader.record(root, folder, kernel)
                if record is not None and (not earlier or is_of_kernel(record, earlier)):
                    walked.append(DeviceRecord(folder, reader.device(root, folder), record, root))
    return walked


def first_of_each(walked: Iterable[DeviceRecord]) -> list[DeviceRecord]:
    """The first record of each device in a walk."""
    firsts: dict[str, DeviceRecord] = {}
    for device_record in walked:
        firsts.setdefault(device_record.folder, device_record)
    return list(firsts.values())


def device_records(kernel: str, cache: Folder | None = None) -> list[DeviceRecord]:
    """The devices with results of a kernel, each from the first cache that has it.

    Raises:
        NoConfig: No cache has results of the kernel.
        CacheError: A file is damaged.
    """
    roots = read_roots(cache)
    records = first_of_each(walk(CacheReader(), roots, kernel))
    if not records:
        raise NoConfig(no_results(kernel, roots))
    return records


def newest(kernel: str, cache: Folder | None = None) -> DeviceRecord:
    """The newest record of a kernel with its device and cache; raises NoConfig when there is none."""
    return max(device_records(kernel, cache), key=lambda known: known.record.tuned_at)


def latest(records: Iterable[KernelRecord]) -> KernelRecord:
    """The record with the newest result, which describes the kernel as it is now."""
    return max(records, key=attrgetter("tuned_at"))


def no_results(kernel: str, roots: tuple[str, ...]) -> str:
    """The message for a kernel without results, with the kernels that have some."""
    from pathlib import Path  # only for messages

    places = list(dict.fromkeys(Path(root).absolute() for root in roots))
    if not any(place.is_dir() for place in places):
        given = "$AUTOTUNE_CACHE names" if roots == read_roots() else "--cache (cache= in Python) names"
        near = nearest(places[0].name, (folder.name for folder in places[0].parent.glob("*/")))
        default = "which exists" if Path("cache").is_dir() else "which does not exist either"
        return (
            f"no folder {' or '.join(map(str, places))}, which {given}{near}; name the folder into which "
            f"`autotune search` wrote the results of {kernel} (without --cache: ./cache, {default})"
        )
    known = list(dict.fromkeys(name for place in places for name in sorted(kernels(str(place)))))
    looked_in = [str(place) if place.is_dir() else f"{place} (no such folder)" for place in places]
    none = f"no results for a kernel {kernel!r} in {' or '.join(looked_in)}"
    if near := nearest(kernel, known):
        return none + near
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    others = f"kernels with results: {', '.join(known[:_SHOWN])}{more}" if known else "no kernel has results"
    return (
        f"{none}; tune it with: autotune search {kernel}.yaml (--budget 1 stores its default only), or name "
        f"another folder with --cache DIR (cache=DIR in Python); {others}"
    )
