"""How a launch is handed to the CUDA driver: what its kernel is allowed, and how large it may be."""

import gc
from ctypes import c_uint64, c_void_p
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from autotune.core.records import Argument, Launch
from autotune.core.trials import Binary
from autotune.cuda.launch import launch_call
from autotune.cuda.module import Module
from autotune.errors import InputError, LaunchError
from autotune.runtime.call_plan import CallPlanner
from autotune.runtime.cuda import CudaLauncher
from tests.driver_double import CONTEXT, driver_double

SMALL = Launch("sum", (1, 1, 1), (32, 1, 1), 1000, ())


@pytest.fixture
def driver(tmp_path, monkeypatch):
    with driver_double(tmp_path, monkeypatch) as double:
        yield double


def loaded():
    return Module(Binary(b"", "", "", 0.0), c_void_p(CONTEXT), stays=True)


def test_a_smaller_launch_takes_nothing_back(driver):
    module, large = loaded(), replace(SMALL, shared_bytes=60_000)
    for step, allowed in ((SMALL, 1000), (large, 60_000), (SMALL, 60_000), (replace(SMALL, entry="b"), 1000)):
        module.function(step)
        assert driver.allowed == allowed


def test_a_kernel_that_is_not_in_a_binary_is_named(driver):
    with pytest.raises(LaunchError, match=r"no kernel '\?' in the binary"):
        loaded().function(replace(SMALL, entry="?"))


def test_a_program_that_graphs_may_use_stays_loaded(driver):
    loaded()
    gc.collect()
    assert driver.unloads == 0


def test_a_launch_keeps_its_arguments(driver):
    queue = launch_call(SMALL, c_void_p(5), [c_uint64(11)], c_void_p(1))
    gc.collect()
    kept = [c_uint64(12) for _ in range(1000)]  # where the argument was, if it was freed
    assert queue() == 0 and driver.ran == [11] and len(kept) == 1000


def test_a_grid_that_the_driver_would_cut_off_is_refused(driver):
    function, stream = c_void_p(5), c_void_p(1)
    launch_call(replace(SMALL, grid=(2**31 - 1, 1, 1)), function, (), stream)
    with pytest.raises(LaunchError, match="sum: 4,294,967,301 blocks in x, at most 2,147,483,647"):
        launch_call(replace(SMALL, grid=(2**32 + 5, 1, 1)), function, (), stream)


@pytest.mark.parametrize(
    ("dtype", "value", "bits"),
    [
        ("complex64", 1 + 2j, 0x40000000_3F800000),
        ("complex64", np.complex64(1 + 2j), 0x40000000_3F800000),
        ("float32", 1, 0x3F800000),
        ("int64", np.int32(-1), 2**64 - 1),
        ("complex128", 1 + 2j, None),  # does not fit where an address does
        ("float32", 1 + 2j, None),
        ("float32", np.complex64(1 + 2j), None),
        ("int32", 1.5, None),
    ],
)
def test_a_number_of_a_call_takes_the_place_of_an_address(dtype, value, bits):
    arguments = {"alpha": Argument("alpha", dtype, "scalar")}
    planner = SimpleNamespace(arguments=arguments, _kernel="scale")

    def packed():
        return CudaLauncher.number(SimpleNamespace(), CallPlanner.number(planner, "alpha", value))

    if bits is None:
        with pytest.raises(InputError):
            packed()
    else:
        assert packed() == bits
