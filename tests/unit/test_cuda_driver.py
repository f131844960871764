"""What is read from the CUDA driver's answers needs no GPU."""

import pytest

from autotune.cuda.driver import check
from autotune.errors import DeviceLost, LaunchError, OutOfMemory
from autotune.hardware.cuda_driver import _bandwidth_bytes_per_s
from tests.driver_double import driver_double


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (1, LaunchError),  # invalid value
        (2, OutOfMemory),
        (700, DeviceLost),  # illegal address
        (701, LaunchError),  # out of resources
        (719, DeviceLost),  # launch failed
        (999, DeviceLost),  # unknown
    ],
)
def test_a_refused_launch_is_told_from_a_lost_context(tmp_path, monkeypatch, status, kind):
    with driver_double(tmp_path, monkeypatch), pytest.raises(kind, match="x: CUDA error") as raised:
        check("x", status)
    assert raised.type is kind


def test_a_bandwidth_is_unknown_without_a_clock_or_where_the_host_shares_the_memory():
    assert _bandwidth_bytes_per_s(3_201_000, 6016, 0) == pytest.approx(4.814e12, rel=1e-3)
    assert _bandwidth_bytes_per_s(0, 256, 0) is None and _bandwidth_bytes_per_s(3_201_000, 0, 0) is None
    assert _bandwidth_bytes_per_s(8_533_000, 256, 1) is None
