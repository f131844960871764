"""All that caches hold of one kernel, on whatever device."""

from __future__ import annotations

from pathlib import Path

from autotune.cache import Folder, device_path, folders, read_device, read_record, read_roots, record_path
from autotune.errors import NoConfig
from autotune.foreign import Holder


def holders(kernel: str, cache: Folder | None = None) -> list[Holder]:
    """The devices with results of a kernel, a device's first cache counting; raises NoConfig when none has.

    cache: as `best_config` takes it. Raises CacheError for a damaged file.
    """
    roots = read_roots(cache)
    found: dict[str, Holder] = {}
    for root in roots:
        for folder in folders(root):
            path = record_path(root, folder, kernel)
            if folder not in found and Path(path).exists():
                found[folder] = Holder(folder, read_device(device_path(root, folder)), read_record(path))
    if not found:
        raise NoConfig(f"no results for a kernel {kernel!r} in {' or '.join(roots)}")
    return list(found.values())
