"""How many cores are left: by affinity, by both versions of control groups, and to OpenCL's devices."""

import os

import pytest

from autotune.devices import backend
from autotune.processes.host_limits import cpu_limits

CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("own", "files", "quota"),
    [
        ("0::/\n", {"cpu.max": "150000 100000\n"}, ", quota 1.5"),
        ("0::/\n", {"cpu.max": "max 100000\n"}, ""),
        ("0::/a/b\n", {"a/cpu.max": "300000 100000\n", "a/b/cpu.max": "max 100000\n"}, ", quota 3"),
        ("2:cpuset:/\n1:cpu,cpuacct:/a\n0::/\n", {"cpu/a/*": "50000 100000"}, ", quota 0.5"),
        ("1:cpu:/not/shown\n", {"cpu/*": "200000 100000"}, ", quota 2"),
        ("1:cpu:/\n", {"cpu/*": "-1 100000"}, ""),
        ("1:cpu:/\n", {"cpu.max": "100000 100000"}, ""),
        ("", {}, ""),
    ],
)
def test_the_smallest_quota_around_the_process_counts(tmp_path, own, files, quota):
    (tmp_path / "own").write_text(own)
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.name == "*":
            for part, value in zip(("quota", "period"), text.split(), strict=True):
                path.with_name(f"cpu.cfs_{part}_us").write_text(f"{value}\n")
        else:
            path.write_text(text)
    assert cpu_limits(tmp_path / "groups", tmp_path / "own") == f"{CORES} cores{quota}"


@pytest.mark.skipif(os.cpu_count() == 1, reason="one core cannot be taken away")
def test_a_cpu_with_fewer_cores_is_another_device_for_a_journal():
    allowed = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, range(os.cpu_count()))
        (whole, *_) = backend("opencl").list_devices()
        os.sched_setaffinity(0, {min(allowed)})
        (part, *_) = backend("opencl").list_devices()
    finally:
        os.sched_setaffinity(0, allowed)
    assert part == whole and part.identity != whole.identity
