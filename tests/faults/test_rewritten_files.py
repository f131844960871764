"""A journal or a file that is written anew is whole at any moment: on a full disk, and after kill -9."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.core.records import Config
from autotune.errors import JournalError
from autotune.evaluation import journal as journals
from autotune.evaluation.journal import Journal, read_journal, read_trials
from autotune.processes import files
from tests.conftest import LIMIT_S
from tests.faults.test_full_disk import with_little_room

STEPS = {"_continue_after", "_replace", "replacement", "start_over", "_write", "append"}


def kept_journal(path: Path) -> Journal:
    """Open a journal with --keep after its tolerance was edited."""
    content = read_journal(path)
    keys = {trial.config: trial.key for trial in content.trials}
    header = {name: text for name, text in content.header.items() if name != "journal"}
    header |= {"arguments": "others"}
    notes = {"workload": content.header["workload"]}

    def key_of(config: Config) -> str | None:
        return keys.get(config)

    return Journal(path, header, notes=notes, keep=True, key_of=key_of)


def killed_at(step: int, path: Path) -> bool:
    """Open the journal in a process that kills itself at a line of its rewriting; whether it did."""
    process = os.fork()
    if process == 0:
        left = step

        def count(frame, event, _):
            nonlocal left
            if frame.f_code.co_filename not in (journals.__file__, files.__file__):
                return None
            if event == "line" and frame.f_code.co_name in STEPS:
                left -= 1
                if left < 0:
                    os.kill(os.getpid(), signal.SIGKILL)
            return count

        sys.settrace(count)
        kept_journal(path).close()
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) == -signal.SIGKILL


def kill_at_every_line(path: Path) -> None:
    """Rewrite a journal again and again, each time killed one line later, and look at it after each."""
    whole = path.read_bytes()
    trials = {trial.key for trial in read_trials(path)}
    step = 0
    while killed_at(step, path):
        assert {trial.key for trial in read_trials(path)} == trials, step
        path.write_bytes(whole)
        step += 1
    assert step > 30 and {trial.key for trial in read_trials(path)} == trials
    assert [file.name for file in path.parent.iterdir() if file.name != path.name] == [], "nothing is left"


@pytest.fixture
def journaled(folder):
    """A folder with a journal of 17 trials."""
    folder.search("--journal", "j.jsonl")
    return folder


def test_no_trial_is_lost_whenever_the_rewriting_of_a_journal_is_killed(journaled, root):
    path = journaled.path / "own" / "j.jsonl"
    path.parent.mkdir()
    (journaled.path / "j.jsonl").rename(path)
    command = [sys.executable, "-m", "tests.faults.test_rewritten_files", str(path)]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, timeout=LIMIT_S)
    assert done.returncode == 0, done.stderr


def test_no_trial_is_lost_where_the_disk_has_no_room_for_the_journal(journaled):
    path = journaled.path / "j.jsonl"
    before = path.read_bytes()
    assert len(before) > 5 * 1024 and len(read_trials(path)) == 17
    journaled.edit("atol: 0", "atol: 1")
    search = ("-m", "autotune", "search", "double.yaml", "--device", "fake", "--journal", "j.jsonl", "--keep")
    done = with_little_room(4, *search, cwd=journaled.path)
    assert done.returncode == 1 and "j.jsonl: cannot be written: File too large; " in done.stderr, done.stderr
    assert path.read_bytes() == before
    assert journaled.search("--journal", "j.jsonl", "--keep")["resumed"] == 17


def test_an_edit_that_changes_no_trial_loses_none_without_room(journaled):
    path = journaled.path / "j.jsonl"
    before = path.read_bytes()
    journaled.edit("shape: [n], role: out", "shape: [n + 0], role: out")
    search = ("-m", "autotune", "search", "double.yaml", "--device", "fake", "--journal", "j.jsonl")
    done = with_little_room(4, *search, cwd=journaled.path)
    assert done.returncode == 1 and path.read_bytes() == before


def test_a_journal_that_was_replaced_is_still_locked(journaled):
    path = journaled.path / "j.jsonl"
    held = kept_journal(path)
    with pytest.raises(JournalError, match="another search is writing this file"):
        kept_journal(path)
    held.start_over()
    with pytest.raises(JournalError, match="another search is writing this file"):
        Journal(path, {})
    held.close()
    Journal(path, {}, fresh=True).close()


def test_an_import_does_not_replace_a_journal_that_a_search_writes(journaled, capsys, monkeypatch):
    monkeypatch.chdir(journaled.path)
    assert main(["export", "j.jsonl", "--format", "t4", "-o", "t4.json"]) == 0
    held = kept_journal(journaled.path / "j.jsonl")
    assert main(["import", "t4.json", "--journal", "j.jsonl", "--fresh"]) == 2
    assert "a search is writing this file" in capsys.readouterr().err
    held.close()


def test_a_report_that_cannot_be_written_leaves_the_old_one(journaled):
    page = journaled.path / "page.html"
    assert journaled.run("report", "j.jsonl", "-o", "page.html").returncode == 0
    before = page.read_bytes()
    done = with_little_room(8, "-m", "autotune", "report", "j.jsonl", "-o", "page.html", cwd=journaled.path)
    assert done.returncode == 1 and "page.html: cannot be written: File too large" in done.stderr, done.stderr
    assert page.read_bytes() == before


def test_output_goes_to_pipes_and_to_what_a_link_names(journaled):
    (journaled.path / "target.csv").touch()
    (journaled.path / "link.csv").symlink_to("target.csv")
    shown = journaled.run("show", "j.jsonl", "--csv", "/dev/stdout", PYTHONUNBUFFERED="1")
    assert journaled.run("show", "j.jsonl", "--csv", "link.csv").returncode == 0
    assert (journaled.path / "link.csv").is_symlink()
    assert (journaled.path / "target.csv").read_text() in shown.stdout


if __name__ == "__main__":
    kill_at_every_line(Path(sys.argv[1]))
