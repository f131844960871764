"""`autotune merge` on folders: where files go, what refuses to be merged, and what is printed."""

import fcntl
import json
import os
from dataclasses import replace

import pytest

from autotune.cli import main
from autotune.core.records import Config
from autotune.core.trials import Failure, Measurement, Status, Trial
from autotune.evaluation.journal import Journal, read_journal
from autotune.serving.cache import read_device, read_record, store
from autotune.serving.miss_log import CacheMiss, read_misses, record_miss
from tests.cache_example import DEVICE, OTHER, PROVENANCE, entry, record
from tests.cache_files import write


def contents(folder):
    return {
        str(path.relative_to(folder)): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def merge(*folders, into):
    return main(["merge", *map(str, folders), "--into", str(into)])


@pytest.fixture
def two(tmp_path):
    """Two machines: one problem in common, a device of its own each, a journal in common."""
    slow = replace(entry(64), time_ms=9.0, interval_ms=(9.0, 9.0))
    write(tmp_path / "a/cache", DEVICE, record(slow, entry(128)))
    write(tmp_path / "b/cache", replace(DEVICE, driver="driver 10"), record(entry(64, BLOCK=32)))
    write(tmp_path / "b/cache", OTHER, record(entry(64)))
    for name, configs in (("a", (1, 2)), ("b", (2, 3))):
        journal = Journal(tmp_path / name / "runs/reduce.jsonl", {"kernel": "reduce"})
        for number in configs:
            measured = Measurement((float(number),), "steady")
            journal.append(Trial(Config({"A": number}), f"key{number}", measurement=measured))
        journal.close()
        record_miss(
            tmp_path / name / "cache", CacheMiss("reduce", None, None, {"n": len(name), "m": ord(name)})
        )
    return tmp_path / "a", tmp_path / "b"


def test_caches_journals_and_wishes_are_united(two, tmp_path, capsys):
    before = [contents(folder) for folder in two]
    assert merge(*two, into=tmp_path / "c") == 0
    assert [contents(folder) for folder in two] == before
    text = capsys.readouterr().out
    assert "3 results in 2 records, 3 rows in 1 journal" in text
    assert "cache/example-gpu-100/reduce.json, n=64, int32: 6.4e-05 ms (40 trials of random" in text
    path = tmp_path / "c/cache/example-gpu-100"
    merged = read_record(str(path / "reduce.json"))
    assert [found.sizes["n"] for found in merged.entries] == [64, 128]
    assert merged.entries[0].config["BLOCK"] == 32 and merged.entries[0].rivals[0].time_ms == 9.0
    assert read_device(str(path / "device.json")).driver == "driver 10"
    assert {trial.key for trial in read_journal(tmp_path / "c/runs/reduce.jsonl")[1]} == {
        "key1",
        "key2",
        "key3",
    }
    assert len(read_misses(tmp_path / "c/cache")) == 2


def test_order_repetition_and_grouping_change_no_byte(two, tmp_path):
    a, b = two
    for name, folders in {"ab": (a, b), "ba": (b, a), "aab": (a, a, b)}.items():
        assert merge(*folders, into=tmp_path / name) == 0
    assert merge(a, into=tmp_path / "one") == merge(b, into=tmp_path / "one") == 0
    assert merge(tmp_path / "ab", a, into=tmp_path / "again") == 0
    assert merge(tmp_path / "ab", into=tmp_path / "ab") == 0
    whole = contents(tmp_path / "ab")
    assert all(contents(tmp_path / name) == whole for name in ("ba", "aab", "one", "again"))


def test_journals_that_are_true_of_other_things_are_kept_apart(tmp_path):
    for name in ("a", "b", "c"):
        journal = Journal(tmp_path / name / "reduce.jsonl", {"kernel": "reduce", "source": name})
        journal.append(Trial(Config({"A": 1}), name, Failure(Status.TIMEOUT, "")))
        journal.close()
    folders = [tmp_path / name for name in "abc"]
    assert merge(*folders, into=tmp_path / "all") == 0
    assert merge(folders[2], folders[1], into=tmp_path / "some") == 0
    assert merge(folders[0], tmp_path / "some", into=tmp_path / "late") == 0
    found = contents(tmp_path / "all")
    assert len(found) == 3 and "reduce.jsonl" in found and contents(tmp_path / "late") == found


def test_what_was_merged_is_kept_by_a_later_search(two, tmp_path):
    merge(*two, into=tmp_path / "c")
    newer = replace(
        entry(64, BLOCK=128), provenance=replace(PROVENANCE, tuned_at="2026-01-01T00:00:00+00:00")
    )
    path = store(tmp_path / "c/cache", DEVICE, record(newer))
    served = read_record(str(path)).entries[0]
    assert served.config["BLOCK"] == 128 and [rival.time_ms for rival in served.rivals] == [9.0]


def test_energy_is_not_decided_by_time(tmp_path):
    fast = replace(entry(64), time_ms=1.0, provenance=replace(PROVENANCE, trials=10))
    slow = replace(entry(64, BLOCK=32), time_ms=9.0, interval_ms=(9.0, 9.0))
    write(tmp_path / "a/objective.energy", DEVICE, record(fast))
    write(tmp_path / "b/objective.energy", DEVICE, record(slow))
    assert merge(tmp_path / "a", tmp_path / "b", into=tmp_path / "c") == 0
    assert (
        read_record(str(tmp_path / "c/objective.energy/example-gpu-100/reduce.json")).entries[0].time_ms
        == 9.0
    )


def test_what_cannot_be_merged_is_refused_before_anything_is_written(two, tmp_path, capsys):
    a, b = two
    (tmp_path / "empty").mkdir()
    into = tmp_path / "c"
    for folders, target, code, message in [
        ((tmp_path / "absent",), into, 2, "no such folder"),
        ((tmp_path / "empty",), into, 2, "expected results or journals, found neither"),
        ((tmp_path,), into, 2, "lies inside"),
    ]:
        assert merge(*folders, into=target) == code
        assert message in capsys.readouterr().err
    write(tmp_path / "d/cache", replace(DEVICE, name="Another GPU"), record(entry(64)))
    assert merge(a, tmp_path / "d", into=into) == 1
    assert "two caches say Example(R) GPU 100 and Another GPU; keep one" in capsys.readouterr().err
    (b / "runs/reduce.jsonl").write_text('{"journal":1}\n{"trial":{}}\n')
    assert merge(a, b, into=into) == 2
    assert "reduce.jsonl:2: not a row of a journal" in capsys.readouterr().err
    (b / "cache/other-gpu/reduce.json").write_text("{")
    assert merge(a, b, into=into) == 1
    assert not into.exists()


def test_a_journal_that_is_being_written_is_left_alone(two, tmp_path, capsys):
    a, b = two
    with (a / "runs/reduce.jsonl").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        before = contents(a / "runs")
        assert merge(b, into=a) == 2
        assert "a search is writing this file" in capsys.readouterr().err and contents(a / "runs") == before


def test_other_files_are_named_and_a_line_cut_off_is_dropped(two, tmp_path, capsys):
    a, b = two
    (a / "notes.txt").write_text("mine")
    with (a / "runs/reduce.jsonl").open("a") as journal:
        journal.write('{"trial":{"config"')
    assert main(["merge", str(a), str(b), "--into", str(tmp_path / "c"), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["ignored"] == [str(a / "notes.txt")] and found["journals"] == {"runs/reduce.jsonl": 3}
    assert found["records"] == {"cache/example-gpu-100/reduce.json": 2, "cache/other-gpu/reduce.json": 1}
    (several,) = found["several"]
    assert several["served"]["config"]["BLOCK"] == 32 and several["rivals"][0]["time_ms"] == 9.0


def test_wishes_are_kept_where_nothing_else_is(two, tmp_path):
    wanted = CacheMiss("reduce", None, None, {"n": 3})
    record_miss(tmp_path / "a/other/cache", wanted)
    assert merge(*two, into=tmp_path / "c") == 0
    assert read_misses(tmp_path / "c/other/cache") == [wanted]
    assert merge(tmp_path / "a/other", into=tmp_path / "d") == 0  # wishes alone
    assert read_misses(tmp_path / "d/cache") == [wanted]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read anything")
def test_a_folder_that_cannot_be_read_is_no_empty_one(two, tmp_path, capsys):
    hidden = tmp_path / "b/cache" / OTHER.slug
    hidden.chmod(0)
    try:
        assert merge(*two, into=tmp_path / "c") == 2
    finally:
        hidden.chmod(0o700)
    assert f"{hidden}: cannot be read: Permission denied" in capsys.readouterr().err
    assert not (tmp_path / "c").exists()


def test_records_of_a_device_that_nobody_describes_are_named(tmp_path, capsys):
    write(tmp_path / "a", DEVICE, record(entry(64))).with_name("device.json").unlink()
    write(tmp_path / "a", OTHER, record(entry(64)))
    assert merge(tmp_path / "a", into=tmp_path / "c") == 0
    assert "example-gpu-100/reduce.json" in capsys.readouterr().out


def test_it_says_whose_source_and_which_times_are_taken_over(tmp_path, capsys):
    write(tmp_path / "mine/cache", DEVICE, replace(record(entry(64)), source="../kernels/mine.cu"))
    later = replace(PROVENANCE, tuned_at="2099-01-01T00:00:00+00:00", source_sha256="6" * 64)
    theirs = replace(entry(64, provenance=later), time_ms=1e-6, interval_ms=(1e-6, 1e-6))
    options = {"cuda": {"-time": "'setup.py'"}}
    foreign = replace(record(theirs), source="../kernels/theirs.cu", compiler_options=options)
    path = write(tmp_path / "theirs/cache", DEVICE, foreign)
    place = "cache/example-gpu-100/reduce.json"
    assert merge(tmp_path / "theirs", into=tmp_path / "mine") == 0
    text = capsys.readouterr().out
    assert f"2099-01-01T00:00:00+00:00, in {path}) is served, not 6.4e-05 ms (40 trials of random" in text
    own = tmp_path / "mine" / place
    assert (
        f"differing {place}: compiler options, source taken from {path}, not {own}; the source is "
        "../kernels/theirs.cu\n" in text
    )
    assert merge(tmp_path / "theirs", into=tmp_path / "mine") == 0  # nothing changes any more
    assert "differing" not in capsys.readouterr().out


@pytest.mark.parametrize("outside", ["/etc/passwd", "../../theirs.cu", "../linked/theirs.cu"])
def test_a_foreign_source_outside_the_project_is_not_taken(tmp_path, capsys, outside):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/linked").symlink_to(tmp_path)
    own = write(tmp_path / "mine/cache", DEVICE, replace(record(entry(64)), source="../kernels/mine.cu"))
    later = replace(PROVENANCE, tuned_at="2099-01-01T00:00:00+00:00")
    theirs = replace(record(entry(128, provenance=later)), source=outside)
    path = write(tmp_path / "theirs/cache", DEVICE, theirs)
    for _ in range(2):
        assert main(["merge", str(tmp_path / "theirs"), "--into", str(tmp_path / "mine"), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert [(row["file"], row["source"]) for row in found["left_out"]] == [(str(path), outside)]
        assert read_record(str(own)).source == "../kernels/mine.cu"
        assert len(read_record(str(own)).entries) == 2
    if "linked" not in outside:
        assert merge(tmp_path / "theirs", into=tmp_path / "new/deep") == 0
        assert f"left out cache/example-gpu-100/reduce.json: the source {outside}" in capsys.readouterr().out
        assert read_record(str(tmp_path / "new/deep/cache/example-gpu-100/reduce.json")).source == ""


@pytest.mark.parametrize("place", ["cache", "cache/example-gpu-100", "runs", "runs/reduce.jsonl"])
def test_nothing_is_written_through_a_link_and_then_nothing_at_all(two, tmp_path, capsys, place):
    a, b = two
    elsewhere = tmp_path / "elsewhere"
    (a / place).rename(elsewhere)
    (a / place).symlink_to(elsewhere)
    before, outside = contents(a), contents(elsewhere) if elsewhere.is_dir() else elsewhere.read_text()
    assert merge(b, into=a) == 1
    assert f"{a / place}: is a link, through which nothing is written" in capsys.readouterr().err
    assert contents(a) == before
    assert (contents(elsewhere) if elsewhere.is_dir() else elsewhere.read_text()) == outside


def test_a_journal_in_use_leaves_all_as_it_was(two, capsys):
    a, b = two
    with (a / "runs/reduce.jsonl").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        before = contents(a)
        assert merge(b, into=a) == 2 and contents(a) == before
    assert "a search is writing this file" in capsys.readouterr().err
