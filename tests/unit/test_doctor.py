"""What `autotune doctor` finds on a machine and says to do."""

import json
import sys
from dataclasses import replace
from importlib import import_module

from autotune.analysis.health import Severity, examine
from autotune.devices import Address
from tests.cache_example import DEVICE, entry, record
from tests.cache_files import write

CPU = (Address("opencl", 0), replace(DEVICE, kind="cpu", backend="opencl"))


def findings(folder, devices=(CPU,)):
    found = examine(list(devices), folder.path / "cache", folder.path / "runs")
    return {(finding.subject, finding.state): finding for finding in found}


def test_the_command_shows_what_there_is(folder):
    done = folder.run("doctor", "--cache", "cache")
    assert done.returncode == 0, done.stderr
    assert "opencl:0" in done.stdout and "NVRTC" in done.stdout
    rows = json.loads(folder.run("doctor", "--cache", "cache", "--json").stdout)
    assert {"subject", "state", "detail", "advice"} == rows[0].keys()
    assert all(row["advice"] for row in rows if row["state"] != "good")


def test_an_extra_that_is_not_installed_is_named_in_full(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "pycuda", None)  # an import of it fails
    monkeypatch.delitem(sys.modules, "autotune.devices.pycuda", raising=False)
    assert "pip install '.[pycuda]' in a clone" in findings(folder)["pycuda", Severity.WARNING].advice


def test_a_machine_without_packages_for_cuda_is_examined(folder, monkeypatch):
    for name in ("cuda", "cuda.bindings", "cuda.pathfinder"):
        monkeypatch.setitem(sys.modules, name, None)  # an import of it fails
    for name in ("analysis.health", "compilers.nvcc", "compilers.nvrtc", "devices.cuda"):
        monkeypatch.delitem(sys.modules, f"autotune.{name}", raising=False)
    found = import_module("autotune.analysis.health").examine(
        [CPU], folder.path / "cache", folder.path / "runs"
    )
    advice = {finding.subject: finding.advice for finding in found}
    assert all("pip install '.[cuda]' in a clone" in advice[name] for name in ("NVRTC", "nvcc", "cuda"))


def test_a_gpu_of_a_package_that_cannot_be_imported_is_none_to_tune_for(folder, monkeypatch):
    (folder.path / "pycuda.py").write_text("raise ImportError('libcurand.so.10: cannot open it')")
    monkeypatch.syspath_prepend(folder.path)
    monkeypatch.delitem(sys.modules, "pycuda", raising=False)
    monkeypatch.delitem(sys.modules, "autotune.devices.pycuda", raising=False)
    found = findings(folder, devices=[(Address("pycuda", 0), replace(DEVICE, backend="pycuda"))])
    broken = "pycuda is installed, but cannot be imported (libcurand.so.10: cannot open it); it comes with"
    assert found["pycuda", Severity.WARNING].advice.startswith(broken)
    assert ("devices", Severity.PROBLEM) in found and ("pycuda:0", Severity.GOOD) not in found


def test_without_gpp_it_is_said_what_needs_it(folder, monkeypatch):
    monkeypatch.setenv("PATH", str(folder.path))
    assert "space --run" in findings(folder)["g++", Severity.WARNING].advice


def test_without_a_device_there_is_a_problem(folder):
    assert ("devices", Severity.PROBLEM) in findings(folder, devices=())
    assert ("devices", Severity.PROBLEM) not in findings(folder)


def test_a_damaged_result_is_a_problem_and_a_stale_one_a_warning(folder):
    old, new = entry(64, BLOCK=32), entry(1024, BLOCK=128)
    newer = replace(new.provenance, tuned_at="2099-01-01T00:00:00+00:00", source_sha256="f" * 64)
    write(folder.path / "cache", DEVICE, record(old, replace(new, provenance=newer)))
    assert findings(folder)["stored results", Severity.WARNING].detail.endswith("1 stale")
    (file,) = (folder.path / "cache" / DEVICE.slug).glob("reduce.json")
    file.write_text(file.read_text()[:-20])
    assert "reduce.json" in findings(folder)["stored results", Severity.PROBLEM].detail
    done = folder.run("doctor", "--cache", "cache")
    assert done.returncode == 1 and "autotune: problems with stored results" in done.stderr


def test_a_cache_that_cannot_be_written_is_a_problem(folder):
    (folder.path / "cache").write_text("a file, not a folder")
    assert ("cache", Severity.PROBLEM) in findings(folder)
