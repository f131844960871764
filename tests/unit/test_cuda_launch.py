"""How a launch is handed to the CUDA driver: what its kernel is allowed, and how large it may be."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from autotune.core.records import Argument, Launch
from autotune.errors import InputError, LaunchError
from autotune.hardware.cuda_launch import Permissions, launch_config
from autotune.runtime.call_plan import CallPlanner
from autotune.runtime.cuda import CudaLauncher

SMALL = Launch("sum", (1, 1, 1), (32, 1, 1), 1000, ())


def test_a_smaller_launch_takes_nothing_back():
    permissions, limits = Permissions(), {}

    def allow(step):
        permissions.allow(
            step, lambda attribute, value, what: limits.update({(step.entry, attribute): value})
        )

    large, other = replace(SMALL, shared_bytes=60_000), replace(SMALL, entry="other")
    for step, allowed in ((SMALL, [1000]), (large, [60_000]), (SMALL, [60_000]), (other, [60_000, 1000])):
        allow(step)
        assert list(limits.values()) == allowed


def test_a_grid_that_the_driver_would_cut_off_is_refused():
    launch_config(replace(SMALL, grid=(2**31 - 1, 1, 1)), 1)
    with pytest.raises(LaunchError, match="sum: 4,294,967,301 blocks in x, at most 2,147,483,647"):
        launch_config(replace(SMALL, grid=(2**32 + 5, 1, 1)), 1)


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
