"""Configurations without times, as other projects' files have them, are the first that a search tries."""

import pytest

from autotune.core.records import Config
from autotune.core.trials import Status
from autotune.evaluation.journal import read_journal
from autotune.interop import Recording, imported_trial, journals
from autotune.interop.recording import domains


@pytest.fixture
def imported(folder):
    """A journal of such configurations, of which the second is not valid."""
    configs = [Config({"A": 5, "B": 0}), Config({"A": 6, "B": 2}), Config({"A": 4, "B": 1})]
    trials = tuple(imported_trial(config, Status.OK) for config in configs)
    recording = Recording("double", "NVIDIA H200", None, domains("AB", configs), trials)
    return journals.store(recording, folder.path / "runs/double.h200.imported.jsonl", fresh=False)


def tried(folder):
    (journal,) = (one for one in folder.path.glob("runs/*.jsonl") if "imported" not in one.name)
    return [dict(trial.config) for trial in read_journal(journal)[1]]


@pytest.mark.parametrize("engine", ["random", "surrogate", "exhaustive"])
def test_a_search_tries_them_after_the_default_within_its_budget(folder, imported, engine):
    folder.search("--budget", "3", "--engine", engine)
    assert tried(folder) == [{"A": 1, "B": 0}, {"A": 5, "B": 0}, {"A": 4, "B": 1}]


def test_the_budget_may_end_among_them(folder, imported):
    folder.search("--budget", "2")
    assert tried(folder) == [{"A": 1, "B": 0}, {"A": 5, "B": 0}]


def test_without_transfer_nothing_is_recommended(folder, imported):
    folder.search("--budget", "2", "--engine", "exhaustive", "--no-transfer")
    assert tried(folder)[1] == {"A": 1, "B": 1}
