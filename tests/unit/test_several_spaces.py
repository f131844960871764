"""One command that searches several spaces: each gets its share, and the same command resumes."""

import json
import re

from autotune.devices import listing
from autotune.devices.listing import Listing
from autotune.evaluation.journal import read_trials
from autotune.searchers.base import evaluate_rows
from autotune.searchers.whole_space import RandomSearch


def two_spaces(folder):
    text = (folder.path / "double.yaml").read_text()
    (folder.path / "other.yaml").write_text(text.replace("kernel: double", "kernel: other"))
    (folder.path / "wrong.yaml").write_text(
        text.replace("kernel: double", "kernel: wrong").replace("double.py", "w.py")
    )
    source = (folder.path / "double.py").read_text()
    (folder.path / "w.py").write_text(source.replace("2 *", "3 *"))


def test_all_spaces_are_searched_and_one_that_fails_is_named(folder):
    two_spaces(folder)
    spaces = ("double.yaml", "other.yaml", "wrong.yaml")
    done = folder.run("search", *spaces, "--device", "fake", "--budget", "9")
    assert done.returncode != 0 and "1 of 3 spaces failed: wrong: " in done.stderr
    assert "double: best " in done.stdout and "other: best " in done.stdout
    journals = {name: list((folder.path / "runs").glob(f"{name}.*.jsonl")) for name in ("double", "other")}
    assert all(len(read_trials(files[0])) == 9 for files in journals.values())
    again = folder.run("search", *spaces[:2], "--device", "fake", "--budget", "17", "--json")
    assert again.returncode == 0, again.stderr
    assert [(found["trials"], found["resumed"]) for found in json.loads(again.stdout)] == [(17, 9), (17, 9)]


def test_a_space_that_no_time_was_left_for_is_named(folder):
    two_spaces(folder)
    kernel = (folder.path / "double.py").read_text()
    folder.write("import time\n" + kernel.replace("    return", "    time.sleep(0.1)\n    return"))
    done = folder.run("search", "double.yaml", "other.yaml", "--device", "fake", "--time", "0.5")
    assert re.match("double: .*best ", done.stdout)
    assert "1 of 2 spaces failed: other: no time was left; give a longer --time" in done.stderr


def test_several_devices_search_all_spaces(folder, monkeypatch):
    monkeypatch.setenv("AUTOTUNE_FAKE_DEVICES", "2")
    monkeypatch.setattr(listing, "Listing", Listing)  # not as listed before
    two_spaces(folder)
    devices = ("--devices", "fake:0,fake:1")
    done = folder.run("search", "double.yaml", "other.yaml", *devices, "--budget", "9")
    assert done.returncode == 0, done.stderr
    for name in ("double", "other"):
        (journal,) = (folder.path / "runs").glob(f"{name}.*.jsonl")
        assert len(read_trials(journal)) == 9
        assert '"devices":{' in journal.read_text()  # they were compared


def test_two_spaces_of_one_kernel_would_share_a_journal(folder):
    (folder.path / "copy.yaml").write_text((folder.path / "double.yaml").read_text())
    done = folder.run("search", "double.yaml", "copy.yaml", "--device", "fake")
    assert done.returncode == 2 and "two of the spaces are of the kernel double" in done.stderr


def test_spaces_that_cannot_be_searched_on_the_device_do_not_stop_the_others(folder):
    text = (folder.path / "double.yaml").read_text()
    (folder.path / "typed.yaml").write_text(text.replace("default: {A: 1", "default: {A: 9"))
    (folder.path / "double.cl").write_text("__kernel void scaled() {}")
    other = text.replace("dialect: python", "dialect: opencl")
    (folder.path / "elsewhere.yaml").write_text(other.replace("source: double.py", "source: double.cl"))
    spaces = ("typed.yaml", "elsewhere.yaml", "double.yaml")
    done = folder.run("search", *spaces, "--device", "fake", "--budget", "3")
    assert done.returncode != 0 and "2 of 3 spaces failed: typed: typed.yaml:" in done.stderr
    assert "; elsewhere: elsewhere.yaml: the kernel is written in dialect 'opencl'" in done.stderr
    assert "double: best " in done.stdout


def test_a_space_ends_when_its_engine_finds_nothing_more_to_try(folder, monkeypatch):
    two_spaces(folder)
    parts = []

    def search(self, space, stream, *, seed):
        parts.append(space.spec.kernel)
        assert len(parts) <= 4
        evaluate_rows(space, range(4), stream)

    monkeypatch.setattr(RandomSearch, "search", search)
    monkeypatch.setattr(RandomSearch, "opening", lambda self, space, *, seed: [])
    spaces = ("double.yaml", "other.yaml")
    done = folder.run("search", *spaces, "--device", "fake", "--engine", "random", "--budget", "9")
    assert done.returncode == 0, done.stderr
    assert sorted(parts) == ["double", "double", "other", "other"]


def test_a_misspelt_file_is_told_before_anything_is_run(folder):
    done = folder.run("search", "double.yaml", "duble.yaml", "--device", "fake")
    assert done.returncode == 2 and "duble.yaml: no such file; " in done.stderr
    assert not (folder.path / "runs").exists()
