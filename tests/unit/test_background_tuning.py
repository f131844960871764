"""A program's call of a problem that was never tuned starts one search of it, beside the program."""

import math
from argparse import ArgumentTypeError

import pytest

from autotune import best_config
from autotune.cli.options import seconds
from autotune.core.records import Tier
from autotune.errors import InputError
from autotune.runtime.background_tuning import BackgroundTuning
from tests.conftest import wait_until


def served(folder, **sizes):
    return best_config("double", "fake-gpu", cache=folder.path / "cache", **sizes)


def test_a_problem_is_searched_once_and_then_served_exactly(searched_folder, monkeypatch):
    monkeypatch.chdir(searched_folder.path)
    tuning = BackgroundTuning("double", searched_folder.space, 1.0, searched_folder.path / "cache")
    best = served(searched_folder, n=2000)
    assert best.match.tier is Tier.NEAREST_SIZE
    for _ in range(2):  # the second time it is known
        tuning.request(best, {"n": 2000})
    wait_until(lambda: served(searched_folder, n=2000).match.tier is Tier.EXACT)
    assert served(searched_folder, n=2000).provenance.engine == "surrogate" and tuning._queue.empty()
    tuning.request(served(searched_folder, n=1000), {"n": 1000})
    assert tuning._queue.empty() and len(list(searched_folder.path.glob("runs/*.jsonl"))) == 2


def test_the_content_that_a_program_names_is_tuned(searched_folder, monkeypatch):
    monkeypatch.chdir(searched_folder.path)
    tuning = BackgroundTuning("double", searched_folder.space, 30.0, searched_folder.path / "cache")
    asked = []
    monkeypatch.setattr(tuning, "_search", asked.append)
    for data in (None, "sorted"):
        tuning.request(served(searched_folder, n=2000), {"n": 2000}, data)
    wait_until(lambda: len(asked) == 2)
    assert [[word for word in words if "data" in word] for words in asked] == [[], ["--data=sorted"]]


def test_no_search_starts_once_the_program_ends(searched_folder, monkeypatch):
    monkeypatch.chdir(searched_folder.path)
    tuning = BackgroundTuning("double", searched_folder.space, 30.0, searched_folder.path / "cache")
    for n in (2000, 4000):
        tuning.request(served(searched_folder, n=n), {"n": n})
    wait_until(lambda: tuning._process is not None)
    first = tuning._process
    tuning._stop()
    assert first.wait(10) != 0
    wait_until(tuning._queue.empty)
    tuning._search(("--size=n=7",))
    assert tuning._process is first


@pytest.mark.parametrize("budget_s", [-1.0, 0, 0.5, 86_400, 86_401, math.inf, math.nan])
def test_a_budget_is_one_that_a_search_takes(budget_s):
    try:
        seconds(str(budget_s))
    except ArgumentTypeError:
        with pytest.raises(InputError, match=r"double: budget_s: .* up to a day, found"):
            BackgroundTuning("double", "nothing.yaml", budget_s, None)
    else:
        BackgroundTuning("double", "nothing.yaml", budget_s, None)


def test_a_search_that_fails_is_a_warning():
    tuning = BackgroundTuning("double", "nothing.yaml", 1.0, None)
    with pytest.warns(UserWarning, match=r"double: could not be tuned with .*--size=n=7: .*nothing.yaml"):
        tuning._search(("--size=n=7",))
