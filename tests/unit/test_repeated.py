"""Inputs that repeat a period: results of many periods follow from a few, and check a run of so many."""

from types import SimpleNamespace

import numpy as np
import pytest

from autotune.core.outcomes import LARGER_SIZES, PASSED, Limit, reasons
from autotune.core.records import Config
from autotune.core.trials import Failure, Problem
from autotune.problem.large_indices import IndexLimit, unknown_beyond
from autotune.problem.repeated import RepeatedData
from autotune.problem.workload import Workload
from autotune.processes.deadline import Deadline
from autotune.tuning import stress_checks
from autotune.tuning.context import BuiltConfig
from autotune.tuning.options import Options
from autotune.tuning.stress_checks import check_larger_sizes, run_beyond
from autotune.tuning.task import Target, read_task
from tests.conftest import opened
from tests.further_sizes_example import sizes_and_instance

SPACE = """\
schema: 1
kernel: changed
dialect: cuda
source: changed.cu
reference: changed.py
dtypes: [int32]
sizes: {default: {n: 5000}}
verify_sizes: [{n: 3}, {n: 10}]
parameters:
  BLOCK: [64]
default: {BLOCK: 64}
arguments:
  - {name: x, dtype: int32, shape: INPUT, role: in, fill: {integers: [-99, 99]}}
  - {name: y, dtype: int32, shape: OUTPUT, role: out}
launch:
  - {entry: changed, grid: ["ceil_div(n, BLOCK)"], block: [BLOCK], arguments: [x, y]}
"""
SOURCE = "__global__ void changed(const int *x, int *y) {}\n"
REFERENCE = """\
import numpy as np

def reference(inputs, sizes):
    x = inputs["x"]
    return {"y": RESULT}
"""
DOUBLED = "2 * x"
NEIGHBOURS = "np.convolve(x, [1, 1, 1], 'same')"


def repeated(folder, power, result, x="[n]", y="[n]", space=SPACE):
    """The workloads of the only size, and their data, where the reference returns `result` of x."""
    space = space.replace("INPUT", x).replace("OUTPUT", y)
    sizes, instance = sizes_and_instance(folder, "changed", SOURCE, space)
    path = folder / "changed.py"
    path.write_text(REFERENCE.replace("RESULT", result))
    assert not [*sizes.large(instance, 2**16, [power])]  # no room
    ((_, workloads),) = sizes.large(instance, 2**40, [power])
    return workloads, RepeatedData(workloads, path)


@pytest.mark.parametrize(
    ("result", "x", "y"),
    [
        (DOUBLED, "[n]", "[n]"),
        (NEIGHBOURS, "[n]", "[n]"),  # other results at both ends
        ("x[:-2] + x[2:]", "[n + 2]", "[n]"),  # a halo
        ("x.T", "[n, 3]", "[3, n]"),
        ("x.sum(axis=0)", "[n, 3]", "[3]"),
        ("x.max()", "[n]", "[1]"),
        ("1000_000 * x.sum(dtype=np.int32, keepdims=True)", "[n]", "[1]"),  # wraps around
    ],
)
def test_results_of_many_periods_are_those_of_the_reference(tmp_path, result, x, y):
    workloads, data = repeated(tmp_path, 16, result, x, y)
    assert data.computed() is not None
    array = workloads.many.arrays[0]
    axis, length = data.growth("x")
    many = data.periods["x"].take(np.arange(array.shape[axis]) % length, axis)
    assert many.shape == array.shape and many.size > 2**16
    expected = np.asarray(eval(result, {"np": np, "x": many})).reshape(-1)
    sample = data.foretold()["y"]
    assert {0, expected.size - 1} <= {*sample.places.flat}
    assert (sample.expected == expected[sample.places]).all()


def test_sums_in_floating_point_have_magnitudes_and_a_hundredth_of_a_typical_one(tmp_path):
    space = SPACE.replace("int32", "float32") + "verify: {error: accumulate(n)}\n"
    _, data = repeated(tmp_path, 16, "x.sum(axis=0)", "[n, 3]", "[3]", space)
    assert data.computed() is not None
    sample = data.foretold()["y"]
    assert (sample.magnitudes > np.abs(sample.expected)).all() and sample.tolerance.factor > 0
    assert sample.tolerance.atol == pytest.approx(0.01 * np.abs(sample.expected).mean())


@pytest.mark.parametrize("result", ["np.cumsum(x)", "x * np.arange(len(x))", "np.sort(x)"])
def test_results_that_do_not_repeat_are_not_foretold(tmp_path, result):
    assert repeated(tmp_path, 16, result)[1].computed() is None


@pytest.mark.parametrize("power", [31, 32])
def test_no_period_ends_where_an_index_does_that_overflows(tmp_path, power):
    workloads, data = repeated(tmp_path, power, DOUBLED)
    assert 2**power < workloads.many.arrays[0].count < 1.07 * 2**power
    assert 2**power % data.growth("x").length and 2**16 % data.growth("x").length


KERNEL = """\
import os
import numpy as np

def double(grid, block, x, y, n):
    i = np.arange(n).astype("INDEX")
    y.view("int32")[TARGET] = 2 * x.view("int32")[SOURCE]
"""


UNKNOWN = unknown_beyond(31)
TURNING = IndexLimit(
    "`n < 70000` is true at no size", False, Workload(Problem({"n": 1}, "int32"), (), (), ())
)


def outcome(folder, monkeypatch, index, target, source, limit=UNKNOWN):
    """The outcome of a run of more than 2^16 elements."""
    folder.write(KERNEL.replace("INDEX", index).replace("TARGET", target).replace("SOURCE", source))
    monkeypatch.chdir(folder.path)
    with opened(read_task(Target(folder.space, "fake")), Options()) as context:
        (one,) = context.build([context.task.spec.default])[0].values()
        return run_beyond(context, one, limit, [16])


def read_context(kind, index_limit):
    """A context in which reading gives limits; the default is None."""
    return SimpleNamespace(
        task=SimpleNamespace(device=SimpleNamespace(kind=kind)),
        further_sizes=SimpleNamespace(index_limit=index_limit),
        default=None,
    )


@pytest.mark.parametrize(
    ("limit", "left"),
    [
        (IndexLimit(""), PASSED),
        (UNKNOWN, Limit(unknown_beyond(32).reason)),
        (TURNING, Limit(TURNING.reason)),  # the run may be on either side of the condition
    ],
)
def test_a_run_beyond_a_limit_is_a_check_of_its_own_if_it_is_right(folder, monkeypatch, limit, left):
    found = outcome(folder, monkeypatch, "int64", "i", "i", limit)
    assert found == {"beyond 2^16 elements": PASSED, LARGER_SIZES: left}


def test_an_input_may_repeat_in_each_of_its_rows(folder, monkeypatch):
    folder.edit("shape: [n], role: in", "shape: [3, n], role: in")
    folder.edit("shape: [n], role: out", "shape: [3, n], role: out")
    assert "beyond 2^16 elements" in outcome(folder, monkeypatch, "int64", ":", ":")


@pytest.mark.parametrize(
    ("index", "target", "source", "said"),
    [
        ("uint16", "i", ":n", "y[0] is "),
        ("uint16", ":n", "i", "y["),
        ("int64", "i", "i * (n <= 2**16 or os.kill(os.getpid(), 11))", "the process"),
    ],
    ids=["stores elsewhere", "loads from elsewhere", "crashes"],
)
def test_a_run_where_an_index_overflows_says_what_is_wrong(folder, monkeypatch, index, target, source, said):
    (found,) = outcome(folder, monkeypatch, index, target, source).values()
    assert found.reason.startswith(f"a run beyond 2^16 elements fails: {said}")


def test_a_kernel_that_is_wrong_where_few_inputs_repeat_says_nothing_of_many(folder, monkeypatch):
    assert outcome(folder, monkeypatch, "int64", "i", "i[::-1]") == {}


@pytest.mark.parametrize(
    ("kind", "limit", "runs"),
    [
        ("gpu", IndexLimit(""), True),
        ("gpu", UNKNOWN, True),
        ("gpu", TURNING, True),
        ("gpu", IndexLimit("an index of x overflows"), False),  # nothing is left to find out
        ("cpu", UNKNOWN, False),
    ],
)
def test_the_first_configuration_runs_on_a_gpu_unless_an_index_overflows(monkeypatch, kind, limit, runs):
    monkeypatch.setattr(stress_checks, "run_beyond", lambda *_: {"a run": PASSED})
    built = {Config({"A": number}): BuiltConfig(None, None) for number in (1, 2)}
    found = check_larger_sizes(read_context(kind, lambda instance: limit), built, Deadline())
    read = {LARGER_SIZES: Limit(limit.reason) if limit.reason else PASSED}
    first, second = found.values()
    assert second == read and first == {**read, **({"a run": PASSED} if runs else {})}


def test_one_that_fails_by_reading_leaves_the_run_to_the_next(monkeypatch):
    monkeypatch.setattr(stress_checks, "run_beyond", lambda *_: {"a run": PASSED})
    limits = {"first": IndexLimit("an index of x overflows"), "second": UNKNOWN, None: IndexLimit("")}
    built = {Config({"A": name}): BuiltConfig(name, None) for name in ("first", "second")}
    first, second = check_larger_sizes(read_context("gpu", limits.get), built, Deadline()).values()
    assert isinstance(first[LARGER_SIZES], Failure) and "a run" not in first
    assert second == {LARGER_SIZES: Limit(UNKNOWN.reason), "a run": PASSED}


@pytest.mark.parametrize(
    ("limit", "of_default", "counts"),
    [
        ("", "", False),
        ("an index of x overflows", "", True),
        ("an index of x overflows", "an index of y overflows", False),
        ("an index of x overflows", unknown_beyond(31).reason, False),
    ],
)
def test_an_index_that_overflows_counts_where_the_default_holds_all_sizes(limit, of_default, counts):
    limits = {"config": IndexLimit(limit), None: IndexLimit(of_default)}
    built = {Config({"A": 1}): BuiltConfig("config", None)}
    (outcomes,) = check_larger_sizes(read_context("cpu", limits.get), built, Deadline()).values()
    told = reasons(outcomes).get(LARGER_SIZES, "")
    assert isinstance(outcomes[LARGER_SIZES], Failure) == counts and limit in told
