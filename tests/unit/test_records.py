"""What a search leaves behind for other devices."""

import pytest

from autotune.cache import read_record
from autotune.model import Config
from autotune.records import MOST_MEASURED, measured
from autotune.trials import Measurement, Status, Trial


def trial(number: int, time_ms: float | None) -> Trial:
    """A trial that was timed, or one that failed."""
    found = None if time_ms is None else Measurement((time_ms,), "steady")
    return Trial(
        Config({"A": number}), str(number), Status.OK if found else Status.TIMEOUT, measurement=found
    )


def test_the_fastest_are_kept_in_order_and_foreign_bests_however_slow():
    trials = [trial(number, 100.0 - number) for number in range(90)] + [trial(99, None)]
    kept = measured(trials, {}, trials[89], {Config({"A": 3}), Config({"A": 99})})
    numbers = [config["A"] for config, _ in kept]
    assert numbers == [*range(88, 88 - MOST_MEASURED, -1), 3]
    assert [time_ms for _, time_ms in kept] == [100.0 - number for number in numbers]


def test_the_last_round_s_times_count_before_the_search_s():
    trials = [trial(1, 5.0), trial(2, 6.0), trial(3, 7.0)]
    finals = {"2": Measurement((9.0,), "finals"), "1": Measurement((1.0,), "finals")}
    assert measured(trials, finals, trials[0], ()) == ((Config({"A": 3}), 7.0), (Config({"A": 2}), 9.0))


@pytest.mark.parametrize("budget", [6])
def test_a_search_stores_what_it_measured(folder, budget):
    found = folder.search("--size", "n=1000", "--engine", "random", "--budget", budget, "--seed", "1")
    (entry,) = read_record(str(folder.path / found["cache_file"])).entries
    assert len(entry.measured) == budget - 1
    assert entry.provenance.compiler == "1, driver 1"  # the fake device's own
    assert entry.config not in dict(entry.measured)
    assert all(factor >= 1 for factor in entry.relative_times.values())
