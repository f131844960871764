"""What is kept in the user's cache folder is taken only if no other user could have put it there."""

import json
import os
from pathlib import Path

import numpy as np
import pytest

from autotune.compilers import known_compilers
from autotune.devices import clocks
from autotune.devices.fake_clocks import FakeControl
from autotune.errors import LaunchError
from autotune.problem.reference_cache import ReferenceCache, save_results
from autotune.processes.own_files import open_own, read_own, write_own


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    return tmp_path / "home/autotune"


def foreign_file(path: Path) -> None:
    path.chmod(0o622)


def foreign_folder(path: Path) -> None:
    path.parent.chmod(0o777)


def linked(path: Path) -> None:
    elsewhere = path.parents[1] / "elsewhere"
    path.rename(elsewhere)
    path.symlink_to(elsewhere)


def piped(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


def owned_by_another(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root gives files away")
    os.chown(path, 12345, -1)


TAMPERED = pytest.mark.parametrize(
    "tamper", [foreign_file, foreign_folder, linked, piped, owned_by_another], ids=lambda one: one.__name__
)


@TAMPERED
def test_a_file_that_another_user_could_have_put_there_is_not_read(tmp_path, tamper):
    path = tmp_path / "folder/file"
    write_own(path, lambda file: file.write(b"mine"))
    assert read_own(path) == b"mine" and path.stat().st_mode & 0o777 == 0o600
    tamper(path)
    with pytest.raises(OSError):
        read_own(path)


def test_nothing_is_written_to_a_folder_of_others(tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    folder.chmod(0o777)
    for write in (
        lambda: write_own(folder / "file", lambda file: file.write(b"mine")),
        lambda: open_own(folder / "file", os.O_RDWR | os.O_CREAT),
    ):
        with pytest.raises(PermissionError, match="others may write"):
            write()
    assert not list(folder.iterdir())


@TAMPERED
def test_results_of_a_reference_are_its_own_or_computed(home, tmp_path, tamper):
    reference = tmp_path / "reference.py"
    reference.write_text("")
    kept = ReferenceCache(home / "references", kept_from_s=0)
    kept.result(reference, "key", lambda: {"y": np.zeros(1)})
    (path,) = (home / "references").glob("*.results")
    with path.open("wb") as file:
        save_results(file, {"y": np.full(1, 3.0)})  # as somebody else would have them
    assert kept.result(reference, "key", lambda: {"y": np.ones(1)})["y"] == 3
    tamper(path)
    assert kept.result(reference, "key", lambda: {"y": np.ones(1)})["y"] == 1


@TAMPERED
def test_a_compiler_is_asked_again_for_its_name(home, tamper):
    known = known_compilers.KnownCompiler("identity", "theirs")
    known_compilers._remember("sm_90", "", known, ())
    assert known_compilers._recall("sm_90", "") == known
    (path,) = (home / "compilers").iterdir()
    tamper(path)
    assert known_compilers._recall("sm_90", "") is None


@TAMPERED
def test_no_clock_is_set_as_another_user_notes(home, tmp_path, tamper):
    state = tmp_path / "state.json"
    state.write_text('{"sm_clock_mhz": 900}')
    path = home / "clocks/fake.json"
    record = json.dumps({"device": ["fake", str(state)], "settings": {"sm_clock_mhz": 1200}})
    write_own(path, lambda file: file.write(record.encode()))
    tamper(path)
    clocks.restore_abandoned()
    assert FakeControl(state).read("sm_clock_mhz") == 900


def test_no_clock_is_changed_where_the_note_could_be_anothers(home, tmp_path):
    (home / "clocks").mkdir(parents=True)
    (home / "clocks").chmod(0o777)
    (tmp_path / "state.json").write_text('{"sm_clock_mhz": 900}')
    control = FakeControl(tmp_path / "state.json")
    with pytest.raises(LaunchError, match=r"clocks: .* belongs to another user, or others may write"):
        clocks.Clocks(control).apply((("sm_clock_mhz", 1200),))
    assert control.read("sm_clock_mhz") == 900
