"""Profiling one launch, with a stand-in for a program that needs a GPU."""

import pytest

from autotune.core.records import Launch
from autotune.core.trials import Problem
from autotune.devices import Address, backend
from autotune.diagnosis.profiler import Counting, Profiler, find_profiler
from autotune.errors import InputError, SetupError
from autotune.problem.workload import Array, Scalar, Workload

FAKE = Address("fake", 0)
KERNEL = """
def double(grid, block, x, n):
    open("launches", "a").write("x")
    x.view("float32")[:n] *= 2
"""
PROBLEM = Workload(
    Problem({"n": 4}, "float32"),
    (Array("x", "float32", (4,), "inout", ("constant", 1)),),
    (Scalar("n", "int32", 4),),
    (Launch("double", (1, 1, 1), (1, 1, 1), 0, ("x", "n")),),
)
# runs what follows its options and writes its report; --import shows it
STAND_IN = """#!/bin/sh
if [ "$1" = --import ]; then echo "details of $(cat "$2")"; exit; fi
while [ "${1#-}" != "$1" ] || [ "$1" = profile ]; do
    case "$1" in --export|-o) shift; report=$1;; --metrics) shift;; --launch-count) shift; limit=$1;; esac
    shift
done
"$@"
%s
echo "summary"
"""


@pytest.fixture
def profile(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reference.py").write_text("def reference(inputs, sizes):\n    return {}\n")

    def run(name, ending='echo counted > "$report"', kernel=KERNEL, counting=None):
        program = tmp_path / name
        program.write_text(STAND_IN % ending)
        program.chmod(0o755)
        place = (str(program), FAKE, tmp_path / "reference.py")
        profiler = Profiler(name, *place, counting)
        binary = backend("fake").open_compiler(0).compile(kernel, ())
        return profiler.run(binary, PROBLEM, tmp_path / "runs" / f"double.{name}-rep")

    return run


@pytest.mark.parametrize(("name", "said"), [("ncu", "details of counted"), ("nsys", "summary")])
def test_exactly_one_run_is_profiled_and_what_the_profiler_says_comes_back(profile, tmp_path, name, said):
    assert profile(name).strip() == said
    assert (tmp_path / "launches").read_text() == "x"


def test_metrics_are_counted_in_so_many_launches(profile):
    said = profile("ncu", 'echo "$limit" > "$report"', counting=Counting(("dram__bytes.sum",), 7))
    assert said.strip() == "details of 7"


def test_a_profiler_that_writes_nothing_is_told_with_its_last_words(profile):
    with pytest.raises(SetupError, match="ncu wrote no report: no permission"):
        profile("ncu", "echo no permission; exit 1")


def test_a_permission_that_is_missing_is_what_is_told(profile):
    with pytest.raises(SetupError, match="wrote no report: ==ERROR== ERR_NVGPUCTRPERM"):
        profile("ncu", "echo '==ERROR== ERR_NVGPUCTRPERM - no permission'; echo more; exit 1")


def test_a_launch_that_fails_is_told(profile):
    with pytest.raises(SetupError, match="ncu: launch_error: the source has no entry 'double'"):
        profile("ncu", kernel="def other():\n    pass\n")


def test_what_cannot_be_profiled_says_so_in_one_line_before_anything_runs(folder, monkeypatch):
    done = folder.run("run", "double.yaml", "--device", "fake", "--profile", "ncu")
    expected = "--profile ncu: ncu profiles NVIDIA GPUs through CUDA; fake:0 is another kind of device"
    assert done.stderr.strip().splitlines()[-1].endswith(expected) and done.stdout == ""
    monkeypatch.setenv("PATH", str(folder.path))
    with pytest.raises(InputError, match="nsys is not installed; it comes with Nsight Systems"):
        find_profiler("nsys", Address("cuda", 0))
