"""What was missed is tuned by one command, and is no longer missed."""

import json

import pytest

from autotune.errors import CacheError
from autotune.wanted import Wanted, note_wanted, read_wanted

OPTIONS = ("--device", "fake", "--engine", "random", "--budget", "3")


def test_what_is_wanted_of_the_device_is_tuned_and_taken_off_the_list(folder):
    (folder.path / "spaces").mkdir()
    for name in ("double.yaml", "double.py", "reference.py"):
        (folder.path / name).rename(folder.path / "spaces" / name)
    cache = folder.path / "cache"
    here = [Wanted("double", "fake-gpu", None, {"n": 100}), Wanted("double", None, "int32", {"n": 200})]
    broken, elsewhere = Wanted("triple", None, None, {"n": 1}), Wanted("double", "h200", None, {"n": 100})
    for wanted in (*here, broken, elsewhere):
        note_wanted(cache, wanted)
    done = folder.run("search", "--wanted", "--json", *OPTIONS)
    assert done.returncode == 1 and "1 of 3 stay on the list: triple: triple: " in done.stderr
    assert len(json.loads(done.stdout)) == 2
    assert read_wanted(cache) == [broken, elsewhere]
    for n in (100, 200):
        found = folder.run("best", "double", "--device", "fake", "--size", f"n={n}", "--strict")
        assert found.returncode == 0, found.stderr
    done = folder.run("search", "spaces/double.yaml", "--wanted", *OPTIONS)
    assert (done.returncode, done.stdout) == (0, "nothing that is wanted of this device was tuned\n")


def test_a_search_needs_a_space_or_the_list_and_not_both_say_the_sizes(folder):
    done = folder.run("search", *OPTIONS)
    assert done.returncode == 2 and "name a space, or give --wanted" in done.stderr
    done = folder.run("search", "--wanted", "--size", "n=3", *OPTIONS)
    assert done.returncode == 2 and "the list says the sizes and types" in done.stderr


def test_a_list_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match=r"file/wanted\.jsonl: cannot be read: Not a directory"):
        read_wanted(tmp_path / "file")
