"""Sizes at which loops have a second iteration: a mistake between two shows there, and at no smaller size."""

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError
from types import SimpleNamespace

import pytest

from autotune.checks.host_sanitizer import find_host_sanitizer, workloads_for_cpu
from autotune.core.outcomes import PASSED, Unchecked
from autotune.core.trials import Failure
from autotune.problem.covering import size_product
from autotune.processes.deadline import Deadline
from autotune.tuning.sanitizer_checks import LOOPS, check_on_host
from tests.further_sizes_example import sizes_and_instance

SPACE = """\
schema: 1
kernel: totals
dialect: cuda
source: totals.cu
reference: totals.py
dtypes: [int32]
sizes: {default: {n: 65536, m: 512}}
verify_sizes: [{n: 1, m: 1}, {n: 100, m: 7}, {n: 4096, m: 8}]
parameters:
  BLOCK: [64]
default: {BLOCK: 64}
arguments:
  - {name: x, dtype: int32, shape: [n], role: in, fill: {integers: [-9, 9]}}
  - {name: parts, dtype: int32, shape: ["ceil_div(n, BLOCK)"], role: out}
  - {name: n, dtype: int32, value: n}
  - {name: count, dtype: int32, value: "ceil_div(n, BLOCK)"}
  - {name: m, dtype: int32, value: m}
launch:
  - {entry: parts_of, grid: ["ceil_div(n, BLOCK)"], block: [BLOCK], arguments: [x, parts, n, m]}
  - {entry: running, grid: [1], block: [BLOCK], arguments: [parts, count]}
"""
SOURCE = """\
__global__ void parts_of(const int *x, int *parts, int n, int m)
{
    const int i = blockIdx.x * BLOCK + threadIdx.x;
    if (threadIdx.x == 0) {
        int sum = 0;
        for (int k = 0; k < BLOCK && i + k < n; k++)
            sum += x[i + k];
        for (int k = 0; k < m; k += 16)
            sum += 0;
        parts[blockIdx.x] = sum;
    }
}
__global__ void running(int *parts, int count)
{
    __shared__ int cells[BLOCK];
    int carry = 0;
    for (int base = 0; base < count; base += BLOCK) {
        cells[threadIdx.x] = base + threadIdx.x < count ? parts[base + threadIdx.x] : 0;
        __syncthreads();
        int sum = carry;
        for (int k = 0; k <= threadIdx.x; k++)
            sum += cells[k];
        if (base + threadIdx.x < count)
            parts[base + threadIdx.x] = sum;
        for (int k = 0; k < BLOCK; k++)
            carry += cells[k];
        __syncthreads();
    }
}
"""


def totals(folder, source=SOURCE, space=SPACE):
    return sizes_and_instance(folder, "totals", source, space)


def test_a_loop_that_only_iterates_again_at_the_full_size_gets_a_small_size_of_its_own(tmp_path):
    sizes, instance = totals(tmp_path)
    small = sizes.small(instance)
    found = [one.problem.sizes for one in small.further]
    assert small.is_whole and len(found) == 2
    assert any(64 * 64 < one["n"] < 2 * 64 * 64 for one in found), "the chunks iterate again"
    assert any(16 < one["m"] < 32 and one["n"] == 1 for one in found), "and so does the loop over m"


def test_loops_that_iterate_again_at_sizes_to_verify_need_no_further_ones(tmp_path):
    space = SPACE.replace("{n: 4096, m: 8}", "{n: 4097, m: 17}")
    sizes, instance = totals(tmp_path, space=space)
    assert sizes.small(instance).further == [] and sizes.small(instance).is_whole


def test_the_largest_size_that_a_constraint_takes_is_checked_too(tmp_path):
    """Shared arrays are often as long as that; a number of blocks has no limit here."""
    usual = SPACE.replace("{n: 4096, m: 8}", "{n: 4097, m: 17}")
    for constraints, limits in (
        ("[m <= 700]", [{"n": 1, "m": 700}]),
        ("[m <= 512]", []),  # the size to tune for
        ("[m >= 1, n != 5]", []),
        ("['m * 3 < 2_000', n < 70_000]", [{"n": 69_999, "m": 1}, {"n": 1, "m": 666}]),
        ("[m <= 32_000_000]", []),  # no check tries so many
    ):
        space = usual.replace("launch:", f"constraints: {constraints}\nlaunch:", 1)
        sizes, instance = totals(tmp_path, space=space)
        assert [one.problem.sizes for one in sizes.small(instance).further] == limits
    even = usual.replace("launch:", "constraints: [m <= 700]\nlaunch:").replace("m: 1}", "m: 16}")
    sizes, instance = totals(tmp_path, space=even.replace("m: 7}", "m: 32}").replace("m: 17}", "m: 48}"))
    assert [one.problem.sizes["m"] for one in sizes.small(instance).further] == [688]


def test_threads_that_ask_at_the_same_time_compute_one_after_the_other(tmp_path, monkeypatch):
    sizes, instance = totals(tmp_path)
    compute, together = sizes._find_small, Barrier(2, timeout=0.2)

    def meets(one):
        with pytest.raises(BrokenBarrierError):
            together.wait()
        return compute(one)

    monkeypatch.setattr(sizes, "_find_small", meets)
    with ThreadPoolExecutor(2) as threads:
        first, second = threads.map(sizes.small, [instance] * 2)
    assert first is second and first.further


def test_a_loop_whose_iterations_depend_on_data_gets_no_size(tmp_path):
    source = SOURCE.replace("base < count;", "base < parts[0];").replace("k < m;", "k < x[0];")
    sizes, instance = totals(tmp_path, source)
    assert sizes.small(instance).further == []


def behind_pointers():
    """The kernel `running` and its space with its arguments in a structure."""
    head, _, body = SOURCE.partition("__global__ void running(int *parts, int count)")
    body = body.replace("count", "q.count").replace("parts[", "q.parts[")
    source = f"struct Q {{int *parts; int count;}};\n{head}__global__ void running(const Q q){body}"
    fields = "fields: {parts: pointer, count: int32}"
    count = 'name: count, dtype: int32, value: "ceil_div(n, BLOCK)"'
    space = SPACE.replace(count, f'name: q, {fields}, value: {{parts: parts, count: "ceil_div(n, BLOCK)"}}')
    return source, space.replace("[parts, count]", "[q]")


@pytest.mark.parametrize(
    ("source", "space"),
    [(SOURCE.replace("const int i", "goto first; first:; const int i"), SPACE), behind_pointers()],
)
def test_loops_of_a_kernel_that_is_not_followed_have_not_passed(source, space, tmp_path):
    if find_host_sanitizer() is None:
        pytest.skip("needs g++")
    sizes, instance = totals(tmp_path, source, space)
    context = SimpleNamespace(
        task=SimpleNamespace(is_c=True),
        processes=SimpleNamespace(skips_sanitizers=False, binaries=tmp_path),
        further_sizes=sizes,
        default=instance,
    )
    why = "no size is known at which the CPU can run a second iteration of every loop"
    assert check_on_host(context, instance, Deadline())[LOOPS] == Unchecked(why)


def test_a_size_on_the_way_has_no_more_work_than_those_of_the_space(tmp_path):
    """The fewest threads are at a size whose `m` is large, at which `n` must not be large."""
    large, usual = "{n: 1, m: 10_000_000}", "{n: 1, m: 1}, {n: 100, m: 7}, {n: 4096, m: 8}"
    sizes, instance = totals(tmp_path, space=SPACE.replace(usual, f"{large}, {{n: 100, m: 7}}"))
    declared = [one.problem.sizes for one in (*instance.verify_workloads, instance.workload)]
    found = [size_product(one.problem.sizes) for one in sizes.small(instance).further]
    assert found and max(found) <= max(map(size_product, declared))
    sizes, instance = totals(tmp_path, space=SPACE.replace(usual, large))
    assert sizes.small(instance).further == [] and not sizes.small(instance).is_whole


@pytest.mark.parametrize(("dropped", "words"), [("", ""), ("        __syncthreads();\n    }\n}", "a race")])
def test_a_race_between_two_iterations_is_found_though_all_verified_sizes_have_one(tmp_path, dropped, words):
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    sizes, instance = totals(tmp_path, SOURCE.replace(dropped, "    }\n}") if dropped else SOURCE)
    small = sizes.small(instance)
    assert host.check(instance.source, workloads_for_cpu(small.verified), Deadline()) is PASSED
    found = host.check(instance.source, small.verified, Deadline(), small.further)
    assert (words in found.detail) if isinstance(found, Failure) else not words and found is PASSED
