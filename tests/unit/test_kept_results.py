"""Slow references run once for the same content: their results are kept on disk."""

import numpy as np

from autotune.problem.kept_results import KeptResults

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
    store = KeptResults(folder / "kept", kept_from_s=0, **options)
    calls = []

    def of(key="a problem"):
        def compute():
            calls.append(key)
            return {"y": np.arange(5.0)}

        assert store.of(path, key, compute)["y"].tolist() == [0, 1, 2, 3, 4]
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
        (file,) = (tmp_path / "kept").glob("*.npz")
        file.write_bytes(content)
        of()
    file.write_bytes(file.read_bytes()[:-40])
    assert of() == 5 and of() == 5


def test_fast_results_and_those_that_cannot_be_written_are_computed(tmp_path):
    (tmp_path / "reference.py").write_text("")
    (tmp_path / "file").write_text("")
    for folder, limit_s in ((tmp_path / "kept", 60), (tmp_path / "file", 0)):
        results = KeptResults(folder, kept_from_s=limit_s)
        calls = [results.of(tmp_path / "reference.py", "key", lambda: {"y": np.ones(1)}) for _ in range(2)]
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
