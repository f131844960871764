"""What is on the disk once a journal is closed, and what is refused when one is read."""

import json
import os
import threading
import time

import pytest

from autotune.core.records import Config
from autotune.core.trials import Status, Trial
from autotune.errors import JournalError
from autotune.evaluation.journal import Journal, read_trials

ROW = (
    '{"trial": {"config": {"A": 1}, "key": "a", "status": "ok", '
    '"measurement": {"samples_ms": [1.5], "rule": "steady", "warmups_ms": []}}}'
)


def test_a_row_written_while_the_disk_is_busy_is_on_it_when_the_journal_is_closed(tmp_path, monkeypatch):
    """The disk is a real one that takes its time; each sync is noted with what the file held before it."""
    began, held_bytes = threading.Event(), []
    fsync = os.fsync

    def slow_fsync(descriptor):
        held = os.fstat(descriptor).st_size
        began.set()
        time.sleep(0.2)
        fsync(descriptor)
        held_bytes.append(held)

    monkeypatch.setattr(os, "fsync", slow_fsync)
    path = tmp_path / "j.jsonl"
    journal = Journal(path, {"kernel": "reduce"})
    assert began.wait(10)  # the header is on its way
    journal.append(Trial(Config({"A": 1}), "a", Status.COMPILE_ERROR, "line 1"))
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


@pytest.mark.parametrize("value", ["NaN", "[1]", '"\\ud800"'])
def test_a_header_of_anything_but_texts_and_finite_numbers_is_refused(tmp_path, value):
    path = tmp_path / "j.jsonl"
    path.write_text('{"journal":1,"dtype":' + value + "}\n")
    with pytest.raises(JournalError, match=r"j\.jsonl:1: header\.dtype: expected"):
        read_trials(path)


@pytest.mark.parametrize(
    ("file", "old", "new", "words"),
    [
        ("double.py", "+ 1.0", "+ 2.0", "the kernel's source or a file that it includes. Start"),
        ("reference.py", "2 *", "2*", "the reference's file. Start"),
        ("double.yaml", "atol: 0", "atol: 1", "tolerance was rtol 0 and atol 0, is rtol 0 and atol 1. Start"),
        ("double.yaml", "{n: 17}", "{n: 18}", "verify_sizes was [('n', 1)]; [('n', 17)], is [('n', 1)]; "),
        (
            "double.yaml",
            "[-100, 100]",
            "[-9, 9]",
            "arguments, verify_sizes or tolerances in the space file. S",
        ),
    ],
)
def test_a_search_after_an_edit_says_in_words_what_has_changed(folder, file, old, new, words):
    folder.search("--budget", "2")
    path = folder.path / file
    assert old in path.read_text()
    path.write_text(path.read_text().replace(old, new))
    again = ["search", "double.yaml", "--device", "fake", "--budget", "2"]
    refused = folder.run(*again)
    assert refused.returncode == 2 and words in refused.stderr and "--fresh" in refused.stderr
    assert folder.run(*again, "--fresh").returncode == 0


def test_a_journal_without_notes_goes_on_and_is_refused_in_fewer_words(folder):
    folder.search("--budget", "2", "--journal", "j.jsonl")
    path = folder.path / "j.jsonl"
    header, rest = path.read_text().split("\n", 1)
    values = json.loads(header)
    del values["tolerance"], values["verify_sizes"]
    path.write_text(json.dumps(values, separators=(",", ":")) + "\n" + rest)
    assert folder.search("--budget", "2", "--journal", "j.jsonl")["resumed"] == 2
    folder.edit("atol: 0", "atol: 1")
    refused = folder.run("search", "double.yaml", "--device", "fake", "--journal", "j.jsonl")
    assert "arguments, verify_sizes or tolerances in the space file" in refused.stderr
