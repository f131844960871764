"""What verification sees, on arrays in the fake device's memory."""

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from autotune.core.c_types import C_TYPES
from autotune.core.records import Config, Launch
from autotune.core.trials import Problem, Status, Trial
from autotune.devices import backend
from autotune.devices.array_compare import ArrayComparison, Tolerance, compared_on_host
from autotune.errors import Blame
from autotune.evaluation import wrong_result
from autotune.evaluation.buffers import SharedBuffers, WorkloadBuffers
from autotune.evaluation.journal_rows import decode_trial, encode_trial
from autotune.evaluation.stopwatch import Stopwatch
from autotune.evaluation.verify import altered, changed_inouts, verify
from autotune.evaluation.wrong_result import describe
from autotune.problem.inputs import prepare
from autotune.problem.workload import Array, Scalar, Workload

GOOD = 'y.view("float32")[:n] = x.view("float32")[:n] + 1\n'
N = 100


@pytest.fixture
def check_against(tmp_path):
    """Make `check` for a reference's y."""
    return lambda result: Checker(tmp_path / "reference.py", result)


@pytest.fixture
def check(check_against):
    """Verify the body of a kernel (x in, y out, w inout, t scratch) and return what is wrong."""
    return check_against("inputs['x'].astype('float64') + 1")


@pytest.fixture
def check_seed(tmp_path):
    """Verify a body on the inputs of a seed."""
    result = "inputs['x'].astype('float64') + 1"
    return lambda seed, body: Checker(tmp_path / "reference.py", result, seed)(body)


class Checker:
    """Verifies bodies of kernels, and tells what the latest one changed."""

    def __init__(self, reference, result, seed=0, dtype="float32"):
        reference.write_text(f"import numpy\ndef reference(inputs, sizes):\n    return {{'y': {result}}}\n")
        arrays = (
            Array("x", "float32", (N,), "in", ("uniform", 0, 1)),
            Array("y", dtype, (N,), "out", None),
            Array("w", "float32", (N,), "inout", ("copy", "x")),
            Array("t", "float32", (N,), "scratch", None),
        )
        launch = Launch("kernel", (1, 1, 1), (1, 1, 1), 0, ("x", "y", "w", "t", "n"))
        problem = Workload(
            Problem({"n": N}, "float32", seed), arrays, (Scalar("n", "int32", N),), (launch,), Tolerance(1e-6)
        )
        self.device = backend("fake").open_device(0)
        self.buffers = WorkloadBuffers(problem, SharedBuffers(self.device, prepare(problem, reference)))

    def __call__(self, body):
        return verify(self.loaded(body), self.buffers)

    def loaded(self, body):
        source = "def kernel(grid, block, x, y, w, t, n):\n" + "".join(
            f"    {line}\n" for line in body.splitlines()
        )
        return self.device.load(backend("fake").open_compiler(0).compile(source, ()))

    @property
    def changed(self):
        return changed_inouts(self.buffers)


def test_a_right_kernel_passes(check):
    assert check(GOOD) is None and check.changed == ()


@pytest.mark.parametrize(
    ("body", "status", "words"),
    [
        ("pass", Status.WRONG_RESULT, "y was never written"),
        (GOOD + 'y.view("float32")[7] = 5', Status.WRONG_RESULT, "y[7] is 5.0, expected"),
        (GOOD + 'y.view("float32")[7] = float("nan")', Status.WRONG_RESULT, "y[7] is nan"),
        ('y.view("float32")[:n-1] = x.view("float32")[:n-1] + 1', Status.WRONG_RESULT, "y[99] was never"),
        (GOOD + 'x.view("float32")[3] += 1', Status.WRONG_RESULT, "changed its input x[3]"),
        (GOOD + "y.base[16384 + 400] = 7", Status.OUT_OF_BOUNDS, "wrote outside y"),
        (GOOD + "y.base[16383] = 0", Status.OUT_OF_BOUNDS, "before the start"),
        (GOOD + "t.base[16384 + 400 + 9] = 7", Status.OUT_OF_BOUNDS, "byte 10 past the end (at n=100)"),
        ('y.view("float32")[:n] = t.view("float32")[:n]', Status.WRONG_RESULT, "y[0] is nan, expected"),
    ],
)
def test_a_wrong_kernel_is_found_with_the_place(check, body, status, words):
    failure = check(body)
    assert failure.status is status
    assert words in failure.detail


@pytest.mark.parametrize(
    ("body", "told"),
    [
        ("pass", {"is_unwritten": True}),
        ('y.view("float32")[:90] = x.view("float32")[:90] + 1', {"is_unwritten": True, "is_end": True}),
        ('y.view("float32")[3:] = x.view("float32")[3:] + 1', {"is_unwritten": True}),
        (GOOD + 'y.view("float32")[7] = 5', {"element": "y[7]", "found": "5.0"}),
        (GOOD + 'y.view("float32")[99] = 5', {"element": "y[99]", "found": "5.0", "is_end": True}),
        (GOOD + 'y.view("float32")[5] *= 1 + 1e-5', {"allowance": "verify: {rtol: 1e-4}"}),
        (GOOD + 'x.view("float32")[3] += 1', {"array": "x", "expected": ""}),
        (GOOD + "t.base[16383] = 0", {"array": "t", "element": ""}),
    ],
)
def test_the_facts_of_a_fault_are_kept_beside_the_words_and_in_the_journal(check, body, told):
    failure = check(body)
    fields = {"array": "y", "is_unwritten": False, "is_end": False, "allowance": "", **told}
    assert failure.fault.sizes == {"n": N}
    assert fields == {name: getattr(failure.fault, name) for name in fields}
    trial = Trial(Config({"A": 1}), "key", failure)
    kept = replace(failure, blame=Blame.CONFIGURATION)  # what broke a process is of no use to a later one
    assert decode_trial(json.loads(json.dumps(encode_trial(trial)))) == replace(trial, failure=kept)


def test_a_wrong_result_says_how_many_where_how_far_off_and_what_is_allowed(check):
    body = GOOD + 'y_ = y.view("float32")\ny_[7] += 0.5\ny_[90] = float("inf")\ny_[98] = -2'
    detail = check(body).detail
    assert detail.startswith("y[7] is 2.") and "; 1 not finite; largest error 3." in detail
    assert ", 3 of 100 elements differ, from y[7] to y[98];" in detail
    assert " at y[98]; largest relative error " in detail
    assert detail.endswith("; tolerance: rtol=1e-06, atol=0 (at n=100)") and "rounding" not in detail


@pytest.mark.parametrize("seed", range(6))
def test_zeros_that_were_never_written_are_found_with_every_poison(tmp_path, seed):
    """One of the poisons of integers is 0."""
    check = Checker(tmp_path / "reference.py", "numpy.arange(100) % 2", seed, "uint32")
    assert check('y.view("uint32")[:n] = [0, 1] * 50') is None
    assert "y[0] was never written, expected 0" in check('y.view("uint32")[1:n:2] = 1').detail


def test_elements_that_were_left_alone_are_told_as_such(check):
    detail = check('y.view("float32")[3:] = x.view("float32")[3:] + 1').detail
    assert detail.startswith("y[0] was never written, expected ") and "error" not in detail
    assert detail.endswith(", 3 of 100 elements differ, from y[0] to y[2] (at n=100)")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    "dtype", ["int8", "uint8", "int32", "int64", "float16", "bfloat16", "float32", "float64"]
)
def test_what_arrays_hold_before_a_run_may_also_be_a_result(tmp_path, dtype, seed):
    check = Checker(tmp_path / "reference.py", "(0 * inputs['x'] + 3).astype(int)", seed, dtype)
    y = next(one for one in check.buffers.arrays() if one.array.name == "y")
    value, byte = y.values(0, 1)[0][0], int(y.values(0, 1)[0].view("uint8")[0])
    fault = check(f"y[:] = {byte}").fault
    assert (fault.element, fault.found, fault.is_unwritten) == ("y[0]", f"{value}", False)
    failure = check(f"y[: {50 * y.item_bytes}] = {byte}")
    assert failure.fault.element == "y[0]" and not failure.fault.is_unwritten
    assert check("pass").detail.startswith("y was never written")
    y.restore()
    assert y.values(0, 1)[0].view("uint8")[0] == byte  # so all configurations begin alike


def test_an_element_that_only_the_device_calls_wrong_is_described(check):
    """Its arithmetic may end in another last bit."""
    assert check(GOOD) is None
    y = next(one for one in check.buffers.arrays() if one.array.name == "y")
    text, fault = describe(y, 3, 1, check.buffers, poisoned=True)
    assert text.startswith("y[3] is ") and "1 of 100 elements differ" in text and not fault.is_unwritten


def test_a_difference_in_the_last_places_is_called_rounding(check):
    detail = check(GOOD + 'y.view("float32")[5] *= 1 + 1e-5').detail
    assert "; relative error " in detail and "this may be rounding; `verify: {rtol: 1e-4}`" in detail


@pytest.mark.parametrize(("relative", "is_rounding"), [(0.014, True), (0.42, False)])
def test_errors_of_tens_of_per_cent_are_no_rounding_in_16_bits_either(relative, is_rounding):
    half, worst = SimpleNamespace(dtype="bfloat16"), [relative, relative]
    allowed = wrong_result._allowance(half, worst, np.ones(4), Tolerance(rtol=0.01), "%s")
    assert bool(allowed) == is_rounding


def test_a_small_element_that_is_off_by_the_rounding_of_large_ones_is_offered_an_atol(check_against):
    check = check_against("inputs['x'].astype('float64') - inputs['x'][7] + 1e-5")
    body = 'x_, y_ = x.view("float32"), y.view("float32")\ny_[:] = x_ - x_[7] + 1e-5\n'
    tiny = check(body + "y_[7] += 1e-8").detail
    assert "error 1e-08; relative error 0.001; this may be rounding; " in tiny
    assert "`verify: {rtol: 1e-06, atol: 1e-7}` in the space file" in tiny
    assert "rounding" not in check(body + "y_[7] += 1e-4").detail


def test_a_reference_that_makes_integers_of_its_result_is_asked_about(check, check_against):
    asked = "every expected element is whole: does `reference` round, as by `.astype(int)`?"
    assert asked in check_against("(inputs['x'] + 1).astype(int)")(GOOD).detail
    assert "whole" not in check(GOOD + 'y.view("float32")[7] = 5').detail
    assert "whole" not in check_against("inputs['x'] * 0")(GOOD).detail  # 0, as a loss may be
    assert "whole" not in check_against("inputs['x'] > inputs['x'][1:].max()")(GOOD).detail  # one 1 at most
    nearly = check_against("inputs['x'] // 2 + 1")('y.view("float32")[:n] = 1 + 1e-5').detail
    assert "this may be rounding" in nearly and "whole" not in nearly


UNLESS = """\
import numpy
x_, y_, t_ = (array.view("float32") for array in (x, y, t))
if WRONG:
    t_[:] = x_ + 1
    y_[:] = t_
"""


@pytest.mark.parametrize(
    "body",
    [
        UNLESS.replace("WRONG", "not abs(y_[0]) < 9"),
        UNLESS.replace("WRONG", "not abs(t_[0]) < 9") + "y_[:] = t_\n",
        UNLESS.replace("WRONG", "y_[0] != x_[0] + 1 or y_[-1] != x_[-1] + 1"),
        UNLESS.replace("WRONG", "numpy.sum(y_ != x_ + 1) > 9"),
    ],
    ids=[
        "unless it sees poison",
        "by what it left in the scratch",
        "unless the ends are right",
        "unless much is wrong",
    ],
)
def test_work_that_seems_to_be_done_is_done_again(check, body):
    failure = check(body)
    assert failure.status is Status.WRONG_RESULT and "after a run on other inputs: y[" in failure.detail


def test_a_result_that_comes_after_the_launch_has_ended_is_a_wrong_result(check):
    compare, rest = check.device.compare, check.loaded(GOOD)

    def compare_before_the_rest_is_written(comparisons):
        differences = compare(comparisons)
        check.buffers.run(rest)
        return differences

    check.device.compare = compare_before_the_rest_is_written
    failure = check("pass")

    assert failure.status is Status.WRONG_RESULT
    assert "wrote after its launch had ended" in failure.detail


def test_results_that_are_kept_while_a_sample_of_the_input_stays_are_found(check_seed):
    """The last elements are the same after a run on inputs of which the second half or a few are others."""
    kept = """\
x_, y_, t_ = (array.view("float32") for array in (x, y, t))
if not (t_[WHERE] == x_[WHERE]).all():
    t_[WHERE] = x_[WHERE]
    y_[:] = x_ + 1
"""
    first, last = (kept.replace("WHERE", part) for part in (":9", "-9:"))
    assert [check_seed(seed, first) is None for seed in (0, 2)] == [False, False]
    assert [check_seed(seed, last) is None for seed in (0, 2)] == [True, False]


@pytest.mark.parametrize("key", ["n", "x.ctypes.data", "x_[:9].tobytes()", "x_[-2:].tobytes()"])
def test_results_that_are_kept_in_a_variable_are_found_at_some_seed(check_seed, key):
    """As in `__device__` memory, which nobody restores; three sizes to verify have these seeds."""
    kept = f"""\
x_ = x.view("float32")
if globals().get("seen") != {key}:
    globals().update(seen={key}, kept=x_ + 1)
y.view("float32")[:] = kept
"""
    assert any(check_seed(seed, kept) for seed in (1, 2, 3))


@pytest.mark.parametrize(
    "spoilt",
    ["0 * x_[n]", "0 * x_[-1]", "0 * t_[n]", "0 * numpy.fmax(t_[n + 2], 0)", "numpy.fmin(x_[n + 2], 0)"],
)
def test_what_is_read_beyond_an_array_spoils_the_result(check, spoilt):
    views = [f'{name}_ = numpy.roll({name}.base.view("float32"), -4096)' for name in "xt"]
    body = "\n".join(["import numpy", "numpy.seterr(all='ignore')", *views, GOOD])
    failure = check(f'{body}y.view("float32")[n - 1] += {spoilt}')
    assert failure.status is Status.WRONG_RESULT and "y[99] is" in failure.detail


@pytest.mark.parametrize(
    ("fills", "expected"),
    [
        ({"x": ("integers", 0, 9), "y": ("sequence", 0, 1), "z": ("copy", "x")}, {"x", "z"}),
        ({"x": ("uniform", 0, 1), "y": ("transpose", "x"), "z": ("normal", 0, 1)}, {"z"}),
        ({"x": ("uniform", 0, 1), "y": ("copy", "x"), "z": ("transpose", "y"), "v": ("copy", "x")}, set()),
        ({"x": ("constant", 0), "y": ("copy", "x"), "z": None}, set()),
    ],
)
def test_other_inputs_are_as_legal_as_the_right_ones(fills, expected):
    assert altered([Array(name, "float32", (4, 4), "in", fill) for name, fill in fills.items()]) == expected


def test_what_one_kernel_destroys_the_next_one_finds_restored(check):
    check(GOOD + "x.base[:] = 0\ny.base[:] = 0\nw.base[:] = 0")
    assert check(GOOD) is None


def test_an_inout_array_that_the_reference_leaves_out_may_be_destroyed_but_needs_a_restore(check):
    assert check(GOOD + 'w.view("float32")[0] += 1') is None and check.changed == ("w",)


def test_an_inout_array_is_restored_before_every_run(check):
    body = 'y.view("float32")[:n] = w.view("float32")[:n] + 1\nw.view("float32")[:n] = 0'
    assert check(body) is None
    assert check(body) is None


@pytest.mark.parametrize(
    ("dtype", "function"),
    [
        (dtype, function)
        for dtype in C_TYPES
        for function in ("fmax", "fmin", "maximum", "minimum", "add", "bitwise_or", "bitwise_and")
        if dtype != "bool" and not (function.startswith("bitwise") and "int" not in dtype)
    ],
)
def test_an_initial_value_that_is_left_out_is_missed_under_some_seed(tmp_path, dtype, function):
    (tmp_path / "reference.py").write_text("def reference(inputs, sizes):\n    return {'y': inputs['x']}\n")
    arrays = (
        Array("x", dtype, (N,), "in", ("integers", 1, 100)),
        Array("y", dtype, (N,), "out", None),
    )
    launch = Launch("kernel", (1, 1, 1), (1, 1, 1), 0, ("x", "y"))
    device = backend("fake").open_device(0)
    update = f"y.view('{dtype}')[:] = numpy.{function}(y.view('{dtype}'), x.view('{dtype}'))"
    source = f"import numpy\nnumpy.seterr(all='ignore')\ndef kernel(grid, block, x, y):\n    {update}\n"
    program = device.load(backend("fake").open_compiler(0).compile(source, ()))
    found = []
    for seed in range(3):  # those of the last round
        problem = Workload(Problem({"n": N}, dtype, seed), arrays, (), (launch,))
        buffers = WorkloadBuffers(problem, SharedBuffers(device, prepare(problem, tmp_path / "reference.py")))
        found.append(verify(program, buffers))
    assert any(found)


@pytest.mark.parametrize(
    ("actual", "expected", "rtol", "atol", "difference"),
    [
        ([1, 2, 3], [1, 2, 3], 0, 0, None),
        ([1, 2, 3], [1, 0, 0], 0, 0, (1, 2)),
        ([1.0, 2.0], [1.0, 2.1], 0.1, 0, None),
        ([1.0, 2.0], [1.0, 2.1], 0.01, 0, (1, 1)),
        ([0.0], [1e-9], 0, 1e-8, None),
        ([np.nan], [np.nan], 1, 1, (0, 1)),
        ([np.inf], [np.inf], 1e-6, 0, None),
        ([np.inf], [1.0], 1e-6, 0, (0, 1)),
        ([1.0], [np.inf], 1e-6, 0, (0, 1)),
        ([2**31 - 1], [2**31], 0, 0, (0, 1)),
    ],
)
def test_arrays_are_compared_by_the_tolerances(actual, expected, rtol, atol, difference):
    arrays = np.array(actual), np.array(expected)
    wanted = ArrayComparison(*arrays, str(arrays[0].dtype), len(actual), Tolerance(rtol, atol))
    assert compared_on_host(*arrays, wanted) == difference


def test_only_what_a_run_changed_when_it_was_verified_is_restored_between_samples(tmp_path):
    """Otherwise a script's large input that is not `const` would be copied before every sample."""
    (tmp_path / "reference.py").write_text("def reference(inputs, sizes):\n    return {}\n")
    arrays = tuple(Array(name, "float32", (N,), "inout", ("constant", 1)) for name in "uw")
    launch = Launch("kernel", (1, 1, 1), (1, 1, 1), 0, ("u", "w"))
    problem = Workload(Problem({"n": N}, "float32"), arrays, (), (launch,))
    device = backend("fake").open_device(0)
    buffers = WorkloadBuffers(problem, SharedBuffers(device, prepare(problem, tmp_path / "reference.py")))
    program, grows = (
        device.load(backend("fake").open_compiler(0).compile(f"def kernel(grid, block, u, w):\n{body}", ()))
        for body in (
            "    w.view('float32')[:] += 1\n",
            "    w.view('float32')[:] += 1\n    u.view('float32')[:] += 1\n",
        )
    )
    assert verify(program, buffers) is None and changed_inouts(buffers) == ("w",)
    stopwatch = Stopwatch(grows, buffers, changed=("w",))
    for _ in range(3):
        stopwatch.sample_ms()
    u, w = (guarded.content() for guarded in buffers.arrays())
    assert (u == 4).all() and (w == 2).all()


@pytest.mark.parametrize(("seed", "times"), [(0, 0), (1, 1), (2, 0), (3, 1)])
def test_block_memory_is_dirty_before_the_first_run_at_every_other_seed(tmp_path, seed, times):
    checker = Checker(tmp_path / "reference.py", "inputs['x'].astype('float64') + 1", seed)
    dirtied = []
    checker.device.dirty_block_memory = lambda: dirtied.append(seed)
    assert checker(GOOD) is None and len(dirtied) == times
