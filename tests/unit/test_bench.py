"""What the device's process holds in memory, on a fake device that has little of it."""

from dataclasses import replace

import pytest

from autotune.core.records import Launch
from autotune.core.trials import Measurement, Problem, Rule, Status
from autotune.devices import Address, backend
from autotune.errors import OutOfMemory
from autotune.evaluation.buffers import device_bytes
from autotune.evaluation.device_process import DeviceState, energy, run_job, sample, verify_once
from autotune.evaluation.work_item import (
    Array,
    Incumbent,
    MeasurementPolicy,
    ProblemInstance,
    Scalar,
    WorkItem,
)

N = 100_000
KERNEL = """\
def kernel(grid, block, x, y, t, n):
    y.view("float32")[:n] = 2 * x.view("float32")[:n]
"""


def case(seed=0, scratch=N):
    """One problem, with a scratch array of so many elements."""
    arrays = (
        Array("x", "float32", (N,), "in", ("uniform", 0, 1)),
        Array("y", "float32", (N,), "out", None),
        Array("t", "float32", (scratch,), "scratch", None),
    )
    launch = Launch("kernel", (1, 1, 1), (1, 1, 1), 0, ("x", "y", "t", "n"))
    return ProblemInstance(
        Problem({"n": N}, "float32", seed), arrays, (Scalar("n", "int32", N),), (launch,), 0.0, 0.0
    )


@pytest.fixture
def open_bench(tmp_path):
    """A bench for these cases whose device has so many bytes."""
    reference = tmp_path / "reference.py"
    reference.write_text("def reference(inputs, sizes):\n    return {'y': 2 * inputs['x']}\n")

    def opened(memory_bytes, *cases):
        bench = DeviceState(Address("fake", 0), reference, cases)
        bench.device.info = replace(bench.device.info, memory_bytes=memory_bytes)
        return bench

    return opened


BINARY = backend("fake").open_compiler(0).compile(KERNEL, ())


def test_seeds_take_turns_in_a_memory_that_holds_one(open_bench):
    bench = open_bench(device_bytes(case()), case())
    for seed in (0, 1, 2, 0):
        assert verify_once(bench, BINARY, case(seed)).failure is None


def test_a_scratch_array_makes_room_for_the_next_one(open_bench):
    bench = open_bench(device_bytes(case(scratch=2 * N)), case())
    for scratch in (N, 2 * N, N + 1):
        assert verify_once(bench, BINARY, case(scratch=scratch)).failure is None


def test_what_is_held_stays_when_it_is_wanted_again(open_bench):
    bench = open_bench(2 * device_bytes(case()), case())
    bench.hold((case(), case(1)))
    kept = bench.workspace(case(1))
    bench.hold((case(1),))
    assert bench.workspace(case(1)) is kept


def test_a_launch_that_the_device_refuses_is_a_failure_of_whatever_was_to_run(open_bench):
    (launch,) = case().launches
    refused = replace(case(), launches=(replace(launch, block=(2048, 1, 1)),))
    bench = open_bench(device_bytes(refused), refused)
    job = WorkItem(BINARY, (), refused, MeasurementPolicy(), None, None, 0.0)
    failures = [
        run_job(bench, job).failure,
        verify_once(bench, BINARY, refused).failure,
        sample(bench, BINARY, refused, count=1, batch=1, repeatable=True),
        energy(bench, BINARY, refused, run_ms=1.0, seconds=0.01, repeatable=True),
    ]
    assert [failure.status for failure in failures] == [Status.LAUNCH_ERROR] * 4
    assert len({failure.detail for failure in failures}) == 1


def test_a_launch_of_the_incumbent_that_is_refused_beside_a_configuration_leaves_doubt(open_bench):
    (launch,) = case().launches
    refused = replace(case(), launches=(replace(launch, block=(2048, 1, 1)),))
    bench = open_bench(2 * device_bytes(case()), case())
    incumbent = Incumbent(Measurement((1e-9,), Rule.SAMPLES), BINARY, refused)
    job = WorkItem(BINARY, (), case(), MeasurementPolicy(noise_factor=1e12), incumbent, None, 0.0)
    failure = run_job(bench, job).failure
    assert failure.status is Status.LAUNCH_ERROR and failure.is_doubtful
    alone = run_job(bench, job.alone())
    assert alone.failure is None and alone.measurement is not None


def test_what_does_not_fit_is_refused_in_words(open_bench):
    bench = open_bench(device_bytes(case()) - 1, case())
    with pytest.raises(OutOfMemory, match="in use"):
        bench.hold((case(),))
