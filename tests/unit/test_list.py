"""What `autotune list` says of caches and journals."""

import json
import os
import time
from dataclasses import replace

import pytest

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


def test_the_json_holds_what_a_script_needs(folder):
    best = folder.search("--engine", "random", "--budget", "4")
    found = json.loads(folder.run("list", "double", "--cache", "cache", "--json").stdout)
    (result,), (journal,) = found["results"], found["journals"]
    assert result["config"] == best["config"] and result["sizes"] == {"n": 1000} == journal["sizes"]
    assert journal["trials"] == 4 and journal["failed"] == 0 and journal["best_ms"] is not None
    assert found["unreadable"] == []


def test_only_the_kernel_that_is_asked_for_is_listed(folder):
    folder.search("--engine", "random", "--budget", "2")
    done = folder.run("list", "other", "--cache", "cache")
    assert done.stdout.startswith(
        "nothing of other in cache, no journals of other in runs; run autotune search"
    )


def test_a_stale_result_says_what_has_changed(folder):
    old, new = entry(64, BLOCK=32), entry(1024, BLOCK=128)
    newer = replace(new.provenance, tuned_at="2099-01-01T00:00:00+00:00", source_sha256="f" * 64)
    write(folder.path / "cache", DEVICE, record(old, replace(new, provenance=newer)))
    done = folder.run("list", "--cache", "cache")
    assert "stale reduce on" in done.stdout and "the kernel source was" in done.stdout


def test_damaged_files_are_named_and_the_others_listed(folder):
    folder.search("--engine", "random", "--budget", "2")
    (folder.path / "runs" / "broken.jsonl").write_text("no journal\n")
    done = folder.run("list", "--cache", "cache")
    assert done.returncode == 0 and "skipped runs/broken.jsonl:1: not a journal" in done.stdout
    assert "Fake GPU" in done.stdout


@pytest.mark.parametrize(
    ("age_s", "text"), [(-5, "0 min"), (59, "0 min"), (3_599, "59 min"), (3_600, "1 h"), (200_000, "2 d")]
)
def test_ages_are_told_in_their_largest_unit(age_s, text):
    assert age_text(age_s) == text
