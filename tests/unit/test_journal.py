"""What is on the disk once a journal is closed, and what is refused when one is read."""

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
