"""What `autotune list` says of caches and journals."""

import json
import os
import time
from dataclasses import replace

import pytest

from autotune.analysis.find_journal import find_journal
from autotune.analysis.inventory import inventory
from autotune.cli.list import age_text
from tests.cache_example import DEVICE, entry, record
from tests.cache_files import write


def test_results_and_journals_are_listed_with_their_ages(folder):
    folder.search("--engine", "random", "--budget", "4")
    (journal,) = (folder.path / "runs").glob("*.jsonl")
    two_days_ago = time.time() - 2 * 86_400 - 60
    os.utime(journal, (two_days_ago, two_days_ago))
    done = folder.run("list", "--cache", "cache")
    assert done.returncode == 0
    results, journals = done.stdout.split("\n\n")
    assert "double" in results and "Fake GPU" in results and "n=1,000" in results and "0 min" in results
    assert f"runs/{journal.name}" in journals and "2 d" in journals


def test_a_folder_of_journals_that_is_not_there_is_told(folder):
    done = folder.run("list", "--journals", "rnus")
    assert (done.returncode, done.stderr) == (2, "autotune: --journals rnus: no such folder\n")


def test_a_result_that_two_caches_hold_is_listed_once(folder):
    """As in a clone, whose results come with the package as well."""
    held = record(entry(64, BLOCK=32), entry(1024, BLOCK=128))
    one, other = str(folder.path / "one"), str(folder.path / "other")
    write(folder.path / "one", DEVICE, record(entry(64, BLOCK=32)))
    write(folder.path / "other", DEVICE, held)
    found = inventory([one, other], folder.path / "runs").results
    assert [(result.cache, result.entry) for result in found] == [
        (one, held.entries[0]),
        (other, held.entries[1]),
    ]


def test_the_latest_results_of_a_cache_come_first(folder):
    """In a clone, one's own come before those that were shipped."""
    now = entry(64, BLOCK=32)
    shipped = replace(now, provenance=replace(now.provenance, tuned_at="2025-01-02T03:04:05+00:00"))
    own = replace(now, provenance=replace(now.provenance, tuned_at="2026-01-02T03:04:05+00:00"))
    for kernel, held in (("add", shipped), ("mine", own), ("scale", shipped)):
        write(folder.path / "cache", DEVICE, record(held, kernel=kernel))
    lines = folder.run("list", "--cache", "cache").stdout.splitlines()[2:5]
    assert [line.split()[0] for line in lines] == ["mine", "add", "scale"]


def test_the_json_holds_what_a_script_needs(searched_folder):
    found = json.loads(searched_folder.run("list", "double", "--cache", "cache", "--json").stdout)
    (result,), (journal,) = found["results"], found["journals"]
    assert result["config"] == {"A": 5, "B": 0} and result["sizes"] == {"n": 1000} == journal["sizes"]
    assert journal["trials"] == 17 and journal["failed"] == 0 and journal["best_ms"] is not None
    assert found["unreadable"] == []


def test_the_journal_of_a_kernel_is_that_of_its_latest_search(tmp_path):
    def written(name, age_s):
        (tmp_path / name).touch()
        os.utime(tmp_path / name, (1e9 - age_s, 1e9 - age_s))
        return tmp_path / name

    checked, _ = written("double.cpu.n1.check.jsonl", 2), written("double.cpu.n1.versus.jsonl", 3)
    assert find_journal("double", tmp_path) == checked
    written("double.cpu.n1.jsonl", 5)
    searched = written("double.cpu.n2.jsonl", 4)
    assert find_journal("double", tmp_path) == searched
    assert find_journal(str(checked), tmp_path) == checked


def test_a_search_that_ended_before_its_first_trial_hides_no_earlier_one(searched_folder):
    full, empty = (
        searched_folder.path / "runs/double.fake-gpu.n1000.int32.jsonl",
        searched_folder.path / "runs/double.x.jsonl",
    )
    empty.write_text(full.read_text().splitlines(keepends=True)[0])
    os.utime(full, (1e9, 1e9))
    assert find_journal("double", searched_folder.path / "runs") == full
    full.unlink()
    assert find_journal("double", searched_folder.path / "runs") == empty
    done = searched_folder.run("show", "double", "--where", "A == 1")
    assert done.returncode == 2 and "holds no trial; name another journal" in done.stderr


def test_the_best_time_of_a_journal_is_that_of_its_last_round(searched_folder):
    (journal,) = (searched_folder.path / "runs").glob("*.jsonl")
    lines = journal.read_text().splitlines(keepends=True)
    journal.write_text("".join(line for line in lines if not line.startswith('{"finals"')))
    (of_search,) = json.loads(searched_folder.run("list", "--json").stdout)["journals"]
    rows = [json.loads(line) for line in lines]
    (finals,) = (row["finals"] for row in rows if "finals" in row)
    for measured in finals.values():
        measured["samples_ms"] = [1000.0] * len(measured["samples_ms"])
    journal.write_text("".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows))
    (journaled,) = json.loads(searched_folder.run("list", "--json").stdout)["journals"]
    assert of_search["best_ms"] < 100 and journaled["best_ms"] == 1000


def test_only_the_kernel_that_is_asked_for_is_listed(searched_folder):
    done = searched_folder.run("list", "other", "--cache", "cache")
    assert done.stdout.startswith(
        "nothing of other in cache, no journals of other in runs; run autotune search"
    )
    done = searched_folder.run("list", "duoble", "--cache", "cache")
    assert done.stdout.endswith("no journals of duoble in runs; did you mean double?\n")


def test_a_stale_result_says_what_has_changed(folder):
    old, new = entry(64, BLOCK=32), entry(1024, BLOCK=128)
    newer = replace(new.provenance, tuned_at="2099-01-01T00:00:00+00:00", source_sha256="f" * 64)
    write(folder.path / "cache", DEVICE, record(old, replace(new, provenance=newer)))
    done = folder.run("list", "--cache", "cache")
    assert "stale reduce on" in done.stdout and "the kernel source was" in done.stdout


def test_damaged_files_are_named_and_the_others_listed(searched_folder):
    (searched_folder.path / "runs" / "broken.jsonl").write_text("no journal\n")
    done = searched_folder.run("list", "--cache", "cache")
    assert done.returncode == 0 and "skipped runs/broken.jsonl:1: not a journal" in done.stdout
    assert "Fake GPU" in done.stdout


@pytest.mark.parametrize(
    ("age_s", "text"), [(-5, "0 min"), (59, "0 min"), (3_599, "59 min"), (3_600, "1 h"), (200_000, "2 d")]
)
def test_ages_are_told_in_their_largest_unit(age_s, text):
    assert age_text(age_s) == text
