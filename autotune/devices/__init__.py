"""The table of device backends; each is imported only when it is used.

Other distributions add backends as plug-ins: entry points of the group `autotune.devices`, each a name and a
module.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, cast

from autotune.core.launch_plan import DIALECTS, TRITON
from autotune.core.plugins import load, plugin_error, plugins
from autotune.core.records import DeviceInfo
from autotune.core.text import hint
from autotune.errors import AutotuneError, InputError, MissingExtra
from autotune.hardware.names import is_architecture, known_gpu

if TYPE_CHECKING:  # loads numpy, and devices are listed from the start
    from importlib.metadata import EntryPoint

    from autotune.devices.base import Backend


@dataclass(frozen=True)
class BackendEntry:
    """A backend's module, the source dialects it accepts (its compiler's own first), and what installs it.

    A plug-in that cannot be loaded accepts no dialect: `backend` says why. If `is_nvidia`, its devices are
    NVIDIA's GPUs: NVML lists them, NVRTC compiles for their architecture, and NVIDIA's tools work for them.
    """

    module: str
    accepts: tuple[str, ...]
    package: str
    extra: str
    is_nvidia: bool = False

    @property
    def dialect(self) -> str:
        """The language of the backend's compiler."""
        return self.accepts[0] if self.accepts else ""


@dataclass(frozen=True)
class Address:
    """A device of this machine: `opencl:0`."""

    backend: str
    index: int

    def __str__(self) -> str:
        return f"{self.backend}:{self.index}"

    @property
    def dialect(self) -> str:
        """The language of the device's compiler."""
        return BACKENDS[self.backend].dialect

    @property
    def is_nvidia(self) -> bool:
        """True for an NVIDIA GPU that runs CUDA."""
        return BACKENDS[self.backend].is_nvidia


INTEL_PACKAGES = "intel-opencl-rt intel-cmplr-lib-rt"  # of pip
_MACHINE = os.uname().machine
# How to get the CPU as a device; other processors have no wheel of a runtime
CPU_ADVICE = (
    f"install Intel's runtime for CPUs: pip install {INTEL_PACKAGES}"
    if _MACHINE == "x86_64"
    else f"install PoCL, in Debian the package pocl-opencl-icd: pip has no runtime for {_MACHINE}"
)

INTERPRETER = "interpreter"  # Triton's
WITHOUT_HARDWARE = (INTERPRETER, "fake")  # used where they are named

_CUDA_DIALECTS = ("cuda", "portable", TRITON)
BUILT_IN = {
    "cuda": BackendEntry("autotune.devices.cuda", _CUDA_DIALECTS, "cuda.bindings", "cuda", is_nvidia=True),
    "pycuda": BackendEntry("autotune.devices.pycuda", _CUDA_DIALECTS, "pycuda", "pycuda", is_nvidia=True),
    "opencl": BackendEntry("autotune.devices.opencl", ("opencl", "portable"), "pyopencl", "search"),
    INTERPRETER: BackendEntry("autotune.devices.interpreter", (TRITON,), "triton", "triton"),
    "fake": BackendEntry("autotune.devices.fake", ("python",), "numpy", "search"),
}


_GROUP = "autotune.devices"
_FUNCTIONS = ("list_devices", "open_device", "open_compiler")


class _Backends(Mapping[str, BackendEntry]):
    """All backends by name, autotune's own first. Looking a plug-in up imports its module."""

    def __getitem__(self, name: str) -> BackendEntry:
        if name in BUILT_IN:
            return BUILT_IN[name]
        point = _plugins()[name]
        try:
            accepts = _plugin(point).DIALECTS
        except InputError:
            accepts = ()
        return BackendEntry(point.module, accepts, point.module, "", is_nvidia="cuda" in accepts[:1])

    def __contains__(self, name: object) -> bool:
        return name in BUILT_IN or name in _plugins()

    def __iter__(self) -> Iterator[str]:
        return iter((*BUILT_IN, *_plugins()))

    def __len__(self) -> int:
        return len(BUILT_IN) + len(_plugins())


BACKENDS: Mapping[str, BackendEntry] = _Backends()


def _plugins() -> Mapping[str, EntryPoint]:
    return plugins(_GROUP, frozenset(BUILT_IN))


def _plugin(point: EntryPoint) -> Any:
    """The module of a plug-in; raises InputError if it is no backend."""
    module = load(point, *_FUNCTIONS)
    dialects = getattr(module, "DIALECTS", None)
    if not isinstance(dialects, tuple) or not dialects or any(one not in DIALECTS for one in dialects):
        raise plugin_error(
            point, ValueError(f"DIALECTS is {dialects!r}; expected some of {sorted(DIALECTS)}")
        )
    return module


def backend(name: str) -> Backend:
    """Import a backend.

    Raises InputError for an unknown name and for a broken plug-in, MissingExtra without a backend's package.
    """
    if name not in BACKENDS:
        raise InputError(f"unknown device backend {name!r}{hint(name, BACKENDS)}")
    if name not in BUILT_IN:
        return cast("Backend", _plugin(_plugins()[name]))
    entry = BUILT_IN[name]
    try:
        return cast("Backend", importlib.import_module(entry.module))
    except ImportError as error:
        if _is_installed(entry.package):  # a library that it needs is missing
            broken = f"is installed, but cannot be imported ({error})"
            raise MissingExtra(entry.package, entry.extra, broken) from None
        raise MissingExtra(entry.package, entry.extra) from None


def list_devices(
    names: Iterable[str] = BACKENDS, on_fault: Callable[[str], None] = lambda fault: None
) -> list[tuple[Address, DeviceInfo]]:
    """List the devices of these backends, as far as their packages are installed.

    Clocks that killed processes left changed are restored first, because the list includes clocks. A plug-in
    with a fault is left out, and `on_fault` is called with the fault.
    """
    from autotune.devices.clocks import restore_abandoned  # load_kernel lists no devices

    restore_abandoned()
    devices = []
    for name in names:
        try:
            infos = _listed(name)
        except AutotuneError as error:
            if name not in BUILT_IN:
                on_fault(str(error))
            continue
        devices += [(Address(name, index), info) for index, info in enumerate(infos)]
    return devices


def _listed(name: str) -> list[DeviceInfo]:
    if name not in BUILT_IN:
        return _listed_by_others(name)
    if not BUILT_IN[name].is_nvidia:
        return backend(name).list_devices()
    from autotune.devices.nvml import list_gpus  # only checks that the package is there

    return list_gpus(name) if _is_installed(BUILT_IN[name].package) else []


def _listed_by_others(name: str) -> list[DeviceInfo]:
    adapter = backend(name)
    try:
        infos = list(adapter.list_devices())
        for info in infos:
            if not isinstance(info, DeviceInfo):
                raise TypeError(f"list_devices gives {type(info).__name__}; expected DeviceInfo")
    except Exception as error:  # noqa: BLE001 - the code of others
        raise plugin_error(_plugins()[name], error) from None
    return infos


def _is_installed(package: str) -> bool:
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:  # the package that it is a part of is not installed
        return False


def choose(
    text: str | None, devices: list[tuple[Address, DeviceInfo]], others: Iterable[str] = ()
) -> tuple[Address, DeviceInfo]:
    """Choose a device by address, backend, name or slug; without any, the first GPU, else the first CPU.

    If there is no such device, raises InputError with similar names, also of `others`.
    """
    real = [item for item in devices if item[0].backend not in WITHOUT_HARDWARE]
    if text is None:
        if not real:
            raise InputError(f"no device found; for one, {CPU_ADVICE}")
        return min(real, key=lambda item: item[1].kind != "gpu")
    name = text.strip().lower()
    for address, info in devices:
        if name in (str(address), address.backend, info.name.lower(), info.slug):
            return address, info
    names = [name for address, info in real for name in (str(address), info.name)]
    if name.partition(":")[0] in BACKENDS:
        reason = f"{text}: this machine has no such device (`autotune doctor` says why)"
    else:
        reason = f"{text} is not in this machine" if known_gpu(text) else f"unknown device {text!r}"
        first, _, more = text.partition(",")
        if is_architecture(first):
            many = "several at once; without it, name one" if more else "it"
            reason += f"; `autotune space SPACE --compile` compiles for {many}"
    raise InputError(f"{reason}{hint(text, {*names, *others})}")
