"""The OpenCL devices of this machine, and its CPU through Intel's runtime from pip.

Intel's wheel registers its library under a path that does not exist. At the first query for platforms, the
loader in pyopencl's wheel also reads the folder `.libs` in PYOPENCL_HOME: so it gets such a folder, with the
library's real path. The system's platforms and the user's variables stay unchanged.
"""

from __future__ import annotations

import ctypes
import os
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pyopencl as cl

from autotune.errors import Forked
from autotune.hardware.identify import is_intel_cpu
from autotune.processes.scratch_folder import scratch_folder

PACKAGE = "intel-opencl-rt"
_LIBRARY = "libintelocl.so"
_HOME = "PYOPENCL_HOME"


def opencl_devices() -> list[cl.Device]:
    """List all OpenCL devices as pyopencl's objects, the CPU of Intel's runtime first.

    A program that makes its own context before it calls autotune takes its device from here: pyopencl alone
    does not find the runtime that autotune installs.
    """
    require_no_fork()
    _register()
    try:
        platforms = cl.get_platforms()
    except cl.Error:  # no driver is installed
        return []
    devices = [device for platform in platforms for device in _devices(platform)]
    return sorted(devices, key=lambda device: not is_intel_cpu(device))


def require_no_fork() -> None:
    """Raise Forked if the process was forked from a process that called this function before.

    A driver's threads do not exist in a forked process, so calls of OpenCL may wait forever.
    """
    if _opened_in() != os.getpid():
        raise Forked("OpenCL")


@cache
def _opened_in() -> int:
    """The process that used OpenCL first."""
    return os.getpid()


def runtime_fault() -> str:
    """Say why Intel's runtime cannot be loaded; empty if it can, or is not installed."""
    library = _library()
    if library is None:
        return ""
    try:
        ctypes.CDLL(str(library))
    except OSError as error:
        return str(error)
    return ""


@cache
def _register() -> None:
    """Make the loader read Intel's library; too late if the program has asked for platforms before."""
    library = _library()
    if library is None:
        return
    before = os.environ[_HOME]  # pyopencl sets it
    own = Path(before, ".libs")
    with scratch_folder() as home:
        shown = Path(home, ".libs")
        shown.mkdir()
        (shown / "autotune.icd").write_text(f"{library}\n")
        for vendor in own.glob("*.icd"):  # other wheels' files, which name a library in the same folder
            (shown / vendor.name).write_text(f"{own / vendor.read_text().strip()}\n")
        os.environ[_HOME] = home
        try:
            cl.get_platforms()
        except cl.Error:  # the library cannot be loaded, and there is no other
            pass
        finally:
            os.environ[_HOME] = before


def _library() -> Path | None:
    """The driver's library among the files of Intel's package; None if the package is not installed."""
    try:
        libraries = [file for file in files(PACKAGE) or () if file.name == _LIBRARY]
    except PackageNotFoundError:
        return None
    return Path(str(libraries[0].locate())).resolve() if libraries else None


def _devices(platform: cl.Platform) -> list[cl.Device]:
    """The devices of a platform; empty if its driver finds none or fails."""
    try:
        return list(platform.get_devices())
    except cl.Error:
        return []
