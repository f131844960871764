"""kill -9 of the tuner at any moment: the same command goes on, and ends where it would have ended."""

import json
import os
import signal
from pathlib import Path

import pytest

from autotune.core.trials import Status
from autotune.evaluation.journal import read_trials
from tests.conftest import Folder, wait_until

SLOW = """\
import time

def double(grid, block, x, y, n):
    time.sleep(0.003)
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return (A - 5) ** 2 + B + 1.0
"""
JOURNAL = "runs/double.fake-gpu.n1000.int32.jsonl"  # of the searched folder
HANGS = """\
import pathlib, time

def double(grid, block, x, y, n):
    pathlib.Path("began").touch()
    time.sleep(600)
"""


def _rows(journal: Path) -> int:
    return journal.read_text().count("\n") - 1 if journal.exists() else 0


def kill_when(process, journal, rows):
    """SIGKILL the tuner alone, as soon as the journal has so many rows."""
    wait_until(lambda: _rows(journal) >= rows or process.poll() is not None)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def _processes_marked(mark):
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


@pytest.mark.parametrize("engine", ["random", "optuna"])
def test_killed_again_and_again_it_ends_as_if_never_killed(tmp_path, engine):
    folders = []
    for name in ("whole", "killed"):
        (tmp_path / name).mkdir()
        folders.append(Folder(tmp_path / name))
        folders[-1].write(SLOW)
    whole, killed = folders
    options = ["--engine", engine, "--budget", "12", "--seed", "3"]
    expected = whole.search(*options)

    journal = killed.path / "j.jsonl"
    command = ["search", "double.yaml", "--device", "fake", "--json", "--journal", "j.jsonl", *options]
    mark = f"MARK={tmp_path}"
    for rows in (1, 4, 9):
        kill_when(killed.start(*command, MARK=str(tmp_path)), journal, rows)
        wait_until(lambda: not _processes_marked(mark))  # no child outlives the tuner
    done = killed.run(*command)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)

    for name in ("config", "time_ms", "default_time_ms", "trials", "counts"):
        assert result[name] == expected[name], name
    assert result["resumed"] >= 9
    trials = read_trials(journal)
    keys = [trial.key for trial in trials]
    assert len(keys) == len(set(keys)) == 12, "something was run twice"


def test_a_finished_search_answers_again_without_running(searched_folder):
    again = searched_folder.search()
    assert again["resumed"] == again["trials"] == 17
    assert (again["config"], again["time_ms"]) == ({"A": 5, "B": 0}, 1.0)


def spans(folder, *options):
    """The names of all that a search does."""
    folder.search("--timeline", "t.json", "--journal", "j.jsonl", *options)
    events = json.loads((folder.path / "t.json").read_text())["traceEvents"]
    return {event["name"] for event in events if event["ph"] == "X"}


def test_a_search_whose_trials_are_known_neither_times_nor_checks(folder):
    ran = {"compile", "verify and time", "sample", "verify once", "verify often"}
    assert ran <= spans(folder)
    text = (folder.path / "j.jsonl").read_text()
    assert not ran & spans(folder)
    assert (folder.path / "j.jsonl").read_text() == text


def test_a_search_makes_up_for_checks_alone_if_its_times_are_known(folder):
    assert "verify often" in spans(folder, "--no-sanitizer")
    ran = spans(folder)
    assert "verify often" in ran and "sample" not in ran and "verify and time" not in ran
    assert "verify often" not in spans(folder)


def test_a_known_winner_that_crashes_in_a_missing_check_is_replaced(folder):
    kernel = (folder.path / "double.py").read_text().replace("(A - 5) ** 2 + B + 1.0", "10 + abs(A - 5) + B")
    crash = f"    if A == 5 and os.path.exists({str(folder.path / 'crash')!r}):\n        os._exit(1)\n"
    folder.write("import os\n\n\n" + kernel.replace("    return", f"{crash}    return", 1))
    first = folder.search("--no-sanitizer", "--journal", "j.jsonl")
    (folder.path / "crash").touch()
    second = folder.search("--journal", "j.jsonl")
    assert first["config"]["A"] == 5 != second["config"]["A"]


def test_a_last_round_is_not_that_of_trials_that_came_later(folder):
    spans(folder, "--budget", "4", "--engine", "exhaustive")
    assert {"verify and time", "sample"} <= spans(folder)


def test_a_torn_last_line_is_dropped_with_a_warning(searched_folder):
    journal = searched_folder.path / JOURNAL
    whole = journal.read_text()
    lines = whole.splitlines(keepends=True)
    journal.write_text("".join(lines[:5]) + lines[5][:40])
    done = searched_folder.run("search", "double.yaml", "--device", "fake", "--json")
    assert "cut off" in done.stderr
    again = json.loads(done.stdout)
    assert again["resumed"] == 4 and again["config"] == {"A": 5, "B": 0}


def test_a_torn_middle_line_is_refused(searched_folder):
    journal = searched_folder.path / JOURNAL
    lines = journal.read_text().splitlines(keepends=True)
    lines[3] = lines[3][:40] + "\n"
    journal.write_text("".join(lines))
    done = searched_folder.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 2 and f"{journal.name}:4" in done.stderr and "damaged" in done.stderr


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            lambda folder: folder.write((folder.path / "double.py").read_text() + "\n# edited\n"),
            "the kernel's source or a file that it includes",
        ),
        (
            lambda folder: folder.edit("[-100, 100]", "[0, 100]"),
            "argument x was int32 [n] in, integers -100 100, is",
        ),
        (lambda folder: folder.edit("kernel: double", "kernel: triple"), "kernel was"),
        (lambda folder: _say(folder.path / JOURNAL, compiler="another"), "compiler was 'another'"),
        (lambda folder: _say(folder.path / JOURNAL, units="8"), "units was '8', is '16'"),
        (lambda folder: _say(folder.path / JOURNAL, memory_bytes="7"), "memory_bytes was '7'"),
        (lambda folder: _say(folder.path / JOURNAL, limits="350 W"), "limits was '350 W', is ''"),
    ],
    ids=["source", "arguments", "kernel", "compiler", "units", "memory", "limits"],
)
def test_a_journal_of_something_else_is_refused_with_what_differs(searched_folder, change, words):
    change(searched_folder)
    done = searched_folder.run("search", "double.yaml", "--device", "fake", "--journal", JOURNAL)
    assert done.returncode == 2 and words in done.stderr and "--fresh" in done.stderr


def test_a_fresh_search_takes_the_place_of_a_journal_of_something_else(searched_folder):
    _say(searched_folder.path / JOURNAL, compiler="another")
    assert searched_folder.search("--fresh", "--budget", "2")["resumed"] == 0


def _say(journal, **words):
    """Change what the header says."""
    head, rest = journal.read_text().split("\n", 1)
    header = json.loads(head)
    assert words.keys() <= header.keys()
    journal.write_text(json.dumps(header | words, separators=(",", ":")) + "\n" + rest)


def test_a_new_parameter_value_reuses_every_row(searched_folder):
    searched_folder.edit("B: [0, 1, 2]", "B: [0, 1, 2, 7]")
    searched_folder.edit("A + B <= 7", "A + B <= 12")
    second = searched_folder.search()
    assert second["trials"] > 17 == second["resumed"]


def test_two_searches_do_not_write_one_journal(folder):
    folder.write(HANGS)
    command = ("search", "double.yaml", "--device", "fake", "--journal", "j.jsonl", "--timeout", "600")
    running = folder.start(*command)
    wait_until(lambda: (folder.path / "began").exists() or running.poll() is not None)
    second = folder.run(*command)
    running.kill()
    running.communicate()
    assert second.returncode == 2 and "another search" in second.stderr


def test_a_journal_of_failures_only_does_not_stand_in_the_way(folder):
    right = (folder.path / "double.py").read_text()
    folder.write("def double(grid, block, x, y, n):\n    pass\n")
    assert folder.run("search", "double.yaml", "--device", "fake").returncode == 1
    folder.write(right)
    done = folder.run("search", "double.yaml", "--device", "fake", "--json")
    assert done.returncode == 0 and "the search starts over" in done.stderr
    assert json.loads(done.stdout)["counts"] == {"ok": 17}


def test_a_configuration_that_cannot_be_launched_has_a_row_like_any_failure(folder):
    folder.edit("grid: [1]", "grid: ['0 if A == 6 else 1']")
    first = folder.search()
    rows = {trial.config: trial for trial in read_trials(folder.path / first["journal"])}
    assert len(rows) == first["trials"] == 17 and first["counts"] == {"ok": 15, "launch_error": 2}
    details = {trial.detail for trial in rows.values() if trial.status is Status.LAUNCH_ERROR}
    assert len(details) == 1 and "'0 if A == 6 else 1' gives 0, expected at least 1" in details.pop()
    assert folder.search()["resumed"] == 17
    assert len(read_trials(folder.path / first["journal"])) == 17
    folder.edit("0 if A == 6", "2 if A == 6")
    assert folder.search()["counts"] == {"ok": 17}
