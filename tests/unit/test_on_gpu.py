"""What is read from the CUDA driver's answers needs no GPU."""

import pytest

from autotune.devices.cuda_memory import classified
from autotune.errors import DeviceLost, LaunchError, OutOfMemory
from autotune.hardware.cuda_driver import _bandwidth_bytes_per_s


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("CUDA_ERROR_INVALID_VALUE: a parameter is out of range", LaunchError),
        ("cuLaunchKernel failed: too many resources requested for launch", LaunchError),
        ("cuGraphInstantiateWithFlags: CUDA_ERROR_OUT_OF_MEMORY", OutOfMemory),
        ("CUDA_ERROR_ILLEGAL_ADDRESS: the context is lost", DeviceLost),
        ("cuGraphLaunch: CUDA_ERROR_LAUNCH_FAILED", DeviceLost),
    ],
)
def test_a_refused_launch_is_told_from_a_lost_context(text, kind):
    assert type(classified(RuntimeError(text))) is kind


def test_a_bandwidth_is_unknown_without_a_clock_or_where_the_host_shares_the_memory():
    assert _bandwidth_bytes_per_s(3_201_000, 6016, 0) == pytest.approx(4.814e12, rel=1e-3)
    assert _bandwidth_bytes_per_s(0, 256, 0) is None and _bandwidth_bytes_per_s(3_201_000, 0, 0) is None
    assert _bandwidth_bytes_per_s(8_533_000, 256, 1) is None
