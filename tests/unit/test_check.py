"""What `autotune check` says of configurations and of cached results, on the fake device."""

import json
import re

import pytest

from autotune.tuning import stress_checks

BEST, BEST_MS = {"A": 5, "B": 0}, 1.0  # of the searched folder


@pytest.fixture
def check(folder):
    return lambda *words: folder.run("check", "double.yaml", "--device", "fake", *words)


def states(done):
    return [(row["state"], row["time_ms"]) for row in json.loads(done.stdout)]


def test_configurations_are_verified_and_the_wrong_one_is_named(folder, check):
    assert check("--config", "A=5", "--config", "A=2").stdout == "ok     A=5 B=0\nok     A=2 B=0\n"
    source = (folder.path / "double.py").read_text()
    folder.write(source.replace("2 * x", "(2 + (A == 5)) * x"))
    done = check("--config", "A=5", "--config", "A=2", "--json")
    assert done.returncode == 1 and "wrong: 1 of 2 configurations" in done.stderr
    assert [row["status"] for row in json.loads(done.stdout)] == ["wrong_result", "ok"]


def test_a_result_is_the_same_faster_or_slower(searched_folder, check):
    assert states(check("--json")) == [("same", BEST_MS)]
    (path,) = (searched_folder.path / "cache").glob("*/double.json")
    stored = json.loads(path.read_text())
    for factor, state in ((2, "faster"), (0.5, "slower")):
        (entry,) = json.loads(json.dumps(stored["entries"]))
        entry["time_ms"] *= factor
        entry["interval_ms"] = [factor * bound for bound in entry["interval_ms"]]
        path.write_text(json.dumps(stored | {"entries": [entry]}))
        assert states(check("--json")) == [(state, BEST_MS)]


def test_times_that_differ_within_their_intervals_are_the_same_with_the_reason(searched_folder, check):
    (path,) = (searched_folder.path / "cache").glob("*/double.json")
    stored = json.loads(path.read_text())
    (entry,) = stored["entries"]
    entry |= {"time_ms": 2 * entry["time_ms"], "interval_ms": [0.5 * BEST_MS, 3 * BEST_MS]}
    path.write_text(json.dumps(stored))
    assert ": 0.5 times as long as stored, but the confidence intervals overlap\n" in check().stdout


def test_a_wrong_result_is_replaced_by_the_next_best(searched_folder, check, all_data_sets):
    source = (searched_folder.path / "double.py").read_text()
    searched_folder.write(source.replace("2 * x", "(2 + (A == 5 and B == 0)) * x"))
    done = check()
    assert done.returncode == 1 and done.stdout.startswith("WRONG") and "--refresh" in done.stderr
    refreshed = check("--refresh")
    assert refreshed.returncode == 0
    (stored,) = re.findall(r"^ +stored (.*), ", refreshed.stdout, re.MULTILINE)
    assert f"\n           nothing wrong in {stored}: output y, other sizes, many runs, " in refreshed.stdout
    assert " sets of data, " in refreshed.stdout and ", fresh inputs\n" in refreshed.stdout
    again = check("--json")
    assert again.returncode == 0
    ((state, _),) = states(again)
    (row,) = json.loads(again.stdout)
    assert state == "same" and row["config"] != BEST
    served = json.loads(searched_folder.run("best", "double", "--device", "fake", "--json").stdout)
    assert served["config"] == row["config"]


def test_without_a_result_it_says_what_to_do(check):
    done = check()
    assert done.returncode == 2 and "has no result of double" in done.stderr


def test_what_is_wrong_on_other_data_only_is_found(folder, check):
    """Values that take turns make the kernel wrong where A is 5; on random ones it is right."""
    source = (folder.path / "double.py").read_text()
    folder.write(
        source.replace("2 * x", "(2 + (A == 5 and n > 2 and (x.view('int32')[:2] == [-100, 100]).all())) * x")
    )
    done = check("--config", "A=5", "--config", "A=2", "--json")
    first, second = json.loads(done.stdout)
    assert second["status"] == "ok" and first["status"] == "wrong_result"
    assert first["detail"].startswith("with data alternating: y[0] is -300, expected -200")


def test_data_whose_sums_round_do_not_test_exact_results(folder, check, all_data_sets):
    """Beyond 2^24 float32 has no odd numbers, so another order of additions gives another result."""
    folder.edit("dtype: int32, shape: [n], role: in", "dtype: float32, shape: [n], role: in")
    folder.edit("dtype: int32, shape: [n], role: out", "dtype: float32, shape: [n], role: out")
    source = (folder.path / "double.py").read_text().replace("int32", "float32")
    for largest, found in ((2**23, 1), (2**24, 0)):
        folder.edit("[-100, 100]", f"[-100, {largest}]")
        folder.write(
            source.replace("2 * x", f"(2 - (A == 5 and (x.view('float32') == {largest}).all())) * x")
        )
        assert check("--config", "A=5").returncode == found
        folder.edit(f"[-100, {largest}]", "[-100, 100]")


def test_what_is_wrong_in_one_run_of_many_is_found(folder, check, all_data_sets, monkeypatch):
    """The kernel counts its runs: the 150th is wrong, which comes after those on all data sets."""
    monkeypatch.setattr(stress_checks, "MAX_RUNS", 200)
    source = (folder.path / "double.py").read_text()
    folder.write(
        "RUNS = []\n"
        + source.replace("2 * x", "(2 + (A == 5 and RUNS.append(1) is None and len(RUNS) == 150)) * x")
    )
    done = check("--config", "A=5", "--json")
    (row,) = json.loads(done.stdout)
    assert row["status"] == "wrong_result" and row["detail"].startswith("in run ")


def test_results_are_timed_as_asked(searched_folder, check):
    assert check("--measure", "warm").returncode == 0
    assert list((searched_folder.path / "runs").glob("double.*.warm.check.jsonl"))


def aged(folder, change):
    (path,) = (folder.path / "cache").glob("*/double.json")
    stored = json.loads(path.read_text())
    for entry in stored["entries"]:
        entry["provenance"]["driver"] = "0.9"
        change(entry)
    path.write_text(json.dumps(stored))


def slower(entry):
    """As if an update had made everything twice as slow."""
    entry["time_ms"] /= 2
    entry["default_time_ms"] /= 2
    entry["interval_ms"] = [bound / 2 for bound in entry["interval_ms"]]


def test_a_result_that_nothing_aged_is_not_timed_again(searched_folder, check):
    assert check("--stale").stdout == "stale: none of 1 result\n"
    assert searched_folder.run("list", "--stale", "--cache", "cache").stdout == "nothing is stale\n"


def test_an_aged_result_that_holds_is_stored_with_the_present_driver(searched_folder, check):
    aged(searched_folder, lambda entry: None)
    listed = searched_folder.run("list", "--stale", "--cache", "cache").stdout
    assert "the driver was 0.9 when this was tuned and is 1 now" in listed
    done = check("--stale")
    assert done.returncode == 0 and done.stdout.startswith("SAME ")
    assert "the driver was 0.9" in done.stdout and "times as fast as the default" in done.stdout
    assert "new search" not in done.stdout
    assert check("--stale").stdout == "stale: none of 1 result\n"
    (row,) = json.loads(searched_folder.run("list", "double", "--cache", "cache", "--json").stdout)["results"]
    assert (row["config"], row["stale"]) == (BEST, [])


def test_a_loss_is_told_and_searched_anew_within_the_time(searched_folder, check):
    aged(searched_folder, slower)
    done = check("--stale", "--time", "5")
    assert "2 times as long as stored" in done.stdout and "no time is left for a search" in done.stdout
    again = check("--stale", "--time", "20", "--json")
    (row,) = json.loads(again.stdout)
    assert row["loses"] and row["time_ms"] == pytest.approx(2 * row["stored_ms"])
    assert row["searched_ms"] == pytest.approx(row["time_ms"], rel=0.05)
    assert check("--stale").stdout == "stale: none of 1 result\n"


def test_what_fails_after_an_edit_is_searched_anew(searched_folder, check):
    source = (searched_folder.path / "double.py").read_text()
    searched_folder.write(source.replace("2 * x", "(2 + (A == 5 and B == 0)) * x"))
    done = check("--stale", "--time", "20")
    assert (
        done.returncode == 0 and done.stdout.startswith("WRONG ") and "the kernel source was" in done.stdout
    )
    assert "a new search found" in done.stdout
    served = json.loads(searched_folder.run("best", "double", "--device", "fake", "--json").stdout)
    assert served["config"] != BEST
