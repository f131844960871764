"""Atomics, barriers and checks of bounds are taken out of sources where that is safe, and only there."""

import pytest

from autotune.errors import InputError
from autotune.sources.edits import TextEdit, edited, instead
from autotune.sources.kernel_source import read_kernel_source
from autotune.sources.removals import ATOMICS, BARRIER_CALLS, CHECKS, without
from autotune.sources.tree import descendants

HISTOGRAM = """\
__global__ void count(const int *places, int *bins, int n)
{
    __shared__ int own[64];
    const int i = blockIdx.x * 64 + threadIdx.x;
    own[threadIdx.x] = 0;
    __syncthreads();
    if (i < n)
        atomicAdd(&own[places[i]], 1);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], own[threadIdx.x]);
}
"""
QUEUE = """\
__global__ void push(float *queue, int *tail, int n)
{
    __shared__ int place;
    if (threadIdx.x == 0)
        place = atomicAdd(tail, 1);
    __syncthreads();
    queue[place] = 1;
}
"""
CHAIN = """\
__device__ int next(const int *links, int i) { return links[i]; }

__global__ void follow(const int *links, int *own, float *y, int n)
{
    own[threadIdx.x] = links[threadIdx.x];
    __syncthreads();
    y[next(own, threadIdx.x)] = 1;
}
"""
SPIN = """\
__global__ void wait(volatile int *flag, float *y)
{
    while (flag[0] == 0)
        __syncthreads();
    y[threadIdx.x] = 1;
}
"""


def changed(kind, text, kernel, dialect="cuda", **values):
    """The lines that are other ones without something of that kind."""
    source = read_kernel_source(text, values, dialect)
    parameters = next(one.parameters for one in source.kernels if one.name == kernel)
    inputs = {place for place, one in enumerate(parameters) if one.is_const and one.pointers}
    left = without(kind, source, {kernel: inputs})
    before = text.split("\n")
    return None if left is None else [line.strip() for line in left.split("\n") if line not in before]


def test_barriers_are_taken_out_where_only_inputs_decide_places():
    assert changed(BARRIER_CALLS, HISTOGRAM, "count") == ["(void)0;", "(void)0;"]


def test_an_atomic_becomes_a_store_that_the_compiler_keeps():
    lines = changed(ATOMICS, HISTOGRAM, "count")
    assert lines[-2:] == [
        "WITHOUT_ATOMIC(&own[places[i]], 1);",
        "WITHOUT_ATOMIC(&bins[threadIdx.x], own[threadIdx.x]);",
    ]
    assert "*(volatile T *)pointer = value;" in lines


@pytest.mark.parametrize(
    ("guard", "without_it"),
    [
        ("if (i < n)", "if (1)"),
        ("if (i >= n) return;", "if (0) return;"),
        ("if (i < n && threadIdx.x < 7)", "if (1 && threadIdx.x < 7)"),
    ],
)
def test_a_check_is_a_comparison_with_a_number_that_the_launch_passes(guard, without_it):
    assert changed(CHECKS, HISTOGRAM.replace("if (i < n)", guard), "count") == [without_it]


def test_a_bound_may_be_computed_from_such_a_number_and_passed_to_a_function():
    text = """\
DEVICE void put(GLOBAL float *y, size_t at, size_t end)
{
    if (at < end)
        y[at] = 1;
}
KERNEL fill(GLOBAL float *y, const unsigned long n)
{
    const size_t end = n / 2, i = BLOCK_INDEX(x) * BLOCK + THREAD_INDEX(x);
    put(y, i, end);
}
"""
    assert changed(CHECKS, f'#include "portable.h"\n{text}', "fill", "portable", BLOCK="64") == ["if (1)"]


def test_the_condition_of_a_loop_is_no_check():
    text = "__global__ void f(float *y, int n) { for (int i = threadIdx.x; i < n; i += 64) y[i] = 1; }"
    assert changed(CHECKS, text, "f") is None


SHARED = """\
__global__ void f(const int *start, float *y)
{
    __shared__ int first;
    if (threadIdx.x == 0)
        first = start[blockIdx.x];
    __syncthreads();
    y[first + threadIdx.x] = 1;
}
"""
BY_POINTER = """\
__device__ void find(const int *cells, int *found) { *found = cells[0]; }
__global__ void f(float *y)
{
    __shared__ int cells[64];
    int place = 0;
    cells[threadIdx.x] = threadIdx.x;
    __syncthreads();
    find(cells, &place);
    y[place] = 1;
}
"""
BY_REFERENCE = (
    BY_POINTER.replace("int *found", "int &found").replace("*found =", "found =").replace("&place", "place")
)
STRUCTURE = """\
struct range { int begin, end; };
__global__ void f(float *y)
{
    __shared__ int cells[64];
    range own;
    cells[threadIdx.x] = threadIdx.x;
    __syncthreads();
    own.begin = cells[0];
    y[own.begin] = 1;
}
"""
BREAK = """\
__global__ void f(float *y)
{
    __shared__ int cells[64];
    cells[threadIdx.x] = threadIdx.x;
    __syncthreads();
    while (true)
        if (cells[0] == 0)
            break;
    y[0] = 1;
}
"""
LOADED = """\
__global__ void f(int *links, float *y)
{
    links[threadIdx.x] = 0;
    __syncthreads();
    y[__ldg(links + threadIdx.x)] = 1;
}
"""


@pytest.mark.parametrize("text", [SHARED, BY_POINTER, BY_REFERENCE, STRUCTURE, BREAK, LOADED])
def test_values_of_shared_memory_are_followed_on_every_way_to_an_index_or_a_loop(text):
    with pytest.raises(InputError, match="decide an index or when a loop ends"):
        changed(BARRIER_CALLS, text, "f")


def test_kernels_that_launch_kernels_keep_what_ends_that():
    text = """\
__global__ void f(int *y, int depth, int levels)
{
    y[depth] = 1;
    if (depth + 1 < levels)
        f<<<1, 1>>>(y, depth + 1, levels);
}
"""
    with pytest.raises(InputError, match="launch kernels"):
        changed(CHECKS, text, "f")


def test_an_array_that_an_earlier_launch_writes_is_no_input():
    source = read_kernel_source(HISTOGRAM, {}, "cuda")
    assert without(ATOMICS, source, {"count": {0}})
    with pytest.raises(InputError, match="decide an index"):
        without(ATOMICS, source, {"count": set()})


def test_a_place_that_a_function_computes_from_numbers_is_right():
    text = BY_POINTER.replace("cells[0]", "blockIdx.x")
    assert changed(BARRIER_CALLS, text, "f") == ["(void)0;"]


@pytest.mark.parametrize(("kernel", "text"), [("push", QUEUE), ("follow", CHAIN), ("wait", SPIN)])
def test_barriers_stay_where_memory_that_threads_write_decides_a_place_or_a_loop(kernel, text):
    with pytest.raises(InputError, match="decide an index or when a loop ends"):
        changed(BARRIER_CALLS, text, kernel)


def test_atomics_stay_where_one_of_their_results_is_used():
    with pytest.raises(InputError, match="results are used"):
        changed(ATOMICS, QUEUE, "push")


def test_a_kernel_without_any_is_left_as_it_is():
    assert changed(ATOMICS, CHAIN, "follow") is None and changed(CHECKS, CHAIN, "follow") is None


def test_what_only_other_kernels_do_does_not_count():
    assert changed(ATOMICS, HISTOGRAM + CHAIN, "follow") is None


def test_the_call_of_a_macro_after_a_directive_is_replaced_alone():
    text = "#define SYNC() __syncthreads()\n__global__ void f()\n{\n#if 0\n#endif\n    SYNC();\n}\n"
    source = read_kernel_source(text, {}, "cuda")
    call = next(node for node in descendants(source.tree.root) if node.type == "call_expression")
    edit = instead(source, call, "0")
    assert edit == TextEdit(text.index("SYNC();"), text.index("SYNC();") + 6, "0")
    assert edited(text, [edit]).endswith("#endif\n    0;\n}\n")
