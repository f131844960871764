"""`autotune search --engine adopt`: a few runs on the fake device where nothing was tuned."""

import json

import pytest

from autotune import tune
from autotune.cli import main
from autotune.core.records import Tier
from autotune.errors import InputError
from autotune.evaluation.journal import read_journal
from autotune.serving.lookup import best_config
from autotune.tuning.served_best import full_search_result
from tests.conftest import KERNEL


@pytest.fixture
def adopt(folder):
    def run(*arguments):
        return folder.run("search", "double.yaml", "--engine", "adopt", "--device", "fake", *arguments)

    return run


def test_with_nothing_known_elsewhere_it_says_what_to_do(folder, adopt):
    done = adopt()
    assert done.returncode == 2 and "run `autotune search` for a first result" in done.stderr
    assert not (folder.path / "cache").exists() and not (folder.path / "runs").exists()


def test_another_size_is_served_from_a_few_runs_until_a_search_has_been_there(searched_folder, adopt):
    folder = searched_folder
    done = adopt("--size", "n=500", "--budget", "3", "--json")
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["adopted"] and result["engine"] == "adopt" and result["trials"] <= 3
    assert result["config"] == {"A": 5, "B": 0} and result["priors"] == {"Fake GPU, n=1000, int32": 17}

    cache = str(folder.path / "cache")
    best = best_config("double", "fake-gpu", cache=cache, n=500)
    assert best.match.tier is Tier.EXACT
    assert best.match.detail == f"probed with {result['trials']} runs on fake-gpu for n=500"
    assert best.provenance.is_probe
    assert best_config("double", "fake-gpu", cache=cache, n=1000).match.detail.startswith("tuned on")
    assert best_config("double", "other", cache=cache, n=500).match.detail.startswith("probed with")

    again = adopt("--size", "n=500", "--budget", "3", "--json")
    assert json.loads(again.stdout)["resumed"] == result["trials"]

    searched_result = folder.search("--budget", "30", "--size", "n=500")
    before = folder.files()
    done = adopt("--size", "n=500")
    assert (
        done.returncode == 0 and "tuned already, with 17 trials of exhaustive; nothing was run" in done.stdout
    )
    known = json.loads(adopt("--size", "n=500", "--json").stdout)
    assert known["adopted"] is False and known["time_ms"] == searched_result["time_ms"]
    assert folder.files() == before


def test_in_python_it_has_the_same_budget(folder, monkeypatch):
    monkeypatch.chdir(folder.path)
    with pytest.raises(InputError, match="there is nothing to adopt"):
        tune("double.yaml", device="fake", strategy="adopt")
    folder.search("--budget", "30")
    assert len(tune("double.yaml", device="fake", strategy="adopt", sizes={"n": 500}).trials) == 11


def test_in_python_it_replaces_no_result_of_a_search(folder, monkeypatch):
    monkeypatch.chdir(folder.path)
    searched = folder.search("--budget", "30")
    before = folder.files()
    known = tune("double.yaml", device="fake", strategy="adopt")
    assert (known.best, known.time_ms) == (searched["config"], searched["time_ms"])
    assert known.speedup == pytest.approx(searched["speedup"])
    assert str(known.cache_file) == searched["cache_file"] and known.trials == ()
    assert "nothing was run" in repr(known) and "nothing was run" in known._repr_html_()
    assert folder.files() == before


def test_searched_knows_a_probe_from_a_search(searched_folder, adopt, monkeypatch):
    from autotune.tuning.task import Target, read_task

    assert adopt("--size", "n=500", "--budget", "2").returncode == 0
    monkeypatch.chdir(searched_folder.path)
    for size, expected in ((1000, True), (500, False), (250, False)):
        bound = read_task(Target(searched_folder.space, "fake", {"n": size}))
        assert (full_search_result(bound, None) is not None) is expected


def test_what_others_know_is_read_once(searched_folder, adopt, monkeypatch):
    read = []

    def counted(path):
        read.append(path.name)
        return read_journal(path)

    monkeypatch.chdir(searched_folder.path)
    monkeypatch.setattr("autotune.tuning.prior_results.read_journal", counted)
    assert (
        main(
            [
                "search",
                "double.yaml",
                "--engine",
                "adopt",
                "--device",
                "fake",
                "--size",
                "n=500",
                "--budget",
                "2",
            ]
        )
        == 0
    )
    assert len(read) == 1


def test_a_result_that_is_none_of_the_space_is_no_search_s(searched_folder, monkeypatch):
    from autotune.tuning.task import Target, read_task

    monkeypatch.chdir(searched_folder.path)
    target = Target(searched_folder.space, "fake")
    assert full_search_result(read_task(target), None) is not None
    searched_folder.edit("A + B <= 7", "A != 5")
    assert full_search_result(read_task(target), None) is None


def test_what_an_unsteady_machine_found_says_so_and_the_next_search_measures_it_again(searched_folder, adopt):
    """Times from far apart in the last round: two entries of one binary differ by more than 10%."""
    folder = searched_folder
    once = "import random\nif not hasattr(random, 'seeded'):\n    random.seed(1)\n    random.seeded = True\n"
    folder.write(once + KERNEL.replace("+ 1.0", "+ random.lognormvariate(0, 3)"))
    runs = [adopt("--size", "n=500", "--budget", "3") for _ in range(2)]
    for done in runs:
        assert done.returncode == 0, done.stderr
        assert (
            "configurations verified again and timed in turns" in done.stderr
        )  # so they are measured, also again
        (line,) = [line for line in done.stdout.splitlines() if "the machine was unsteady" in line]
        assert line.endswith("run the search again on a quiet machine")
    best = best_config("double", "fake-gpu", cache=str(folder.path / "cache"), n=500, strict=True)
    assert best.match.detail.endswith(f"; measured with {best.entry.noise:.0%} noise")
