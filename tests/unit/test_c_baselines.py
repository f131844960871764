"""A C function on the host: on a scalar thread, with vectors and on all cores, if its results are right."""

import json
from shutil import which

import pytest

from autotune.analysis.versus import Contender, Versus
from autotune.compilers.source_text import read_source
from autotune.devices.listing import find_devices
from autotune.evaluation.instance import InstanceMaker
from autotune.problem.baselines import BUILDS, Baselines
from autotune.serving.ceilings import Ceiling, ceilings_text
from tests.kernel_space import CPU, bound, spec_of

pytestmark = pytest.mark.skipif(which("gcc") is None, reason="needs gcc")
SOURCE = """\
void reference(const DTYPE *x, int *y, long n)
{
#pragma omp parallel for simd
    for (long i = 0; i < n; i++)
        y[i] = 2 * x[i];
}
"""
SIZES = {
    "reduce": [{"n": 1}, {"n": 1003}],
    "matadd": [{"rows": 3, "columns": 5}],
    "transpose": [{"rows": 33, "columns": 1}, {"rows": 16, "columns": 47}],
    "matmul": [{"m": 1, "n": 1, "k": 1}, {"m": 3, "n": 515, "k": 67}],
    "convolution": [{"width": 1, "height": 1}, {"width": 35, "height": 3}],
}


def timed(folder, source):
    (folder.path / "reference.c").write_text(source)
    done = folder.run("versus", "double.yaml", "--device", "fake", "--cpu", "none", "--json")
    assert done.returncode == 0, done.stderr
    (found,) = json.loads(done.stdout)
    return {row["name"]: row for row in found["contenders"] if not row["on_device"]}


def test_one_source_is_timed_in_three_builds_and_stands_for_numpy(folder):
    rows = timed(folder, SOURCE)
    assert [*rows] == ["C, scalar", "C, vectors", "C, all cores"]
    assert all(row["time_ms"] > 0 for row in rows.values())
    assert rows["C, scalar"]["detail"] == "one thread without vectors"


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("2 * x[i]", "2 * x[i] + 400", "y is wrong: off by 400"),
        ("long n)", "long n, long m)", "reference.c: long m: the space has no such array or size"),
        ("*y", "*z", "reference.c"),
        ("void reference", "void double_it", "reference.c: defines no function reference"),
    ],
)
def test_a_function_that_is_not_the_kernels_work_has_a_reason_and_no_time(folder, old, new, said):
    rows = timed(folder, SOURCE.replace(old, new))
    assert all(row["time_ms"] is None and said in row["detail"] for row in rows.values())


@pytest.mark.parametrize("kernel", SIZES)
def test_those_of_the_project_are_right_at_awkward_sizes(kernel):
    spec = spec_of(kernel)
    for sizes in SIZES[kernel]:
        space = bound(spec, CPU, **sizes)
        maker = InstanceMaker(space, read_source(spec.source), "opencl", {})
        workload = maker.make(spec.default).workload
        found = [*Baselines(spec.reference, workload, space.macros(spec.default)).in_c()]
        assert [(one.name, one.detail) for one in found] == [(one.name, one.detail) for one in BUILDS]
        assert all(one.time_ms is not None for one in found)


def test_rates_stand_next_to_the_hosts_measured_peak():
    rows = (
        Contender("C, scalar", 2.0, "", on_device=False),
        Contender("tuned", 1.0, "", on_device=True),
        Contender("failed", None, "", on_device=False),
    )
    found = Versus({}, rows, None, None, {"bytes": 4e6, "flops": 1e6}, {"bytes": 8e9})
    assert found.share_of_peak(rows[0], "bytes") == pytest.approx(0.25)
    assert found.share_of_peak(rows[0], "flops") is None  # nobody measured it
    assert found.share_of_peak(rows[1], "bytes") is found.share_of_peak(rows[2], "bytes") is None


def test_the_peak_is_that_of_measured_ceilings_and_else_the_command_for_them_is_named(folder):
    (folder.path / "reference.c").write_text(SOURCE)
    command = ("versus", "double.yaml", "--device", "fake", "--cpu", "fake", "--cache", "cache")
    assert (
        "the host's peak is not known: measure it with `autotune devices --measure --device fake`"
        in folder.run(*command).stdout
    )
    ((_, device), *_) = find_devices(["fake"])
    slug = device.slug
    (folder.path / "cache" / slug).mkdir(parents=True)
    rates = [Ceiling(f"memory {kind}", "bytes_per_s", 1e9, {}, {}) for kind in ("read", "write", "copy")]
    (folder.path / "cache" / slug / "device-ceilings.json").write_text(ceilings_text(rates, "today"))
    done = folder.run(*command)
    assert "of the host's bytes" in done.stdout and "of the host's flops" not in done.stdout
