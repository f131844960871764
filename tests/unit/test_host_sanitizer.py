"""What the sanitizers of g++ find in kernels whose results are right; a right kernel passes."""

import re
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from autotune.checks import host_sanitizer
from autotune.checks.host_sanitizer import HOST_TOOLS, UnparsedEnd, find_host_sanitizer
from autotune.compilers.source_text import packaged, read_source, render, source_of_text
from autotune.core import timeline
from autotune.core.outcomes import NO_TIME, PASSED, Unchecked
from autotune.core.records import Argument, Config, Launch
from autotune.core.trials import Failure, Problem, Status
from autotune.problem.workload import Array, Scalar, Workload
from autotune.processes.command import run_command
from autotune.processes.deadline import Deadline
from autotune.tuning.context import BuiltConfig
from autotune.tuning.further_sizes import SmallWorkloads
from autotune.tuning.sanitizer_checks import LOOPS, check_on_host
from autotune.tuning.winner_checks import CHECKS, early_checks
from tests.conftest import LIMIT_S, wait_until

N = 96
KERNEL = """\
#include "portable.h"
KERNEL KERNEL_BLOCK(32, 1, 1)
last_sum(GLOBAL const int *RESTRICT x, GLOBAL int *parts, GLOBAL unsigned int *ticket, GLOBAL int *sum)
{
    SHARED int cells[32];
    SHARED int more[32];
    const unsigned int i = THREAD_INDEX(x);
    COPY_ASYNC(cells + i, x + BLOCK_INDEX(x) * 32 + i); COPY_COMMIT(); COPY_WAIT(0);
    more[i] = 0;
    BARRIER();
    if (i == 0) {
        int value = 0;
        for (int k = 0; k < 32; k++)
            value += cells[k] + more[k];
        parts[BLOCK_INDEX(x)] = value;
        MEMORY_FENCE();
        if (ATOMIC_ADD(ticket, 1u) == GRID_EXTENT(x) - 1) {
            MEMORY_FENCE();
            *sum = parts[0] + parts[1] + parts[2];
        }
    }
}
"""
PROBLEM = Workload(
    Problem({"n": N}, "int32"),
    (
        Array("x", "int32", (N,), "in", ("constant", 1)),
        Array("room", "int32", (4,), "scratch", None),
        Array("ticket", "uint32", (1,), "inout", ("constant", 0)),
        Array("sum", "int32", (1,), "out", None),
    ),
    (Scalar("n", "int32", N),),
    (Launch("last_sum", (3, 1, 1), (32, 1, 1), 0, ("x", "parts", "ticket", "sum")),),
    0.0,
    0.0,
    views=(Argument("parts", "float32", "view", of="room", offset_bytes=4),),
)
HANDOVER = """\
#include "portable.h"
KERNEL KERNEL_BLOCK(32, 1, 1)
last_sum(GLOBAL const int *RESTRICT x, GLOBAL int *parts, GLOBAL unsigned int *ticket, GLOBAL int *sum)
{
    SHARED int is_last;
    const unsigned int i = THREAD_INDEX(x);
    RELEASE
        is_last = ATOMIC_ADD(ticket, 1u) == GRID_EXTENT(x) - 1;
    MEMORY_FENCE();
    BARRIER();
    if (i == 2 && is_last)
        *sum = parts[0] + parts[1] + parts[2];
}
"""
ABORTS = "#include <cassert>\n" + KERNEL.replace("int value = 0;", "int value = 0; assert(x[0] == 0);")
ONLY_VERIFIED = SimpleNamespace(small=lambda instance: SmallWorkloads(instance.verify_workloads))
BOUNDS, WRONG = Status.OUT_OF_BOUNDS, Status.WRONG_RESULT


@pytest.mark.parametrize(
    ("old", "new", "status", "words"),
    [
        ("", "", None, ""),
        (
            "KERNEL ",
            '#include "cuda_runtime.h"\n#include "device_launch_parameters.h"\n#include <iostream>\nKERNEL ',
            None,
            "",
        ),
        ("BARRIER();", "", WRONG, r"a race: write in last_sum \(last.cu:8\) and read in last_sum"),
        ("COPY_WAIT(0);", "COPY_WAIT(1);", WRONG, r"sum\[0\] depends on memory that was never written"),
        (
            "more[i] = 0;",
            "more[i] = 0; ATOMIC_ADD(more, 0);",
            WRONG,
            r"a race: atomic write in last_sum \(last.cu:9\) and write in last_sum \(last.cu:9\)",
        ),
        ("MEMORY_FENCE();", "", WRONG, r"a race: .*write in last_sum \(last.cu:15\)"),
        ("k < 32", "k <= 32", BOUNDS, r"index 32 out of bounds for type .* \(last.cu:14\)"),
        (
            "* 32 + i)",
            "* 32 + i - (BLOCK_INDEX(x) + i == 0))",
            BOUNDS,
            r"read outside of all arrays in last_sum \(last.cu:8\)",
        ),
        ("parts[0]", "*(volatile int *)(parts + 3) * 0 + parts[0]", BOUNDS, "read outside of all arrays"),
        (
            "    if (i == 0) {\n        int value = 0;",
            "    const int early = x[i * 96];\n    if (i == 0) {\n        int value = early - 1;",
            BOUNDS,
            r"read outside of all arrays in last_sum \(last.cu:11\)",
        ),
        (
            "parts[0]",
            "((GLOBAL int2 *)(parts))->x",
            BOUNDS,
            "member access within misaligned address",
        ),
        ("    more[i] = 0;\n", "", WRONG, r"sum\[0\] depends on memory that was never written"),
        ("value = 0", "value", WRONG, r"sum\[0\] depends on memory that was never written"),
        (
            "k < 32",
            "k < 33 - (max(0.0f, 0.5f) == 0.5f && min(0.1, 0.2f) == 0.1 && max(NAN, 1.0f) == 1.0f &&"
            " max(1.0f, NAN) == 1.0f && min(1ll << 40, 1ll << 41) == 1ll << 40 && max(1, ~0u) == ~0u)",
            None,
            "",
        ),
        (
            '#include "portable.h"\n',
            '#include "portable.h"\n#include <vector>\n'
            "void check(int e) { if (e != cudaSuccess) last_sum<<<1, 1>>>(); }\n",
            None,
            "",
        ),
        (  # its functions come from macros, of which no part can be cut
            '#include "portable.h"\n',
            '#include "portable.h"\n#include "portable_reduce.h"\n'
            "int main() { last_sum<<<1, 1>>>(0, 0, 0, 0); }\n",
            None,
            "",
        ),
        (
            "BARRIER();",
            "if (i) BARRIER(); else WARP_BARRIER();",
            WRONG,
            r"threads of block \(0, 0, 0\) wait at different barriers",
        ),
    ],
)
def test_a_finding_is_named_with_its_place(old, new, status, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    found = host.check(
        render(source_of_text(KERNEL.replace(old, new) if old else KERNEL, "last.cu"), {}),
        [PROBLEM],
        Deadline(),
    )
    if status is None:
        assert found is PASSED
    else:
        assert found.status is status and re.match("run on the CPU: " + words, found.detail), found.detail


POINTED = Workload(
    Problem({"n": N}, "int32"),
    (Array("x", "int32", (N,), "in", ("constant", 1)), Array("sum", "int32", (1,), "out", None)),
    (Scalar("all", "struct(n:int32,x:pointer,last:pointer,sum:pointer)", (N, "x", "last", "sum")),),
    (Launch("total", (1, 1, 1), (1, 1, 1), 0, ("all",)),),
    0.0,
    0.0,
    views=(Argument("last", "int32", "view", of="x", offset_bytes=4 * (N - 1)),),
)


@pytest.mark.parametrize(("place", "is_inside"), [("0", True), ("1", False)])
def test_arrays_behind_the_pointers_of_a_structure_are_watched(place, is_inside, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    text = f"""
        struct All {{ int n; const int *x, *last; int *sum; }};
        __global__ void total(All all) {{ *all.sum = all.x[0] + all.last[{place}] * all.n; }}
        """
    found = host.check(render(source_of_text(text, "total.cu"), {}), [POINTED], Deadline())
    if is_inside:
        assert found is PASSED
    else:
        assert found.status is BOUNDS and "read outside of all arrays in total" in found.detail


WRITE = "if (i == 1) parts[BLOCK_INDEX(x)] = x[i];"


@pytest.mark.parametrize(
    ("release", "races"),
    [
        (f"{WRITE} MEMORY_FENCE(); BARRIER(); if (i == 0)", False),
        (f"{WRITE} MEMORY_FENCE(); BARRIER(); if (i < 31) MEMORY_FENCE(); else", False),
        (f"{WRITE} MEMORY_FENCE(); WARP_BARRIER(); if (i == 0)", False),
        (f"{WRITE} WARP_BARRIER(); MEMORY_FENCE(); if (i == 0)", False),
        (f"MEMORY_FENCE(); {WRITE} BARRIER(); if (i == 0)", True),
        (f"MEMORY_FENCE(); {WRITE} WARP_BARRIER(); if (i == 0)", True),
    ],
)
def test_an_atomic_hands_over_what_a_fence_ordered_before_it(release, races):
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    found = host.check(
        render(source_of_text(HANDOVER.replace("RELEASE", release), "last.cu"), {}), [PROBLEM], Deadline()
    )
    assert (found is not PASSED) == races, found
    if races:
        assert re.match(r"run on the CPU: a race: read in .* and write in last_sum", found.detail)


@pytest.mark.parametrize(("fence", "races"), [("MEMORY_FENCE();", False), ("", True)])
def test_a_volatile_reader_needs_a_fence_behind_the_signal_too(fence, races):
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    source = HANDOVER.replace("RELEASE", f"{WRITE} MEMORY_FENCE(); BARRIER(); if (i == 0)")
    source = source.replace("    MEMORY_FENCE();\n    BARRIER", f"    {fence}\n    BARRIER")
    source = source.replace(
        "parts[0] + parts[1] + parts[2]",
        " + ".join(f"((GLOBAL volatile int *)parts)[{block}]" for block in range(3)),
    )
    found = host.check(render(source_of_text(source, "last.cu"), {}), [PROBLEM], Deadline())
    assert (found is not PASSED) == races, found
    if races:
        assert "a race: atomic read in last_sum" in found.detail
        assert "and another one between the signal and the reads (at n=96)" in found.detail


def test_a_read_of_another_block_is_remembered_behind_those_of_the_last_one():
    """The first block reads what the last one writes, after the last one has read it, too."""
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    lines = "if (BLOCK_INDEX(x) != 1) more[i] = parts[0];\n    BARRIER();"
    source = KERNEL.replace("    more[i] = 0;\n    BARRIER();", f"    more[i] = 0;\n    {lines}").replace(
        "parts[BLOCK_INDEX(x)] = value;", "parts[2 - BLOCK_INDEX(x)] = value;"
    )
    found = host.check(render(source_of_text(source, "last.cu"), {}), [PROBLEM], Deadline())
    assert "a race: write in last_sum" in found.detail and "and read in last_sum" in found.detail


NESTED = """\
template <int COUNT> __global__ void add(const int *cells, int *sum, unsigned int levels)
{
    __shared__ int held[COUNT];
    held[threadIdx.x] = cells[threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        *sum = 0;
        for (int k = 0; k < COUNT; k++)
            *sum += held[k];
        if (levels > 0)
            add<COUNT><<<dim3(1), COUNT>>>(cells, sum, levels - 1);
    }
}
__global__ void scale(int *sum) { *sum *= 2; }
extern "C" __global__ void last_sum(const int *x, int *parts, unsigned int *ticket, int *sum)
{
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        parts[0] = 0;
        scale<<<1, 1, 0, cudaStreamTailLaunch>>>(sum);
        add<32><<<1, blockDim.x, 0, 0>>>(x, sum, 2);
    }
}
"""


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("", "", ""),
        ("__syncthreads();", "", r"a race: .*\(last.cu:4\)"),
        ("k < COUNT", "k <= COUNT", r"index 32 out of bounds for type 'int \[32\]' \(last.cu:9\)"),
        ("*sum *= 2", "*(sum + 1) *= 2", r"read outside of all arrays in scale \(last.cu:14\)"),
    ],
)
def test_kernels_that_kernels_launch_run_when_these_have_ended(old, new, words):
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    source = NESTED.replace(old, new) if old else NESTED
    results = []

    def compare(workload, files):
        results.append(int(np.fromfile(files["sum"], np.int32)[0]))
        return PASSED

    (step,) = PROBLEM.launches
    problem = replace(PROBLEM, launches=(replace(step, block=(32, 1, 1)),))
    found = host.check(render(source_of_text(source, "last.cu"), {}), [problem], Deadline(), compare=compare)
    if words:
        assert re.match("run on the CPU: " + words, found.detail), found
    else:
        assert found is PASSED and results == [2 * 32]  # doubled once, by the tail


BLOCKS = 12
READERS = f"""\
#include "portable.h"
KERNEL KERNEL_BLOCK(32, 1, 1)
last_sum(GLOBAL const int *RESTRICT x, GLOBAL int *parts, GLOBAL unsigned int *ticket, GLOBAL int *sum)
{{
    const unsigned int i = THREAD_INDEX(x);
    asm volatile("" : : "r"(parts[i])); // a read that no compiler leaves out
    if (BLOCK_INDEX(x) != LATE)
        MEMORY_FENCE();
    if (ATOMIC_ADD(ticket + i, 1u) == {BLOCKS} - 1) {{
        MEMORY_FENCE();
        *(i ? &parts[i] : sum) = 0;
    }}
}}
"""


@pytest.mark.parametrize("late", [0, 5, BLOCKS - 2, BLOCKS - 1])
def test_no_read_of_another_block_is_forgotten_for_those_of_a_few_later_ones(late):
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    (step,) = PROBLEM.launches
    sizes = {"room": 33, "ticket": 32}
    arrays = tuple(replace(array, shape=(sizes.get(array.name, array.shape[0]),)) for array in PROBLEM.arrays)
    problem = replace(PROBLEM, arrays=arrays, launches=(replace(step, grid=(BLOCKS, 1, 1)),))
    found = host.check(
        render(source_of_text(READERS.replace("LATE", str(late)), "last.cu"), {}), [problem], Deadline()
    )
    if late == BLOCKS - 1:  # which writes itself
        assert found is PASSED
    else:
        assert "a race: write in last_sum (last.cu:11) and read in last_sum (last.cu:6)" in found.detail


@pytest.mark.parametrize(
    ("limit", "value", "source", "reason"),
    [
        ("TIMEOUT_S", 0.0, "", "took longer than 0 s"),
        ("MAX_THREADS", 95, "", "all sizes need more than 95 threads or 64 MiB"),
        ("MAX_BYTES", 11, "", "all sizes need more than 200,000 threads or 0 MiB"),
        ("TIMEOUT_S", 30.0, "#error", r"g\+\+ refuses the source: last.cu:1:2: error: #error"),
    ],
)
def test_what_cannot_be_checked_is_said(limit, value, source, reason, monkeypatch):
    monkeypatch.setattr(host_sanitizer, limit, value)
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    found = host.check(render(source_of_text(source, "last.cu"), {}), [PROBLEM], Deadline())
    assert isinstance(found, Unchecked) and re.fullmatch(reason, found.reason), found


def test_an_entry_that_only_large_sizes_launch_is_not_checked():
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    (step,) = PROBLEM.launches
    large = replace(PROBLEM, launches=(step, replace(step, entry="add", grid=(200_000, 1, 1))))
    source = KERNEL + KERNEL.partition("\n")[2].replace("last_sum", "add")
    found = host.check(render(source_of_text(source, "last.cu"), {}), [PROBLEM, large], Deadline())
    assert isinstance(found, Unchecked) and found.reason == (
        "all sizes that launch add need more than 200,000 threads or 64 MiB"
    )


def _kept(folder):
    """The binaries of a folder; one that is compiled again is another file."""
    return {file.name: file.stat().st_ino for file in folder.iterdir()}


def test_a_program_is_kept_and_serves_other_sizes_but_no_other_source(tmp_path):
    host = find_host_sanitizer(tmp_path)
    if host is None:
        pytest.skip("needs g++")
    source = render(source_of_text(KERNEL, "last.cu"), {})
    (step,) = PROBLEM.launches
    scalars = (Scalar("n", "int32", 2 * N),)
    shapes = {"x": (2 * N,), "room": (7,)}
    arrays = tuple(replace(one, shape=shapes.get(one.name, one.shape)) for one in PROBLEM.arrays)
    launches = (replace(step, grid=(6, 1, 1)), replace(step, grid=(1, 1, 1)))
    larger = replace(PROBLEM, scalars=scalars, arrays=arrays, launches=launches)
    assert host.check(source, [PROBLEM], Deadline()) is PASSED
    kept = _kept(tmp_path)
    assert len(kept) == 2 * len(host_sanitizer._BUILDS)  # the program, and what runs the threads of any
    assert host.check(source, [PROBLEM, larger], Deadline()) is PASSED and _kept(tmp_path) == kept
    wrong = source.replace("k < 32", "k <= 32")
    assert host.check(wrong, [larger], Deadline()).status is BOUNDS and len(_kept(tmp_path)) == len(kept) + 1


def test_a_program_is_not_taken_for_one_with_other_headers(monkeypatch):
    if find_host_sanitizer() is None:
        pytest.skip("needs g++")
    compiler = host_sanitizer._Compiler("g++", Deadline())
    assert compiler.identity is not None
    monkeypatch.setenv("CPATH", "/elsewhere")
    assert compiler.identity is None  # its headers may change


def test_a_program_that_another_process_still_has_open_runs_later(tmp_path):
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o700)
    with program.open("a") as file:
        closing = threading.Timer(0.01, file.close)
        closing.start()
        done = run_command([program], Deadline(), LIMIT_S)
        closing.join()
    assert done.returncode == 3


def test_a_compiler_that_is_killed_leaves_no_process_and_no_file(tmp_path, temporary):
    pid, file = tmp_path / "pid", tmp_path / "file"
    program = tmp_path / "g++"
    body = f"case $1 in -dump*) exit;; esac; mktemp > {file}; sleep 600 & echo $! > {pid}; wait"
    program.write_text(f"#!/bin/sh\n{body}\n")
    program.chmod(0o700)
    host = host_sanitizer.HostSanitizer(str(program), tmp_path / "binaries")
    source = render(source_of_text(KERNEL, "last.cu"), {})
    with ThreadPoolExecutor(1) as threads, Deadline() as deadline:
        found = threads.submit(host.check, source, [PROBLEM], deadline)
        wait_until(lambda: found.done() or (pid.exists() and pid.read_text()))
    assert isinstance(found.result(), Unchecked)
    process, left = Path("/proc", pid.read_text().strip()), Path(file.read_text().strip())
    assert left.is_relative_to(temporary)
    wait_until(lambda: not process.exists() and not left.exists())


def test_a_check_that_the_time_limit_ends_had_no_time_left(tmp_path):
    if find_host_sanitizer() is None:
        pytest.skip("needs g++")
    context = SimpleNamespace(
        task=SimpleNamespace(is_c=True),
        processes=SimpleNamespace(skips_sanitizers=False, binaries=tmp_path),
        further_sizes=ONLY_VERIFIED,
    )
    source = render(source_of_text(KERNEL, "last.cu"), {})
    instance = SimpleNamespace(source=source, config=Config({}), verify_workloads=(PROBLEM,))
    assert check_on_host(context, instance, Deadline(0.0)) == {}
    deadline = Deadline(time.perf_counter() + 0.02)  # the compiler takes longer
    found = check_on_host(context, instance, deadline)
    assert found == dict.fromkeys(HOST_TOOLS, NO_TIME) | {LOOPS: PASSED}


@pytest.mark.parametrize("default", [KERNEL, ABORTS])
def test_an_end_that_no_report_explains_is_a_finding_unless_the_default_ends_so_too(default, tmp_path):
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    instances = [
        SimpleNamespace(
            source=render(source_of_text(text, "last.cu"), {}),
            config=Config({"A": number}),
            verify_workloads=(PROBLEM,),
        )
        for number, text in enumerate((default, ABORTS))
    ]
    context = SimpleNamespace(
        task=SimpleNamespace(is_c=True),
        processes=SimpleNamespace(skips_sanitizers=False, binaries=tmp_path),
        further_sizes=ONLY_VERIFIED,
        default=instances[0],
    )
    of_default, of_other = (check_on_host(context, one, Deadline())[HOST_TOOLS[0]] for one in instances)
    if default is KERNEL:
        assert of_default is PASSED and isinstance(of_other, Failure)
        assert re.fullmatch(
            r"run on the CPU: the program ended with SIGABRT: .*`x\[0\] == 0' failed\. \(at n=96\)",
            of_other.detail,
        )
    else:
        assert isinstance(of_default, UnparsedEnd) and of_default == of_other


def test_what_the_memory_of_a_thread_does_not_hold_is_not_checked():
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    source = KERNEL.replace(
        "int value = 0;", "volatile int large[1 << 20]; large[i] = 0; int value = large[i];"
    )
    found = host.check(render(source_of_text(source, "last.cu"), {}), [PROBLEM], Deadline())
    assert found == Unchecked("a thread needs more memory than the CPU gives it")


@pytest.mark.parametrize(("kind", "threads"), [("gpu", {"sanitizer_0"}), ("cpu", set())])
def test_what_may_be_stored_is_checked_while_a_gpu_times_it_and_only_once(kind, threads, tmp_path):
    if find_host_sanitizer() is None:
        pytest.skip("needs g++")
    source = render(source_of_text(KERNEL, "last.cu"), {})
    config = Config({})
    instance = SimpleNamespace(source=source, config=config, verify_workloads=(PROBLEM,))
    context = SimpleNamespace(
        task=SimpleNamespace(
            is_c=True,
            dialect="portable",
            device=SimpleNamespace(kind=kind),
            address=SimpleNamespace(is_nvidia=False),
            spec=SimpleNamespace(default=config, variants=()),
        ),
        worker=SimpleNamespace(compared=frozenset()),
        processes=SimpleNamespace(skips_sanitizers=False, sanitizer=None, binaries=tmp_path),
        further_sizes=ONLY_VERIFIED,
        pool=SimpleNamespace(size=1),
        default=instance,
        maker=SimpleNamespace(make=lambda config: instance),
    )
    timeline.begin("test")
    (on_host,) = (check for check in CHECKS if check.early is check_on_host)
    with early_checks(context, [config], Deadline()) as early:
        built = {config: BuiltConfig(instance, None)}
        found = early.outcomes(on_host, built) or on_host.run(context, built, Deadline())
    assert found == {config: dict.fromkeys((*HOST_TOOLS, LOOPS), PASSED)}
    compiled = [one for one in timeline.taken() if one.name == "g++ for races"]
    timeline.end()
    assert len(compiled) == 1 and {one.track for one in compiled} & {"sanitizer_0"} == threads


OPENCL = """\
void halve(__local const float4 *from, __local float *to, uint i) { to[i] = dot(from[i], (float4)(0.5f)); }
__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void sums(__global const float *restrict x, __local float4 *cells, volatile __global int *count,
          __global float *y)
{
    __local float halves[32];
    __local float *own = halves;
    const uint i = get_local_id(0), at = get_global_id(0);
    cells[i] = vload4(at, x) * 2 + (float4)(1, 2, 3, (float)get_num_groups(0));
    barrier(CLK_LOCAL_MEM_FENCE);
    halve(cells, own, 31 - i);
    barrier(CLK_LOCAL_MEM_FENCE);
    y[at] = halves[i] + 0 * native_sin(clamp(cells[i].x, 0.f, 1.f));
    barrier(CLK_GLOBAL_MEM_FENCE);
    if (i == 0 && atomic_inc(count) == (int)get_num_groups(0) - 1) {
        mem_fence(CLK_GLOBAL_MEM_FENCE);
        y[0] += y[get_global_size(0) - 1];
    }
}
"""
NEXT = "y[at ^ 1] += 1; barrier(CLK_GLOBAL_MEM_FENCE);"
WROTE = "barrier(CLK_LOCAL_MEM_FENCE);\n    y[at] = halves[i]"
VECTORS = {  # what holds of each, by how it is made
    "double4 v = (double4)(1, 2, 3, 4) * 2; v += 1; v.w = sqrt(v.w)": "v.x == 3 && v.s1 == 5 && v.w == 3",
    "uint8 v = vload8(0, (__global const uint *)x) % 7u << 1; v.s7 ^= v.s0": "v.s7 == 0 && v.s6 == v.s5",
    "int16 v = (int16)((int8)(1), 0, 1, 2, 3, 4, 5, 6, 7)": "v.s0 == 1 && v.s8 == 0 && v.sf == 7",
    "float3 v = vload3(1, x) * (float3)(3, 4, 0)": "length(v) == 5 && sizeof(v) == 16",
    "int4 v = convert_int4(max((float4)(-1.5f, 2.5f, 0, 1), 0.f))": "v.x == 0 && v.y == 2",
    "uint3 v = (uint3)(1, 2, 3) & 2u; v = clamp(v, 1u, 2u)": "v.x == 1 && v.y == 2 && v.z == 2",
    "uchar4 v = (uchar4)((uchar2)(1, 2), (uchar2)(3)); int2 w; vstore2((int2)(4, 5), 0, (int *)&w)": (
        "v.y == 2 && v.w == 3 && w.y == 5"
    ),
}
FUNCTIONS = [  # what holds of functions that C++ lacks
    "cospi(1.f) == -1 && fabs(sinpi(0.25) - M_SQRT1_2) < 1e-12 && fabs(native_exp2(3.f) - 8) < 1e-5f",
    "exp10(2.) == 100 && pown(2.f, 3) == 8 && powr(2.f, 3.f) == 8 && rootn(8., 3) == 2",
    "mix(1.f, 3.f, 0.5f) == 2 && step(2.f, 1.f) == 0 && sign(-3.f) == -1",
    "smoothstep(0.f, 2.f, 1.f) == 0.5f && fabs(degrees(radians(30.f)) - 30) < 1e-4f",
    "maxmag(1.f, -3.f) == -3 && minmag(-3.f, 2.f) == 2",
    "abs_diff(-2147483647, 2147483647) == 4294967294u && add_sat(2147483647, 1) == 2147483647",
    "sub_sat((uchar)1, (uchar)2) == 0 && add_sat((char)-100, (char)-100) == -128",
    "hadd(2147483647, 1) == 1 << 30 && rhadd(4, 1) == 3 && mul_hi(1 << 30, -4) == -1",
    "mul_hi(1ul << 63, 6ul) == 3 && mad_hi(1 << 30, 4, 5) == 6 && rotate(0x80000001u, 1u) == 3",
    "rotate((uchar)0x81, (uchar)1) == 3 && popcount((char)-1) == 8 && clz(1) == 31",
    "clz((uchar)1) == 7 && clz(0ul) == 64 && select(1, 2, 1) == 2 && bitselect(12, 10, 3) == 14",
    "convert_uchar(258) == 2 && convert_uchar_sat(258) == 255 && convert_char_sat(-300.f) == -128",
    "convert_int_rte(2.5f) == 2 && convert_int_rtz(-2.5f) == -2 && convert_ulong(3) == 3",
    "convert_double(1) == 1 && as_ulong(1.0) == 0x3ff0000000000000ul && as_uchar((char)-1) == 255",
    "get_local_linear_id() == get_local_id(0)",
]
FUNCTIONS_HOLD = "".join(f"if (!({one})) y[1000000] = 1;\n" for one in FUNCTIONS) + (
    "{ float c, s = sincos(0.f, &c), i, f = fract(2.5f, &i); if (s != 0 || c != 1 || f != 0.5f || i != 2)"
    " y[1000000] = 1; short4 v = (short4)(1, 2, 3, 4) * (short)2; if (v.y != 4) y[1000000] = 1; }\n"
)
VECTORS_HOLD = "".join(  # else it writes outside of all arrays
    f"{{ {made}; if (!({holds})) y[1000000] = 1; }}\n" for made, holds in VECTORS.items()
)
COPIES = """
    barrier(CLK_LOCAL_MEM_FENCE);
    __local float copied[32];
    event_t done = async_work_group_copy(copied, x, 24, 0);
    done = async_work_group_copy(&copied[24], x, 8, done);
"""


@pytest.mark.parametrize(
    ("old", "new", "status", "words"),
    [
        ("", "", None, ""),
        (
            "barrier(CLK_GLOBAL_MEM_FENCE);",
            "",
            WRONG,
            r"a race: read in sums \(sums.cl:17\) and write in sums",
        ),
        # a barrier orders the memory that it names, not all
        ("barrier(CLK_GLOBAL_MEM_FENCE);", f"barrier(CLK_GLOBAL_MEM_FENCE); {NEXT}", None, ""),
        (
            "barrier(CLK_GLOBAL_MEM_FENCE);",
            f"barrier(CLK_LOCAL_MEM_FENCE); {NEXT}",
            WRONG,
            "a race: read in sums",
        ),
        # a copy is made when it is waited for, and not without
        (WROTE, f"{COPIES} wait_group_events(1, &done);\n    y[at] = copied[31 - i] * halves[i]", None, ""),
        (
            WROTE,
            f"{COPIES} barrier(CLK_LOCAL_MEM_FENCE);\n    y[at] = copied[31 - i] * halves[i]",
            WRONG,
            r"y\[0\] depends on memory that was never written",
        ),
        ("void halve(", "#ifdef HALVES\nhalf2 lost(half2 a) { return a; }\n#endif\nvoid halve(", None, ""),
        ("own, 31 - i", "own, 32 - i", BOUNDS, r"read outside of all arrays in halve \(sums.cl:1\)"),
        (
            "y[at] = halves[i]",
            "y[at] = min(FLT_MAX, fmax(-exp(cells[i] / 2), (float4)(0)).x) + halves[i] + vload2(at, x).y - 1",
            None,
            "",
        ),
        ("y[at] = halves[i]", f"{VECTORS_HOLD} y[at] = halves[i]", None, ""),
        ("y[at] = halves[i]", f"{FUNCTIONS_HOLD} y[at] = halves[i]", None, ""),
        (
            "y[at] = halves[i]",
            "__local float2 pairs[32]; pairs[i] = 0; y[at] = pairs[i].x + halves[i]",
            None,
            "",
        ),
        (
            "y[at] = halves[i]",
            "y[at] = halves[i] + 8 / (*count - (int)i + 3)",
            WRONG,
            "a division by zero in sums",
        ),
    ],
)
def test_plain_opencl_runs_too(old, new, status, words):
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    arrays = (
        Array("x", "float32", (4 * N,), "in", ("constant", 1)),
        Array("count", "int32", (1,), "inout", ("constant", 0)),
        Array("y", "float32", (N,), "out", None),
    )
    launch = Launch("sums", (3, 1, 1), (32, 1, 1), 0, ("x", "cells", "count", "y"))
    problem = Workload(
        Problem({"n": N}, "float32"),
        arrays,
        (),
        (launch,),
        local=(Argument("cells", "uint8", "local", (512,)),),
    )
    assert old in OPENCL or status is None
    source = render(source_of_text(OPENCL.replace(old, new), "sums.cl"), {})
    found = host.check(source, [problem], Deadline())
    assert found is PASSED if status is None else found.status is status, found
    assert status is None or re.match(f"run on the CPU: {words}", found.detail), found


REDUCED = """\
#include "portable.h"
#include "portable_reduce.h"
KERNEL KERNEL_BLOCK(32, 1, 1)
most(GLOBAL const float *RESTRICT x, GLOBAL float *y)
{
    SHARED float cell;
    const float own = x[BLOCK_INDEX(x) * 32 + THREAD_INDEX(x)];
    if (THREAD_INDEX(x) == 0)
        cell = -1e30f;
    BARRIER();
    ATOMIC_MAX(&cell, fmax(own, SHUFFLE_XOR(own, 1)));
    BARRIER();
    if (THREAD_INDEX(x) == 0)
        y[BLOCK_INDEX(x)] = cell;
}
"""


@pytest.mark.parametrize("missing", ["", "    BARRIER();\n"])
def test_atomics_of_reductions_are_watched(missing, tmp_path):
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    for name in ("portable.h", "portable_reduce.h"):
        (tmp_path / name).write_text((packaged("kernels") / name).read_text())
    (tmp_path / "most.cu").write_text(REDUCED.replace(missing, "", 1) if missing else REDUCED)
    arrays = (
        Array("x", "float32", (N,), "in", ("normal", 0, 1)),
        Array("y", "float32", (3,), "out", None),
    )
    launch = Launch("most", (3, 1, 1), (32, 1, 1), 0, ("x", "y"))
    problem = Workload(Problem({"n": N}, "float32"), arrays, (), (launch,))
    found = host.check(render(read_source(tmp_path / "most.cu"), {}), [problem], Deadline())
    assert found.status is WRONG if missing else found is PASSED, found


WORDS_OF_CUDA = (  # an element outside of all arrays is written where one has another value
    "__brev(1u) == 0x80000000u && __brevll(1ull) == 1ull << 63",
    "__byte_perm(0x33221100u, 0x77665544u, 0x7410u) == 0x77441100u",
    "__funnelshift_l(0x80000000u, 1u, 1u) == 3u && __funnelshift_r(0u, 1u, 1u) == 0x80000000u",
    "__umulhi(0x80000000u, 6u) == 3u && __mulhi(-2147483647, 2) == -1 && __umul64hi(1ull << 63, 6ull) == 3",
    "__popcll(~0ull) == 64 && __clzll(1ll) == 63 && __ffsll(4ll) == 3 && __sad(-2, 3, 1u) == 6",
    "__float2int_rn(2.5f) == 2 && __float2int_ru(2.1f) == 3 && __double2int_rd(-0.5) == -1",
    "fabsf(__expf(1) - 2.718282f) < 1e-5f && __exp10f(2) == 100 && __log2f(8) == 3",
    "__fsub_rn(3, 1) == 2 && __fma_rn(2.0, 3.0, 1.0) == 7 && __ddiv_rn(1.0, 4.0) == 0.25",
)


@pytest.mark.parametrize("header", ['#include "portable.h"\n', '#define KERNEL extern "C" __global__ void\n'])
def test_words_of_cuda_mean_what_they_do_there_in_both_dialects(header, tmp_path):
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    body = "\n".join(f"y[({one}) ? 0 : 1000000] = 1;" for one in WORDS_OF_CUDA)
    (tmp_path / "words.cu").write_text(f"{header}KERNEL words(float *y)\n{{\n{body}\n}}\n")
    launch = Launch("words", (1, 1, 1), (1, 1, 1), 0, ("y",))
    arrays = (Array("y", "float32", (1,), "out", None),)
    problem = Workload(Problem({"n": 1}, "float32"), arrays, (), (launch,))
    found = host.check(render(read_source(tmp_path / "words.cu"), {}), [problem], Deadline())
    assert found is PASSED, found


CUDA = """\
#include <cuda_runtime.h>
template <typename T> struct Turn {
    static __device__ __forceinline__ T apply(T value)
    {
        __shared__ T cells[32];
        cells[threadIdx.x] = value;
        __syncthreads();
        return cells[31 - threadIdx.x];
    }
};
template <typename T, int B> __global__ void turn(const T *x, T *y)
{
    extern __shared__ __align__(16) T kept[];
    const int i = threadIdx.x, at = blockIdx.x * B + i;
    kept[i] = fmaxf(x[at], -1e30f);
    __syncthreads();
    const float4 four = make_float4(kept[i], kept[B - 1 - i], __shfl_sync(~0u, kept[i], 0, 8), 0);
    y[at] = __syncthreads_or(i == 3) + Turn<T>::apply(four.y) + __ballot_sync(~0u, i < 8);
}
"""


@pytest.mark.parametrize(
    ("old", "new", "shared_bytes", "status", "words"),
    [
        ("", "", 128, None, ""),
        (
            "        __syncthreads();\n",
            "",
            128,
            WRONG,
            r"a race: write in turn<.*> \(turn.cu:6\) and read",
        ),
        ("", "", 64, BOUNDS, r"write outside of all arrays in turn \(turn.cu:15\)"),
        (
            "__shfl_sync(~0u, kept[i], 0, 8)",
            "i < 16 ? __shfl_down_sync(0xffffu, kept[i], 1) : 0",
            128,
            None,
            "",
        ),
        (
            "+ Turn",
            "+ (i < 16 ? __shfl_down_sync(0xffffu, kept[i], 1) : 0) + Turn",
            128,
            WRONG,
            r"y\[15\] depends on memory that was never written",
        ),
    ],
)
def test_templates_and_shared_memory_of_a_launch_are_watched(old, new, shared_bytes, status, words):
    host = find_host_sanitizer()
    if host is None:
        pytest.skip("needs g++")
    arrays = (
        Array("x", "float32", (N,), "in", ("constant", 1)),
        Array("y", "float32", (N,), "out", None),
    )
    launch = Launch("turn<float, 32>", (3, 1, 1), (32, 1, 1), shared_bytes, ("x", "y"))
    problem = Workload(Problem({"n": N}, "float32"), arrays, (), (launch,))
    found = host.check(render(source_of_text(CUDA.replace(old, new), "turn.cu"), {}), [problem], Deadline())
    assert found is PASSED if status is None else found.status is status, found
    assert status is None or re.match(f"run on the CPU: {words}", found.detail), found
