"""What was missed is tuned by one command, and is no longer missed."""

import json

import pytest

from autotune.errors import CacheError
from autotune.serving.miss_log import CacheMiss, read_misses, record_miss

OPTIONS = ("--device", "fake", "--engine", "random", "--budget", "3")


def test_what_is_wanted_of_the_device_is_tuned_and_taken_off_the_list(folder):
    (folder.path / "spaces").mkdir()
    for name in ("double.yaml", "double.py", "reference.py"):
        (folder.path / name).rename(folder.path / "spaces" / name)
    cache = folder.path / "cache"
    here = [CacheMiss("double", "fake-gpu", None, {"n": 100}), CacheMiss("double", None, "int32", {"n": 200})]
    broken, elsewhere = (
        CacheMiss("triple", None, None, {"n": 1}),
        CacheMiss("double", "h200", None, {"n": 100}),
    )
    for wanted in (*here, broken, elsewhere):
        record_miss(cache, wanted)
    done = folder.run("search", "--wanted", "--json", *OPTIONS)
    assert done.returncode == 1 and "1 of 3 requests failed and stay listed: triple: " in done.stderr
    assert len(json.loads(done.stdout)) == 2
    assert read_misses(cache) == [broken, elsewhere]
    for n in (100, 200):
        found = folder.run("best", "double", "--device", "fake", "--size", f"n={n}", "--strict")
        assert found.returncode == 0, found.stderr
    done = folder.run("search", "spaces/double.yaml", "--wanted", *OPTIONS)
    assert (done.returncode, done.stdout) == (0, "no request is listed for this device\n")


def test_a_search_needs_a_space_or_the_list_and_not_both_say_the_sizes(folder):
    done = folder.run("search", *OPTIONS)
    assert done.returncode == 2 and "name a space, or give --wanted" in done.stderr
    done = folder.run("search", "--wanted", "--size", "n=3", *OPTIONS)
    assert done.returncode == 2 and "--wanted and --recorded name the problems" in done.stderr


def test_a_request_that_nothing_can_be_adopted_for_is_named_and_stays(folder):
    wanted = CacheMiss("double", None, None, {"n": 100})
    record_miss(folder.path / "cache", wanted)
    done = folder.run("search", "double.yaml", "--wanted", "--device", "fake", "--engine", "adopt")
    assert done.returncode == 1 and "1 of 1 requests failed and stay listed: double: n=100" in done.stderr
    assert "there is nothing to adopt" in done.stderr and read_misses(folder.path / "cache") == [wanted]


def test_a_list_that_cannot_be_read_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(CacheError, match=r"file/wanted\.jsonl: cannot be read: Not a directory"):
        read_misses(tmp_path / "file")


@pytest.mark.parametrize(
    "line",
    [
        {"kernel": "/elsewhere/s.yaml"},
        {"kernel": "../../double"},
        {"kernel": "double.yaml"},
        {"device": "../h200"},
        {"dtype": "evil"},
        {"sizes": {"../n": 3}},
        {"sizes": {"n": True}},
        {"sizes": {"n": 0}},
        {"sizes": [["n", 3]]},
        {"more": 1},
    ],
    ids=str,
)
def test_a_line_with_anything_but_names_starts_nothing(folder, line):
    other = folder.path / "elsewhere"
    other.mkdir()
    (other / "reference.py").write_text("from pathlib import Path\nPath('ran').touch()\n")
    for name in ("double.yaml", "double.py"):
        (folder.path / name).rename(other / name)
    question = {"kernel": "double", "device": None, "dtype": None, "sizes": {"n": 100}} | line
    if line.get("kernel", "").startswith("/"):
        question["kernel"] = str(other / "double.yaml")
    (folder.path / "cache").mkdir()
    (folder.path / "cache" / "wanted.jsonl").write_text(json.dumps(question) + "\n")
    done = folder.run("search", "--wanted", *OPTIONS)
    assert done.returncode == 1 and "wanted.jsonl: damaged: " in done.stderr and "expected" in done.stderr
    assert not list(folder.path.rglob("ran"))


def test_a_question_that_the_list_could_not_hold_is_not_noted(tmp_path):
    with pytest.warns(UserWarning, match="dtype: expected one of"):
        record_miss(tmp_path, CacheMiss("reduce", None, "text", {"n": 1}))
    assert not list(tmp_path.iterdir())


def test_a_list_leads_to_no_space_outside_the_two_folders(folder):
    """A folder's own file of the kernel's name is no space of the list."""
    folder.space.rename(folder.path / "double")
    record_miss(folder.path / "cache", CacheMiss("double", None, None, {"n": 100}))
    done = folder.run("search", "--wanted", *OPTIONS)
    assert (
        done.returncode == 1
        and "spaces/double.yaml: no such file; if it is elsewhere, name it" in done.stderr
    )
    assert "autotune search double.yaml --wanted" in done.stderr
