"""Importance: shares of functions whose shares are known, and what is said of journals."""
# ruff: noqa: N803 - functions here take parameters of kernels by their names

import json
import math
from itertools import product

import numpy as np
import pytest

from autotune.analysis.importance import MAX_TRIALS, importance
from autotune.cli import main
from autotune.core.records import Config
from autotune.core.trials import Failure, Measurement, Rule, Status, Trial
from autotune.errors import InputError
from autotune.evaluation.journal_rows import encode_trial
from autotune.interop import journals, read_recording
from tests.recorded_files import T4


def trials(log_time, **values):
    """A trial for every combination, with the time that `log_time` gives."""
    found = []
    for combination in product(*values.values()):
        config = Config(dict(zip(values, combination, strict=True)))
        time_ms = math.exp(log_time(**config))
        found.append(Trial(config, config.key, measurement=Measurement((time_ms,), Rule.STEADY)))
    return found


GRID = {"A": range(8), "B": range(8), "C": (-1, 1), "D": ("x", "y"), "FIXED": (3,)}


def test_an_additive_function_has_no_pairs():
    found = importance(trials(lambda A, B, C, D, FIXED: 2.0 * A + B, **GRID))
    assert list(found.single)[:2] == ["A", "B"] and "FIXED" not in found.single
    assert found.single["A"] == pytest.approx(0.8, abs=0.05) and found.single["B"] == pytest.approx(
        0.2, abs=0.05
    )
    assert max(found.pairs.values()) < 0.02 and found.fit > 0.9


def test_what_two_parameters_do_only_together_is_a_pair():
    def log_time(A, B, C, D, FIXED):
        return A / 4 + (C if D == "x" else -C)

    found = importance(trials(log_time, **GRID))
    pair, share = next(iter(found.pairs.items()))
    expected = 1 / (1 + np.var(np.arange(8) / 4))
    assert set(pair) == {"C", "D"} and share == pytest.approx(expected, abs=0.08)
    assert found.single["C"] < 0.05 and found.single["D"] < 0.05
    assert sum(found.single.values()) + sum(found.pairs.values()) == pytest.approx(1, abs=0.08)


def test_noise_is_not_taken_for_importance():
    rng = np.random.default_rng(0)
    assert importance(trials(lambda **_: rng.random(), **GRID)).fit < 0.2


def test_failures_and_a_surplus_of_trials_are_left_out_and_a_seed_repeats():
    many = trials(lambda A, B, **_: A * B / 40, A=range(30), B=range(30))
    failed = [Trial(Config({"A": 99, "B": 99}), "x", Failure(Status.TIMEOUT, "hangs"))]
    found = importance(many + failed)
    assert found.trials == MAX_TRIALS and found == importance(many + failed)


@pytest.mark.parametrize(
    ("some", "message"),
    [
        (trials(lambda A: A, A=range(19)), "needs at least 20 trials that succeeded, found 19"),
        (trials(lambda A: 0.0, A=range(30)), "trials that differ in at least one parameter and in time"),
        (trials(lambda A: A, A=range(20)) + trials(lambda B: B, B=(1,)), "trials with the same parameters"),
    ],
)
def test_too_little_is_refused(some, message):
    with pytest.raises(InputError, match=message):
        importance(some)


@pytest.fixture
def journal(tmp_path):
    path = tmp_path / "search.jsonl"
    path.write_text(journals.write(read_recording(T4)))
    return path


def test_show_prints_parameters_and_pairs(journal, capsys):
    assert main(["show", str(journal), "--importance"]) == 0
    out, err = capsys.readouterr()
    assert "use_shmem" in out and "share of the variance" in out and "from 34 trials" in err
    assert main(["show", str(journal), "--importance", "--json", "--where", "block_size_x >= 16"]) == 0
    shares = json.loads(capsys.readouterr().out)
    assert max(shares["parameters"], key=shares["parameters"].get) == "use_shmem"
    assert len(shares["pairs"]) == 7 * 6 // 2


def test_show_refuses_a_journal_with_too_few_trials(tmp_path, capsys):
    path = tmp_path / "short.jsonl"
    rows = [{"journal": 1}, *({"trial": encode_trial(t)} for t in trials(lambda A: A, A=range(3)))]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["show", str(path), "--importance"]) == 2
    assert "needs at least 20 trials" in capsys.readouterr().err
