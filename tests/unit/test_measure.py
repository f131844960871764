"""The rules that end sampling, on a stopwatch that reads out a list."""

import itertools

import pytest

from autotune.jobs import Case, Job, Protocol
from autotune.measure import Stopwatch, measure
from autotune.trials import Binary, Measurement, Problem


class Readings(Stopwatch):
    """A stopwatch of a GPU with given readings, the last of which repeats."""

    _cold = True
    batch = 1

    def __init__(self, *readings):
        self._readings = itertools.chain(readings, itertools.repeat(readings[-1]))
        self.batches = []

    def sample_ms(self):
        return next(self._readings)

    def choose_batch(self, run_ms, batch_ms, agreed):
        self.batches.append((run_ms, batch_ms))


def timed(readings, protocol, best_ms, verified_ms):
    """Measure by a protocol, against a best that takes so many ms."""
    case = Case(Problem({}, "int32"), (), (), (), 0.0, 0.0)
    best = None if best_ms is None else Measurement((best_ms,), "steady")
    return measure(readings, Job(Binary(b"", "", "", 0.0), (), case, protocol, best, None, 0.0), verified_ms)


PROTOCOL = Protocol(warmups=1, screen=3, samples=8, seconds=60)


def test_equal_readings_are_steady_at_once_and_the_warmup_is_kept_apart():
    found = timed(Readings(9.0, 1.0), PROTOCOL, None, 1.0)
    assert found.rule == "steady" and found.warmups_ms == (9.0,) and set(found.samples_ms) == {1.0}


def test_one_that_cannot_win_stops_after_the_screen():
    found = timed(Readings(2.0), PROTOCOL, 1.0, 2.0)
    assert found.rule == "screened" and len(found.samples_ms) == PROTOCOL.screen


def test_one_lucky_reading_keeps_it_in_the_race():
    assert timed(Readings(2.0, 2.0, 1.2, 2.0), PROTOCOL, 1.0, 2.0).rule != "screened"


def test_one_that_is_surely_slower_than_the_best_is_beaten_before_it_is_known_well():
    found = timed(Readings(1.1, 1.2, 1.1, 1.3, 1.1, 1.2), PROTOCOL, 1.0, 1.2)
    assert found.rule == "beaten" and len(found.samples_ms) == PROTOCOL.screen + 1


def test_noise_is_sampled_to_the_limit():
    found = timed(Readings(*[1.0, 2.0] * 10), PROTOCOL, None, 1.0)
    assert found.rule == "samples" and len(found.samples_ms) == PROTOCOL.samples


def test_time_ends_it():
    assert timed(Readings(*[1.0, 2.0] * 10), Protocol(seconds=0), None, 1.0).rule == "time"


@pytest.mark.parametrize("count", [1, 2, 5, 6, 20, 101])
def test_the_interval_holds_the_median_and_lies_within_the_samples(count):
    samples = tuple(float(value * value % 37) for value in range(count))
    low, high = Measurement(samples, "").interval_ms
    assert min(samples) <= low <= Measurement(samples, "").median_ms <= high <= max(samples)


def test_more_samples_narrow_the_interval():
    few, many = (Measurement(tuple(range(count)), "").interval_ms for count in (10, 1000))
    assert (many[1] - many[0]) / 1000 < (few[1] - few[0]) / 10


def test_one_whose_verification_took_far_too_long_is_not_run_again():
    readings = Readings(7.0)
    found = timed(readings, PROTOCOL, 1.0, verified_ms=5.0)
    assert found.rule == "hopeless" and found.samples_ms == (5.0,) and readings.batches == []
