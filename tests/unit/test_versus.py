"""`autotune versus`: contenders beside the tuned kernel, and where a device begins to pay."""

import json

import pytest

from autotune.analysis.versus import CPU, TUNED, Contender, Versus, on_all_cores
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import Target
from tests.conftest import REFERENCE, run_in_process

BASELINE = """

def baseline_numpy(inputs, sizes):
    from threadpoolctl import threadpool_info

    x = inputs["x"]
    if any(pool["num_threads"] > 1 for pool in threadpool_info()):
        raise RuntimeError("numpy has several threads")
    return lambda: 2 * x, lambda: None


def baseline_numpy_all_cores(inputs, sizes):
    return lambda: 2 * inputs["x"], lambda: None


def baseline_library(inputs, sizes):
    raise ImportError("there is no such library")
"""


def test_every_contender_has_a_time_or_a_reason(folder):
    (folder.path / "reference.py").write_text(REFERENCE + BASELINE)
    done = folder.run(
        *("versus", "double.yaml", "--device", "fake", "--sweep", "n=100:1000:x10"),
        "--naive",
        "second",
        "--json",
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["sizes"] for one in found] == [{"n": 100}, {"n": 1000}]
    rows = {row["name"]: row for row in found[0]["contenders"]}
    assert (rows["naive"]["time_ms"], rows["naive"]["detail"]) == (10, "the landmark second")
    assert (rows["tuned"]["time_ms"], rows["tuned"]["detail"]) == (17, "not tuned: the default")
    assert (rows["default"]["time_ms"], rows["default"]["detail"]) == (17, "the default of the space")
    assert rows["numpy"]["time_ms"] > 0 and not rows["numpy"]["on_device"]
    assert rows["numpy"]["detail"] == "one thread"
    assert rows["numpy_all_cores"]["time_ms"] > 0 and not rows["numpy_all_cores"]["on_device"]
    assert rows["library"]["time_ms"] is None
    assert rows["library"]["detail"].startswith("ImportError: there is no such library")


def test_without_a_baseline_the_reference_stands_for_numpy(folder):
    done = folder.run("versus", "double.yaml", "--device", "fake")
    assert done.returncode == 0, done.stderr
    assert "numpy (reference)" in done.stdout


def test_the_cpu_runs_what_a_gpu_does_and_needs_no_copies(tmp_path):
    problem = ("--size", "rows=64", "--size", "columns=64")
    done = run_in_process(tmp_path, "versus", "matadd", "-d", "opencl:0", *problem, "--json", "-q")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    times = {row["name"]: row["time_ms"] for row in found["contenders"]}
    assert all(times[name] > 0 for name in ("tuned", "default", "naive", "numpy"))
    assert found["pinned_ms"] is found["pageable_ms"] is None


def test_the_host_runs_the_fastest_of_the_default_the_landmarks_and_the_tuned(folder, monkeypatch):
    """At its own size, here 1000, it finds out which are fast; these run at the size asked for."""
    monkeypatch.chdir(folder.path)
    target, options = Target(folder.space, "fake", {"n": 64}), Options(cache=folder.path / "cache")
    host = on_all_cores(target, options, Observer())
    assert (host.time_ms, host.on_device) == (10, False)
    assert "compute units of" in host.detail and host.detail.endswith(", the landmark second")
    journals = sorted(path.name for path in (folder.path / "runs").iterdir())
    assert [name.split(".")[2] for name in journals] == ["n1000", "n64"]
    folder.search("--cache", "cache", "--size", "n=64")
    host = on_all_cores(target, options, Observer())
    assert host.time_ms == 1 and host.detail.endswith(", tuned: exact")
    folder.write("def double(grid, block, x, y, n):\n    raise ValueError\n")
    host = on_all_cores(target, options, Observer())  # the journal is of another source now
    assert (host.time_ms, host.detail) == (None, "no configuration ran")


def test_an_unknown_landmark_is_refused(folder):
    done = folder.run("versus", "double.yaml", "--device", "fake", "--naive", "third")
    assert done.returncode == 2
    assert "--naive third: no such landmark" in done.stderr


@pytest.mark.parametrize(("host_ms", "pays"), [(5.0, True), (3.0, False)])
def test_a_device_pays_when_it_is_faster_with_its_copies(host_ms, pays):
    rows = (
        Contender(TUNED, 1.0, "", on_device=True),
        Contender("library", 0.5, "", on_device=True),  # needs the copies, too
        Contender("numpy", 9.0, "", on_device=False),
        Contender(CPU, host_ms, "", on_device=False),
        Contender("failed", None, "", on_device=False),
    )
    assert Versus({}, rows, pinned_ms=1.0, pageable_ms=3.0).pays is pays
    assert Versus({}, rows, pinned_ms=None, pageable_ms=None).pays is None
