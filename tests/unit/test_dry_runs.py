"""Mistakes that lint finds by running launches on indices alone, and right kernels, where it finds none."""

import pytest

from autotune.space import bind, lint, load_space, problem_of
from tests.space_example import GPU

SPACE = """\
schema: 1
kernel: sums
dialect: cuda
source: sums.cu
reference: sums.py
dtypes: [float32]
sizes: {default: {n: 100_000}}
verify_sizes: [{n: 1}, {n: 255}, {n: 256}, {n: 257}]
parameters:
  BLOCK: [32, 64, 128]
  ITEMS: [1, 2]
default: {BLOCK: 64, ITEMS: 2}
arguments:
  - {name: values, dtype: float32, shape: [n], role: in, fill: {uniform: [0, 1]}}
  - {name: out, dtype: float32, shape: [n], role: out}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: sums, grid: ["ceil_div(n, BLOCK * ITEMS)"], block: [BLOCK], arguments: [values, out, n]}
"""
SOURCE = """\
__device__ float scaled(const float *from, int i) { return from[i] * 2; }

__global__ void sums(const float *values, float *out, int n)
{
    __shared__ float tile[BLOCK * ITEMS];
    const int first = blockIdx.x * BLOCK * ITEMS;
    for (int k = threadIdx.x; k < BLOCK * ITEMS; k += BLOCK)
        tile[k] = first + k < n ? scaled(values, first + k) : 0;
    __syncthreads();
    for (int k = 0; k < ITEMS; k++) {
        const int own = k * BLOCK + threadIdx.x;
        if (first + own < n)
            out[first + own] = tile[own] + tile[(own + 1) % (BLOCK * ITEMS)];
    }
}
"""
FOUND = ("out_of_bounds", "divergent_barrier", "small_grid", "unwritten_output")


def linted(folder, *edits, source=SOURCE, space=SPACE):
    for old, new in edits:
        assert (source + space).count(old) == 1
        source, space = source.replace(old, new), space.replace(old, new)
    (folder / "sums.cu").write_text(source)
    (folder / "sums.py").write_text("def reference(inputs, sizes):\n    return {}\n")
    (folder / "sums.yaml").write_text(space)
    spec = load_space(folder / "sums.yaml")
    bound = bind(spec, GPU, problem_of(spec, GPU))
    return lint(bound, source, ())


def findings(folder, *edits, source=SOURCE, space=SPACE):
    found = linted(folder, *edits, source=source, space=space)
    return [one for one in found.mistakes if one.kind in FOUND]


def test_an_array_of_structures_with_fields_of_several_types_has_a_size(tmp_path):
    edits = (
        ("__global__ void sums", "struct Pair { double sum; int count; };\n\n__global__ void sums"),
        (
            "__shared__ float tile[BLOCK * ITEMS];",
            "__shared__ float tile[BLOCK * ITEMS];\n    Pair pairs[ITEMS];",
        ),
        ("    __syncthreads();\n", "    __syncthreads();\n    pairs[ITEMS].count = 1;\n"),
    )
    assert [finding.subject for finding in findings(tmp_path, *edits)] == ["pairs"]


def test_sizes_at_which_launches_take_too_long_to_follow_are_told(tmp_path):
    assert linted(tmp_path).left_out == ()
    slow = ("k < ITEMS; k++", "k < (n < 257 ? ITEMS : 100000); k++")
    assert linted(tmp_path, slow).left_out == ({"n": 257}, {"n": 100_000})


def test_the_only_parameter_is_not_to_be_removed(tmp_path):
    old = "  BLOCK: [32, 64, 128]\n  ITEMS: [1, 2]\ndefault: {BLOCK: 64, ITEMS: 2}"
    texts = (SOURCE, SPACE.replace(old, "  VARIANT: [1]\ndefault: {VARIANT: 1}"))
    source, space = (text.replace("BLOCK", "64").replace("ITEMS", "2") for text in texts)
    (found,) = (one for one in linted(tmp_path, source=source, space=space).mistakes if "VARIANT" in str(one))
    assert found.detail.endswith("; use it in sums.cu; a space needs one parameter"), found


def test_asking_whether_further_blocks_reach_more_leaves_no_size_out(tmp_path):
    slow = ("(int k = 0; k < ITEMS; k++)", "(int k = 0; k < ITEMS + 15; k++)")
    assert linted(tmp_path, slow).left_out == ()
    assert linted(tmp_path, slow, ("shape: [n], role: in,", "shape: [n + 512], role: in,")).left_out == ()


def test_a_right_kernel_has_no_finding(tmp_path):
    assert findings(tmp_path) == []


@pytest.mark.parametrize(
    ("kind", "edit", "where"),
    [
        ("out_of_bounds", ("        if (first + own < n)\n", ""), "sums.cu:12: "),
        (
            "out_of_bounds",
            ("first + k < n ? scaled(values, first + k) : 0", "scaled(values, first + k)"),
            "1: ",
        ),
        ("out_of_bounds", ("tile[BLOCK * ITEMS];", "tile[BLOCK * ITEMS - 1];"), "sums.cu:8: "),
        ("out_of_bounds", ("shape: [n], role: out", "shape: [n // 2 + 1], role: out"), "sums.cu:13: "),
        (
            "divergent_barrier",
            ("    __syncthreads();", "    if (first + threadIdx.x < n) __syncthreads();"),
            ":9: ",
        ),
        ("divergent_barrier", ("            out[", "            __syncthreads(), out["), ":13: "),
        ("small_grid", ("ceil_div(n, BLOCK * ITEMS)", "ceil_div(n, BLOCK * ITEMS * 2)"), "sums.yaml:18: "),
        ("small_grid", ("ceil_div(n, BLOCK * ITEMS)", "max(n // (BLOCK * ITEMS), 1)"), "sums.yaml:18: "),
        (
            "unwritten_output",
            ("k * BLOCK + threadIdx.x", "k * BLOCK + threadIdx.x / 2 * 2"),
            "sums.yaml:15: ",
        ),
        ("unwritten_output", ("first + own < n", "first + own < n - 1"), "sums.yaml:15: "),
        ("unwritten_output", ("first + own < n", "first + own + 1 < n"), "sums.yaml:15: "),
    ],
)
def test_a_mistake_is_found_at_its_place(tmp_path, kind, edit, where):
    found = [one for one in findings(tmp_path, edit) if one.kind == kind]
    assert found and where in str(found[0])


def test_a_finding_names_the_thread_the_element_and_the_configuration(tmp_path):
    found = findings(tmp_path, ("        if (first + own < n)\n", ""))
    assert found[0].detail == (
        "thread (1, 0, 0) of block (0, 0, 0) writes element 1 of out, which has 1, with BLOCK=64 ITEMS=2 at "
        "n=1; guard the access, or correct the shape of out"
    )


VECTORS = """\
struct __align__(4 * ITEMS) wide { float v[ITEMS]; };
__global__ void sums(const float *values, float *out, int n)
{
    const int i = (blockIdx.x * BLOCK + threadIdx.x) * ITEMS;
    if (i < n) {
        wide found = *reinterpret_cast<const wide *>(values + i);
        for (int k = 0; k < ITEMS; k++) found.v[k] *= 2;
        *reinterpret_cast<wide *>(out + i) = found;
    }
}
"""


def test_a_vector_that_begins_in_an_array_and_ends_behind_it_asks_for_a_constraint(tmp_path):
    found = findings(tmp_path, source=VECTORS)
    mend = "at n=1; guard the access, correct the shape of {}, or write n % ITEMS == 0 in `constraints`"
    assert [one.detail.endswith(mend.format(one.subject)) for one in found] == [True, True], found
    assert {one.subject for one in found} == {"values", "out"}
    even = SPACE.replace("default: {BLOCK", "constraints: [n % ITEMS == 0]\ndefault: {BLOCK")
    assert not findings(tmp_path, source=VECTORS, space=even)


@pytest.mark.parametrize(
    "edit",
    [
        ("first + own < n", "first + own < n && values[0] >= 0"),  # no index shows what data decide
        ("tile[own] +", "tile[(int)values[own % n] % ITEMS] +"),
        ("    __syncthreads();", "    if (values[0] > 0) __syncthreads();"),
        ("    __syncthreads();", "    if (ITEMS > 1 || n > 5) __syncthreads();"),  # the same for all threads
        ("    __syncthreads();", "    if (first >= n) return;\n    __syncthreads();"),
        ("    __syncthreads();", "    auto wait = [&]() { __syncthreads(); };\n    wait();"),
        ("    __syncthreads();", '    asm volatile("bar.sync 0;");'),
        ("first + own < n", "first + own < n && (own & 0xFFFFFFFFFFFFFFFF) < 99999999999999999999999"),
        ("first + own < n", "first + own < n && own << 70 >= own / (own - own)"),
        ("shape: [n], role: out", "shape: [n + 5], role: out"),  # room at the end
        ("shape: [n], role: in,", "shape: [n + 512], role: in,"),
    ],
)
def test_nothing_is_said_without_proof(tmp_path, edit):
    assert findings(tmp_path, edit) == []


def test_threads_that_have_returned_are_not_missed_at_a_barrier_of_cuda(tmp_path):
    edit = ("    __syncthreads();", "    if (first + threadIdx.x >= n) return;\n    __syncthreads();")
    assert findings(tmp_path, edit) == []


IN_OPENCL = """\
__kernel void sums(__global const float *values, __global float *out, int n)
{
    __local float tile[BLOCK];
    const int i = get_global_id(0);
    if (i >= n)
        return;
    tile[get_local_id(0)] = values[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    out[i] = tile[get_local_id(0)];
}
"""


def test_threads_that_have_returned_are_missed_at_a_barrier_of_opencl(tmp_path):
    space = SPACE.replace("dialect: cuda", "dialect: opencl").replace("BLOCK * ITEMS", "BLOCK")
    found = findings(tmp_path, source=IN_OPENCL, space=space)
    assert [(one.kind, one.place.rpartition(":")[2]) for one in found] == [("divergent_barrier", "8")]


STRIDED = """\
__global__ void sums(const float *values, float *out, int n)
{
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        if (ITEMS == 1)
            out[i] = values[i];
        else
            out[i] = values[n - 1 - i];
    }
}
"""


@pytest.mark.parametrize("grid", ["1", "3", "ceil_div(n, BLOCK * ITEMS)", "ceil_div(n, BLOCK)"])
def test_a_grid_of_any_size_does_for_a_loop_over_grids(tmp_path, grid):
    edit = ("ceil_div(n, BLOCK * ITEMS)", grid)
    assert findings(tmp_path, edit, source=STRIDED) == []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("i < n;", "i <= n;"),
        ("values[n - 1 - i]", "values[n - i]"),
        ("values[n - 1 - i]", "values[i - 1u]"),
        ("int i = blockIdx", "int i = (int)blockIdx.x - 1 + blockIdx"),
    ],
)
def test_steps_casts_and_unsigned_numbers_count_as_in_c(tmp_path, old, new):
    assert {one.kind for one in findings(tmp_path, (old, new), source=STRIDED)} >= {"out_of_bounds"}


EFFECTS = """\
__global__ void sums(const float *values, float *out, int n)
{
    int i = blockIdx.x * BLOCK * ITEMS + threadIdx.x, left = ITEMS;
    do {
        if (i >= n)
            break;
        const float *from = values + i;
        out[i] = *from++;
        i += BLOCK;
    } while (--left);
}
"""


@pytest.mark.parametrize(("change", "is_right"), [("--left", True), ("left--", False)])
def test_effects_in_conditions_come_in_their_order(tmp_path, change, is_right):
    space = SPACE.replace("[{n: 1}, {n: 255}, {n: 256}, {n: 257}]", "[{n: 256}]").replace("100_000", "512")
    edits = [("--left", change), ("        if (i >= n)\n            break;\n", "")]
    assert (findings(tmp_path, *edits, source=EFFECTS, space=space) == []) is is_right
