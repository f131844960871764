"""Kernels that really hang, crash and cheat: each costs one trial, and the right winner is named."""

import json
import os
import subprocess
import sys
import zlib

import numpy as np
import pytest

from autotune.core.text import MAX_SAID
from autotune.evaluation.journal import read_trials

EXPECTED = {
    "compile_error": ("compile_error", "this configuration does not compile"),
    "compile_hang": ("compile_timeout", "more than 3 s"),
    "compile_crash": ("compile_error", "SIGSEGV"),
    "hang": ("timeout", "did not end within 3 s"),
    "crash": ("crashed", "SIGSEGV"),
    "raise": ("crashed", "an error that sticks"),
    "write_nothing": ("wrong_result", "y was never written"),
    "miscompile": ("wrong_result", "y[0] is"),
    "out_of_bounds": ("out_of_bounds", "wrote outside y"),
    "change_input": ("wrong_result", "changed its input x[0]"),
}


def test_every_fault_is_one_trial_with_its_status_and_the_honest_best_wins(root, tmp_path):
    command = ["search", root / "examples/faults/faults.yaml", "--device", "fake", "--json"]
    limits = [
        "--timeout",
        "3",
        "--compile-timeout",
        "3",
        "--journal",
        tmp_path / "f.jsonl",
        "--cache",
        tmp_path,
    ]
    done = subprocess.run(
        [sys.executable, "-m", "autotune", *map(str, command + limits)],
        capture_output=True,
        text=True,
        cwd=root,
    )
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert result["config"] == {"FAULT": "none", "SPEED": 4}
    assert result["trials"] == len(EXPECTED) + 4

    trials = read_trials(tmp_path / "f.jsonl")
    by_fault = {trial.config["FAULT"]: trial for trial in trials}
    for fault, (status, words) in EXPECTED.items():
        assert by_fault[fault].status.value == status, fault
        assert words in by_fault[fault].detail, fault


def test_an_error_text_of_megabytes_costs_the_journal_its_beginning_and_end_only(folder):
    folder.write("""\
from autotune.errors import CompileError, LaunchError
TEXT = "begins " + 3_000_000 * "x" + " ends"

def compiling():
    if A == 3:
        raise CompileError(TEXT)
    if A == 4:
        raise ValueError(TEXT)

def double(grid, block, x, y, n):
    if A == 5:
        raise LaunchError(TEXT)
    if A == 6:
        raise ValueError(TEXT)
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return 1.0
""")
    result = folder.search()
    journal = folder.path / result["journal"]
    assert journal.stat().st_size < 500_000
    details = {trial.config["A"]: trial.detail for trial in read_trials(journal) if trial.failure}
    assert details.keys() == {3, 4, 5, 6}
    for detail in details.values():
        assert "begins xxx" in detail and "xxx ends" in detail and len(detail) <= MAX_SAID
        assert "letters are left out" in detail and "[... 2,99" in detail


def test_a_kernel_right_on_one_input_only_fails_in_the_last_round(folder):
    folder.write("""\
def double(grid, block, x, y, n):
    source, target = x.view("int32"), y.view("int32")
    target[:n] = 2 * source[:n]
    if A == 5 and n == 1000 and source[0] != FIRST:   # right by luck, for the inputs of the search alone
        target[0] = 0
    return (A - 5) ** 2 + B + 1.0
""")
    kernel = (folder.path / "double.py").read_text()
    folder.write(kernel.replace("FIRST", str(_first_input())))
    result = folder.search()
    assert result["config"] == {"A": 4, "B": 0} or result["config"] == {"A": 6, "B": 0}
    trials = read_trials(folder.path / result["journal"])
    failed = [trial for trial in trials if trial.failed_last_round]
    assert {trial.config["A"] for trial in failed} == {5}


def test_a_kernel_that_is_wrong_in_few_of_many_runs_is_not_stored(folder):
    folder.write("""\
RUNS = 0

def double(grid, block, x, y, n):
    global RUNS
    RUNS += 1
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    if A == 5 and RUNS % 97 == 0:
        y.view("int32")[0] += 1
    return (A - 5) ** 2 + B + 1.0
""")
    result = folder.search(COLUMNS="80")  # in a process of its own, with as many runs as a user's
    assert result["config"] == {"A": 4, "B": 0} or result["config"] == {"A": 6, "B": 0}
    failed = [trial for trial in read_trials(folder.path / result["journal"]) if trial.failed_last_round]
    assert {trial.config["A"] for trial in failed} == {5}
    assert any(" of the same: " in trial.detail for trial in failed)


def test_a_default_that_fails_stops_the_search_with_the_reason(folder):
    folder.write('def double(grid, block, x, y, n):\n    y.view("int32")[:n] = 3\n')
    done = folder.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 1
    assert "default configuration fails" in done.stderr and "wrong_result" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_default_that_is_mended_is_searched_though_others_were_right_before(folder):
    """They were tried to find the cause; with their trials in the journal, the edit would need `--fresh`."""
    kernel = (folder.path / "double.py").read_text()
    folder.write(kernel.replace("2 * x", "(2 + (A == 1)) * x"))
    assert "wrong_result" in folder.run("search", "double.yaml", "--device", "fake").stderr
    folder.write(kernel)
    assert folder.search("--budget", "1")["resumed"] == 0


def test_a_reference_that_raises_is_named(folder):
    (folder.path / "reference.py").write_text(
        "def reference(inputs, sizes):\n    raise ValueError('no idea')\n"
    )
    done = folder.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 1
    assert "reference.py" in done.stderr and "no idea" in done.stderr and "Traceback" not in done.stderr


def test_a_time_below_what_the_memory_allows_is_not_believed(folder):
    folder.write(
        'def double(grid, block, x, y, n):\n    y.view("int32")[:n] = 2 * x.view("int32")[:n]\n'
        "    return 1.0 if A < 5 else 0.0 if A == 5 else float('inf')\n"
    )
    result = folder.search()
    assert result["config"]["A"] < 5
    assert result["counts"]["measurement_error"] == 5


def test_a_reference_that_forgets_an_output_is_refused(folder):
    (folder.path / "reference.py").write_text("def reference(inputs, sizes):\n    return {}\n")
    done = folder.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 1 and "nothing for the out argument y" in done.stderr


@pytest.mark.parametrize("step", ["grid: [6 - A]", "when: A < 6, grid: [1]"])
def test_a_launch_that_one_configuration_cannot_make_is_one_trial(folder, step):
    folder.edit("grid: [1]", step)
    result = folder.search()
    assert result["counts"]["launch_error"] == 2 and result["resumed"] == 0
    assert result["config"] == {"A": 5, "B": 0}


def test_a_launch_that_the_default_cannot_make_names_file_and_size(folder):
    folder.edit("grid: [1]", "grid: [n - 17]")
    done = folder.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 2
    assert "double.yaml" in done.stderr and "at n=1" in done.stderr and "n - 17" in done.stderr


@pytest.mark.parametrize("function", ["maximum", "fmax", "minimum", "fmin"])
def test_an_output_that_was_never_initialised_does_not_pass(folder, function):
    folder.edit("dtypes: [int32]", "dtypes: [float32]")
    folder.edit("dtype: int32, shape: [n], role: in", "dtype: DTYPE, shape: [n], role: in")
    folder.edit("dtype: int32, shape: [n], role: out", "dtype: DTYPE, shape: [n], role: out")
    folder.write(f"""\
import numpy as np

def double(grid, block, x, y, n):
    y, x = y.view("float32"), x.view("float32")
    y[:n] = 2 * x[:n] if A == 1 else np.{function}(y[:n], 2 * x[:n])
    return 1.0 / A
""")
    assert folder.search()["config"]["A"] == 1


def test_work_that_is_done_only_once_is_found(folder):
    folder.edit("arguments: [x, y, n]", "arguments: [x, y, n, done]")
    folder.edit("  - {name: n,", "  - {name: done, dtype: int32, shape: [1], role: scratch}\n  - {name: n,")
    folder.write("""\
def double(grid, block, x, y, n, done):
    flag = done.view("int32")
    if A == 1 or flag[0] != 42:
        y.view("int32")[:n] = 2 * x.view("int32")[:n]
        flag[0] = 42
        return 10.0
    return 0.01
""")
    result = folder.search()
    assert result["config"]["A"] == 1 and result["time_ms"] == 10.0


def test_configurations_that_differ_in_a_scalar_only_are_not_one(folder):
    folder.edit(
        "{name: n, dtype: int32, value: n}",
        "{name: n, dtype: int32, value: n}\n  - {name: a, dtype: int32, value: A}",
    )
    folder.edit("arguments: [x, y, n]", "arguments: [x, y, n, a]")
    folder.write("""\
def double(grid, block, x, y, n, a):
    y.view("int32")[:n] = (3 if a == 4 else 2) * x.view("int32")[:n]
    return 1.0 + abs(float(a) - 5)
""")
    result = folder.search()
    assert result["config"]["A"] == 5 and result["counts"]["wrong_result"] == 3


def test_an_output_whose_shape_follows_the_configuration_is_checked_as_such(folder):
    folder.edit(
        "name: y, dtype: int32, shape: [n]", "name: y, dtype: int32, shape: [n * (1 if A < 4 else 2)]"
    )
    done = folder.run("search", "double.yaml", "--device", "fake", "--json")
    assert done.returncode == 0 and "IndexError" not in done.stderr
    assert json.loads(done.stdout)["config"]["A"] < 4


def test_shapes_of_its_own_that_cannot_be_prepared_again_end_no_search(folder):
    """The reference of these shapes fails the second time, as where others took the memory in between."""
    folder.edit("shape: [n], role: in", "shape: [n + (A == 3)], role: in")
    folder.edit("shape: [n], role: out", "shape: [n + (A == 3)], role: out")
    (folder.path / "reference.py").write_text("""\
import pathlib
def reference(inputs, sizes):
    if inputs["x"].size == 1001:
        pathlib.Path(__file__).with_name("first").touch(exist_ok=False)
    return {"y": 2 * inputs["x"]}
""")
    folder.write("""\
import os, signal
def double(grid, block, x, y, n):
    if A == 3 and n == 1000:
        os.kill(os.getpid(), signal.SIGSEGV)
    y.view("int32")[:] = 2 * x.view("int32")[:]
    return (A - 5) ** 2 + B + 1.0
""")
    result = folder.search("--engine", "exhaustive")
    assert result["config"] == {"A": 5, "B": 0} and result["counts"] == {"ok": 14, "wrong_result": 3}
    (row,) = [
        trial for trial in read_trials(folder.path / result["journal"]) if trial.config == {"A": 3, "B": 0}
    ]
    assert "FileExistsError" in row.detail


def test_a_slow_reference_is_not_held_against_a_configuration(folder, monkeypatch):
    monkeypatch.setattr(os, "getloadavg", lambda: (1e3,) * 3)  # a slow moment is made good
    reference = (folder.path / "reference.py").read_text()
    slow = "    time.sleep(1.2 if sizes['n'] > 17 else 0)\n    return"
    (folder.path / "reference.py").write_text("import time\n" + reference.replace("    return", slow))
    folder.edit("name: x, dtype: int32, shape: [n]", "name: x, dtype: int32, shape: [n + (A == 5)]")
    folder.edit("name: y, dtype: int32, shape: [n]", "name: y, dtype: int32, shape: [n + (A == 5)]")
    kernel = (folder.path / "double.py").read_text()
    folder.write(kernel.replace("[:n]", "[:n + (A == 5)]"))
    folder.edit("A: [1, 2, 3, 4, 5, 6]", "A: [1, 5]")
    folder.edit("B: [0, 1, 2]", "B: [0]")
    folder.edit("  second: {A: 2}", "  second: {A: 5}")
    result = folder.search("--timeout", "1")
    assert result["config"] == {"A": 5, "B": 0} and result["counts"] == {"ok": 2}


def test_a_default_that_dies_in_one_last_round_does_not_spoil_the_journal(folder):
    folder.write(f"""\
import os, pathlib, signal

def double(grid, block, x, y, n):
    fresh_inputs = n == 1000 and x.view("int32")[0] != {_first_input()}
    deaths = len(list(pathlib.Path().glob("death*")))
    if (A, B) == (1, 0) and fresh_inputs and deaths < 2:    # the second one in a process of its own
        pathlib.Path(f"death{{deaths}}").touch()
        os.kill(os.getpid(), signal.SIGSEGV)
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return (A - 5) ** 2 + B + 1.0
""")
    done = folder.run("search", "double.yaml", "--device", "fake", "--json")
    assert done.returncode == 1 and "last round" in done.stderr, done.stderr
    again = folder.run("search", "double.yaml", "--device", "fake", "--json")
    assert again.returncode == 0, again.stderr
    assert json.loads(again.stdout)["config"] == {"A": 5, "B": 0}


def test_what_one_configuration_writes_far_out_of_bounds_does_not_follow_the_next(folder):
    folder.write("""\
import os

def double(grid, block, x, y, n):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    if A == 2:
        y.base[:] = 0
        os.spoilt = True                # the process, from now on
    if getattr(os, "spoilt", False):
        y.view("int32")[0] += 1
    return (A - 5) ** 2 + B + 1.0
""")
    assert folder.search("--engine", "exhaustive")["counts"] == {"ok": 14, "out_of_bounds": 3}


def test_a_shorter_search_does_not_replace_a_better_result(searched_folder):
    short = searched_folder.search("--engine", "random", "--budget", "1", "--fresh")
    assert (short["config"], short["time_ms"]) == ({"A": 5, "B": 0}, 1.0)


def test_the_shortest_time_limit_still_runs_the_default(folder):
    result = folder.search("--time", "0.000001")
    assert result["trials"] == 1 and result["config"] == {"A": 1, "B": 0}


def _first_input():
    """The first element of x under the seed of the search."""
    generator = np.random.default_rng([0, zlib.crc32(b"x")])
    return int(generator.integers(-100, 100, 1000, np.int32, endpoint=True)[0])
