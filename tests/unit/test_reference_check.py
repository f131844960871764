"""`autotune space` runs the reference once, and says what a search would say about it."""

import json

import pytest

from autotune.evaluation import reference_check

HEAD = "def reference(inputs, sizes):\n    "
WRONG = {
    "it raises": ('return inputs["z"]', 2, "reference(inputs, sizes) raised KeyError: 'z'"),
    "no return": ('y = inputs["x"]', 1, "reference() returned None, as a function without `return` does"),
    "a wrong name": ('return {"z": inputs["x"]}', 2, "returned 'z', which is no out or inout argument"),
    "a shape that is right for a size of 1": (
        'return {"y": inputs["x"][:1]}',
        2,
        "returned an array of shape [1] for y; return one of shape [17], as the space file declares, "
        "or correct the shape there",
    ),
    "a type": ('return {"y": inputs["x"] / 2}', 2, "which int32 cannot hold; return whole numbers"),
}
SILENT = {
    "right": 'return {"y": 2 * inputs["x"]}',
    "slow": "import time; time.sleep(600)",
    "ends the process": "import os; os._exit(3)",
}


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr(reference_check, "_TIMEOUT_S", 60.0)


def findings(folder, text, device="fake"):
    (folder.path / "reference.py").write_text(text)
    done = folder.run("space", "double.yaml", "--device", device, "--json")
    assert done.returncode == 0, done.stderr
    return [one for one in json.loads(done.stdout)["findings"] if one["kind"] == "reference"]


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_reference_is_found_without_a_search(folder, case):
    body, line, words = WRONG[case]
    (found,) = findings(folder, f"{HEAD}{body}\n")
    assert words in found["detail"] and found["subject"] == "reference.py"
    assert found["place"].endswith(f"reference.py:{line}")


def test_a_function_of_inputs_that_no_argument_asks_for_is_found(folder):
    text = f"def inputs(sizes, seed):\n    return {{}}\n\n\n{HEAD}{SILENT['right']}\n"
    (found,) = findings(folder, text)
    assert "no argument has `fill: inputs`" in found["detail"] and found["place"].endswith("reference.py:1")


@pytest.mark.parametrize("case", SILENT)
def test_a_reference_that_is_right_or_slow_is_not_mentioned(folder, case, monkeypatch):
    if case == "slow":
        monkeypatch.setattr(reference_check, "_TIMEOUT_S", 0.5)
    assert not findings(folder, f"{HEAD}{SILENT[case]}\n")


def test_one_for_a_gpu_that_is_not_here_is_left_alone(folder):
    folder.edit("dialect: python", "dialect: cuda")
    folder.edit("source: double.py", "source: double.cu")
    (folder.path / "double.cu").write_text("__global__ void double(const int *x, int *y, int n) {}\n")
    wrong = f"{HEAD}return None\n"
    assert not findings(folder, f"import cupy as np\n{wrong}", "sm_90")
    assert not findings(folder, f"{HEAD}from torch import cuda\n", "sm_90")
    named = "\ndef baseline_torch(inputs, sizes):\n    import torch\n"
    assert findings(folder, f"# faster than torch\n{wrong}{named}", "sm_90")
