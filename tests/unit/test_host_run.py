"""`autotune space --run`: kernels in C as threads of the CPU, compared with their reference."""

import json
import re

import pytest

from autotune.analysis.host_run import HostRun, HostRuns, run_on_host
from autotune.checks.host_sanitizer import find_host_sanitizer
from autotune.cli.host_run import runs_text
from autotune.core.outcomes import NO_TIME, PASSED
from autotune.core.records import Config
from autotune.core.trials import Failure, Status
from autotune.errors import InputError, SetupError
from autotune.tuning.task import Target

KERNEL = """\
#include <cstdio>
#include <cuda_runtime.h>
__constant__ float factors[2];
__global__ void scale(const float *x, float *y, int rows, int cols)
{
    extern __shared__ float4 room[];
    float *row = (float *)room;
    for (int c = threadIdx.x; c < cols; c += BLOCK)
        row[c] = x[blockIdx.x * cols + c];
    __syncthreads();
    for (int c = threadIdx.x; c < cols; c += BLOCK)
        y[blockIdx.x * cols + c] = factors[STEP] * row[cols - 1 - c];
}
int main(int argc, char **argv)
{
    float *x, *y;
    cudaMalloc(&x, 4096);
    cudaMalloc(&y, 4096);
    scale<<<8, BLOCK, 512>>>(x, y, 8, 128);
    return cudaDeviceSynchronize() != cudaSuccess;
}
"""
SPACE = """\
schema: 1
kernel: scale
dialect: cuda
source: scale.cu
reference: scale.py
sizes: {default: {rows: 4096, cols: 1024}}
verify_sizes: [{rows: 1, cols: 2}, {rows: 3, cols: 100}, {rows: 2, cols: 1}, {rows: 9000, cols: 4}]
parameters: {BLOCK: [32, 64, 2048], STEP: [0, 1]}
constraints: [cols > 1, BLOCK <= device.max_threads_per_block]
default: {BLOCK: 64, STEP: 0}
landmarks:
  wrong: {BLOCK: 32, STEP: 1, expect: wrong_result}
  wide: {BLOCK: 2048}
arguments:
  - {name: x, dtype: float32, shape: [rows, cols], role: in, fill: {uniform: [-1, 1]}}
  - {name: y, dtype: float32, shape: [rows, cols], role: out}
  - {name: factors, dtype: float32, shape: [2], role: in, fill: {sequence: [3, 2]}, symbol: factors}
  - {name: rows, dtype: int32, value: rows}
  - {name: cols, dtype: int32, value: cols}
launch:
  - {entry: scale, grid: [rows], block: [BLOCK], shared_bytes: 4 * cols, arguments: [x, y, rows, cols]}
verify: {rtol: 1e-6}
"""
REFERENCE = """\
def reference(inputs, sizes):
    return {"y": 3.0 * inputs["x"][:, ::-1].astype(float)}
"""

pytestmark = pytest.mark.skipif(find_host_sanitizer() is None, reason="needs g++")


@pytest.fixture
def space(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    for name, text in (("scale.cu", KERNEL), ("scale.yaml", SPACE), ("scale.py", REFERENCE)):
        (tmp_path / name).write_text(text)
    return tmp_path / "scale.yaml"


def edit(file, old, new):
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def ran(space, **options):
    return run_on_host(Target(space), options.pop("timeout_s", 120.0), **options)


def test_a_program_in_cuda_is_compared_where_it_is_valid_and_small_enough(space):
    found = ran(space)
    default, wrong, wide = found.runs
    assert (found.kernel, found.uncompared) == ("scale", ())
    assert (default.name, default.outcome, default.is_as_expected) == ("default", PASSED, True)
    assert (default.sizes, default.larger, default.invalid) == (2, 1, 1)
    assert (wrong.name, wrong.status, wrong.is_as_expected) == ("wrong", Status.WRONG_RESULT, True)
    assert (wide.status, wide.is_as_expected) == (Status.INVALID, True)
    assert wide.outcome.detail.startswith("not valid on NVIDIA H100: ")


@pytest.mark.parametrize(
    ("file", "old", "new", "status", "words"),
    [
        ("scale.cu", "factors[STEP] *", "factors[STEP] * (c == 1 ? 2 : 1) *", "wrong_result", "y[0, 1] is "),
        ("scale.cu", "    __syncthreads();\n", "", "wrong_result", "a race: write in scale (scale.cu:9) and"),
        (
            "scale.cu",
            "y[blockIdx.x * cols + c] =",
            "y[blockIdx.x * cols + c + 1] =",
            "out_of_bounds",
            "write",
        ),
        ("scale.yaml", "4 * cols", "4 * cols - 4", "out_of_bounds", "scale.cu:9"),
        (
            "scale.yaml",
            "grid: [rows]",
            'grid: ["ceil_div(rows, 2)"]',
            "wrong_result",
            "that was never written",
        ),
        ("scale.py", "3.0", "3.001", "wrong_result", "tolerance: rtol=1e-06, atol=0 (at rows=1, cols=2)"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(space, file, old, new, status, words):
    edit(space.with_name(file), old, new)
    (found,) = ran(space, config=Config({"BLOCK": 64, "STEP": 0})).runs
    assert (found.name, found.status.value, found.is_as_expected) == ("as given", status, False)
    assert words in found.outcome.detail


def test_without_landmarks_the_first_and_the_last_configuration_run_as_well(space):
    """A number in the place of a macro is right where it is the macro's value."""
    text = KERNEL.replace("c += BLOCK)\n        row", "c += 64)\n        row").replace(
        "factors[STEP]", "factors[0]"
    )
    (space.parent / "scale.cu").write_text(text)
    landmarks = SPACE[SPACE.index("landmarks:") : SPACE.index("arguments:")]
    space.write_text(SPACE.replace(landmarks, "").replace("STEP: [0, 1]", "STEP: [0]"))
    runs = {run.name: run.outcome for run in run_on_host(Target(space, "sm_90"), 60).runs}
    assert runs["default"] is PASSED and [*runs] == ["default", "first"]  # 2,048 threads are too many
    assert runs["first"].status is not Status.OK


def test_an_input_that_a_kernel_changes_is_wrong(space):
    write = "if (blockIdx.x == 0 && threadIdx.x == 0) ((float *)x)[0] = 5;"
    edit(space.with_name("scale.cu"), "    float *row =", f"    {write}\n    float *row =")
    (found,) = ran(space, config=Config({"BLOCK": 32, "STEP": 0})).runs
    assert found.outcome.detail.startswith("changed its input x[0, 0]")


def test_what_was_not_compared_or_not_run_is_said(space):
    assert {one.outcome for one in ran(space, timeout_s=0.01).runs[:2]} == {NO_TIME}
    edit(space.with_name("scale.py"), '"y"', '"z"')
    with pytest.raises(SetupError, match=r"scale\.py.*'z'"):
        ran(space)
    space.with_name("scale.py").write_text("def reference(inputs, sizes):\n    return {}\n")
    edit(space, "role: out}", "role: inout, fill: {constant: 0}}")
    found = ran(space, config=Config({"BLOCK": 64, "STEP": 0}))
    assert (found.runs[0].outcome, found.uncompared) == (PASSED, ("y",))


def test_other_languages_are_refused(folder):
    with pytest.raises(InputError, match=r"--run takes kernels in C and in Triton; .*'python'"):
        run_on_host(Target(folder.space, "fake"), 120.0)


def test_each_configuration_has_a_line_and_nothing_is_kept(folder, space):
    for file in (space, space.with_name("scale.cu"), space.with_name("scale.py")):
        (folder.path / file.name).write_text(file.read_text())
    before = {*folder.path.iterdir()}
    done = folder.run("space", "scale.yaml", "--run")
    assert done.returncode == 0, done.stderr
    default, wrong, wide, _, did, nothing, others = done.stdout.splitlines()
    assert default == (
        "default  ok at 2 sizes of the space, and at 6 more, near its tiles; 1 not run: "
        "more than 524,288 threads or 64 MiB; not valid at 1"
    )
    assert wrong.startswith("wrong    as expected, wrong_result: y[0, 0] is ")
    assert wide.startswith("wide     not valid on NVIDIA H100: BLOCK <= device.max_threads_per_block")
    assert did.startswith(
        "checked results, races and accesses outside of arrays on the CPU (g++ "
    ) and nothing.startswith("nothing was timed")
    assert others == "1 of 3 configurations; for others, add landmarks to the space or give --config"
    assert {*folder.path.iterdir()} == before
    done = folder.run("space", "scale.yaml", "--run", "--json", "--config", "STEP=1")
    (found,) = json.loads(done.stdout)["configurations"]
    assert done.returncode == 1 and found["status"] == "wrong_result" and found["right_sizes"] == 0


def test_a_failure_that_configurations_share_is_said_once():
    runs = [
        HostRun(name, Config({"B": at}), frozenset({Status.OK}), outcome)
        for at, (name, outcome) in enumerate((
            *(("default", PASSED), ("a", Failure(Status.WRONG_RESULT, "y[0]"))),
            *(("b", Failure(Status.WRONG_RESULT, "y[1]")), ("c", Failure(Status.WRONG_RESULT, "y[0]"))),
            ("last", PASSED),
        ))
    ]  # fmt: skip
    lines = runs_text(HostRuns("k", "tool", "results", (*runs,), (), 5)).splitlines()
    assert [line.split(maxsplit=1)[1] for line in lines[:5]] == [
        "ok at 0 sizes", "wrong_result: y[0]", "wrong_result: y[1]", "the same as a", "ok at 0 sizes"
    ]  # fmt: skip


def test_options_that_do_not_go_together_are_refused(folder):
    for words in ("--run --compile", "--run --report", "--run --seed 1", "--run --size n=100", "--timeout 5"):
        done = folder.run("space", "double.yaml", *words.split())
        assert done.returncode == 2 and "leave out" in done.stderr, words


TILED = """\
__global__ void sums(const float *x, float *y, int n)
{
    __shared__ float part[TILE];
    float sum = 0;
    for (int first = 0; first < n; first += TILE) {
        if (WAITS) __syncthreads();
        for (int i = threadIdx.x; i < TILE; i += 32)
            part[i] = first + i < n ? x[first + i] : 0;
        __syncthreads();
        for (int i = 0; i < TILE; i++)
            sum += part[(i + threadIdx.x) % TILE];
    }
    if (threadIdx.x == 0) y[0] = sum;
}
"""
TILED_SPACE = """\
schema: 1
kernel: sums
dialect: cuda
source: sums.cu
reference: sums.py
sizes: {default: {n: 4096}}
verify_sizes: [{n: 1}, {n: 31}, {n: 65}]
parameters: {TILE: [32, 256], WAITS: [false, true]}
default: {TILE: 32, WAITS: true}
landmarks:
  hasty: {TILE: 256, WAITS: false}
  wide: {TILE: 256}
arguments:
  - {name: x, dtype: float32, shape: [n], role: in, fill: {uniform: [-1, 1]}}
  - {name: y, dtype: float32, shape: [1], role: out}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: sums, grid: [1], block: [32], arguments: [x, y, n]}
verify: {error: accumulate(n)}
"""


@pytest.fixture
def tiled(space):
    sums = 'def reference(inputs, sizes):\n    return {"y": inputs["x"].astype(float).sum(keepdims=True)}\n'
    for name, text in (("sums.cu", TILED), ("sums.yaml", TILED_SPACE), ("sums.py", sums)):
        space.with_name(name).write_text(text)
    return space.with_name("sums.yaml")


def test_a_configuration_runs_near_its_own_tiles_which_the_sizes_to_verify_do_not_reach(tiled):
    default, hasty, wide = ran(tiled).runs
    assert [(one.outcome, one.sizes) for one in (default, wide)] == [(PASSED, 3)] * 2
    assert default.tiles and wide.tiles and not default.unrun_tiles + wide.unrun_tiles
    assert hasty.sizes == 3 and hasty.status is Status.WRONG_RESULT
    assert "a race: write in sums (sums.cu:8) and read in sums (sums.cu:11)" in hasty.outcome.detail or (
        "a race: read in sums (sums.cu:11) and write in sums (sums.cu:8)" in hasty.outcome.detail
    )


def test_what_is_wrong_of_the_default_beyond_the_sizes_of_a_space_is_a_doubt(tiled, folder):
    edit(tiled, "{n: 4096}", "{n: 64}")
    edit(tiled.with_name("sums.cu"), "y[0] = sum", "y[0] = n > 100 ? 0 : sum")
    (default,) = ran(tiled, config=Config({"TILE": 32, "WAITS": True})).runs
    assert (default.outcome, default.sizes) == (PASSED, 3) and default.tiles
    assert "y[0] is 0.0" in default.doubts[0] and "write `n <= 65` into `constraints`" in default.doubts[0]


def test_what_is_wrong_where_the_default_would_take_too_long_counts(space):
    kernel = """\
__global__ void copy(const float *x, float *y, int n)
{
#if ITEMS > 1
    short first = blockIdx.x * ITEMS;
#else
    int first = blockIdx.x;
#endif
    for (int i = first; i < first + ITEMS; i++)
        if (threadIdx.x == 0 && i < n) y[i] = x[i];
}
"""
    described = TILED_SPACE.replace("sums", "copy").replace("shape: [1]", "shape: [n]")
    own = "parameters: {ITEMS: [1, 8]}\ndefault: {ITEMS: 1}\narguments:"
    described = re.sub(r"parameters:(.|\n)*?\narguments:", own, described)
    described = described.replace("grid: [1], block: [32]", 'grid: ["ceil_div(n, ITEMS)"], block: [8]')
    space.with_name("copy.cu").write_text(kernel)
    space.with_name("copy.py").write_text('def reference(inputs, sizes):\n    return {"y": inputs["x"]}\n')
    space.with_name("copy.yaml").write_text(described.removesuffix("verify: {error: accumulate(n)}\n"))
    default, last = ran(space.with_name("copy.yaml")).runs
    assert default.outcome is PASSED and last.status is Status.OUT_OF_BOUNDS
    assert "n=69633" in last.outcome.detail and not last.doubts
