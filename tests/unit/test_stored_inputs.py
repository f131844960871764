"""Real inputs: from .npy files and from `inputs` in the reference file."""

import json
from pathlib import Path

import numpy as np
import pytest

from autotune import InputError, best_config
from autotune.core.trials import Problem
from autotune.errors import SetupError
from autotune.problem import stored_inputs
from autotune.problem.stored_inputs import StoredInputs, content_sha256
from autotune.space import load_space
from tests.conftest import wait_until

FILL = "fill: {integers: [-100, 100]}"
INPUTS = """\
import numpy

def inputs(sizes, rng, data=""):
    low = {"": 0, "small": 0, "large": 1000}[data]
    return {"x": rng.integers(low, low + 10, sizes["n"])}

def reference(inputs, sizes):
    return {"y": 2 * inputs["x"]}
"""
CHOOSY = """\
def double(grid, block, x, y, n):
    x, y = x.view("int32"), y.view("int32")
    y[:n] = 2 * x[:n]
    return 1.0 + (A if x[0] < 1000 else 7 - A)
"""


def run(folder, *arguments):
    done = folder.run(*arguments)
    return done.returncode, done.stdout, done.stderr


def keys(folder):
    (journal,) = folder.path.glob("runs/*.jsonl")
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    return [row["trial"]["key"] for row in rows if "trial" in row]


@pytest.fixture
def made(folder):
    folder.edit(FILL, "fill: inputs")
    (folder.path / "reference.py").write_text(INPUTS)
    return folder


def stored(folder, **problem):
    known = StoredInputs(load_space(folder.space), folder.path)
    return known.arrays_of(Problem(**({"sizes": {"n": 1000}, "dtype": "int32"} | problem)))


def test_a_search_takes_its_inputs_from_the_reference_file(made):
    code, out, err = run(made, "search", "double.yaml", "--device", "fake", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["config"]["A"] == 5 and found["compared"]
    (file,) = made.path.glob("cache/*/double.json")
    (entry,) = json.loads(file.read_text())["entries"]
    assert len(entry["data_sha256"]) == 64 and "data" not in entry


def test_what_inputs_returns_is_drawn_anew_for_each_seed_and_size(made):
    problems = [{}, {"seed": 1}, {"sizes": {"n": 17}}]
    known = StoredInputs(load_space(made.space), made.path)
    found = [
        known.arrays_of(Problem(**({"sizes": {"n": 1000}, "dtype": "int32"} | problem)))["x"]
        for problem in problems
    ]
    assert len({array.sha256 for array in found}) == 3
    assert [array.shape for array in found] == [(1000,), (1000,), (17,)]
    assert np.load(found[0].path).dtype == np.int32
    assert known.arrays_of(Problem({"n": 1000}, "int32"))["x"] == found[0]


def test_one_process_makes_the_inputs_of_all_sizes_until_it_fails_or_is_closed(made):
    """Its start takes longer than most inputs."""
    (made.path / "reference.py").write_text(
        "import os\nimport numpy as np\n\ndef inputs(sizes, rng):\n"
        "    assert sizes['n'] != 3\n    return {'x': np.full(sizes['n'], os.getpid())}\n"
    )
    known = StoredInputs(load_space(made.space), made.path)

    def process_of(n):
        return int(np.load(known.arrays_of(Problem({"n": n}, "int32"))["x"].path)[0])

    first = process_of(1)
    assert process_of(2) == first
    with pytest.raises(SetupError):
        process_of(3)
    second = process_of(4)
    assert second != first
    known.close()
    wait_until(lambda: not Path(f"/proc/{second}").exists())
    assert process_of(5) != second
    known.close()


def test_a_file_fills_an_array(folder):
    folder.edit(FILL, "fill: {file: x.npy}")
    folder.edit("verify_sizes: [{n: 1}, {n: 17}]\n", "")
    np.save(folder.path / "x.npy", np.arange(1000))
    code, _, err = run(folder, "search", "double.yaml", "--device", "fake", "--json")
    assert code == 0, err
    before = keys(folder)
    np.save(folder.path / "x.npy", np.arange(1000) + 1)
    assert run(folder, "search", "double.yaml", "--device", "fake", "--json")[0] == 0
    again = keys(folder)
    assert again[: len(before)] == before
    assert len(again) == 2 * len(before) == len(set(again))


def test_a_file_of_the_right_type_is_not_copied(folder):
    folder.edit(FILL, "fill: {file: x.npy}")
    values = np.arange(1000, dtype=np.int32)
    np.save(folder.path / "x.npy", values)
    found = stored(folder)["x"]
    assert found.path == str(folder.path / "x.npy")
    assert found.sha256 == content_sha256(values)


def test_an_array_of_several_chunks_is_stored_and_hashed_whole(folder, monkeypatch):
    monkeypatch.setattr(stored_inputs, "_CHUNK_BYTES", 1000)
    folder.edit(FILL, "fill: {file: x.npy}")
    values = np.arange(1003)
    hashes = set()
    for place in (None, 0, 500, 1002):
        values[place or 0] += place is not None
        np.save(folder.path / "x.npy", values)
        found = stored(folder, sizes={"n": 1003})["x"]  # converted to int32
        assert np.array_equal(np.load(found.path), values)
        assert found.sha256 == content_sha256(values.astype(np.int32))
        hashes.add(found.sha256)
    assert len(hashes) == 4


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (np.arange(1000) + 0.5, "x.npy: argument x: has values that int32 cannot hold"),
        (np.arange(1000) * 1j, "x.npy: argument x: elements of type complex128; expected int32"),
        (np.array([{}]), "x.npy: not a .npy file of numbers; argument x is filled from it"),
    ],
)
def test_a_file_that_cannot_be_used_says_why(folder, content, message):
    folder.edit(FILL, "fill: {file: x.npy}")
    np.save(folder.path / "x.npy", content, allow_pickle=True)
    with pytest.raises(InputError, match=message):
        stored(folder)


def test_a_file_of_another_shape_is_told_before_anything_runs(folder):
    folder.edit(FILL, "fill: {file: x.npy}")
    np.save(folder.path / "x.npy", np.arange(10))
    code, _, err = run(folder, "search", "double.yaml", "--device", "fake")
    assert code == 2
    assert "argument x: the data has the shape [10], the space [1] (at n=1)" in err


def test_a_file_that_is_not_there_is_told_with_its_line(folder):
    folder.edit(FILL, "fill: {file: x.npy}")
    code, _, err = run(folder, "space", "double.yaml", "--device", "fake")
    assert code == 2
    assert "double.yaml:20: arguments[0].fill.file: no such file:" in err


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("return 1", "returned int, expected a dict of arrays by argument name"),
        ("return {}", "returned nothing for x"),
        ("return {'x': rng.random(3), 'z': 1}", "returned z, with no fill: inputs"),
        ("return {'x': rng.random(3)}", "argument x: has values that int32 cannot hold"),
    ],
)
def test_what_is_wrong_with_inputs_is_said(made, body, message):
    (made.path / "reference.py").write_text(f"def inputs(sizes, rng):\n    {body}\n")
    known = StoredInputs(load_space(made.space), made.path)
    for _ in range(2):
        with pytest.raises(SetupError, match=rf"reference.py: inputs\(\) at n=1000: .*{message}"):
            known.arrays_of(Problem({"n": 1000}, "int32"))


def test_a_reference_without_inputs_is_told(made):
    (made.path / "reference.py").write_text("def reference(inputs, sizes): ...\n")
    with pytest.raises(
        SetupError, match=r"expected a function inputs\(sizes, rng\) that fills x, found none"
    ):
        stored(made)


def test_each_content_has_a_result_of_its_own(made):
    made.edit("dtypes: [int32]", "dtypes: [int32]\ndata: [small, large]")
    made.write(CHOOSY)
    for data, best in (("small", 1), ("large", 6)):
        code, out, err = run(made, "search", "double.yaml", "--device", "fake", "--data", data, "--json")
        assert code == 0, err
        assert json.loads(out)["config"]["A"] == best
        assert (made.path / f"runs/double.fake-gpu.n1000.int32.{data}.jsonl").exists()
    code, out, err = run(made, "check", "double.yaml", "--device", "fake", "--data", "large", "--json")
    assert code == 0 and [row["config"]["A"] for row in json.loads(out)] == [6], err
    cache = made.path / "cache"
    asked = {"device": "fake-gpu", "n": 1000, "cache": cache, "strict": True}
    assert best_config("double", data="small", **asked)["A"] == 1
    assert best_config("double", data="large", **asked)["A"] == 6
    with pytest.raises(
        InputError, match="was tuned for several inputs; choose one: data='large' or data='small'"
    ):
        best_config("double", **asked)


def test_a_question_for_one_content_is_noted_and_tuned(made):
    made.edit("dtypes: [int32]", "dtypes: [int32]\ndata: [small, large]")
    run(made, "search", "double.yaml", "--device", "fake")
    cache = made.path / "cache"
    best = best_config("double", "fake-gpu", n=1000, data="large", cache=cache, on_miss="record")
    assert best.match.tier.value == "default"
    code, _, err = run(made, "search", "double.yaml", "--device", "fake", "--wanted")
    assert code == 0, err
    assert best_config("double", "fake-gpu", n=1000, data="large", cache=cache, strict=True)["A"] == 5


def test_an_unknown_content_is_refused(made):
    made.edit("dtypes: [int32]", "dtypes: [int32]\ndata: [small, large]")
    code, _, err = run(made, "search", "double.yaml", "--device", "fake", "--data", "larg")
    assert code == 2 and "unknown data 'larg'; did you mean large?" in err


def test_names_of_contents_without_a_use_are_refused(folder):
    folder.edit("dtypes: [int32]", "dtypes: [int32]\ndata: [small]")
    code, _, err = run(folder, "space", "double.yaml", "--device", "fake")
    assert code == 2 and "data: no input depends on it" in err


VARIED = """\
import numpy

def inputs(sizes, rng, variant=""):
    low = {"": 0, "large": 1000}[variant]
    return {"x": rng.integers(low, low + 10, sizes["n"])}

def reference(inputs, sizes):
    return {"y": 2 * inputs["x"]}
"""
WRONG_ON_LARGE = """\
def double(grid, block, x, y, n):
    x, y = x.view("int32"), y.view("int32")
    y[:n] = 2 * x[:n] + (x[0] >= 1000 and A == 2)
    return 1.0 + (0 if A == 2 else A)
"""


def varied(folder, names):
    folder.edit(FILL, "fill: inputs")
    folder.edit("verify: {rtol: 0, atol: 0}", f"verify: {{rtol: 0, atol: 0, variants: [{names}]}}")
    (folder.path / "reference.py").write_text(VARIED)
    folder.write(WRONG_ON_LARGE)


def test_what_is_wrong_on_a_variant_of_the_inputs_is_not_stored(folder):
    varied(folder, "large")
    code, out, err = run(folder, "search", "double.yaml", "--device", "fake", "--json")
    assert code == 0, err
    found = json.loads(out)
    assert found["config"]["A"] == 1 and "data large" in found["checks"]


def test_a_variant_is_not_checked_without_sizes_to_verify(folder):
    varied(folder, "large")
    folder.edit("verify_sizes: [{n: 1}, {n: 17}]\n", "")
    code, out, err = run(folder, "search", "double.yaml", "--device", "fake", "--json")
    assert code == 0, err
    assert "data large (no verify_sizes are given)" in json.loads(out)["checks"]


def test_a_variant_that_the_function_does_not_make_is_told(folder):
    varied(folder, "large, small")
    code, _, err = run(folder, "search", "double.yaml", "--device", "fake", "--json")
    assert code == 0 and "without data small (" in err and "KeyError: 'small'" in err


def test_variants_need_a_function_that_makes_them(folder):
    folder.edit("verify: {rtol: 0, atol: 0}", "verify: {rtol: 0, atol: 0, variants: [large]}")
    with pytest.raises(InputError, match="no function makes variants: expected a fill that is inputs"):
        load_space(folder.space)
