"""What recorded results lack: a space file, and a device with its limits."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from autotune.core.records import Config, DeviceInfo, LaunchSpec, Parameter, Sizes
from autotune.hardware.names import traits_of_name
from autotune.space.spec import SpaceSpec

_NO_PATH = Path("recorded")  # in place of files: recorded results have none


def bare_spec(kernel: str, parameters: Sequence[Parameter], default: Config, sizes: Sizes) -> SpaceSpec:
    """A SpaceSpec with parameters only: nothing to compile or launch."""
    return SpaceSpec(
        path=_NO_PATH,
        sha256="",
        kernel=kernel,
        dialect="portable",
        source=_NO_PATH,
        reference=_NO_PATH,
        sizes={"default": sizes},
        parameters=tuple(parameters),
        default=default,
        launch=(LaunchSpec(kernel, ("1",), ("1",), ()),),
    )


def unknown_device(name: str, slug: str) -> DeviceInfo:
    """A device of which only the name is known; its limits exclude no configuration."""
    traits = traits_of_name(name)
    return DeviceInfo(
        backend="recorded",
        name=name,
        slug=slug,
        kind="gpu",
        vendor=traits.vendor or "",
        architecture=traits.architecture or "",
        compute_units=1,
        warp_size=32,
        max_threads_per_block=1024,
        shared_bytes_per_block=2**31,
        registers_per_block=None,
        memory_bytes=2**40,
        memory_bandwidth_bytes_per_s=None,
        cache_bytes=0,
        has_shuffle=True,
        driver="",
        runtime="",
    )
