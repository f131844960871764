"""Searches on recorded results, and what they are said to be worth."""

from itertools import combinations
from statistics import mean

import numpy as np
import pytest
from replay import ReplayRun, ReplayTrials, load, prepare, priors_for, replay
from replay_score import CHECKPOINTS, efficiency
from search_efficiency import random_expectation

from autotune.core.records import Config
from autotune.core.trials import Status
from autotune.errors import InputError, NoMoreTrials
from autotune.interop import Recording, imported_trial, journals
from autotune.interop.recording import domains
from autotune.searchers import make_searcher
from autotune.searchers.base import evaluate
from tests.recorded_files import CACHE, FOLDER, T4, needs_whole


def recording(times_ms, kernel="bowl", device="Example GPU"):
    """A line of configurations with these times; None fails. Each costs a second."""
    trials = tuple(
        imported_trial(
            Config({"A": number // 10, "B": number % 10, "C": "fixed"}),
            Status.OK if time_ms is not None else Status.TIMEOUT,
            time_ms,
            cost_s=1.0,
        )
        for number, time_ms in enumerate(times_ms)
    )
    return Recording(kernel, device, None, domains("ABC", [trial.config for trial in trials]), trials)


@pytest.fixture(scope="module")
def recorded():
    rng = np.random.default_rng(3)
    return prepare(recording([None if x < 0.1 else float(x) for x in rng.random(300)]))


def search(recorded, engine, budget, seed=0, strategy=None):
    return replay(recorded, make_searcher(engine, strategy), budget=budget, seed=seed)


def test_the_recorded_configurations_are_the_space(recorded):
    assert len(recorded.space) == 300
    for row, config in enumerate(recorded.space):
        assert recorded.space.index(config) == row and recorded.trials[row].config == config
        assert recorded.trials[row].time_ms == (
            None if np.isnan(recorded.times_ms[row]) else recorded.times_ms[row]
        )
    absent = {"A": 30, "B": 0, "C": "fixed"}
    assert absent not in recorded.space and recorded.space.why_invalid(absent)


def test_what_lies_between_recorded_configurations_is_not_valid():
    holes = prepare(recording([1.0, 2.0, *[None] * 8, 3.0]))
    outside = {"A": 1, "B": 5, "C": "fixed"}
    assert holes.space.why_invalid(outside) == ("not a recorded configuration",)
    (trial,) = evaluate(ReplayTrials(holes, 1), [Config(outside)])
    assert trial.status is Status.INVALID


def test_of_a_configuration_recorded_twice_the_later_one_counts():
    once = recording([1.0, 2.0])
    both = Recording("k", "d", None, once.parameters, (*once.trials, *recording([3.0]).trials))
    assert list(prepare(both).times_ms) == [3.0, 2.0]


def test_what_is_new_costs_budget_until_that_is_spent(recorded):
    trials, configs = ReplayTrials(recorded, 3), list(recorded.space)
    asked = [configs[5], configs[5], configs[2]]
    assert [trial.config for trial in evaluate(trials, asked)] == asked
    evaluate(trials, [configs[2], Config({"A": 1})])
    with pytest.raises(NoMoreTrials):
        evaluate(trials, [configs[2], configs[9], configs[7]])
    assert list(trials.rows) == [5, 2, 9]
    assert evaluate(trials, [configs[9]])[0].config == configs[9]


def test_a_replay_is_repeatable_and_keeps_to_the_budget(recorded):
    runs = [search(recorded, "optuna", 60, seed) for seed in (1, 1, 2)]
    assert runs[0].rows == runs[1].rows != runs[2].rows
    assert all(len(set(run.rows)) == len(run.rows) == 60 for run in runs)
    assert search(recorded, "exhaustive", 1000).rows == tuple(range(300))


@pytest.mark.parametrize(("engine", "strategy"), [("surrogate", None), ("optuna", "tpe")])
def test_searches_with_several_evaluations_under_way_repeat_none_and_keep_to_the_budget(engine, strategy):
    small = prepare(recording([float(x) for x in np.random.default_rng(3).random(40)]))
    whole = replay(small, make_searcher(engine, strategy), budget=1000, seed=1, parallel=7)
    assert sorted(whole.rows) == list(range(40)) and whole.requests == 40
    part = replay(small, make_searcher(engine, strategy), budget=25, seed=1, parallel=7)
    assert part.rows == whole.rows[:19] + part.rows[19:] and len(set(part.rows)) == 25


def test_random_search_scores_nothing_and_the_optimum_at_once_everything(recorded):
    at_random = [search(recorded, "random", 200, seed) for seed in range(40)]
    assert abs(efficiency(recorded, at_random).p) < 0.1
    order = np.argsort(recorded.times_ms)  # failures last
    perfect = efficiency(recorded, [ReplayRun(0, tuple(order.tolist()), 300, 0.3)])
    assert perfect.p == perfect.p400 == pytest.approx(1)
    assert perfect.found == dict.fromkeys(CHECKPOINTS, 1.0) and perfect.needed == {5: 1, 1: 1}
    assert perfect.thinking_ms == pytest.approx(1.0)
    assert efficiency(recorded, [ReplayRun(0, tuple(order[::-1].tolist()), 300, 0.0)]).p < -1


def test_a_search_that_ends_early_keeps_what_it_has(recorded):
    rows = tuple(np.argsort(recorded.times_ms)[20:70].tolist())
    whole = efficiency(
        recorded, [ReplayRun(0, rows + tuple(np.argsort(recorded.times_ms)[70:200].tolist()), 180, 0.0)]
    )
    assert efficiency(recorded, [ReplayRun(0, rows, 50, 0.0)]).p == pytest.approx(whole.p)


def test_a_search_without_a_success_has_no_score(recorded):
    failed = tuple(np.flatnonzero(np.isnan(recorded.times_ms)).tolist())
    scores = efficiency(recorded, [ReplayRun(0, failed, len(failed), 0.0)])
    assert scores.failing == 1.0 and np.isnan(scores.p) and scores.needed == {5: None, 1: None}
    assert set(scores.found.values()) <= {0.0}


def test_what_to_expect_of_random_search_is_exact():
    times = [4.0, None, 2.0, 2.05, 3.0, None, 8.0]
    expected = random_expectation(prepare(recording(times)))
    enough = [
        len(draw) for size in range(1, 8) for draw in combinations(times, size) if {2.0, 2.05} & {*draw}
    ]
    shares = {size: enough.count(size) / len(list(combinations(times, size))) for size in range(1, 8)}
    assert expected.needed[5] == next(size for size, share in shares.items() if share >= 0.5)
    assert expected.needed[1] == 4
    many = random_expectation(prepare(recording([None, *range(1, 101)])))
    draws = np.random.default_rng(0)
    sampled = mean(
        1 / min(t or 1e9 for t in draws.permutation([0, *range(1, 101)])[:50]) for _ in range(4000)
    )
    assert many.found[50] == pytest.approx(sampled, abs=0.02)


def test_formats_give_the_same_search(tmp_path):
    journal = tmp_path / "imported.jsonl"
    from autotune.interop import read_recording

    journal.write_text(journals.write(read_recording(T4)))
    runs = [search(load(path), "optuna", 30) for path in (T4, CACHE, journal)]
    assert runs[0].rows == runs[1].rows == runs[2].rows
    scores = [efficiency(load(path), [run]) for path, run in zip((T4, journal), runs[::2], strict=True)]
    assert scores[0].p == pytest.approx(scores[1].p)


def test_a_file_in_which_all_failed_is_refused(tmp_path):
    path = tmp_path / "failed.jsonl"
    path.write_text(journals.write(recording([None, None])))
    with pytest.raises(InputError, match="no configuration has a time"):
        load(path)


# Two seeds of random search, scored as the published methodology scores them.
SCORES = {"convolution/A100_T4.json.gz": 0.2054, "convolution/W6600_T4.json.gz": -2.0755}


@needs_whole
@pytest.mark.parametrize("name", SCORES)
def test_scores_of_whole_spaces_are_those_of_the_methodology(name):
    from pathlib import Path

    space = load(Path(FOLDER) / name)
    scores = efficiency(space, [search(space, "random", 400, seed) for seed in range(2)])
    assert scores.p400 == pytest.approx(SCORES[name], abs=1e-3)


def test_priors_are_of_the_same_kernel_on_other_devices_and_repeatable():
    times = [float(number) for number in range(1, 41)]
    files = [
        prepare(recording(times, *names)) for names in (("k", "A"), ("k", "B"), ("k", "C"), ("other", "B"))
    ]
    some = priors_for(files[0], files, 7)
    assert [prior.origin for prior in some] == ["B", "C"] and some == priors_for(files[0], files, 7)
    assert [len(prior.results) for prior in some] == [7, 7]
    assert all(
        time_ms == files[1].times_ms[files[1].space.index(config)] for config, time_ms in some[0].results
    )
    (whole,) = priors_for(files[1], files[:2], 0)
    assert {config for config, _ in whole.results} == set(files[0].space)
