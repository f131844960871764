"""What is wrong on denormals or on special values only, on the fake device; and what may not be called so."""

import json
from pathlib import Path

import numpy as np
import pytest

from autotune.core.records import Config
from autotune.core.trials import Problem, Trial
from autotune.errors import BrokenReference, SpaceError
from autotune.evaluation.identity import journal_header
from autotune.evaluation.journal_edits import edit_of
from autotune.problem.data_sets import on_other_data, other_data
from autotune.problem.inputs import draw_inputs
from autotune.problem.reference import run_reference
from autotune.problem.shapes import SHAPES
from autotune.problem.workload import Array, Workload
from autotune.space import load_space
from autotune.tuning import data_checks

pytestmark = pytest.mark.usefixtures("all_data_sets")
KERNEL = """\
import numpy

def double(grid, block, x, y, n):
    x, y = x.view("float32"), y.view("float32")
    tiny = numpy.abs(x) < 2.0**-126
    with numpy.errstate(all="ignore"):
        y[:] = RESULT
    return 1.0 + A
"""


@pytest.fixture
def check(folder):
    """Verify what a kernel makes of x, for A from 1 on; return what is found in each."""
    folder.edit("x, dtype: int32", "x, dtype: float32")
    folder.edit("y, dtype: int32", "y, dtype: float32")
    folder.edit("{integers: [-100, 100]}", "{uniform: [-1, 1]}")
    folder.edit("[{n: 1}, {n: 17}]", "[{n: 1}, {n: 17}, {n: 2999}]")

    def run(reference, verify, *results):
        folder.write(KERNEL.replace("RESULT", f"({', '.join(results)},)[A - 1]"))
        head = "import numpy as np\n\ndef reference(inputs, sizes):\n    x = inputs['x']\n"
        (folder.path / "reference.py").write_text(f"{head}    return {{'y': {reference}}}\n")
        folder.edit("{rtol: 0, atol: 0}", verify)
        configs = [word for number in range(len(results)) for word in ("--config", f"A={number + 1}")]
        done = folder.run("check", "double.yaml", "--device", "fake", "--json", *configs)
        assert "Warning" not in done.stderr, done.stderr
        return [row["detail"] for row in json.loads(done.stdout)]

    return run


def test_what_is_wrong_on_special_values_only_is_found(check):
    right, *wrong = check(
        "np.arctan2(x, -1)",
        "{rtol: 1e-6, special: [nan, infinities, signed_zeros]}",
        "numpy.copysign(numpy.arctan2(x, -1), -x) * -1",  # another NaN
        "numpy.nan_to_num(numpy.arctan2(x, -1))",
        "numpy.where(x == x, numpy.arctan2(x, -1), y)",
        "numpy.arctan2(numpy.clip(x, -1, 1), -1)",
        "numpy.arctan2(x + 0, -1)",
    )
    assert right == "" and [one.partition(":")[0] for one in wrong] == [
        *("with data nan", "with data nan"),
        *("with data infinities", "with data signed_zeros"),
    ]
    assert " is 0.0, expected nan" in wrong[0] and " was never written" in wrong[1]


@pytest.mark.parametrize("verify", ["{rtol: 0}", "{rtol: 0, special: [halves]}"])
def test_a_sum_of_whole_numbers_in_an_integer_is_found(folder, check, verify):
    folder.edit("{uniform: [-1, 1]}", "{integers: [-100, 100]}")
    right, wrong = check(
        "np.full_like(x, x.sum(dtype=float))",
        verify,
        "x.sum(dtype=float)",
        "x.astype(int).sum()",
    )
    assert right == "" and wrong.startswith("with data halves between: ")


def test_special_values_are_tried_only_where_the_space_asks_for_them(check):
    assert check("2 * x", "{rtol: 1e-6}", "2 * x", "numpy.nan_to_num(2 * x)") == ["", ""]


def test_a_default_that_is_wrong_on_special_values_is_found_too(check):
    (found,) = check("2 * x", "{rtol: 1e-6, special: [nan]}", "numpy.nan_to_num(2 * x)")
    assert found.startswith("with data nan: y[0] is 0.0, expected nan")


def test_what_is_wrong_on_denormals_only_is_found_and_flushing_is_not(check):
    right, flushed, wrong = check(
        "np.where(x == 0, 1, np.sin(x) / np.where(x == 0, 1, x))",
        "{rtol: 1e-5}",
        "numpy.where(x == 0, 1, numpy.sin(x) / x)",
        "numpy.where(tiny, 1, numpy.sin(x) / x)",
        "numpy.where(x == 0, 1, x * numpy.sin(x) / (x * x))",
    )
    assert right == flushed == "" and wrong.startswith("with data denormals: y[0] is nan, expected 1.0")


@pytest.mark.parametrize(
    ("kernel", "right", "wrong"),
    [
        # squares added up by tens, in which small terms count where all are small
        ("repeat(np.add.reduceat(TERMS, np.arange(0, x.size, 10)), 10)", "x * x", "x * x * (abs(x) > 0.01)"),
        ("repeat(np.max(TERMS, initial=x[0]), x.size)", "x", "x[:-1]"),
    ],
)
def test_what_only_sorted_values_show_is_found(check, kernel, right, wrong):
    reference, *results = (
        f"np.{kernel.replace('TERMS', terms)}[: x.size]" for terms in (right, right, wrong)
    )
    results = [one.replace("np.", "numpy.") for one in results]
    first, second = check(reference, "{rtol: 1e-3, atol: 1e-4}", *results)
    assert first == "" and second.startswith("with data rising: ")


def test_one_slow_set_keeps_no_later_one_from_being_tried(check):
    """A busy machine may hold up one set; this kernel sleeps at one, and is wrong at a later one."""
    slow_once = "2 * x + (x.size > 17 and (x == -1).all() and (__import__('time').sleep(0.5) or 0))"
    wrong = "2 * x + (x.size > 17 and (numpy.diff(x) >= 0).all() and x[0] < x[-1])"
    first, second = check("2 * x", "{rtol: 1e-6}", slow_once, wrong)
    assert first == "" and second.startswith("with data rising: ")


def test_sets_that_are_left_out_because_all_are_slow_are_named(folder, check, monkeypatch):
    monkeypatch.setattr(data_checks, "MAX_JUDGED_S", 0.0)
    assert check("2 * x", "{rtol: 1e-6}", "2 * x") == [""]
    said = folder.run("check", "double.yaml", "--device", "fake", "--config", "A=1").stderr
    assert "the best: checked without " in said and " sets of data (reference and default are slow)" in said


def test_what_rounding_decides_on_other_data_is_no_mistake(check):
    """A sum of far values that nearly cancel, in two orders."""
    right, other = check(
        "np.full_like(x, (x.astype(float) - x.mean(dtype=float)).sum())",
        "{rtol: 1e-6, atol: 1e-3}",
        "numpy.float32((x.astype(float) - x.mean(dtype=float)).sum())",
        "(x - x.mean(dtype=numpy.float32)).sum(dtype=numpy.float32)",
    )
    assert right == other == ""


def test_where_rows_are_constant_the_rounding_of_a_mean_is_no_mistake_but_nan_is(folder, check):
    """A norm multiplies one rounding by 1 / sqrt(eps) where the variance is 0."""
    folder.edit("{uniform: [-1, 1]}", "{uniform: [-0.7, 0.9]}")
    norm = "(x - x.mean(dtype=float)) / numpy.sqrt(x.var(dtype=float) + 1e-5)"
    right, serial, divided_by_zero = check(
        norm.replace("numpy", "np"),
        "{rtol: 1e-5, atol: 1e-5}",
        norm,
        norm.replace("x.mean(dtype=float)", "x.mean()"),
        norm.replace("1e-5", "1e-5 * (x.size == 1 or x.min() < x.max())"),
    )
    assert right == serial == "" and divided_by_zero.startswith("with data zeros: y[0] is nan")
    doubts = folder.run("check", "double.yaml", "--device", "fake", "--config", "A=2").stderr
    assert doubts.count("count against no configuration, as rounding may decide there") == 1, doubts
    assert "with data smallest: y[0] is" in doubts and ".astype(int)" not in doubts, doubts
    assert "the best: checked without data " in doubts and "(rounding may decide)" in doubts, doubts


def test_a_default_that_is_wrong_on_other_data_is_doubted_and_no_configuration_is_rejected(folder, check):
    folder.edit("{uniform: [-1, 1]}", "{normal: [0, 1]}")
    assert check("2 * x", "{rtol: 1e-6}", "numpy.minimum(2 * x, 200)", "2 * x") == ["", ""]
    doubts = folder.run("check", "double.yaml", "--device", "fake", "--config", "A=2").stderr
    said = "default and reference disagree with data far above (inputs: far above the mean): y[0] is 200"
    assert said in doubts and ", expected " in doubts and "; x[0] is " in doubts and "(at n=" in doubts
    assert "; no configuration is rejected because of these data; to repeat: autotune check doub" in doubts
    assert "-d fake:0 --config 'A=1 B=0'; see docs/checks.md, When a set counts" in doubts
    page = Path(__file__).parents[2] / "docs/checks.md"
    assert "# When a set counts\n" in page.read_text()


@pytest.mark.parametrize(
    ("fill", "wrong", "name"),
    [
        ("{uniform: [-1, 1]}", "(x == 0).all()", "zeros"),
        ("{normal: [0, 1]}", "(x == 1).all()", "ones"),
        ("{uniform: [-1, 1]}", "(x == -1).all()", "smallest"),
        ("{uniform: [-1, 1]}", "x[0] == -1 and x[-1] == 1", "alternating"),
    ],
)
def test_a_default_that_is_wrong_on_a_set_of_one_value_is_doubted_aloud(folder, check, fill, wrong, name):
    folder.edit("{uniform: [-1, 1]}", fill)
    result = f"2 * x + ({wrong})"
    assert check("2 * x", "{rtol: 1e-6}", result, "2 * x") == ["", ""]
    doubts = folder.run("check", "double.yaml", "--device", "fake", "--config", "A=2").stderr
    assert f"default and reference disagree with data {name}: y[0] is " in doubts


def test_nobody_is_doubted_where_the_reference_is_not_finite(folder, check):
    assert check("1 / x", "{rtol: 1e-6}", "numpy.where(x == 0, 7, 1 / x)", "1 / x") == ["", ""]
    assert "disagree" not in folder.run("check", "double.yaml", "--device", "fake", "--config", "A=2").stderr


def test_data_within_the_fills_on_which_default_and_reference_disagree_leave_a_result_unchecked(folder):
    folder.edit("[{n: 1}, {n: 17}]", "[{n: 1}, {n: 17}, {n: 2999}]")
    folder.write(
        """\
import numpy

def double(grid, block, x, y, n):
    x, y = x.view("int32"), y.view("int32")
    y[:] = 2 * x if (x < 0).any() or x.size < 20 else x
    return 1.0 + A
"""
    )
    done = folder.run("search", "double.yaml", "--device", "fake", "--engine", "exhaustive")
    assert done.returncode == 0, done.stderr
    assert "not verified in full, without" in done.stdout and "data positive" in done.stdout, done.stdout
    assert "data positive (default and reference disagree)" in done.stdout


def test_data_that_the_reference_refuses_count_against_none_also_where_the_default_is_not_valid(folder):
    folder.edit("[-100, 100]", "[0, 100]")
    sizes = ", ".join(f"{{n: {n}}}" for n in (1, 17, 300, 400, 500))
    folder.edit("verify_sizes: [{n: 1}, {n: 17}]", f"verify_sizes: [{sizes}]")
    folder.edit("constraints:", "constraints:\n  - A != 1 or n in (1, 17, 1000)")
    reference = folder.path / "reference.py"
    table = "numpy.arange(0, 202, 2, numpy.int32)"
    reference.write_text(f"""\
import numpy


def reference(inputs, sizes):
    return {{"y": {table}[inputs["x"]]}}
""")
    done = folder.run("search", "double.yaml", "--device", "fake", "--engine", "exhaustive")
    assert done.returncode == 0 and "failed" not in done.stdout, done.stdout


def test_denormals_are_left_out_where_the_tolerance_does_not_cover_flushing(check):
    assert check("x", "{rtol: 1e-5}", "x", "numpy.where(tiny, 0, x)") == ["", ""]


def test_a_journal_is_verified_again_when_special_values_are_added(folder):
    folder.edit("x, dtype: int32", "x, dtype: float32")
    spec = load_space(folder.space)
    folder.edit("{rtol: 0, atol: 0}", "{rtol: 0, atol: 0, special: [nan]}")
    before, now = (
        journal_header(one, Problem({"n": 1}, "int32"), "", "") for one in (spec, load_space(folder.space))
    )
    timed = Trial(Config({"A": 1}), "key")
    edit = edit_of(before, now, {}, [timed], lambda config: "key")
    assert edit.kept == (timed,) and not edit.is_harmless
    assert edit.changes == ("the special values in the space file",)
    assert edit_of(now, before, {}, [timed], lambda config: "key") is None  # more was verified


def with_data(name, fill, dtype="float32", count=5000):
    arrays = (Array("x", dtype, (count,), "in", fill), Array("y", dtype, (count,), "out", None))
    problem = other_data(Workload(Problem({"n": count}, dtype), arrays, (), ()), name)
    return problem and draw_inputs(problem.problem, problem.arrays)["x"].astype("float64")


def test_a_shape_is_tried_where_a_tile_has_a_rest_if_the_space_has_such_a_size():
    """What a kernel puts there is right for the usual data, such as 0 as the least of a maximum."""

    def of_rows(m, n):
        x = Array("x", "int32", (m, n), "in", ("integers", -9, 9))
        return Workload(Problem({"m": m, "n": n}, "int32"), (x,), (), ())

    given = [of_rows(1, 1), of_rows(3, 100), of_rows(2, 256), of_rows(5, 511), of_rows(64, 512)]

    def tried(name, among):
        return {one.usual.problem.sizes["n"] for one in on_other_data(name, among, given[-1])}

    tries = [tried(name, given[:-1]) for name in SHAPES if tried(name, given[:-1])]
    assert tries and all(512 in one and {100, 511} & one for one in tries), tries
    assert tried("few values", [given[2]]) == {256, 512}


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_denormals_are_those_of_the_type_within_the_range(dtype):
    smallest = {"float16": 2.0**-24, "bfloat16": 2.0**-133, "float32": 2.0**-149, "float64": 2.0**-1074}
    for fill, signs in ((("uniform", 0, 1), {1}), (("normal", 5, 1), {-1, 1}), (("uniform", -1, 0), {-1})):
        drawn = with_data("denormals", fill, dtype)
        assert set(np.sign(drawn)) == signs and np.abs(drawn).min() == smallest[dtype]
        normal = smallest[dtype] + np.abs(drawn).max()
        assert np.log2(normal) == round(np.log2(normal)) and normal > smallest[dtype]
    assert with_data("denormals", ("uniform", 0.25, 4), dtype) is None
    assert with_data("denormals", ("integers", -8, 8), dtype) is None


def test_shapes_keep_the_bounds_of_the_space():
    bounded = ("close", "far above", "far below", "one large")
    for name, fill in (*((name, ("uniform", 5, 6)) for name in bounded), ("negative", ("uniform", -2, 1))):
        drawn = with_data(name, fill)
        assert fill[1] <= drawn.min() < drawn.max() <= fill[2]
    assert with_data("far above", ("uniform", 0, 1), "float16") is None
    assert with_data("wide", ("integers", 0, 9), "int8") is None


def test_each_shape_is_what_its_name_says():
    fill = ("normal", 0, 1)
    assert len(set(with_data("constant rows", fill))) == 1
    assert len(set(with_data("few values", fill))) == 3
    rising = with_data("rising", fill)
    assert (np.diff(rising) >= 0).all() and np.ptp(rising) > 6
    assert with_data("far below", fill).max() < -100 < 100 < with_data("far above", fill).min()
    assert (with_data("one large", fill) > 1000).sum() == 1
    bounded = ("uniform", -2, 1)
    assert with_data("far above", bounded).min() > 0.9 and with_data("far below", bounded).max() < -1.9
    one_large = with_data("one large", bounded)
    assert (one_large == -2).sum() == 1 and (np.abs(one_large) < 0.01).sum() == one_large.size - 1
    close = with_data("close", fill)
    assert len(set(close)) == 16 and np.ptp(close) < 1e-4
    assert (with_data("halves between", ("integers", -8, 8)) % 1 == 0.5).any()
    assert (with_data("wide", ("integers", 0, 9), "int32") > 2**24).sum() == 79


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_some_whole_numbers_are_near_the_limits_of_their_type(dtype):
    limits = np.iinfo(dtype)
    for low in (0, -9)[: 1 if dtype.startswith("u") else 2]:
        drawn = with_data("limits", ("integers", low, 9), dtype)
        assert (np.abs(drawn) > limits.max / 16 * 15).sum() == 79
        assert (drawn.min() < -9) == (low < 0)
    assert with_data("limits", ("integers", 0, 9), "float32") is None


@pytest.mark.parametrize("count", [1, 17, 5000])
def test_special_values_take_the_places_of_a_few_elements(count):
    drawn = with_data("infinities", ("integers", -8, 8), count=count)
    assert np.isinf(drawn).sum() == {1: 1, 17: 2, 5000: 4}[count]
    assert (np.abs(drawn[np.isfinite(drawn)]) <= 8).all()
    assert np.isnan(with_data("nan", ("normal", 0, 1), "bfloat16", count)).any()
    assert with_data("nan", ("integers", -8, 8), "int32", count) is None
    assert with_data("nan", ("constant", 1), "float32", count) is None


def test_a_reference_may_return_nan_for_special_values_only(tmp_path):
    path = tmp_path / "reference.py"
    path.write_text("def reference(inputs, sizes):\n    return {'y': inputs['x'] * float('nan')}\n")
    arrays = (Array("x", "float32", (3,), "in", ("uniform", 0, 1)), Array("y", "float32", (3,), "out", None))
    problem = Workload(Problem({"n": 3}, "float32"), arrays, (), ())
    special = other_data(problem, "nan")
    inputs = draw_inputs(special.problem, special.arrays)
    found = run_reference(path, inputs, problem.problem, special.arrays)
    assert np.isnan(found["y"]).all()
    with pytest.raises(BrokenReference, match="NaN in 3 of 3 elements"):
        run_reference(path, inputs, problem.problem, arrays)


@pytest.mark.parametrize(
    ("verify", "message"),
    [
        ("{special: [nan, zero]}", "verify.special[1]: unknown value 'zero'"),
        ("{special: nan}", "verify.special: expected a list, found 'nan'"),
        ("{special: [nan]}", "verify.special: no input has random floating-point numbers: expected a fill"),
    ],
)
def test_a_mistake_is_named(folder, verify, message):
    folder.edit("{rtol: 0, atol: 0}", verify)
    with pytest.raises(SpaceError) as error:
        load_space(folder.space)
    assert message in str(error.value)
