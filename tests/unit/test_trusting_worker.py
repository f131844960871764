"""`verify: {full: trusted}`: at the full size, confirmed configurations say what is expected."""

import pytest

from autotune.tuning.context import POLICY
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.shared_processes import open_processes
from autotune.tuning.task import Target, read_task
from tests.conftest import opened
from tests.unit.test_child import _alive
from tests.unit.test_worker import pid

REFERENCE = """\
def reference(inputs, sizes):
    assert sizes["n"] < 1000, "the full size is too slow"
    return {"y": 2 * inputs["x"]}
"""
KERNEL = """\
def double(grid, block, x, y, n):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    if WRONG and n == 1000:
        y.view("int32")[n - 1] += 1
    return (A - 5) ** 2 + B + 1.0
"""


@pytest.fixture
def trusting(folder):
    folder.edit("verify: {rtol: 0, atol: 0}", "verify: {rtol: 0, atol: 0, full: trusted}")
    (folder.path / "reference.py").write_text(REFERENCE)
    folder.write(KERNEL.replace("WRONG", "False"))
    return folder


def test_the_reference_is_not_run_at_the_full_size(trusting):
    assert trusting.search("--engine", "exhaustive")["config"] == {"A": 5, "B": 0}
    assert trusting.search("--engine", "exhaustive")["resumed"] == 17


def test_what_is_wrong_only_at_the_full_size_is_found(trusting):
    trusting.write(KERNEL.replace("WRONG", "(A, B) == (5, 0)"))
    result = trusting.search("--engine", "exhaustive")
    assert result["config"] == {"A": 4, "B": 0}
    (journal,) = (trusting.path / "runs").glob("*.jsonl")
    assert "wrong_result" in journal.read_text() and "y[999]" in journal.read_text()


def test_another_one_confirms_where_the_first_is_wrong(trusting):
    trusting.write(KERNEL.replace("WRONG", "(A, B) not in ((1, 0), (3, 2))"))
    assert trusting.search("--engine", "exhaustive")["config"] in ({"A": 3, "B": 2}, {"A": 1, "B": 0})


@pytest.mark.parametrize("wrong", ["(A, B) == (1, 0)", "(A, B) != (1, 0)"])
def test_a_default_that_others_contradict_is_refused(trusting, wrong):
    trusting.write(KERNEL.replace("WRONG", wrong))
    done = trusting.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert "no other configuration of up to 20 confirms the results of the default (A=" in last
    assert "is right at verify_sizes, but differs at the full size: y at element 999" in last
    assert "1 differ); mend the kernel" in last


def test_a_default_that_the_reference_contradicts_is_refused(trusting):
    trusting.write(KERNEL.replace("WRONG and n == 1000", "A == 1"))
    done = trusting.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 1
    assert "the default configuration fails, so its results cannot be trusted: wrong_result" in done.stderr


def test_a_broken_reference_is_not_blamed_on_the_kernel(trusting):
    reference = trusting.path / "reference.py"
    reference.write_text('def reference(inputs, sizes):\n    return {"y": 2 * inputs["x"][:1]}\n')
    done = trusting.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 1 and "reference.py:2: `return" in done.stderr.splitlines()[-1]
    assert "default configuration" not in done.stderr


def test_one_binary_confirms_nothing(trusting):
    trusting.write(KERNEL.replace("WRONG", "False").replace("(A - 5) ** 2 + B + 1.0", "1.0"))
    done = trusting.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 1 and "(none of these is right at verify_sizes and" in done.stderr


def test_it_needs_sizes_at_which_the_reference_runs(trusting):
    trusting.edit("verify_sizes: [{n: 1}, {n: 17}]\n", "")
    done = trusting.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 2 and "verify.full: trusted configurations need verify_sizes" in done.stderr


def test_the_device_process_of_one_problem_ends_before_that_of_the_next(trusting):
    task = read_task(Target(trusting.path / "double.yaml", "fake"))
    options, observer, pids = Options(journal=trusting.path / "j.jsonl"), Observer(), []
    with open_processes(task, options, observer) as processes:
        for _ in range(2):
            with opened(task, options, observer, POLICY, processes) as context:
                pids.append(context.worker.run(pid, timeout_s=60))
        assert [_alive(one) for one in pids] == [False, True]
