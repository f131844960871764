"""Cache files written plainly: a store of each would wait for the disk every time."""

from pathlib import Path

from autotune.core.records import DeviceInfo, KernelRecord
from autotune.serving import cache


def write(root: Path, device: DeviceInfo, record: KernelRecord) -> Path:
    """Put a device and a record where the loader looks for them."""
    path = Path(cache.record_path(str(root), device.slug, record.kernel))
    path.parent.mkdir(parents=True, exist_ok=True)
    Path(cache.device_path(str(root), device.slug)).write_text(cache.device_text(device))
    path.write_text(cache.record_text(record))
    return path
