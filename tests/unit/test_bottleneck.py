"""The verdict follows from the evidence."""

from dataclasses import replace

import pytest

from autotune.compilers.ptx_counters import PIPES, Counts
from autotune.diagnosis.bottleneck import Times, overlap, verdict
from autotune.diagnosis.bound import Bound
from autotune.diagnosis.littles_law import arithmetic_in_flight, littles_law
from autotune.diagnosis.resource_use import Work, uses
from autotune.serving.ceilings import Ceiling
from tests.space_example import GPU

DEVICE = replace(GPU, architecture="sm_90", compute_units=100, cache_bytes=2**20)
CEILINGS = {
    name: Ceiling(name, "", value, {}, {})
    for name, value in {
        "memory read": 4e12,
        "memory copy": 3e12,
        "read of 4,096 bytes": 8e12,
        "shared memory": 128e11,
        "float32 multiply-add": 64e12,
        "float64 multiply-add": 32e12,
        "int32 multiply-add": 32e12,
        "bfloat16 tensor multiply-add": 800e12,
        "atomics to one counter": 1e9,
        "atomics to many counters": 1e12,
        "latency of memory": 8e-7,
        "latency of float32 multiply-add": 1.99e-9,
    }.items()
}
IDLE = Counts(
    instructions=1e6,
    active_lanes=32.0,
    pipe_lanes=dict.fromkeys(PIPES, 0.0),
    pipe_threads=dict.fromkeys(PIPES, 0.0),
    global_load_bytes=1e6,
    global_store_bytes=0.0,
    sectors=31250.0,
    requests=7812.0,
    shared_passes=0.0,
    min_shared_passes=0.0,
    atomics=0.0,
    atomic_bytes=0.0,
    atomic_words=0.0,
    local_bytes=0.0,
    barriers=0.0,
    bytes_per_thread_in_flight=16.0,
)


def judged(bytes_moved=1e3, array_bytes=2e6, *, launch_ms=0.001, transfer_ms=None, **counted):
    """The verdict on a run of 1 ms."""
    counts = replace(IDLE, **counted)
    work = Work(bytes_moved, array_bytes, 0.0, None, "float32", counts)
    found = uses(DEVICE, CEILINGS, work, 1.0)
    return verdict(Times(1.0, launch_ms, transfer_ms), found, counts)


def pipes(**lanes):
    return IDLE.pipe_lanes | lanes


@pytest.mark.parametrize(
    ("bound", "evidence"),
    [
        (Bound.DRAM, {"bytes_moved": 3.8e9}),
        (Bound.L2, {"array_bytes": 5e5, "sectors": 7e9 / 32, "global_load_bytes": 7e9}),
        (Bound.SHARED, {"shared_passes": 9e7, "min_shared_passes": 9e6}),
        (Bound.FLOAT32, {"pipe_lanes": pipes(float32=30e9)}),
        (Bound.FLOAT64, {"pipe_lanes": pipes(float64=15e9)}),
        (Bound.SPECIAL, {"pipe_lanes": pipes(special=3.8e9, float32=8e9)}),
        (Bound.INTEGER, {"pipe_lanes": pipes(integer=15e9)}),
        (Bound.TENSOR, {"pipe_lanes": pipes(tensor=350e9, integer=8e9)}),
        (Bound.ATOMICS, {"atomics": 5e8, "atomic_words": 5e8}),
        (Bound.ATOMICS, {"atomics": 9e5, "atomic_words": 9e5 / 32}),
        (Bound.DIVERGENCE, {"pipe_lanes": pipes(float32=30e9), "active_lanes": 4.0}),
        (Bound.DIVERGENCE, {"pipe_lanes": pipes(float32=38e9), "active_lanes": 4.0}),  # PTX counts too many
        (Bound.LATENCY, {}),
        (Bound.LAUNCH, {"launch_ms": 0.8, "bytes_moved": 3.8e9}),
        (Bound.TRANSFER, {"transfer_ms": 9.0, "bytes_moved": 3.8e9}),
        (Bound.BALANCED, {"bytes_moved": 3.8e9, "pipe_lanes": pipes(float32=30e9)}),
    ],
)
def test_the_most_used_resource_is_named(bound, evidence):
    found, reason = judged(**evidence)
    assert found is bound, reason
    assert any(letter.isdigit() for letter in reason)


def test_accesses_that_waste_sectors_are_bound_by_memory():
    found, reason = judged(
        array_bytes=1e9, sectors=3.9e9 / 32, global_load_bytes=3.9e9 / 8, bytes_moved=4.8e8
    )
    assert found is Bound.DRAM
    assert "threads request 4 of each 32 bytes moved" in reason


def test_without_counts_the_variants_decide():
    variants = {"MEMORY_ONLY": 0.95, "COMPUTE_ONLY": 0.3}
    work = Work(1e3, 1e3, 0.0, None, "float32", None)
    found, reason = verdict(Times(1.0, 0.001, None, variants), uses(DEVICE, CEILINGS, work, 1.0), None)
    assert found is Bound.MEMORY
    assert "95%" in reason
    assert verdict(Times(1.0), (), None)[0] is Bound.UNKNOWN


@pytest.mark.parametrize(
    ("memory_ms", "compute_ms", "wanted"),
    [
        (1.19, 0.3, Bound.MEMORY),
        (0.3, 1.19, Bound.COMPUTE),
        (0.9, 0.9, Bound.BALANCED),
        (0.5, 0.6, Bound.LATENCY),
        (1.21, 0.3, Bound.UNKNOWN),
        (0.3, 2.5, Bound.UNKNOWN),
        (None, 0.01, Bound.UNKNOWN),
        (0.95, None, Bound.UNKNOWN),
    ],
)
def test_two_variants_decide_if_neither_is_slower_than_the_whole_by_a_fifth(memory_ms, compute_ms, wanted):
    times_ms = {"MEMORY_ONLY": memory_ms, "COMPUTE_ONLY": compute_ms}
    variants = {name: time_ms for name, time_ms in times_ms.items() if time_ms is not None}
    found, reason = verdict(Times(1.0, 0.001, None, variants), (), None)
    assert found is wanted
    assert all(f"{time_ms:.0%}" in reason for time_ms in variants.values())


@pytest.mark.parametrize(
    ("variants", "why"),
    [
        ({"COMPUTE_ONLY": 0.01}, "without memory it takes 1% of its time, which alone decides nothing"),
        ({"MEMORY_ONLY": 2.5}, "without arithmetic it takes 250% of its time: it is another kernel then"),
    ],
)
def test_why_a_variant_decides_nothing_is_said(variants, why):
    assert why in verdict(Times(1.0, 0.001, None, variants), (), None).reason


def test_without_ceilings_the_nominal_ones_count():
    work = Work(1e3, 1e3, 0.0, None, "float32", replace(IDLE, pipe_lanes=pipes(float64=1e9)))
    used = {use.bound: use for use in uses(DEVICE, {}, work, 1.0)}
    assert not used[Bound.FLOAT64].is_measured
    assert used[Bound.FLOAT64].ceiling == pytest.approx(64 * 100 * 1980e6)
    assert Bound.L2 not in used  # nobody says what it could be


@pytest.mark.parametrize(
    ("memory_ms", "compute_ms", "wanted"),
    [
        *[(0.9, 0.5, 0.8), (1.0, 0.5, 1.0), (0.6, 0.4, 0.0), (0.1, 1.2, 1.0), (0.3, 0.2, 0.0)],
        *[(0.1, 1.21, None), (2.5, 2.4, None)],
    ],
)
def test_variants_overlap_as_far_as_the_whole_is_shorter_than_both(memory_ms, compute_ms, wanted):
    variants = {"MEMORY_ONLY": memory_ms, "COMPUTE_ONLY": compute_ms}
    assert overlap(1.0, variants) == (None if wanted is None else pytest.approx(wanted))
    assert overlap(1.0, {"COMPUTE_ONLY": compute_ms}) is None


def test_littles_law_says_how_many_warps_would_do():
    law = littles_law(DEVICE, CEILINGS, warps=16, bytes_per_thread=16.0)
    assert law.needed_bytes == pytest.approx(8e-7 * 4e12 / 100)
    assert law.held_bytes == 16 * 32 * 16
    assert law.enough_warps == 63  # 32,000 bytes by 512 of each
    assert littles_law(DEVICE, {}, 16, 16.0) is None


def test_littles_law_holds_for_arithmetic_too():
    law = arithmetic_in_flight(DEVICE, CEILINGS, 8, "float32")
    assert law.needed == pytest.approx(1.99e-9 * 32e12 / 100)
    assert law.enough_warps == 20
    assert "of 8 warps, 2.5 each are enough" in str(law)
    assert "of 32 warps, one each is enough" in str(replace(law, warps=32))
    assert arithmetic_in_flight(DEVICE, CEILINGS, 8, "float64") is None  # its latency was not measured
