"""What caches hold of one kernel, on whatever device: the walk over them, and which records are its own.

A record of a later cache is of the kernel where it has the parameters of an earlier cache's record. With
others it is of another kernel that has the same name, and says nothing. The records of one cache may differ:
those are states of one kernel, and the newest says what it is now.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import nullcontext, suppress
from typing import NamedTuple

from autotune.core.records import Config, DeviceInfo, KernelRecord
from autotune.errors import CacheError, NoConfig
from autotune.serving.cache import Folder, folders, kernels, read_record, read_roots, record_path
from autotune.serving.cache_reader import CacheReader


class DeviceRecord(NamedTuple):
    """A device of a cache with a kernel's results on it."""

    folder: str
    device: DeviceInfo
    record: KernelRecord


def is_of_kernel(record: KernelRecord, earlier: Iterable[KernelRecord]) -> bool:
    """Whether a record is of the kernel that the records of an earlier cache are of."""
    return any(record.parameter_names == one.parameter_names for one in earlier)


def walk(
    reader: CacheReader, roots: Iterable[str], kernel: str, *, skip_damaged: bool = False
) -> list[DeviceRecord]:
    """Every device with results of a kernel, cache by cache; one may be in several.

    Raises CacheError for a damaged file, unless such are to be left out.
    """
    found: list[DeviceRecord] = []
    for root in roots:
        earlier = [device_record.record for device_record in found]
        for folder in reader.every_folder(root):
            with suppress(CacheError) if skip_damaged else nullcontext():
                record = reader.record(root, folder, kernel)
                if record is not None and (not earlier or is_of_kernel(record, earlier)):
                    found.append(DeviceRecord(folder, reader.device(root, folder), record))
    return found


def first_of_each(found: Iterable[DeviceRecord]) -> list[DeviceRecord]:
    """The devices of a walk, each as its first cache has it."""
    firsts: dict[str, DeviceRecord] = {}
    for device_record in found:
        firsts.setdefault(device_record.folder, device_record)
    return list(firsts.values())


def device_records(kernel: str, cache: Folder | None = None) -> list[DeviceRecord]:
    """The devices with results of a kernel, a device's first cache counting; raises NoConfig when none has.

    cache: as `best_config` takes it. Raises CacheError for a damaged file.
    """
    roots = read_roots(cache)
    found = first_of_each(walk(CacheReader(), roots, kernel))
    if not found:
        raise NoConfig(no_results(kernel, roots))
    return found


def newest_record(kernel: str, cache: Folder | None = None) -> KernelRecord:
    """What the newest result of any device says of a kernel; raises NoConfig when there is none."""
    return latest(device_record.record for device_record in device_records(kernel, cache))


def latest(records: Iterable[KernelRecord]) -> KernelRecord:
    """Of one record at least that with the newest result: it says what a kernel is now."""
    return max(records, key=_newest)


def _newest(record: KernelRecord) -> str:
    """When the youngest result was found: ISO 8601 in UTC, so that texts compare as times."""
    return max((entry.provenance.tuned_at for entry in record.entries), default="")


def no_results(kernel: str, roots: Iterable[str]) -> str:
    """The sentence for a kernel that no cache knows, with those that are known."""
    known = sorted({name for root in roots for name in kernels(root)})
    return (
        f"no results for a kernel {kernel!r} in {' or '.join(roots)}; "
        f"there are: {', '.join(known) or 'none, autotune search makes some'}"
    )


def foreign_bests(root: Folder, device: DeviceInfo, kernel: str) -> set[Config]:
    """The best configurations of other devices, for every problem; a damaged or missing file has none."""
    found = set()
    for folder in folders(os.fspath(root)):
        if folder != device.slug:
            with suppress(CacheError):
                record = read_record(record_path(os.fspath(root), folder, kernel))
                found |= {entry.config for entry in record.entries}
    return found
