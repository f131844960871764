"""From what a user names to what can be run: space file, source, device, problem, enumerated space.

Nothing is written here, and everything that can be wrong with the input is found here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path

from autotune.compilers.kernel_source import SourceText, packaged, read_source
from autotune.core.records import DeviceInfo
from autotune.devices import BACKENDS, Address, choose, cold_environment, list_devices
from autotune.errors import ChildFailed, InputError, SetupError
from autotune.evaluation.compiler_pool import compiler_name
from autotune.hardware.names import slug, traits_of_name
from autotune.processes.child import Child, persistently
from autotune.processes.temporary_folder import scratch_folder
from autotune.serving.cache import folders, read_roots
from autotune.space import Space, SpaceSpec, bind, load_space, problem_of

_LISTING_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Target:
    """Which kernel, where, on what problem; None and empty take the defaults."""

    space: Path
    device: str | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    dtype: str | None = None


@dataclass(frozen=True)
class TuningTask:
    """A target whose files are read, whose device is found and whose space is enumerated."""

    address: Address
    device: DeviceInfo
    spec: SpaceSpec
    source: SourceText
    space: Space

    @property
    def dialect(self) -> str:
        """The dialect of the device's compiler, which selects the compiler options."""
        return BACKENDS[self.address.backend].dialect

    @cached_property
    def compiler(self) -> str:
        """The compiler's name and version; found out when it is first wanted, for it may be missing."""
        return compiler_name(self.address, self.device, self.spec.compiler)


def find_device(wanted: str | None, others: Iterable[str] = ()) -> tuple[Address, DeviceInfo]:
    """The device of this machine that `choose` takes; where a backend is named, only that one is asked."""
    named = (wanted or "").strip().lower().partition(":")[0]
    if named in BACKENDS:
        with suppress(InputError):
            return choose(wanted, find_devices((named,)))
    return choose(wanted, find_devices(), others)


def find_devices(names: Iterable[str] = tuple(BACKENDS)) -> list[tuple[Address, DeviceInfo]]:
    """List backends' devices from a child process, so that no driver is ever loaded into this one."""
    try:
        return persistently(partial(_listed_devices, tuple(names)))
    except ChildFailed as error:
        raise SetupError(f"looking for devices failed: {error}") from None


def _listed_devices(names: Iterable[str]) -> list[tuple[Address, DeviceInfo]]:
    with scratch_folder() as scratch:
        child = Child(int, environment=cold_environment(scratch))
        try:
            devices: list[tuple[Address, DeviceInfo]] = child.call(
                list_devices, names, timeout_s=_LISTING_TIMEOUT_S
            )
            return devices
        finally:
            child.kill()


def resolve_device(wanted: str | None, cache: Path | None) -> DeviceInfo | str:
    """A device of this machine, None meaning the one a search would take, or else one that a cache names.

    A name that tells its vendor is a device, too. Raises InputError for what is none of these.
    """
    known = [folder for root in read_roots(cache) for folder in folders(root)]
    if wanted is not None and slug(wanted) in known:
        return wanted
    try:
        return find_device(wanted, known)[1]
    except InputError:
        if wanted is not None and traits_of_name(wanted).vendor is not None:
            return wanted
        raise


def locate(space: Path) -> Path:
    """A space file, or the bare name of one that comes with the package: `reduce`."""
    own = packaged("spaces") / f"{space}.yaml"
    try:
        return own if not space.exists() and own.is_file() else space
    except OSError:  # no name that a file could have, which is told when it is read
        return space


def bind_target(target: Target) -> TuningTask:
    """Read, find and enumerate; raises InputError for whatever is wrong with the input."""
    spec = load_space(locate(target.space))
    source = read_source(spec.source)
    address, device = find_device(target.device)
    accepted = BACKENDS[address.backend].accepts
    if spec.dialect not in accepted:
        raise InputError(
            f"{spec.path}: the kernel is written in dialect {spec.dialect!r}, but device {address} "
            f"takes {' or '.join(map(repr, accepted))}; choose another device with --device"
        )
    space = bind(spec, device, problem_of(spec, device, target.sizes, target.dtype))
    return TuningTask(address, device, spec, source, space)
