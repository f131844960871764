"""Streams that are closed, full or narrow, a folder that is gone, a full disk, Ctrl-C: no traceback."""

import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from autotune.cli import main
from tests.conftest import LIMIT_S

HANGS = """\
import time

def double(grid, block, x, y, n):
    with open("j.jsonl") as journal:
        if journal.read().count('{"trial"') >= TRIED:
            time.sleep(600)
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return (A - 5) ** 2 + B + 1.0
"""
SEARCH = ("search", "double.yaml", "--device", "fake", "--budget", "2", "--journal")


def _shell(folder, line):
    """What bash says to a line in which `autotune` is the command."""
    return subprocess.run(
        ["bash", "-c", f'autotune() {{ "{sys.executable}" -m autotune "$@"; }}\n{line}'],
        cwd=folder.path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
        capture_output=True,
        text=True,
        timeout=120,
    )


@pytest.mark.parametrize(
    "line",
    [
        "autotune show runs/*.jsonl | true; exit ${PIPESTATUS[0]}",
        "autotune show runs/*.jsonl --json | head -1; exit ${PIPESTATUS[0]}",
        "autotune show runs/*.jsonl >&- 2>&-",
        "autotune show runs/*.jsonl --limit 1 >&-",
    ],
)
def test_nobody_reads_and_nothing_is_said(searched_folder, line):
    done = _shell(searched_folder, line)
    assert done.returncode == 0
    assert done.stderr in ("", "1 of 17 trials\n", "17 of 17 trials\n")


def test_without_any_stream_a_search_still_keeps_its_result(folder):
    assert _shell(folder, f"autotune {' '.join(SEARCH)} j.jsonl <&- >&- 2>&-").returncode == 0
    assert (folder.path / "j.jsonl").read_text().startswith('{"journal":')
    assert (folder.path / "cache/fake-gpu/double.json").exists()


def test_output_that_cannot_be_written_is_told(searched_folder):
    done = _shell(searched_folder, "autotune show runs/*.jsonl --json > /dev/full")
    assert (done.returncode, done.stderr.splitlines()[-1]) == (1, "autotune: No space left on device")
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


def test_a_folder_that_is_gone_is_told(tmp_path, monkeypatch, capsys):
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert main(["search", "double.yaml"]) == 2
    assert "the current folder cannot be used: No such file or directory" in capsys.readouterr().err


def test_a_home_that_cannot_be_written_hides_no_device(folder):
    done = folder.run("devices", "--json", HOME="/dev/null", XDG_CACHE_HOME="/dev/null")
    assert "opencl:0" in [item["device"] for item in json.loads(done.stdout)]


@pytest.mark.parametrize("terminal", ["dumb", "xterm"])
def test_on_a_narrow_terminal_a_search_shows_its_progress(folder, terminal):
    ours, theirs = pty.openpty()
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
        "TERM": terminal,
        "COLUMNS": "40",
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "autotune", *SEARCH, "j.jsonl"],
        cwd=folder.path,
        env=environment,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    seen = b""
    while chunk := _chunk(ours):
        seen += chunk
    os.close(ours)
    assert process.wait() == 0
    assert b"Traceback" not in seen and b"times as fast" in b" ".join(seen.split())
    rewritten = [text for text in re.findall(rb"\x1b\[2K([^\r\n\x1b]*)", seen) if text]
    assert seen.startswith(b"starting\r") == (terminal == "xterm")  # before anything large is imported
    assert bool(re.search(rb"starting, \d:\d\d", seen)) == (terminal == "xterm") == bool(rewritten)
    assert all(len(text.decode()) <= 40 for text in rewritten)
    assert (b"\x1b" in seen) == (terminal == "xterm")


def _chunk(descriptor):
    try:
        return os.read(descriptor, 4096)
    except OSError:  # how a terminal ends on Linux
        return b""


def _is_loading(process):
    return "numpy" in Path(f"/proc/{process.pid}/maps").read_text()


def _is_searching(process):
    return "trials go to" in process.stderr.readline()


def _is_in_the_last_round(process):
    return "last round" in process.stderr.readline()


@pytest.mark.parametrize(
    ("moment", "tried"),
    [(_is_loading, 0), (_is_searching, 0), (_is_in_the_last_round, 2)],
    ids=["loading", "searching", "last round"],
)
def test_interrupted_at_any_moment_it_says_so_in_one_line_at_most(folder, moment, tried):
    """Once so many configurations were tried, the next launch does not end before the interrupt."""
    folder.write(HANGS.replace("TRIED", str(tried)))
    process = folder.start(*SEARCH, "j.jsonl", "--timeout", "600")
    while not moment(process):
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=LIMIT_S)
    assert process.returncode == 130, errors
    assert errors.splitlines()[-1:] in ([], ["autotune: interrupted; the same command resumes"])
    assert "Traceback" not in errors
