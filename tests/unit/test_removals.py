"""Atomics, barriers and checks of bounds are taken out of sources where that is safe, and only there."""

import pytest

from autotune.errors import InputError
from autotune.sources.edits import Edit, edited, instead
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
    left = without(kind, read_kernel_source(text, values, dialect), frozenset({kernel}))
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
    assert edit == Edit(text.index("SYNC();"), text.index("SYNC();") + 6, "0")
    assert edited(text, [edit]).endswith("#endif\n    0;\n}\n")
