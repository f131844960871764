"""What is wrong with a reference file is said in one line: file, line, what was expected, what to do."""

import functools

import numpy as np
import pytest

from autotune.core.trials import Problem
from autotune.devices.element_types import numpy_dtype
from autotune.errors import BrokenReference
from autotune.problem.reference import expected_results, run_magnitude, run_reference
from autotune.problem.sampling import MAX_WHOLE
from autotune.problem.workload import Array
from tests.conftest import KERNEL

ARRAYS = (
    Array("x", "float32", (2, 3), "in", ("uniform", 0, 1)),
    Array("y", "float32", (2, 3), "out", None),
    Array("total", "int32", (1,), "inout", ("constant", 0)),
)
HEAD = "import numpy as np\n\n\ndef reference(inputs, sizes):\n    "

CASES = {
    "it raises": (
        'return {"y": inputs["x"] / sizes["m"]}',
        ':5: reference(inputs, sizes) raised KeyError: \'m\' in `return {"y": inputs["x"] / sizes["m"]}`',
    ),
    "an input that is not there": ('return {"y": inputs["totl"]}', "did you mean total?"),
    "it changes an input": (
        'inputs["x"][0] = 1',
        ":5: reference(inputs, sizes) raised ValueError: assignment",
    ),
    "and what to do": ('inputs["x"][0] = 1', "inputs are read-only: change a copy"),
    "an axis that is not there": (
        'return {"y": inputs["x"][0, 0, 0]}',
        "; inputs have the `shape` of the space file: x [2, 3] (at",
    ),
    "an axis that no input has": (
        'return {"y": np.zeros((1, 1, 1))[0, 0, 0, 0]}',
        'were indexed in `return {"y": np.zeros((1, 1, 1))[0, 0, 0, 0]}` (at',
    ),
    "no return": ('y = inputs["x"]', ":4: reference() returned None, as a function without `return` does; "),
    "no return but a helper's": (
        "def double(x):\n        return 2 * x\n\n    double(1)",
        ":4: reference() returned None",
    ),
    "what to return": ('y = inputs["x"]', 'end it with `return {"y": ...}`, a dict of arrays'),
    "no dict": ('return inputs["x"]', "`: reference() returned ndarray; end it with `return {"),
    "where it returns": ('return inputs["x"]', ':5: `return inputs["x"]`: reference() returned'),
    "lists": ('return {"y": [[1], [1, 2]]}', "returned lists of different lengths for y; expected an array"),
    "a wrong name": ('return {"Y": 0}', "reference() returned 'Y', which is no out or inout argument; "),
    "a missing name": ('return {"total": 1}', "returned nothing for the out argument y, but total"),
    "too few elements": (
        'return {"y": inputs["x"][0]}',
        "reference() returned an array of shape [3] for y; return one of shape [2, 3], as the",
    ),
    "the transpose": (
        'return {"y": inputs["x"].T}',
        "an array of shape [3, 2] for y; return one of shape [2, 3]",
    ),
    "texts": ('return {"y": np.full((2, 3), "a")}', "<U1 elements for y; expected numbers: float32"),
    "NaN": (
        'y = inputs["x"].copy()\n    y[1, 1] = np.nan\n    return {"y": y}',
        "NaN in 1 of 6 elements of y, the first at flat index 4",
    ),
    "fractions for integers": (
        'return {"y": inputs["x"], "total": 0.5}',
        "0.5 for total[0], which int32 cannot hold; return whole numbers",
    ),
}


def _run(folder, text):
    path = folder / "reference.py"
    path.write_text(text)
    inputs = {"x": np.ones((2, 3), np.float32), "total": np.zeros(1, np.int32)}
    for values in inputs.values():
        values.flags.writeable = False
    return path, lambda: run_reference(path, inputs, Problem({"n": 6}, "float32"), ARRAYS)


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_reference_is_told_with_its_line(tmp_path, case):
    body, words = CASES[case]
    path, run = _run(tmp_path, f"{HEAD}{body}\n")
    with pytest.raises(BrokenReference) as error:
        run()
    text = str(error.value)
    assert text.startswith(f"{path}:") and words in text and text.endswith(" (at n=6)") and "\n" not in text


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("def reference(inputs, sizes)\n    return {}\n", ":1: not valid Python: expected ':'"),
        ("import numpie\n", ":1: the file raised ModuleNotFoundError: No module named 'numpie' in `import"),
        (
            "def refrence(inputs, sizes): ...\n",
            ": expected a function reference(inputs, sizes), found only `refrence`; rename it to `reference`",
        ),
        (
            "def reference(inputs): ...\n",
            ":1: expected reference(inputs, sizes): TypeError: reference() takes 1",
        ),
    ],
)
def test_a_file_without_a_usable_reference_is_told(tmp_path, text, words):
    path, run = _run(tmp_path, text)
    with pytest.raises(BrokenReference) as error:
        run()
    assert str(error.value).startswith(f"{path}{words}")


def wrapped(function):
    return functools.wraps(function)(lambda *given: function(*given))


def test_a_decorated_reference_is_told_with_its_own_file_and_line(tmp_path):
    text = f"from {__name__} import wrapped\n\n\n@wrapped\ndef reference(inputs, sizes):\n    return 1\n"
    path, run = _run(tmp_path, text)
    with pytest.raises(BrokenReference) as error:
        run()
    assert str(error.value).startswith(f"{path}:6: `return 1`: reference() returned int")


def test_flat_results_and_numbers_stand_for_arrays_of_as_many_elements(tmp_path):
    _, run = _run(tmp_path, f'{HEAD}return {{"y": inputs["x"].reshape(-1), "total": 3.0}}\n')
    results = run()
    assert results["y"].shape == (6,) and results["total"].dtype == np.int32 and results["total"][0] == 3


@pytest.mark.parametrize(
    "dtype", ["float64", "float16", "bfloat16", "complex64", "struct(x:int32,y:float32[2])", "int32"]
)
def test_a_result_of_the_declared_type_is_taken_as_it_is_unless_it_has_nan(dtype):
    array = Array("y", dtype, (5,), "out", None)
    result = np.zeros(5, numpy_dtype(dtype))

    def found():
        return expected_results(found, {"y": result}, (array,))["y"]

    assert np.shares_memory(found(), result)
    numbers = result["y"] if result.dtype.names else result
    if dtype != "int32":
        numbers[3] = np.nan
        with pytest.raises(BrokenReference, match=r"NaN in 1 of 5 elements of y, the first at flat index 3"):
            found()


class OnDevice:
    """An array as cupy has it: no numpy function takes it before `get`."""

    __cuda_array_interface__ = ()

    def get(self):
        return np.ones((2, 3), np.float32)

    def __array__(self, *_, **__):
        raise TypeError("call get()")


def test_results_of_a_device_are_copied_to_the_host(tmp_path):
    text = f'from {__name__} import OnDevice\n{HEAD}return {{"y": OnDevice()}}\n'
    _, run = _run(tmp_path, text)
    assert run()["y"].tolist() == [1] * 6


def test_a_search_ends_with_the_line_of_the_reference(folder):
    (folder.path / "reference.py").write_text("def reference(inputs, sizes):\n    2 * inputs['x']\n")
    done = folder.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "autotune: reference.py:1: reference() returned None" in last  # as a user in the folder names it
    assert '`return {"y": ...}`, a dict of arrays (at n=1)' in last
    assert "Traceback" not in done.stderr and "SetupError" not in last


def test_inputs_that_raise_are_told_with_their_line(folder):
    folder.edit("fill: {integers: [-100, 100]}", "fill: inputs")
    text = "def inputs(sizes, rng):\n    return {'x': rng.integers(sizes['m'])}\n"
    (folder.path / "reference.py").write_text(text)
    done = folder.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 1 and "reference.py:2: inputs(sizes, rng) raised KeyError: 'm'" in done.stderr


@pytest.mark.parametrize("call", ["call: {inputs: [x], returns: y}\n", ""])
@pytest.mark.parametrize("reset", ["\n    s[:] = 1", ""])
def test_a_run_must_leave_what_calls_keep_as_it_was_and_the_reference_need_not_return_it(folder, call, reset):
    """Without a `call`, nobody has said that the array is hidden from callers."""
    seen = "  - {name: seen, dtype: int32, shape: [n], role: inout, fill: {constant: 1}}\n"
    folder.edit("  - {name: n,", seen + "  - {name: n,")
    folder.edit("launch:", f"{call}launch:")
    folder.edit("arguments: [x, y, n]", "arguments: [x, y, seen, n]")
    body = f'    s = seen.view("int32")[:n]\n    s[:] = 132{reset}\n    return'
    folder.write(KERNEL.replace("x, y, n", "x, y, seen, n").replace("    return", body))
    done = folder.run("search", "double.yaml", "--device", "fake")
    assert (done.returncode == 0) == bool(reset or not call), done.stderr
    if done.returncode:
        assert "seen[0] is 132, expected 1" in done.stderr
        assert "; the next call begins with what this one leaves in seen: reset it" in done.stderr
        assert "correct the one that is wrong" not in done.stderr
    else:
        unseen = "the reference does not return it"
        assert (unseen in done.stdout + done.stderr) == (not call)


def test_an_array_that_calls_keep_must_end_as_it_began(folder):
    seen = "  - {name: seen, dtype: int32, shape: [n], role: inout, fill: {constant: 1}}\n"
    folder.edit("  - {name: n,", seen + "  - {name: n,")
    folder.edit("launch:", "call: {inputs: [x], returns: y}\nlaunch:")
    folder.edit("arguments: [x, y, n]", "arguments: [x, y, seen, n]")
    text = "def reference(inputs, sizes):\n    return {'y': 2 * inputs['x'], 'seen': inputs['seen'] + 1}\n"
    (folder.path / "reference.py").write_text(text)
    done = folder.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 1
    assert "the reference changes seen, which `call` fills before the first run only: add seen" in done.stderr


def test_a_configuration_whose_arrays_the_reference_does_not_fit_has_a_wrong_result(folder):
    folder.edit("dtype: int32, shape: [n], role: out", 'dtype: int32, shape: ["n + A // 6"], role: out')
    found = folder.search("--budget", "15")
    assert found["counts"] == {"ok": 13, "wrong_result": 2}
    shown = folder.run("show", "double", "--status", "wrong_result").stdout
    assert "the reference does not fit the arrays: reference.py:2: " in " ".join(shown.split())
    assert "returned an array of shape [1] for y; return one of shape [2]" in " ".join(shown.split())


@pytest.mark.parametrize("own", ["(inputs, sizes)", "(inputs, sizes, indices)"])
@pytest.mark.parametrize("its", ["(inputs, sizes)", "(inputs, sizes, indices)"])
def test_magnitudes_are_of_the_elements_that_the_reference_computes(tmp_path, its, own):
    """A sample has other elements than the first ones of the whole."""
    x, y = (
        Array(name, "float32", (2 * MAX_WHOLE,), role, None) for name, role in (("x", "in"), ("y", "out"))
    )
    picked = {"(inputs, sizes)": "", "(inputs, sizes, indices)": "[indices['y']]"}
    path, inputs = tmp_path / "reference.py", {"x": np.linspace(-1, 1, x.count, dtype=np.float32)}
    path.write_text(
        f"def reference{its}:\n    return {{'y': inputs['x']{picked[its]}}}\n"
        f"def magnitude{own}:\n    return {{'y': 3 * abs(inputs['x']{picked[own]})}}\n"
    )
    given = path, inputs, Problem({}, "float32", 0), (x, y)
    if own == its:
        assert np.array_equal(run_magnitude(*given)["y"], 3 * np.abs(run_reference(*given)["y"]))
    else:
        with pytest.raises(BrokenReference, match=r"reference.py:3: .* with the parameters of reference"):
            run_magnitude(*given)
