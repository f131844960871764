"""`--dump-wrong`: the arrays of wrong results as files, numbered on from what is there."""

import json

import numpy as np

WRONG = """\
def double(grid, block, x, y, n):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    if A > 1:
        y.view("int32")[n // 2] += A
    return A + B
"""


def _trials(folder):
    (journal,) = (folder.path / "runs").glob("*.jsonl")
    return [json.loads(line).get("trial", {}) for line in journal.read_text().splitlines()]


def test_the_first_wrong_results_are_written_as_arrays(folder):
    folder.write(WRONG)
    folder.search("--engine", "exhaustive", "--dump-wrong", "wrong")
    written = sorted(path.name for path in (folder.path / "wrong").iterdir())
    assert written == [f"wrong-{number}" for number in range(1, 6)]
    first = folder.path / "wrong" / "wrong-1"
    found, expected = (np.load(first / f"y.{name}.npy") for name in ("found", "expected"))
    assert found.shape == expected.shape == (1,) and found[0] - expected[0] == 2
    (detail,) = [row["detail"] for row in _trials(folder) if str(first) in row.get("detail", "")]
    assert detail == f"{(first / 'what.txt').read_text().strip()}; arrays in {first}"
    assert sorted(path.name for path in first.iterdir()) == ["what.txt", "y.expected.npy", "y.found.npy"]


def test_a_second_search_continues_the_numbers(folder):
    folder.write(WRONG.replace("if A > 1", "if A == 2 and B == 0"))
    for _ in range(2):
        folder.search("--engine", "exhaustive", "--fresh", "--dump-wrong", "wrong")
    assert sorted(path.name for path in (folder.path / "wrong").iterdir()) == ["wrong-1", "wrong-2"]


def test_a_default_that_is_wrong_names_its_arrays(folder):
    folder.write(WRONG.replace("A > 1", "A"))
    done = folder.run("search", "double.yaml", "--device", "fake", "--dump-wrong", "wrong")
    assert done.returncode == 1 and f"arrays in {folder.path}/wrong/wrong-1" in done.stderr
    assert "--dump-wrong DIR" not in done.stderr  # it was given


def test_a_folder_that_cannot_be_written_is_named_first(folder):
    (folder.path / "file").write_text("")
    done = folder.run("search", "double.yaml", "--device", "fake", "--dump-wrong", "file")
    assert done.returncode == 1 and "--dump-wrong file: cannot be written" in done.stderr
