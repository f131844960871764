"""What the device process holds in memory, on a fake device that has little of it."""

from dataclasses import replace

import pytest

from autotune.core.records import Argument, Launch
from autotune.core.trials import CallMode, Failure, Measurement, Problem, Rule, Status
from autotune.devices import Address, backend
from autotune.errors import Blame, OutOfMemory
from autotune.evaluation.buffers import device_bytes
from autotune.evaluation.device_process import (
    DeviceSetting,
    DeviceState,
    run_and_reset_clocks,
    run_bare,
    verify_and_time,
    verify_once,
)
from autotune.evaluation.device_samples import energy, sample
from autotune.evaluation.work_item import Incumbent, MeasurementPolicy, WorkItem
from autotune.problem.workload import Array, Scalar, Workload, verification_order

N = 100_000
KERNEL = """\
def kernel(grid, block, x, y, t, n):
    y.view("float32")[:n] = 2 * x.view("float32")[:n]
"""


def problem(seed=0, scratch=N):
    """One problem, with a scratch array of so many elements."""
    arrays = (
        Array("x", "float32", (N,), "in", ("uniform", 0, 1)),
        Array("y", "float32", (N,), "out", None),
        Array("t", "float32", (scratch,), "scratch", None),
    )
    launch = Launch("kernel", (1, 1, 1), (1, 1, 1), 0, ("x", "y", "t", "n"))
    return Workload(Problem({"n": N}, "float32", seed), arrays, (Scalar("n", "int32", N),), (launch,))


@pytest.fixture
def open_state(tmp_path):
    """A state for these problems whose device has so many bytes."""
    reference = tmp_path / "reference.py"
    reference.write_text("def reference(inputs, sizes):\n    return {'y': 2 * inputs['x']}\n")

    def opened(memory_bytes, *problems):
        state = DeviceState(DeviceSetting(Address("fake", 0), reference, problems))
        state.device.info = replace(state.device.info, memory_bytes=memory_bytes)
        return state

    return opened


BINARY = backend("fake").open_compiler(0).compile(KERNEL, ())


def test_seeds_take_turns_in_a_memory_that_holds_one(open_state):
    state = open_state(device_bytes(problem()), problem())
    for seed in (0, 1, 2, 0):
        assert not isinstance(verify_once(state, BINARY, problem(seed)), Failure)


def test_a_cpu_verifies_the_problem_with_the_most_threads_first_and_others_in_order():
    sizes = (1, 5, 3, 5)
    launches = [Launch("kernel", (1, blocks, 1), (32, 1, 1), 0, ()) for blocks in sizes]
    checks = tuple(replace(problem(seed), launches=(step,)) for seed, step in enumerate(launches))
    assert [check.problem.seed for check in verification_order(checks, "cpu")] == [1, 0, 2, 3]
    assert verification_order(checks, "gpu") == checks and verification_order((), "cpu") == ()


def test_a_binary_is_verified_in_full_once_on_each_set_of_checks(open_state):
    # each run takes one unit of time more than the one before: the single sample tells how many there were
    counted = KERNEL.replace("def", "runs = []\ndef") + "    runs.append(n)\n    return len(runs)\n"
    binary, state = backend("fake").open_compiler(0).compile(counted, ()), open_state(2**30, problem())
    policy = MeasurementPolicy(samples=1, screen=1)

    def runs(*checks):
        found = verify_and_time(state, WorkItem(binary, checks, problem(), policy, None, 1, 0.0))
        assert isinstance(found, Measurement)
        return found.samples_ms[-1]

    full, less = runs(problem(1), problem(2)), runs(problem(1), problem(2))
    assert full - less == 3  # runs on the second check
    other = replace(problem(2), scalars=(Scalar("n", "int32", N), Scalar("m", "int32", 1)))
    assert runs(problem(1), other) == full
    assert runs(problem(1), other) == less


def test_a_binary_that_is_wrong_on_a_later_check_fails_whatever_has_passed_before(open_state):
    state = open_state(2**30, problem())
    wrong = backend("fake").open_compiler(0).compile(f"{KERNEL}    if grid[0] == 2:\n        y[:4] = 0\n", ())
    (launch,) = problem().launches
    checks = (problem(1), replace(problem(2), launches=(replace(launch, grid=(2, 1, 1)),)))
    statuses = []
    for binary in (BINARY, wrong, wrong):
        item = WorkItem(binary, checks, problem(), MeasurementPolicy(samples=1), None, 1, 0.0)
        outcome = verify_and_time(state, item)
        statuses.append(outcome.status if isinstance(outcome, Failure) else Status.OK)
    assert statuses == [Status.OK, Status.WRONG_RESULT, Status.WRONG_RESULT]


def test_the_check_that_stays_is_the_one_that_comes_first_on_the_device(open_state):
    state = open_state(2**30, problem())
    (launch,) = problem().launches
    checks = (problem(1), replace(problem(2), launches=(replace(launch, grid=(2, 1, 1)),)))
    item = WorkItem(BINARY, checks, problem(), MeasurementPolicy(), None, 1, 0.0)
    state.passed.add(item.verify_key)
    for kind in ("cpu", "gpu"):
        state.device.info = replace(state.device.info, kind=kind)
        assert state.workloads_to_verify(item) == verification_order(checks, kind)[:1]


@pytest.mark.parametrize(("cache", "times_ms"), [("cold", (2.0, 3.0)), ("warm", (2.0, 4.0))])
def test_one_run_warms_up_before_cold_samples_and_one_before_each_warm_sample(open_state, cache, times_ms):
    counted = KERNEL.replace("def", "runs = []\ndef") + "    runs.append(n)\n    return len(runs)\n"
    binary, state = backend("fake").open_compiler(0).compile(counted, ()), open_state(2**30, problem())
    mode = CallMode(cache)
    assert sample(state, binary, problem(), mode, count=2, batch=1, repeatable=True) == times_ms


def test_a_scratch_array_makes_room_for_the_next_one(open_state):
    state = open_state(device_bytes(problem(scratch=2 * N)), problem())
    for scratch in (N, 2 * N, N + 1):
        assert not isinstance(verify_once(state, BINARY, problem(scratch=scratch)), Failure)


def test_small_arrays_of_a_name_stay_allocated_beside_one_large_one(open_state):
    state = open_state(2**30, problem())  # 2 MiB for each name: two of N elements, or many smaller ones

    def scratch(count):
        return state.buffers(problem(scratch=count)).arrays()[2]

    tiny = [*range(1, 10), 100 * N]
    kept = [scratch(count) for count in tiny]
    assert [scratch(count) for count in tiny] == kept
    assert scratch(100 * N + 1) is not kept[-1] and scratch(100 * N) is not kept[-1]
    small = [scratch(count) for count in range(N, N + 3)]
    assert [scratch(count) for count in (N + 1, N + 2)] == small[1:] and scratch(N) is not small[0]


def test_a_problem_that_is_placed_again_keeps_its_buffers(open_state):
    state = open_state(2 * device_bytes(problem()), problem())
    state.load((problem(), problem(1)))
    kept = state.buffers(problem(1)).arrays()
    state.load((problem(1),))
    assert state.buffers(problem(1)).arrays() == kept


def test_the_usual_problem_stays_in_memory_beside_a_small_one(open_state):
    room = 8 * 2 * device_bytes(problem())  # for two problems, in the share that others leave
    for memory_bytes, number in ((room, 2), (room - 8, 1)):
        state = open_state(memory_bytes, problem())
        state.load((problem(),))
        usual = state.buffers(problem()).arrays()
        assert len(state.load((problem(1),), (problem(),))) == number
        assert (state.buffers(problem()).arrays() == usual) == (number == 2)


def test_inputs_that_problems_have_in_common_stay_in_memory_and_are_drawn_once(open_state):
    state, one = open_state(2**30), problem()
    copied = Array("v", "float32", (N,), "in", ("copy", "x"))
    launch = replace(one.launches[0], arguments=("x", "y", "t", "n", "u", "v"))

    def placed(rows, seed=0):
        own = Array("u", "float32", (rows,), "in", ("uniform", 0, 1))
        problem = Problem({"n": rows}, "float32", seed)
        arrays = (*one.arrays, own, copied)
        sized = replace(one, problem=problem, arrays=arrays, launches=(launch,))
        state.load((sized,))
        return {
            guarded.array.name: guarded for guarded in state.buffers(sized).arrays()
        }, state.preparation.data_of(sized)

    (first, data), (second, next_data) = placed(9), placed(10)
    assert [name for name in first if first[name] is second[name]] == ["x"]  # a copy depends on another array
    assert data.inputs["x"] is next_data.inputs["x"] and data.inputs["u"] is not next_data.inputs["u"]
    assert placed(10, seed=1)[0]["x"] is not second["x"]


def test_a_launch_that_the_device_refuses_is_a_failure_of_whatever_was_to_run(open_state):
    (launch,) = problem().launches
    refused = replace(problem(), launches=(replace(launch, block=(2048, 1, 1)),))
    state = open_state(device_bytes(refused), refused)
    item = WorkItem(BINARY, (), refused, MeasurementPolicy(), None, None, 0.0)
    failures = [
        verify_and_time(state, item),
        run_and_reset_clocks(state, verify_once, BINARY, refused),
        run_and_reset_clocks(state, sample, BINARY, refused, count=1, batch=1, repeatable=True),
        run_and_reset_clocks(state, energy, BINARY, refused, run_ms=1.0, seconds=0.01, repeatable=True),
    ]
    assert [failure.status for failure in failures] == [Status.LAUNCH_ERROR] * 4
    assert len({failure.detail for failure in failures}) == 1


def test_a_launch_of_the_incumbent_that_is_refused_beside_a_configuration_leaves_doubt(open_state):
    (launch,) = problem().launches
    refused = replace(problem(), launches=(replace(launch, block=(2048, 1, 1)),))
    state = open_state(2 * device_bytes(problem()), problem())
    incumbent = Incumbent(Measurement((1e-9,), Rule.SAMPLES), BINARY, refused)
    item = WorkItem(BINARY, (), problem(), MeasurementPolicy(noise_factor=1e12), incumbent, None, 0.0)
    failure = verify_and_time(state, item)
    assert failure.status is Status.LAUNCH_ERROR and failure.blame is Blame.PROCESS
    assert isinstance(verify_and_time(state, replace(item, is_alone=True)), Measurement)


def test_a_run_for_sanitizers_passes_the_arguments_that_a_checked_run_passes(open_state):
    (launch,) = problem().launches
    view = Argument("v", "float32", "view", of="x", offset_bytes=4 * (N - 1))
    local = Argument("l", "float32", "local", (8,))
    steps = (replace(launch, arguments=(*launch.arguments, "v", "l")),)
    workload = replace(problem(), launches=steps, views=(view,), local=(local,))
    source = KERNEL.replace("n)", "n, v, l)")
    source += f"    assert (v.size, l.size_bytes) == (4, 32) and (v == x[{4 * (N - 1)}:]).all()\n"
    state, binary = open_state(2**30, workload), backend("fake").open_compiler(0).compile(source, ())
    assert verify_once(state, binary, workload) is None
    assert run_bare(state, binary, workload) is None


def test_what_does_not_fit_is_refused_in_words(open_state):
    state = open_state(device_bytes(problem()) - 1, problem())
    with pytest.raises(OutOfMemory, match="in use"):
        state.load((problem(),))


def test_results_that_are_kept_from_the_fifth_run_on_are_found_in_timed_runs(open_state):
    """Verification has three runs, and inputs change in a few elements between timed runs."""
    kept = """\
seen, times, kept = 0, 0, None
def kernel(grid, block, x, y, t, n):
    global seen, times, kept
    key = hash(x[:9].tobytes())
    times = times + 1 if seen == key else 0
    if times < 4:
        seen, kept = key, 2 * x.view("float32")[:n]
    y.view("float32")[:n] = kept
"""
    state, workload = open_state(2**30, problem(1)), problem(1)
    for source, is_found in ((KERNEL, False), (kept, True)):
        binary = backend("fake").open_compiler(0).compile(source, ())
        assert verify_once(state, binary, workload) is None
        rounds = [sample(state, binary, workload, count=2, batch=1, repeatable=True) for _ in range(2)]
        assert isinstance(rounds[-1], Failure) == is_found
