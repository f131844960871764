"""Mistakes that are planted into kernels, and what `autotune check --strength` says of them."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.checks.host_sanitizer import find_host_sanitizer
from autotune.cli.strength_summary import strength_text
from autotune.compilers.source_text import read_source
from autotune.report.gather import gather_sources
from autotune.report.search_page import report_json
from autotune.sources.edits import edited
from autotune.strength import strength as measure_strength
from autotune.strength.c_mistakes import mistakes_in_c
from autotune.strength.long_run import lacking
from autotune.strength.mistakes import GUARD, KINDS, OFF_BY_ONE, PADDING, in_turns
from autotune.strength.record import CAUGHT, EQUIVALENT, MISSED, Planted, Strength, keep, read, strength_file
from autotune.strength.triton_mistakes import mistakes_in_triton
from tests.conftest import run_in_process
from tests.devices_here import devices_here
from tests.kernel_space import spec_of

KERNEL = """
#define BOUND (i < n)
__device__ float unused(const float *x, int i) { return i < 3 ? x[i] : 0; }
__global__ void sums(const float *x, float *y, int *ticket, int n, int m)
{
    __shared__ float cells[BLOCK][BLOCK];
    float sum = 0;
    int i = blockIdx.x * BLOCK + threadIdx.x;
    for (int k = 0; k < m; k++)
        sum += x[i * m + k];
    cells[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (i < n && BLOCK > 1)
        y[i] = cells[threadIdx.x][threadIdx.y] + (i > 0 ? x[i] : 0);
    if (BOUND)
        *ticket = 0;
}
"""


def planted(mistakes, text):
    """What each mistake makes of the line that it is in, by its kind."""
    found = {}
    for mistake in mistakes:
        lines = zip(text.split("\n"), edited(text, mistake.edits).split("\n"), strict=True)
        found.setdefault(mistake.kind, []).extend(new.strip() for old, new in lines if old != new)
    return found


def test_each_kind_of_mistake_is_planted_where_the_tree_has_room_for_it():
    found = planted(mistakes_in_c(KERNEL, {"BLOCK": "32"}, "cuda", frozenset({"sums"})), KERNEL)
    assert found["barrier dropped"] == ["(void)0;"]
    assert found["guard dropped"] == [
        "if (1)",
        "if (1 && BLOCK > 1)",
        "y[i] = cells[threadIdx.x][threadIdx.y] + (1 ? x[i] : 0);",
    ]
    assert found["off by one"][:2] == [
        "for (int k = 0; k <= m; k++)",
        "for (int k = 0; k + 1 < m; k++)",
    ]
    assert "sum += x[k * m + i];" in found["indices swapped"]
    assert found["narrower index"] == ["short i = blockIdx.x * BLOCK + threadIdx.x;"]
    assert found["wrong initial value"] == ["float sum = 1 + (0);"]
    assert found["neighbour read"][0] == "sum += x[(i * m + k) + 1];"
    assert found["wrong padding"] == ["y[i] = cells[threadIdx.x][threadIdx.y] + (i > 0 ? x[i] : 1 + (0));"]
    assert found["reset dropped"] == [";"]
    assert "sum = wide_ - (wide_ - sum);" in found["narrower sum"][0]


TICKET = """
__device__ bool is_last(unsigned int *done, int *fill)
{
    atomicAdd(fill, 1);
    return WRAPS ? atomicInc(done, gridDim.x - 1) == gridDim.x - 1 : atomicAdd(done, 1u) == gridDim.x - 1;
}
__global__ void sums(unsigned int *done, int *y)
{
    __shared__ int fill;
    fill = 0;
    y[0] = 0;
    if (is_last(done, &fill)) {
        done[0] = 0;
        atomicExch(done, 0u);
        atomicExch(done, 7u);
    }
}
"""


def test_a_counter_of_the_launch_goes_stale_and_one_of_the_block_does_not():
    found = planted(mistakes_in_c(TICKET, {"WRAPS": "1"}, "cuda", frozenset({"sums"})), TICKET)
    assert found["stale ticket"] == [
        "return WRAPS ? atomicAdd(done, 1u) == gridDim.x - 1 : atomicAdd(done, 1u) == gridDim.x - 1;",
        ";",  # done[0] = 0
        "(void)0;",  # atomicExch(done, 0u)
    ]
    assert found["reset dropped"] == [";", ";"]  # fill = 0, y[0] = 0


def test_a_counter_in_local_memory_that_the_launch_gives_is_one_of_the_block():
    text = """
__kernel void sums(__local uint *counted, __global uint *done)
{
    counted[0] = 0;
    done[0] = 0;
    atomic_inc(&counted[0]);
    atomic_inc(done);
}
"""
    found = planted(mistakes_in_c(text, {}, "opencl", frozenset({"sums"})), text)
    assert len(found["reset dropped"]) == len(found["stale ticket"]) == 1


TRITON_TICKET = """
import triton
import triton.language as tl

@triton.jit
def sums(x, y, done, n, BLOCK: tl.constexpr):
    part = x + tl.arange(0, BLOCK)
    total = tl.zeros([BLOCK], tl.float32)
    for start in tl.range(0, n, BLOCK, num_stages=3):
        total += tl.load(part, mask=start + tl.arange(0, BLOCK) < n, other=0.0)
        part += BLOCK
    tl.atomic_add(y, tl.sum(total))
    if tl.atomic_add(done, 1) == tl.num_programs(0) - 1:
        tl.atomic_xchg(done, 0)
        tl.store(done, 0)
"""


def test_a_ticket_and_the_stages_of_a_loop_are_planted_in_triton():
    mistakes = mistakes_in_triton(TRITON_TICKET, frozenset({"sums"}))
    found = planted(mistakes, TRITON_TICKET)
    assert found["stale ticket"] == ["pass", "pass"]
    assert found["wrong stage"] == [
        "for start in tl.range((0) + (BLOCK), n, BLOCK, num_stages=3):",
        "pass",
        "part += (BLOCK) * 2",
    ]
    assert all(one.startswith("total += ") for one in found["narrower sum"])  # `part` is a pointer


def test_code_that_only_a_macro_has_and_functions_that_no_launch_reaches_are_left_alone():
    mistakes = mistakes_in_c(KERNEL, {"BLOCK": "32"}, "cuda", frozenset({"sums"}))
    before = KERNEL.index("__global__")
    assert all(edit.begin > before for mistake in mistakes for edit in mistake.edits)


DECIDED = """
__device__ void rest(float *y, int n) { for (int k = 0; k < n; k++) y[k] = 0; }
__global__ void sums(float *y, int n)
{
    if (WIDE > 1 && n > 4)
        rest(y, n);
    else if (n > 0)
        y[0] = WIDE == 1 ? y[n] : 2;
}
"""


@pytest.mark.parametrize("wide", [1, 2])
def test_a_side_that_the_configuration_decides_against_has_no_room_for_a_mistake(wide):
    """Verification would try it where the compiler leaves it out."""
    found = planted(mistakes_in_c(DECIDED, {"WIDE": str(wide)}, "cuda", frozenset({"sums"})), DECIDED)
    assert len(found.get("tail dropped", ())) == (wide - 1) * 2  # the call and the loop that it goes to
    assert ("neighbour read" in found) == (wide == 1)


def test_a_parameter_that_hides_a_constant_decides_nothing_before_the_launch():
    text = "constexpr int WIDE = 0;\n" + DECIDED.replace(
        "sums(float *y, int n)", "sums(float *y, int n, int WIDE)"
    )
    found = planted(mistakes_in_c(text, {}, "cuda", frozenset({"sums"})), text)
    assert len(found["tail dropped"]) == 2 and "neighbour read" in found


@pytest.mark.parametrize("kernel", ["triton_layer_norm", "triton_matmul", "triton_softmax"])
def test_mistakes_of_triton_leave_a_source_that_python_reads(kernel):
    spec = spec_of(kernel)
    source = read_source(spec.source)
    mistakes = mistakes_in_triton(source.text, frozenset(step.entry for step in spec.launch))
    assert {"guard dropped", "wrong padding", "neighbour read"} <= {one.kind for one in mistakes} <= {*KINDS}
    for mistake in mistakes:
        compile(mistake.planted(source).text, kernel, "exec")
        assert len(set(mistake.lines(source))) == 2


def test_a_mask_is_replaced_by_one_that_always_holds():
    text = "import triton\n@triton.jit\ndef f(x, n):\n    tl.load(x, mask=x < n, other=0.0)\n"
    found = planted(mistakes_in_triton(text, frozenset({"f"})), text)
    assert found["guard dropped"] == ["tl.load(x, mask=((x < n) == (x < n)), other=0.0)"]
    assert found["wrong padding"] == ["tl.load(x, mask=x < n, other=1 + (0.0))"]


def test_a_seed_draws_the_same_mistakes_and_each_kind_comes_early():
    mistakes = mistakes_in_c(KERNEL, {"BLOCK": "32"}, "cuda", frozenset({"sums"}))
    drawn = in_turns(mistakes, 7, 2)
    assert drawn == in_turns(mistakes, 7, 2) != in_turns(mistakes, 8, 2)
    kinds = [one.kind for one in drawn]
    assert max(map(kinds.count, kinds)) <= 2
    assert len({*kinds[: len({*kinds})]}) == len({*kinds})


@pytest.mark.parametrize(
    ("verified", "size", "words"),
    [
        ([256, 512], 130, "is as small"),
        ([64, 1024], 2000, "is as large"),
        ([64, 1024], 65, "leaves a tail of tiles of 32"),
        ([63, 1025], 96, "is a multiple of 32"),
    ],
)
def test_a_mend_says_what_the_verified_sizes_lack(verified, size, words):
    assert lacking(verified, size, [32]) == words


SPACE = """
schema: 1
kernel: scale
source: scale.cu
reference: scale.py
sizes: {{default: {{n: 4096}}}}
verify_sizes: {sizes}
parameters: {{BLOCK: [32, 64]}}
default: {{BLOCK: 64}}
arguments:
  - {{name: x, dtype: float32, shape: [n], role: in, fill: {{uniform: [-1, 1]}}}}
  - {{name: y, dtype: float32, shape: [n], role: out}}
  - {{name: n, dtype: uint64, value: n}}
call: {{inputs: [x], returns: y}}
launch:
  - {{entry: scale, grid: ["ceil_div(n, BLOCK)"], block: [BLOCK], arguments: [x, y, n]}}
verify: {{rtol: 0, atol: 0}}
"""
SCALE = """
#include "portable.h"
#define I (BLOCK_INDEX(x) * BLOCK + THREAD_INDEX(x))
KERNEL KERNEL_BLOCK(BLOCK, 1, 1)
scale(GLOBAL const float *RESTRICT x, GLOBAL float *RESTRICT y, const unsigned long n)
{
    if (I < n)
        y[I] = 2 * x[I];
}
"""


@pytest.fixture
def strength(tmp_path, monkeypatch):
    """Checks a space with some sizes to verify, on the CPU, with one mistake of each of some kinds."""
    devices_here("opencl")

    def check(
        sizes, *words, factor=2, source=SCALE, left_out=("--no-sanitizer",), of_each_kind=1, kinds=KINDS
    ):
        monkeypatch.setattr(measure_strength, "_OF_EACH_KIND", of_each_kind)
        monkeypatch.setattr("autotune.strength.mistakes.KINDS", kinds)
        (tmp_path / "scale.cu").write_text(source)
        reference = f"def reference(inputs, sizes):\n    return {{'y': {factor} * inputs['x']}}\n"
        (tmp_path / "scale.py").write_text(reference)
        (tmp_path / "scale.yaml").write_text(SPACE.format(sizes=sizes))
        words = ("--strength", *left_out, "--device", "opencl", *words)
        return run_in_process(tmp_path, "check", "scale.yaml", *words)

    return check


def test_a_dropped_guard_is_missed_until_a_size_has_a_tail(strength, tmp_path):
    done = strength("[{n: 64}, {n: 1024}]", "--json", kinds=(GUARD, OFF_BY_ONE))
    assert done.returncode == 0, done.stderr
    rows = {row["now"]: row for row in json.loads(done.stdout)["planted"]}
    assert rows["if (1)"]["verdict"] == MISSED
    assert rows["if (1)"]["mend"].startswith("no verify size ") and "add {n: " in rows["if (1)"]["mend"]
    assert rows["if (I + 1 < n)"]["verdict"] == CAUGHT
    assert read(next((tmp_path / "runs").glob("scale.*.strength.json"))).of(MISSED, "guard dropped")
    kinds = (GUARD, OFF_BY_ONE, PADDING)
    mended = strength("[{n: 64}, {n: 1024}, {n: 33}]", "--verbose", kinds=kinds)
    assert mended.returncode == 0, mended.stderr
    head, *_ = mended.stdout.splitlines()
    assert head.startswith("caught ") and head.endswith(" planted mistakes (100%)")
    assert "missed: " not in mended.stdout
    assert mended.stderr.count("planted mistakes") == 1  # one stage, with one time that is left


def test_what_only_zeros_show_is_told_with_what_the_default_makes_of_them(strength):
    """Zeros are left out because the default disagrees with the reference there."""
    source = SCALE.replace("2 * x[I]", "2 * x[I] != 0 ? 2 * x[I] : (BLOCK == 64 ? 7.0f : 0.0f)")
    done = strength("[{n: 64}, {n: 33}]", "--json", source=source, kinds=(PADDING,))
    assert done.returncode == 0, done.stderr
    mends = {row["mend"] for row in json.loads(done.stdout)["planted"]}
    (mend,) = (mend for mend in mends if "data zeros" in mend)
    assert (
        "default and reference disagree with data zeros at n=64, so it is left out: wrong_result: y[" in mend
    )
    assert "; to repeat: give x `fill: {constant: 0}` and run autotune run scale.yaml -d " in mend
    assert mend.endswith(" --config BLOCK=64 --size n=64")


def test_an_access_that_the_compiler_leaves_out_is_caught_by_the_sanitizers_of_the_cpu(strength):
    """The binary is the same without the fifth turn, which writes beyond the array."""
    if find_host_sanitizer() is None:
        pytest.skip("needs g++")
    source = SCALE.replace(
        "    if (I < n)\n        y[I] = 2 * x[I];",
        """\
    float held[4];
    for (int j = 0; j < 4; j++)
        held[j] = 2 * x[I];
    y[I] = held[2];""",
    )
    done = strength("[{n: 64}]", "--json", source=source, left_out=(), of_each_kind=2, kinds=(OFF_BY_ONE,))
    assert done.returncode == 0, done.stderr
    rows = {row["now"]: row for row in json.loads(done.stdout)["planted"]}
    row = rows["for (int j = 0; j <= 4; j++)"]
    assert row["verdict"] == CAUGHT and "run on the CPU: index 4 out of bounds" in row["detail"]


def test_no_mistake_is_planted_once_the_time_is_over(strength):
    done = strength("[{n: 64}]", "--time", "1e-3")
    assert done.returncode == 0, done.stderr
    head, left, *_ = done.stdout.splitlines()
    assert head == "caught 0 of 0 planted mistakes" and left.endswith(": raise --time")


def test_a_kernel_that_takes_longer_than_most_has_longer_with_a_mistake(strength, monkeypatch):
    monkeypatch.setattr(measure_strength, "_TIMEOUT_S", 1e-4)
    done = strength("[{n: 64}, {n: 33}]", "--json")
    assert done.returncode == 0, done.stderr
    assert {row["detail"].partition(":")[0] for row in json.loads(done.stdout)["planted"]} >= {"wrong_result"}


def test_a_kernel_that_fails_without_a_mistake_is_told(strength):
    done = strength("[{n: 64}]", factor=3)
    assert done.returncode == 1
    assert "without a planted mistake, BLOCK=64 fails: wrong_result" in done.stderr


def test_a_source_without_room_for_mistakes_is_told(folder):
    done = folder.run("check", "double.yaml", "--device", "fake", "--strength")
    assert done.returncode == 2 and "found no place for a mistake" in done.stderr


FOUND = Strength(
    (
        Planted("off by one", "a.cu:3", "i < n", "i <= n", CAUGHT, "wrong_result: y[0]"),
        Planted("guard dropped", "a.cu:3", "i < n", "1", MISSED, "out_of_bounds: y", "add {n: 33}"),
        Planted("tail dropped", "a.cu:4", "k < 1", "0", EQUIVALENT),
    ),
    2,
)


def test_a_run_that_tried_few_mistakes_gets_no_percentage():
    """The kinds take turns, so the first mistakes are no sample of all."""
    most = replace(FOUND, left=len(FOUND.planted))
    few = replace(FOUND, left=len(FOUND.planted) + 1)
    assert strength_text(most)[0] == "caught 1 of 2 planted mistakes (50%)"
    assert strength_text(few)[:2] == (
        "caught 1 of 2 planted mistakes",
        "no time was left for 4 mistakes: raise --time",
    )
    assert few.score is None


def test_a_record_is_read_as_it_was_kept_and_a_damaged_one_is_none(tmp_path):
    path = strength_file("a", "cpu", tmp_path)
    keep(FOUND, path)
    assert read(path) == FOUND and FOUND.score == 0.5
    for damage in ("", "[]", "{}", path.read_text().replace("missed", "lost"), path.read_text()[:-9]):
        path.write_text(damage)
        assert read(path) is None
    assert read(tmp_path / "none.json") is None


@pytest.mark.parametrize("name", ["Fake GPU", "AMD EPYC"])  # a CPU's slug has more than its name
def test_a_report_has_the_strength_that_was_found_for_its_kernel_and_device(searched_folder, name):
    (journal,) = (searched_folder.path / "runs").glob("*.jsonl")
    header, rows = journal.read_text().split("\n", 1)
    journal.write_text(json.dumps({**json.loads(header), "device": name}) + "\n" + rows)
    (search,) = report_json(gather_sources([journal]))["searches"]
    assert search["strength"] is None
    keep(FOUND, strength_file("double", Path(journal).name.split(".")[1], journal.parent))
    (search,) = report_json(gather_sources([journal]))["searches"]
    assert search["strength"]["kinds"][1] == ["guard dropped", 0, 1, 0]
    assert search["strength"]["missed"] == [["guard dropped", "a.cu:3", "i < n", "1", "add {n: 33}"]]
