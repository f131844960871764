"""Slow references run once for the same content: their results are kept on disk."""

import numpy as np

from autotune.devices.element_types import loaded, numpy_dtype
from autotune.problem import reference_cache
from autotune.problem.reference_cache import ReferenceCache, load_results, save_results

SLOW = """\
import time
def reference(inputs, sizes):
    with open("calls", "a") as file:
        file.write(f"{sizes['n']} ")
    time.sleep(1.1 * (sizes["n"] == 1000 and inputs["x"][0] != 0))
    return {"y": 2 * inputs["x"]}
"""


def kept(folder, **options):
    path = folder / "reference.py"
    if not path.exists():
        path.write_text("first")
    store = ReferenceCache(folder / "kept", kept_from_s=0, **options)
    calls = []

    def of(key="a problem"):
        def compute():
            calls.append(key)
            return {"y": np.arange(5.0)}

        assert store.result(path, key, compute)["y"].tolist() == [0, 1, 2, 3, 4]
        return len(calls)

    return of, path


def test_results_are_found_by_the_reference_and_the_problem(tmp_path):
    of, path = kept(tmp_path)
    assert (of(), of(), of("another"), of("another")) == (1, 1, 2, 2)
    path.write_text("changed")
    assert (of(), of()) == (3, 3)
    assert kept(tmp_path)[0]() == 0, "another process finds them"
    assert kept(tmp_path, run="fresh")[0]() == 1, "a run of its own does not"


def test_a_damaged_file_is_computed_again(tmp_path):
    of, _ = kept(tmp_path)
    of()
    for content in (b"", b"PK\x03\x04 damaged", b"\x93NUMPY"):
        (file,) = (tmp_path / "kept").glob("*.results")
        file.write_bytes(content)
        of()
    file.write_bytes(file.read_bytes()[:-60])
    assert of() == 5 and of() == 5
    content = file.read_bytes()
    for place in range(0, len(content), 7):  # a bit each
        file.write_bytes(content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert of() == place // 7 + 6


def test_results_are_read_as_they_were_written(tmp_path):
    written = {
        "half": np.arange(3, dtype=np.float16),
        "whole": np.arange(6).reshape(2, 3)[:, ::2],
        "none": np.zeros(0, np.int8),
        "pairs": np.zeros(3, [("x", "<f4"), ("y", "<i8")]),
        "narrow": np.ones(5, numpy_dtype("bfloat16")),
    }
    path = tmp_path / "file"
    with path.open("wb") as file:
        save_results(file, written)
    found = load_results(path)
    found["narrow"] = loaded(found["narrow"], "bfloat16")
    for name, values in written.items():
        assert np.array_equal(found[name], values)
        assert found[name].flags.aligned and not found[name].flags.writeable


def test_large_results_are_kept_only_if_they_take_longer_than_writing_them(tmp_path, monkeypatch):
    monkeypatch.setattr(reference_cache, "BYTES_PER_S", 1)
    (tmp_path / "reference.py").write_text("")
    store = ReferenceCache(tmp_path / "kept", kept_from_s=0)
    for count in (1000, 0):
        store.result(tmp_path / "reference.py", f"{count}", lambda count=count: {"y": np.ones(count)})
        assert bool(list(tmp_path.glob("kept/*"))) == (count == 0)


def test_fast_results_and_those_that_cannot_be_written_are_computed(tmp_path):
    (tmp_path / "reference.py").write_text("")
    (tmp_path / "file").write_text("")
    for folder, limit_s in ((tmp_path / "kept", 60), (tmp_path / "file", 0)):
        store = ReferenceCache(folder, kept_from_s=limit_s)
        calls = [store.result(tmp_path / "reference.py", "key", lambda: {"y": np.ones(1)}) for _ in range(2)]
        assert len(calls) == 2 and not list(tmp_path.glob("kept/*"))


def test_a_second_search_does_not_run_a_slow_reference(folder):
    (folder.path / "reference.py").write_text(SLOW)
    folder.edit("{integers: [-100, 100]}", "{sequence: [1, 1]}")  # without sets of other data
    calls = folder.path / "calls"
    counts = []
    for options in ((), ("--journal", "other.jsonl"), ("--fresh",)):
        folder.search("--budget", "2", *options)
        counts.append(calls.read_text().split().count("1000"))
    assert counts[0] > 0 and counts[1] == counts[0] and counts[2] == 2 * counts[0]
