"""Checks a machine for tuning: devices, compilers, tools, clocks, folders, stored results."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from autotune.analysis.inventory import inventory
from autotune.checks.host_sanitizer import find_host_sanitizer
from autotune.compilers.binary_cache import default_folder
from autotune.compilers.known_compilers import cuda_compiler
from autotune.compilers.nvidia_tools import find_tool
from autotune.core.records import DeviceInfo
from autotune.core.text import count_text
from autotune.devices import BACKENDS, CPU_ADVICE, INTEL_PACKAGES, WITHOUT_HARDWARE, Address, backend
from autotune.devices.trial_kernel import device_fault
from autotune.errors import AutotuneError, InputError, MissingExtra, WriteError
from autotune.hardware.cuda_driver import driver_version
from autotune.serving.cache import check_writable, read_roots, writable_root
from autotune.tuning.timing_warnings import BUSY_SHARE, slow_governors

MIN_FREE_BYTES = 2**30
_DRIVER_SETTINGS = Path("/proc/driver/nvidia/params")


class Severity(Enum):
    """How serious a finding is."""

    GOOD = "good"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True)
class HealthFinding:
    """One thing that was looked at; `advice` says what to do unless it is good."""

    subject: str
    state: Severity
    detail: str
    advice: str = ""


def examine(
    devices: Sequence[tuple[Address, DeviceInfo]], cache: Path | None, runs: Path
) -> list[HealthFinding]:
    """Look at everything that a search depends on; runs a small kernel on each of the devices."""
    return [
        *_devices(devices),
        *_compilers(devices),
        *_tools(devices),
        *_steadiness(),
        *_cache(cache, runs),
        *_folders(runs),
    ]


def _devices(devices: Sequence[tuple[Address, DeviceInfo]]) -> Iterator[HealthFinding]:
    works = False
    for name in BACKENDS:
        if name in WITHOUT_HARDWARE:
            continue
        try:
            backend(name)
        except (MissingExtra, InputError) as error:
            yield HealthFinding(name, Severity.WARNING, "not available", str(error))
            continue
        if name == "opencl":
            from autotune.devices.opencl_platforms import runtime_fault  # loads pyopencl

            if fault := runtime_fault():
                problem = f"Intel's runtime cannot be loaded: {fault}"
                advice = f"reinstall it with what it needs: pip install {INTEL_PACKAGES}"
                yield HealthFinding(name, Severity.WARNING, problem, advice)
        own = [(address, device) for address, device in devices if address.backend == name]
        for address, device in own:
            finding = _runs_kernel(address, device)
            works |= finding.state is Severity.GOOD
            yield finding
        if not own:
            driver = driver_version()
            reason = f"no device, NVIDIA driver {driver}" if BACKENDS[name].is_nvidia else "no device"
            yield HealthFinding(name, Severity.WARNING, reason, "install or load the driver of the device")
    if not works:
        yield HealthFinding("devices", Severity.PROBLEM, "none works", CPU_ADVICE)


def _runs_kernel(address: Address, device: DeviceInfo) -> HealthFinding:
    """Run a small kernel on a device."""
    detail = f"{device.name}, {device.runtime.strip()}"
    if fault := device_fault(address):
        advice = "update its driver, or name another device with --device"
        return HealthFinding(
            str(address), Severity.WARNING, f"{detail}: cannot run a kernel: {fault}", advice
        )
    return HealthFinding(str(address), Severity.GOOD, detail)


def _compilers(devices: Sequence[tuple[Address, DeviceInfo]]) -> Iterator[HealthFinding]:
    try:
        yield HealthFinding("NVRTC", Severity.GOOD, cuda_compiler("sm_90").name)
    except AutotuneError as error:
        state = Severity.WARNING if _nvidia_gpu(devices) is None else Severity.PROBLEM
        yield HealthFinding("NVRTC", state, "not found", str(error))
    try:
        yield HealthFinding("nvcc", Severity.GOOD, str(cuda_compiler("sm_90", "nvcc").files[0]))
    except AutotuneError as error:
        how = str(error) if isinstance(error, MissingExtra) else "install the CUDA toolkit"
        advice = f"needed by spaces with `compiler: nvcc` only: {how}"
        yield HealthFinding("nvcc", Severity.WARNING, "not found", advice)
    if (host := find_host_sanitizer()) is not None:
        yield HealthFinding("g++", Severity.GOOD, host.version)
    else:
        advice = "space --run and checks on the CPU need it; in Debian the package g++"
        yield HealthFinding("g++", Severity.WARNING, "not found", advice)


def _nvidia_gpu(devices: Sequence[tuple[Address, DeviceInfo]]) -> Address | None:
    """The first NVIDIA GPU, if there is one to tune for."""
    return next((address for address, _ in devices if address.is_nvidia), None)


def _tools(devices: Sequence[tuple[Address, DeviceInfo]]) -> Iterator[HealthFinding]:
    """Sanitizer and profilers, where there is a GPU that they work for."""
    if _nvidia_gpu(devices) is None:
        return
    for name in ("compute-sanitizer", "ncu", "nsys"):
        path = find_tool(name)
        if path is None:
            yield HealthFinding(
                name, Severity.WARNING, "not found", "install the CUDA toolkit, or add it to PATH"
            )
        else:
            yield HealthFinding(name, Severity.GOOD, path)
    restricted = _DRIVER_SETTINGS.exists() and "RmProfilingAdminOnly: 1" in _DRIVER_SETTINGS.read_text()
    if restricted and os.geteuid() != 0:
        advice = "load the nvidia module with NVreg_RestrictProfilingToAdminUsers=0"
        yield HealthFinding("GPU counters", Severity.WARNING, "only root may read hardware counters", advice)


def _steadiness() -> Iterator[HealthFinding]:
    """Findings about other programs and clocks, which make times unsteady."""
    cores, load = len(os.sched_getaffinity(0)), os.getloadavg()[0]
    if load > cores * BUSY_SHARE["cpu"]:
        advice = "stop other programs while you tune for a CPU, and for short kernels on a GPU"
        yield HealthFinding("load", Severity.WARNING, f"{load:.1f} on {cores} cores", advice)
    else:
        yield HealthFinding("load", Severity.GOOD, f"{load:.1f} on {cores} cores")
    if slow := slow_governors("cpu"):
        advice = "sudo cpupower frequency-set -g performance"
        yield HealthFinding("CPU clocks", Severity.WARNING, f"governor {slow}", advice)


def _cache(cache: Path | None, runs: Path) -> Iterator[HealthFinding]:
    root = writable_root(cache)
    try:
        check_writable(root)
    except WriteError as error:
        yield HealthFinding("cache", Severity.PROBLEM, str(error), "choose another folder with --cache")
    stored = inventory(read_roots(cache), runs)
    for reason in stored.unreadable:
        yield HealthFinding("stored results", Severity.PROBLEM, reason, "restore the file, or move it away")
    stale = sum(bool(result.stale) for result in stored.results)
    journals = count_text(len(stored.journals), "journal")
    detail = f"{len(stored.results)} in {' and '.join(read_roots(cache))}, {journals}"
    if stale:
        advice = "`autotune list` says why; `autotune check KERNEL --stale` times them again"
        yield HealthFinding("stored results", Severity.WARNING, f"{detail}, {stale} stale", advice)
    else:
        yield HealthFinding("stored results", Severity.GOOD, detail)


def _folders(runs: Path) -> Iterator[HealthFinding]:
    """The folders that a search writes besides the cache."""
    for subject, folder in (("journals", runs), ("binary cache", default_folder())):
        existing = next(place for place in (folder, *folder.absolute().parents) if place.exists())
        free_bytes = shutil.disk_usage(existing).free
        detail = f"{folder}, {free_bytes / 2**30:.1f} GiB free"
        if not os.access(existing, os.W_OK):
            yield HealthFinding(
                subject, Severity.PROBLEM, f"{folder} cannot be written", "change its permissions"
            )
        elif free_bytes < MIN_FREE_BYTES:
            yield HealthFinding(subject, Severity.WARNING, detail, "free some disk space")
        else:
            yield HealthFinding(subject, Severity.GOOD, detail)
