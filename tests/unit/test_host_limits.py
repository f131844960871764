"""How much memory the host has: of the machine, and of the control groups around the process."""

import pytest

from autotune.processes.host_limits import HostMemory, host_memory

GIB = 2**30
MEMINFO = f"MemTotal: {16 * GIB // 1024} kB\nMemFree: 100 kB\nMemAvailable:  {12 * GIB // 1024} kB\nHuge: 0\n"


@pytest.mark.parametrize(
    ("own", "files", "expected"),
    [
        ("0::/\n", {}, HostMemory(16 * GIB, 12 * GIB)),
        ("0::/\n", {"memory.max": "max\n"}, HostMemory(16 * GIB, 12 * GIB)),
        (
            "0::/a/b\n",
            {"a/memory.max": f"{2 * GIB}\n", "a/b/memory.max": "max\n"},
            HostMemory(2 * GIB, 2 * GIB),
        ),
        ("0::/\n", {"memory.max": f"{14 * GIB}\n"}, HostMemory(14 * GIB, 12 * GIB)),
        (
            "4:memory:/job\n1:cpu:/\n0::/\n",
            {
                "memory/job/memory.limit_in_bytes": f"{GIB}\n",
                "memory/memory.limit_in_bytes": f"{2**63 - 4096}\n",
            },
            HostMemory(GIB, GIB),
        ),
        (
            "4:memory:/not/shown\n",
            {"memory/memory.limit_in_bytes": f"{4 * GIB}\n"},
            HostMemory(4 * GIB, 4 * GIB),
        ),
        ("1:cpu:/\n", {"memory.max": f"{GIB}\n"}, HostMemory(16 * GIB, 12 * GIB)),
    ],
)
def test_the_smallest_limit_around_the_process_counts(tmp_path, own, files, expected):
    (tmp_path / "own").write_text(own)
    (tmp_path / "meminfo").write_text(MEMINFO)
    for name, text in files.items():
        path = tmp_path / "groups" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert host_memory(tmp_path / "meminfo", tmp_path / "groups", tmp_path / "own") == expected


def test_a_system_that_does_not_tell_has_no_known_memory(tmp_path):
    assert host_memory(tmp_path / "missing") is None
    (tmp_path / "meminfo").write_text("MemTotal: 5 kB\n")
    assert host_memory(tmp_path / "meminfo") is None


def test_this_machine_has_memory():
    found = host_memory()
    assert found is not None and 0 < found.free_bytes <= found.total_bytes
