"""The runs before samples count, the rules that end sampling, and the energy of a run without its restore."""

import itertools
import math
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace

import pytest

from autotune.core.records import Launch
from autotune.core.trials import Binary, Measurement, Problem, Rule, fewest_samples, median_interval
from autotune.devices import backend, fake
from autotune.errors import ImpossibleTime
from autotune.evaluation.buffers import GUARD_BYTES, SharedBuffers, WorkloadBuffers
from autotune.evaluation.measure import IncumbentTimer, measure
from autotune.evaluation.stopwatch import ENERGY_RESOLUTION, MAX_WARMUPS, SETTLING_MS, Stopwatch
from autotune.evaluation.work_item import MeasurementPolicy, WorkItem
from autotune.problem.inputs import prepare
from autotune.problem.workload import Array, Workload

N = 2**20
RESTORE_J = (4 * N + 2 * GUARD_BYTES) * 1e-9  # as the fake device counts it


class Readings(Stopwatch):
    """A stopwatch of a GPU with given readings, the last of which repeats."""

    on_gpu = True
    batch = 1

    def __init__(self, *readings):
        self._readings = itertools.chain(readings, itertools.repeat(readings[-1]))
        self.batches = []

    def _sample_ms(self):
        return next(self._readings)

    def start_over(self):
        self.batches.append("poisoned")

    def choose_batch(self, run_ms, batch_ms, agreed):
        self.batches.append((run_ms, batch_ms))


class OnCpu(Readings):
    """The same on a CPU, where another process may hold up a run."""

    on_gpu = False


def timed(readings, policy, best_ms, verified_ms, beside=None, launches=1):
    """Measure by a policy, against a best that takes so many ms; `beside` are its readings now."""
    plan = (Launch("kernel", (1, 1, 1), (64, 1, 1), 0, ()),) * launches
    problem = Workload(Problem({}, "int32"), (), (), plan)
    best = None if best_ms is None else IncumbentTimer(Measurement((best_ms,), Rule.STEADY), lambda: beside)
    item = WorkItem(Binary(b"", "", "", 0.0), (), problem, policy, None, None, 0.0)
    return measure(readings, item, verified_ms, best)


HOUR_MS = 3.6e6
POLICY = MeasurementPolicy(warmups=1, screen=3, samples=8, seconds=60)


def test_equal_readings_are_steady_at_once_and_the_warmup_is_kept_apart():
    found = timed(Readings(9.0, 1.0), POLICY, None, 1.0)
    assert found.rule == "steady" and found.warmups_ms == (9.0,) and set(found.samples_ms) == {1.0}


def test_a_slow_first_run_of_a_short_kernel_does_not_decide_about_the_batch():
    readings = Readings(0.4, 0.002)
    found = timed(readings, POLICY, None, 0.4)
    assert readings.batches == [(0.002, POLICY.batch_ms)] and found.warmups_ms[0] == 0.4


def test_one_that_cannot_win_stops_after_the_screen():
    found = timed(Readings(2.0), POLICY, 1.0, 2.0)
    assert found.rule == "screened" and len(found.samples_ms) == POLICY.screen


def test_one_lucky_reading_keeps_it_in_the_race():
    assert timed(Readings(2.0, 2.0, 1.2, 2.0), POLICY, 1.0, 2.0).rule != "screened"


def test_one_that_is_surely_slower_than_the_best_is_beaten_before_it_is_known_well():
    found = timed(Readings(1.1, 1.2, 1.1, 1.3, 1.1, 1.2), POLICY, 1.0, 1.2)
    assert found.rule == "beaten" and len(found.samples_ms) == POLICY.screen + 2


def test_a_sample_during_which_the_clock_was_set_back_is_taken_again():
    found = timed(Readings(1.0, 1.0, -HOUR_MS, 1.0), POLICY, 1.0, 1.0)
    assert found.rule == "steady" and set(found.samples_ms) == {1.0}


def test_a_clock_that_only_runs_back_gives_no_time():
    with pytest.raises(ImpossibleTime, match=r"a run time of -1\.0 ms"):
        Readings(-1.0).sample_ms()


def test_noise_is_sampled_to_the_limit():
    found = timed(Readings(*[1.0, 2.0] * 10), POLICY, None, 1.0)
    assert found.rule == "samples" and len(found.samples_ms) == POLICY.samples


def test_time_ends_it():
    assert timed(Readings(*[1.0, 2.0] * 10), MeasurementPolicy(seconds=0), None, 1.0).rule == "time"


@pytest.mark.parametrize("slow_ms", [2.0, 3.0])
def test_a_machine_that_is_slow_for_all_makes_nobody_hopeless_or_screened(slow_ms):
    found = timed(Readings(slow_ms), POLICY, 1.0, slow_ms, beside=Readings(slow_ms))
    assert found.rule == "steady" and found.control_ratio == slow_ms


def test_who_is_given_up_was_timed_after_the_best_and_from_poison():
    readings = Readings(2.0)
    found = timed(readings, POLICY, 1.0, 2.0, beside=Readings(1.1))
    assert found.rule == "screened" and found.control_ratio == pytest.approx(1.1)
    assert readings.batches[-1] == "poisoned" and len(found.samples_ms) == POLICY.screen


def test_a_time_of_the_best_counts_for_those_that_follow_at_once(monkeypatch):
    now_s, opened = [100.0], []
    monkeypatch.setattr("autotune.evaluation.measure.time.perf_counter", lambda: now_s[0])
    control = IncumbentTimer(Measurement((2.0,), Rule.STEADY), lambda: opened.append(1) or Readings(3.0))
    assert [control.slower_ms(2.0, 1), control.slower_ms(1.0, 1)] == [3.0, 1.5] and len(opened) == 1
    now_s[0] += 1.0
    assert control.slower_ms(2.0, 1) == 3.0 and len(opened) == 2


@pytest.mark.parametrize("kind", [Readings, OnCpu])
def test_a_clock_that_jumps_while_it_is_verified_makes_nobody_hopeless(kind):
    assert timed(kind(1.0), POLICY, 1.0, verified_ms=HOUR_MS).rule == "steady"


def test_a_warm_up_during_which_the_clock_jumps_is_taken_again():
    readings = Readings(HOUR_MS, 1.0)
    assert timed(readings, POLICY, None, 1.0).warmups_ms == (1.0,)
    assert readings.batches == [(1.0, POLICY.batch_ms)]


def test_a_clock_set_back_while_it_is_verified_takes_no_warm_up_again():
    assert timed(Readings(1.0, -1.0, 1.0), POLICY, None, -HOUR_MS).warmups_ms == (1.0,)


def test_a_sample_is_right_though_the_clock_jumps_ahead_and_back():
    assert Readings(HOUR_MS, -HOUR_MS, 1.0).sample_ms(1.0) == 1.0
    assert Readings(-HOUR_MS, HOUR_MS, 1.0).sample_ms(1.0) == 1.0
    assert Readings(HOUR_MS, HOUR_MS, HOUR_MS, 1.0).sample_ms(1.0) == HOUR_MS  # it takes so long


def test_where_nothing_is_hopeless_the_best_is_not_timed_beside_a_slow_run():
    policy = MeasurementPolicy(hopeless_factor=math.inf, screen_factor=math.inf, race_factor=math.inf)
    assert timed(Readings(HOUR_MS), policy, 1.0, HOUR_MS, beside=Readings(1.0)).control_ratio is None


def test_a_clock_that_jumps_while_the_best_is_timed_excuses_nobody():
    found = timed(Readings(2.0), POLICY, 1.0, 2.0, beside=Readings(HOUR_MS, 1.0))
    assert found.rule == "screened" and found.control_ratio == 1.0


@pytest.mark.parametrize(
    ("kind", "launches", "rule"), [(OnCpu, 2, "steady"), (OnCpu, 1, "hopeless"), (Readings, 2, "hopeless")]
)
def test_a_cpu_that_compiled_between_launches_makes_nobody_hopeless(kind, launches, rule):
    found = timed(kind(1.0), POLICY, 1.0, 300.0, launches=launches)
    assert found.rule == rule


@pytest.mark.parametrize(
    ("readings", "best_ms", "slow_ms"),
    [
        (Readings, 1.0, 3.0),
        (Readings, 0.003, 0.08),
        (Readings, 0.003, 0.4),
        (OnCpu, 1.0, 5.0),
        (OnCpu, 1.0, 15.0),
    ],
)
def test_one_slow_run_makes_nobody_hopeless(readings, best_ms, slow_ms):
    found = timed(readings(best_ms), POLICY, best_ms, verified_ms=slow_ms)
    assert found.rule != "hopeless" and found.median_ms == best_ms


def test_two_slow_runs_do():
    found = timed(Readings(3.0), POLICY, 1.0, verified_ms=3.0)
    assert found.rule == "hopeless" and found.samples_ms == (3.0, 3.0)


def test_the_interval_of_one_that_was_chosen_is_wider():
    samples = tuple(map(float, range(12)))
    plain, chosen = (Measurement(samples, Rule.LAST_ROUND, chosen_from=count).interval_ms for count in (1, 9))
    assert chosen[0] < plain[0] and plain[1] < chosen[1]


@pytest.mark.parametrize("count", [1, 2, 5, 6, 20, 101])
def test_the_interval_holds_the_median_and_lies_within_the_samples(count):
    samples = tuple(float(value * value % 37) for value in range(count))
    low, high = Measurement(samples, Rule.SAMPLES).interval_ms
    assert min(samples) <= low <= Measurement(samples, Rule.SAMPLES).median_ms <= high <= max(samples)


@pytest.mark.parametrize("chosen_from", [1, 2, 9])
def test_the_interval_holds_the_median_in_95_percent_of_all_cases_and_is_no_wider_than_that_takes(
    chosen_from,
):
    """The probability is exact: that the median of any distribution is between the samples of two ranks."""

    def covered(count, low, high):
        return Fraction(sum(math.comb(count, below) for below in range(low + 1, high + 1)), 2**count)

    needed = 1 - Fraction(5, 100 * chosen_from)
    assert covered(fewest_samples(chosen_from) - 1, 0, fewest_samples(chosen_from) - 2) < needed
    for count in range(fewest_samples(chosen_from), 201):
        low, high = median_interval(range(count), chosen_from)
        assert covered(count, low, high) >= needed > covered(count, low + 1, high - 1), count


def test_more_samples_narrow_the_interval():
    few, many = (Measurement(tuple(range(count)), Rule.SAMPLES).interval_ms for count in (10, 1000))
    assert (many[1] - many[0]) / 1000 < (few[1] - few[0]) / 10


@pytest.mark.parametrize(("kind", "best_ms"), [(Readings, 1.0), (OnCpu, 10.0)])
def test_one_whose_verification_took_far_too_long_is_not_run_again(kind, best_ms):
    readings = kind(7 * best_ms)
    found = timed(readings, POLICY, best_ms, verified_ms=5 * best_ms)
    assert found.rule == "hopeless" and found.samples_ms == (5 * best_ms,) and readings.batches == []


class Steady(Stopwatch):
    """Every run takes the same time, on a GPU (cold) or a CPU."""

    def __init__(self, run_ms: float, *, cold: bool) -> None:
        self._run_ms, self.on_gpu = run_ms, cold

    def _sample_ms(self) -> float:
        return self._run_ms


@pytest.mark.parametrize(
    ("run_ms", "cold", "runs"),
    [(0.5, True, 1), (0.5, False, SETTLING_MS / 0.5), (50.0, False, 1), (1e-3, False, MAX_WARMUPS)],
)
def test_a_cpu_warms_up_for_a_while_and_a_gpu_once(run_ms, cold, runs):
    assert Steady(run_ms, cold=cold).warm_up(1) == (run_ms,) * int(runs)


def test_a_first_run_on_a_cpu_may_take_longer_before_it_is_hopeless():
    assert Steady(1.0, cold=False).start_ms > Steady(1.0, cold=True).start_ms


@pytest.fixture
def used_j(tmp_path, monkeypatch):
    """What a run of so many ms at 1 W takes, in J, by the stopwatch. A clock multiplies that of copies."""
    reference = tmp_path / "reference.py"
    reference.write_text("def reference(inputs, sizes):\n    return {}\n")
    arrays = (Array("w", "float32", (N,), "inout", ("constant", 1)),)
    launch = Launch("kernel", (1, 1, 1), (1, 1, 1), 0, ("w",))
    problem = Workload(Problem({"n": N}, "float32"), arrays, (), (launch,))
    device = backend("fake").open_device(0)
    shared = SharedBuffers(device, prepare(problem, reference))
    copy_j = fake.COPY_J_PER_BYTE

    def apply(settings):
        monkeypatch.setattr(fake, "COPY_J_PER_BYTE", copy_j * dict(settings)["sm_clock_mhz"])

    device.clocks = SimpleNamespace(apply=apply)

    def measured(run_ms, repeatable, settings=()):
        source = f"def kernel(grid, block, w):\n    w[:] = 0\n    return {run_ms}\n"
        program = device.load(backend("fake").open_compiler(0).compile(source, ()))
        buffers = WorkloadBuffers(replace(problem, settings=settings), shared)
        stopwatch = Stopwatch(program, buffers, changed=() if repeatable else None)
        return stopwatch.energy_j(run_ms, 0.02)

    return measured


@pytest.mark.parametrize("repeatable", [True, False])
def test_the_energy_is_that_of_the_run(used_j, repeatable):
    assert used_j(10.0, repeatable) == pytest.approx(0.01)


def test_restoring_takes_another_energy_at_another_clock(used_j):
    for clock in (1, 3):
        assert used_j(10.0, False, (("sm_clock_mhz", clock),)) == pytest.approx(0.01)


def test_a_run_that_its_restore_drowns_is_charged_what_can_be_told(used_j):
    assert used_j(0.001, False) == pytest.approx(ENERGY_RESOLUTION * (RESTORE_J + 1e-6))
