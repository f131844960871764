"""The time that a search is said to take still."""

import pytest

from autotune.cli.forecast import Forecast
from autotune.core.stages import TIMING, VERIFYING, Stage


def forecast(count=10, total=20):
    """A search of which trials have taken 2 s each, 1 s of it on the device."""
    found = Forecast(total, 0.0)
    for number in range(1, count + 1):
        found.tried(1.0, 2.0 * number)
    return found


def test_before_a_trial_or_without_a_number_of_trials_nothing_is_known():
    assert Forecast(20, 0.0).left_s(5.0) is None
    assert forecast(total=None).left_s(20.0) is None


def test_trials_to_come_take_as_long_as_the_later_ones_and_the_end_is_added():
    end_s = forecast(20).left_s(40.0)
    assert forecast(10).left_s(20.0) == pytest.approx(end_s + 20.0)
    late = Forecast(20, 0.0)
    for ended_s in (100.0, 101.0, 102.0, 103.0):
        late.tried(1.0, ended_s)
    assert late.left_s(103.0) == pytest.approx(end_s + 16.0)  # the first one waited for a compiler


def test_an_end_that_takes_twice_as_long_as_expected_is_expected_to_go_on_so():
    usual, slow = forecast(20), forecast(20)
    usual.last_round(9, 40.0)
    slow.last_round(9, 40.0)
    whole_s = usual.left_s(40.0)
    for one in (usual, slow):
        one.stage(Stage(VERIFYING, 1, 9), 40.0)
        one.stage(Stage(TIMING, 7, 12), 41.0)
    done_s = whole_s * 0.3
    for one, now_s in ((usual, 40.0 + done_s), (slow, 40.0 + 2 * done_s)):
        one.stage(Stage(VERIFYING, 9, 9), now_s)  # an earlier stage: a check verifies too
    assert usual.left_s(40.0 + done_s) < whole_s
    assert usual.left_s(40.0 + done_s) < slow.left_s(40.0 + 2 * done_s) < 2 * usual.left_s(40.0 + done_s)


def test_the_more_is_checked_the_longer_it_takes():
    lefts_s = []
    for stored in (1, 6):
        found = forecast(20)
        found.last_round(9, 40.0)
        found.stage(Stage("last round: other schedules", configs=stored), 60.0)
        lefts_s.append(found.left_s(60.0))
    assert 2 * lefts_s[0] < lefts_s[1]


def test_variants_take_time_once_it_is_known_how_many_there_are():
    lefts_s = []
    for count in (1, 5):
        found = forecast(20)
        found.last_round(9, 40.0)
        found.stage(Stage("last round: variants", 1, count), 60.0)
        lefts_s.append(found.left_s(60.0))
    assert lefts_s[0] < lefts_s[1]


def test_a_last_round_that_is_repeated_begins_again():
    found = forecast(20)
    found.last_round(9, 40.0)
    whole_s = found.left_s(40.0)
    found.stage(Stage("last round: other data", 3, 11), 45.0)
    found.last_round(9, 50.0)
    assert found.left_s(50.0) == whole_s


def test_the_time_left_runs_down_while_one_reference_is_computed():
    found = forecast(20)
    found.last_round(9, 40.0)
    found.stage(Stage("last round: sizes of its tiles"), 50.0)
    found.stage(Stage("preparing inputs and reference (knn.py)", sizes="n=4097, m=69631"), 51.0)
    begun_s = found.left_s(51.0)
    assert found.left_s(53.0) == pytest.approx(begun_s - 2.0)
    assert found.left_s(51.1 + begun_s) is None  # it took all of that: nobody knows how long it goes on
    found.stage(Stage("verifying"), 52.0 + begun_s)
    assert found.left_s(52.0 + begun_s) > 0
