"""A double of the CUDA driver that notes what would run, for tests without a GPU."""

import ctypes
import gc
import shutil
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from autotune.cuda.driver import primary_context
from autotune.hardware import cuda_driver

CONTEXT = 7  # that of its kernels


class DriverDouble:
    """The double, with its counters as attributes."""

    def __init__(self, library):
        self.library = library

    def __getattr__(self, name):
        return ctypes.c_int.in_dll(self.library, name).value

    def set(self, **values):
        for name, value in values.items():
            ctypes.c_int.in_dll(self.library, name).value = value

    def enter(self, context):
        ctypes.c_size_t.in_dll(self.library, "context").value = context

    @property
    def ran(self):
        """The first arguments of the kernels that ran, in order."""
        return list((ctypes.c_uint64 * 10_000).in_dll(self.library, "ran")[: self.runs])


@contextmanager
def driver_double(folder, monkeypatch):
    """Build it in a folder, in its context, as the driver; at the end no graph may be left.

    Skips the test without a C compiler.
    """
    if shutil.which("gcc") is None:
        pytest.skip("needs a C compiler")
    source, built = Path(__file__).with_name("driver_double.c"), folder / "double.so"
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", str(built), str(source)], check=True)
    double = DriverDouble(ctypes.CDLL(str(built)))
    double.enter(CONTEXT)
    monkeypatch.setattr(cuda_driver, "available_driver", lambda: double.library)
    kept = cuda_driver.driver, primary_context
    for function in kept:
        function.cache_clear()
    yield double
    gc.collect()
    assert double.graphs_alive == 0
    for function in kept:
        function.cache_clear()
