"""What is on the disk once a journal is closed, and what is refused when one is read."""

import fcntl
import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from autotune.core.outcomes import NO_TIME, PASSED, Unchecked
from autotune.core.records import Config
from autotune.core.trials import Failure, Measurement, Rule, Status, Trial
from autotune.errors import InputError, JournalError
from autotune.evaluation.journal import FollowedJournal, Journal, LastRound, read_journal, read_trials
from tests.conftest import KERNEL, Folder

ROW = (
    '{"trial": {"config": {"A": 1}, "key": "a", "status": "ok", '
    '"measurement": {"samples_ms": [1.5], "rule": "steady", "warmups_ms": []}}}'
)


def test_all_rows_are_on_the_disk_once_the_journal_is_closed(tmp_path, monkeypatch):
    """Each sync is noted with what the file held before it."""
    held_bytes, fsync = [], os.fsync

    def noted_fsync(descriptor):
        held_bytes.append(os.fstat(descriptor).st_size)
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    path = tmp_path / "j.jsonl"
    journal = Journal(path, {"kernel": "reduce"})
    journal.append(Trial(Config({"A": 1}), "a", Failure(Status.COMPILE_ERROR, "line 1")))
    journal.close()
    assert [trial.key for trial in read_trials(path)] == ["a"]
    assert held_bytes[-1] == path.stat().st_size


@pytest.mark.parametrize("row", ['{"trial": 5}', ROW.replace("1.5", '"soon"'), ROW.replace("1.5", "null")])
def test_a_row_that_is_none_is_told_with_its_line(tmp_path, row):
    path = tmp_path / "j.jsonl"
    path.write_text(f'{{"journal": 1}}\n{ROW}\n')
    assert [trial.time_ms for trial in read_trials(path)] == [1.5]
    path.write_text(f'{{"journal": 1}}\n{ROW}\n{row}\n')
    with pytest.raises(JournalError, match=r"j\.jsonl:3: not a row of a journal"):
        read_trials(path)


def row(key):
    return ROW.replace('"a"', f'"{key}"') + "\n"


def add(path, text):
    with path.open("a") as file:
        file.write(text)


def test_of_a_journal_that_has_grown_only_the_new_rows_are_read(tmp_path):
    path = tmp_path / "j.jsonl"
    path.write_text('{"journal": 1}\n' + row("a"))
    followed = FollowedJournal(path)
    assert followed.read() == followed.read() == read_journal(path)
    with path.open("r+") as file:  # what was read is not looked at again
        file.write('{"lost":   1}\n')
    add(path, row("b") + row("c")[:-9])
    assert [trial.key for trial in followed.read().trials] == ["a", "b"]
    add(path, row("c")[-9:] + row("a"))
    assert [trial.key for trial in followed.read().trials] == ["a", "b", "c"]
    assert followed.read().header == {"journal": 1}


def test_a_followed_journal_that_another_file_replaces_is_read_anew(tmp_path):
    path, other = tmp_path / "j.jsonl", tmp_path / "other"
    path.write_text('{"journal": 1}\n' + row("a"))
    followed = FollowedJournal(path)
    followed.read()
    other.write_text('{"journal": 1}\n' + row("b") + row("c"))
    other.rename(path)
    assert [trial.key for trial in followed.read().trials] == ["b", "c"]
    path.write_text('{"journal": 1}\n')  # in place
    assert followed.read().trials == []


def test_a_followed_journal_is_refused_while_it_is_damaged_only(tmp_path):
    path = tmp_path / "j.jsonl"
    followed = FollowedJournal(path)
    with pytest.raises(InputError, match="cannot be read"):
        followed.read()
    path.write_text('{"journal": 1}\n' + row("a"))
    followed.read()
    add(path, '{"trial": 5}\n' + row("b"))
    for _ in range(2):
        with pytest.raises(JournalError, match=r"j\.jsonl:3: not a row"):
            followed.read()
    path.write_text('{"journal": 1}\n' + row("a") + row("b"))
    assert [trial.key for trial in followed.read().trials] == ["a", "b"]


def test_a_search_that_starts_while_a_page_asks_who_holds_its_journal_waits_a_moment(tmp_path):
    path = tmp_path / "j.jsonl"
    path.touch()
    with path.open("rb") as asking, ThreadPoolExecutor() as threads:
        fcntl.flock(asking, fcntl.LOCK_SH)
        opening = threads.submit(Journal, path, {"kernel": "reduce"})
        with suppress(TimeoutError):
            opening.result(timeout=0.05)
        assert not opening.done()
        fcntl.flock(asking, fcntl.LOCK_UN)
        opening.result().close()


@pytest.mark.parametrize("value", ["NaN", "[1]", '"\\ud800"'])
def test_a_header_of_anything_but_texts_and_finite_numbers_is_refused(tmp_path, value):
    path = tmp_path / "j.jsonl"
    path.write_text('{"journal":1,"dtype":' + value + "}\n")
    with pytest.raises(JournalError, match=r"j\.jsonl:1: header\.dtype: expected"):
        read_trials(path)


WAS = "tolerance was rtol 0 and atol 0, is rtol 0 and atol 1"
EDITS = {  # file, what is edited, how the search says it, how many of four trials still hold
    "source": ("double.py", "+ 1.0", "+ 2.0", "the kernel's source or a file that it includes. ", 0),
    "reference": ("reference.py", "2 *", "2*", "the reference's file or a module that it imports. ", 3),
    "tolerance": ("double.yaml", "atol: 0", "atol: 1", f"{WAS}. ", 3),
    "sizes": ("double.yaml", "{n: 17}", "{n: 18}", "verify_sizes was [('n', 1)]; [('n', 17)], is ", 3),
    "fill": ("double.yaml", "[-100, 100]", "[-9, 9]", "x was int32 [n] in, integers -100 100, is ", 0),
    "type": ("double.yaml", "int32, value: n", "int64, value: n", "argument n was int32 n, is int64 n. ", 0),
}
AGAIN = ("--budget", "4", "--engine", "random")


@pytest.fixture(scope="module")
def journaled(tmp_path_factory):
    """A folder with a journal of four trials, one of them a wrong result."""
    folder = Folder(tmp_path_factory.mktemp("journaled"))
    folder.write(KERNEL.replace("return", "y[:] = y if (A, B) != (2, 0) else 0\n    return"))
    assert folder.search(*AGAIN)["counts"] == {"ok": 3, "wrong_result": 1}
    return folder.path


@pytest.fixture
def edited(journaled, tmp_path):
    shutil.copytree(journaled, tmp_path / "copy")
    folder = Folder(tmp_path)
    folder.path, folder.space = tmp_path / "copy", tmp_path / "copy/double.yaml"
    return folder


@pytest.mark.parametrize("case", EDITS)
def test_a_search_after_an_edit_says_in_words_what_has_changed(edited, case):
    file, old, new, words, held = EDITS[case]
    path = edited.path / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    before = edited.files()
    search = ("search", "double.yaml", "--device", "fake", *AGAIN)
    refused = edited.run(*search)
    offer = (
        f"The times of {held} of 4 trials still hold: to go on with them, add --keep"
        if held
        else "No trial still holds"
    )
    assert ("; the last round verifies the fastest again. " in refused.stderr) == (held > 0)
    assert refused.returncode == 2 and words in refused.stderr, refused.stderr
    assert (
        offer in refused.stderr
        and ". Start over with --fresh, or keep both with --journal FILE (in Python: " in refused.stderr
        and ("keep=True" in refused.stderr) == (held > 0)
    )
    assert held or edited.run(*search, "--keep").stderr == refused.stderr
    assert edited.files() == before


def test_of_a_journal_of_another_kernel_only_that_is_told(edited):
    edited.edit("kernel: double", "kernel: twice")
    edited.edit("atol: 0", "atol: 1")
    (path,) = (edited.path / "runs").iterdir()
    refused = edited.run("search", "double.yaml", "--device", "fake", "--journal", path)
    assert refused.returncode == 2
    assert "has changed: kernel was 'double', is 'twice'. No trial still holds. " in refused.stderr


def test_trials_that_hold_after_an_edit_are_kept_on_request(edited):
    edited.edit("atol: 0", "atol: 1")
    kept = edited.run("search", "double.yaml", "--device", "fake", *AGAIN, "--keep", "--json")
    assert f"{WAS}. 3 of 4 trials are kept" in kept.stderr and json.loads(kept.stdout)["resumed"] == 3
    (path,) = (edited.path / "runs").iterdir()
    assert len(read_trials(path)) == 4 and path.read_text().startswith('{"journal":1,')


def test_an_edit_that_changes_no_trial_needs_no_option(edited):
    edited.edit("shape: [n], role: out", "shape: [n + 0], role: out")
    assert edited.search(*AGAIN)["resumed"] == 4
    header = json.loads(next((edited.path / "runs").iterdir()).read_text().splitlines()[0])
    assert header["argument y"] == "int32 [n + 0] out"


def test_a_last_round_is_read_as_it_was_written(tmp_path):
    record = {
        "many runs": PASSED,
        "data ones": NO_TIME,
        "memcheck": Unchecked("it did not end", is_late=True),
        "initcheck": Unchecked("it does not work here"),
    }
    found = LastRound({"key": Measurement((1.0,), Rule.LAST_ROUND)}, {"key": record}, "g++ 12.2.0")
    for expected in (False, True):
        journal = Journal(tmp_path / "j.jsonl", {})
        assert (list(journal.last_rounds.values()) == [found]) is expected
        if not expected:
            journal.append(Trial(Config({"A": 1}), "key", measurement=Measurement((1.0,), Rule.STEADY)))
            assert not journal.is_concluded
            journal.append_last_round(found)
        assert journal.is_concluded
        journal.close()
