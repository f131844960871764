"""Races that ThreadSanitizer finds in kernels whose results are right, and none in a kernel without any."""

import pytest

from autotune.compilers.kernel_source import render, source_of_text
from autotune.core.records import Launch
from autotune.core.trials import Problem, Status
from autotune.evaluation.race_detector import find_race_detector
from autotune.evaluation.work_item import Array, ProblemInstance, Scalar

N = 96
KERNEL = """\
#include "portable.h"
KERNEL KERNEL_BLOCK(32, 1, 1)
last_sum(GLOBAL const int *RESTRICT x, GLOBAL int *parts, GLOBAL unsigned int *ticket, GLOBAL int *sum)
{
    SHARED int cells[32];
    const unsigned int i = THREAD_INDEX(x);
    cells[i] = x[BLOCK_INDEX(x) * 32 + i];
    BARRIER();
    if (i == 0) {
        int value = 0;
        for (int k = 0; k < 32; k++)
            value += cells[k];
        parts[BLOCK_INDEX(x)] = value;
        MEMORY_FENCE();
        if (ATOMIC_ADD(ticket, 1u) == GRID_EXTENT(x) - 1) {
            MEMORY_FENCE();
            *sum = parts[0] + parts[1] + parts[2];
        }
    }
}
"""
PROBLEM = ProblemInstance(
    Problem({"n": N}, "int32"),
    (
        Array("x", "int32", (N,), "in", ("constant", 1)),
        Array("parts", "int32", (3,), "scratch", None),
        Array("ticket", "uint32", (1,), "inout", ("constant", 0)),
        Array("sum", "int32", (1,), "out", None),
    ),
    (Scalar("n", "int32", N),),
    (Launch("last_sum", (3, 1, 1), (32, 1, 1), 0, ("x", "parts", "ticket", "sum")),),
    0.0,
    0.0,
)


@pytest.mark.parametrize(
    ("old", "words"),
    [
        (" ", ""),
        ("BARRIER();", "read in last_sum (last.cu:"),
        ("MEMORY_FENCE();", "write in last_sum (last.cu:13)"),
    ],
    ids=["none", "barrier", "fence"],
)
def test_a_race_is_named_with_its_places(old, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    detector = find_race_detector()
    if detector is None:
        pytest.skip("needs g++")
    source = source_of_text(KERNEL.replace(old, "" if words else old), "last.cu")
    failure = detector.check(render(source, {}), [PROBLEM])
    assert (failure is None) == (not words)
    if failure:
        assert failure.status is Status.WRONG_RESULT and words in failure.detail
