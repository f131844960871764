"""A program's call of a problem that was never tuned starts one search of it, beside the program."""

import time

import pytest

from autotune import best_config
from autotune.core.records import Tier
from autotune.runtime.background_tuning import BackgroundTuning


def served(folder, **sizes):
    return best_config("double", "fake-gpu", cache=folder.path / "cache", **sizes)


def test_a_problem_is_searched_once_and_then_served_exactly(folder, monkeypatch):
    folder.search("--budget", "1")
    monkeypatch.chdir(folder.path)
    tuning = BackgroundTuning("double", folder.space, 1.0, folder.path / "cache")
    for _ in range(2):  # the second time it is known
        best = served(folder, n=2000)
        tuning.request(best, {"n": 2000})
    assert best.match.tier is Tier.NEAREST_SIZE  # nothing waits
    end_s = time.monotonic() + 60
    while served(folder, n=2000).match.tier is not Tier.EXACT and time.monotonic() < end_s:
        time.sleep(0.05)
    assert served(folder, n=2000).provenance.engine == "surrogate" and tuning._queue.empty()
    tuning.request(served(folder, n=1000), {"n": 1000})
    assert tuning._queue.empty() and len(list(folder.path.glob("runs/*"))) == 2


def test_a_search_that_fails_is_a_warning():
    tuning = BackgroundTuning("double", "nothing.yaml", 1.0, None)
    with pytest.warns(UserWarning, match=r"double: could not be tuned with .*--size=n=7: .*nothing.yaml"):
        tuning._search(("--size=n=7",))
