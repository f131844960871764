"""Tolerances that follow from the arithmetic: the bounds themselves, and what a search makes of them."""

import math

import pytest

from autotune.core.error_bounds import PROBABLE, WORST, accumulated, neighbours
from autotune.errors import ExpressionError, SpaceError
from autotune.space import load_space

# Adds up the rows of a matrix, as the parameter A says: 1 in float32, 2 in float16, 3 of rounded inputs,
# 4 without the last term.
KERNEL = """\
import numpy

def double(grid, block, x, y, n, k):
    rows = x.view("float32")[: n * k].reshape(n, k)
    if A == 3:
        rows = (rows.view("uint32") & 0xFFFF0000).view("float32")
    sums = numpy.zeros(n, "float16" if A == 2 else "float32")
    for column in rows.T[: k - 1 if A == 4 else k]:
        sums += column.astype(sums.dtype)
    y.view("float32")[:n] = sums
    return 1.0 + A
"""
SPACE = """\
schema: 1
kernel: double
dialect: python
source: double.py
reference: reference.py
sizes: {default: {n: 50, k: 1000}}
parameters: {A: [1, 2, 3, 4]}
default: {A: 1}
arguments:
  - {name: x, dtype: float32, shape: [n, k], role: in, fill: {uniform: [-1, 1]}}
  - {name: y, dtype: float32, shape: [n], role: out}
  - {name: n, dtype: int32, value: n}
  - {name: k, dtype: int32, value: k}
launch:
  - {entry: double, grid: [1], block: [1], arguments: [x, y, n, k]}
verify: {error: accumulate(k), bound: probable}
"""
SUM = "    return {'y': inputs['x'].sum(axis=1, dtype='float64')}\n"


@pytest.fixture
def sums(folder):
    folder.write(KERNEL)
    folder.space.write_text(SPACE)
    (folder.path / "reference.py").write_text("def reference(inputs, sizes):\n" + SUM)
    return folder


def test_the_bounds_are_those_of_the_literature():
    unit = 2**-24
    assert accumulated(1000, "float32", WORST) == pytest.approx(1000 * unit / (1 - 1000 * unit))
    assert accumulated(1000, "float32", PROBABLE) == pytest.approx(10 * math.sqrt(1000) * unit, rel=1e-3)
    assert accumulated(0, "float16", WORST) == 0
    assert neighbours("bfloat16")[0] == pytest.approx(2**-7, rel=0.01)
    with pytest.raises(
        ExpressionError, match=r"2,048 roundings in float16 have no bound .* bound: probable allows"
    ):
        accumulated(2048, "float16", WORST)
    with pytest.raises(ExpressionError, match=r"count the longest chain of additions only$"):
        accumulated(2**40, "bfloat16", PROBABLE)


def only_the_first_is_right(folder, wrong=3):
    assert folder.search()["counts"] == {"ok": 1, "wrong_result": wrong}


def test_a_narrower_type_rounded_inputs_and_a_missing_term_are_found(sums):
    only_the_first_is_right(sums)
    rows = sums.run("show", "double", "--json").stdout
    assert "of the sum of magnitudes" in rows


@pytest.mark.parametrize(
    "change",
    [
        ("bound: probable", "bound: probable, magnitude: k, in: float32"),
        ("error: accumulate(k)", "error: {y: accumulate(k)}, in: {y: float32}"),
    ],
)
def test_the_magnitude_may_be_an_expression_and_bounds_belong_to_outputs(sums, change):
    sums.edit(*change)
    only_the_first_is_right(sums)


def test_a_reference_may_have_a_magnitude_of_its_own_or_a_sample(sums):
    sums.edit("A: [1, 2, 3, 4]", "A: [1, 3]")
    own = "def magnitude(inputs, sizes):\n" + SUM.replace("inputs['x']", "abs(inputs['x'])")
    (sums.path / "reference.py").write_text("def reference(inputs, sizes, indices):\n" + SUM)
    only_the_first_is_right(sums, wrong=1)
    signed = "def reference(inputs, sizes):\n    assert (inputs['x'] < 0).any()\n" + SUM
    (sums.path / "reference.py").write_text(signed)
    done = sums.run("search", "double.yaml", "--device", "fake", "--fresh")
    assert done.returncode == 1 and "it was run on absolute values, to bound rounding errors" in done.stderr
    (sums.path / "reference.py").write_text(signed + own)
    only_the_first_is_right(sums, wrong=1)


@pytest.mark.parametrize(
    ("verify", "message"),
    [
        ("{error: gamma(k)}", "verify.error: expected accumulate(OPERATIONS), such as accumulate(k)"),
        ("{error: accumulate(z)}", "verify.error: unknown name 'z'"),
        ("{error: {x: accumulate(k)}}", "verify.error.x: expected an output of floating-point numbers: y"),
        ("{in: float16}", "verify.in: belongs to an error bound: add error: accumulate(OPERATIONS)"),
        ("{error: accumulate(k), in: int32}", "verify.in: unknown value 'int32'"),
    ],
)
def test_a_mistake_is_named(sums, verify, message):
    sums.edit("{error: accumulate(k), bound: probable}", verify)
    with pytest.raises(SpaceError) as error:
        load_space(sums.space)
    assert message in str(error.value)


def test_a_sum_without_a_bound_ends_the_search_in_one_line(sums):
    sums.edit("accumulate(k), bound: probable", "accumulate(k), in: bfloat16")
    done = sums.run("search", "double.yaml", "--device", "fake")
    assert done.returncode != 0 and "1,000 roundings in bfloat16 have no bound" in done.stderr
    assert "Traceback" not in done.stderr


INTEGERS = """\
schema: 1
kernel: double
dialect: python
source: double.py
reference: reference.py
sizes: {default: {n: 50}}
parameters: {A: [1, 2, 3]}
default: {A: 1}
arguments:
  - {name: q, dtype: int8, shape: [n], role: out}
  - {name: scale, dtype: float32, shape: [1], role: out}
launch:
  - {entry: double, grid: [1], block: [1], arguments: [q, scale]}
verify: {rtol: {scale: 1e-6}, atol: {q: 1}}
"""


@pytest.fixture
def rounded(folder):
    """2 rounds a whole number the other way, 3 is off by two; with 4 the scale is a little off."""
    folder.write(
        "def double(grid, block, q, scale):\n"
        "    q.view('int8')[:] = {1: 3, 2: 4, 3: 5, 4: 3}[A]\n"
        "    scale.view('float32')[:] = 1.00001 if A == 4 else 1\n    return 1.0\n"
    )
    folder.space.write_text(INTEGERS)
    (folder.path / "reference.py").write_text(
        "import numpy as np\n\ndef reference(inputs, sizes):\n"
        "    return {'q': np.full(50, 3), 'scale': np.ones(1)}\n"
    )
    return folder


@pytest.mark.parametrize(
    ("verify", "right"),
    [
        ("{rtol: {scale: 1e-6}, atol: {q: 1}}", [1, 2]),
        ("{rtol: 1e-4, atol: {q: 2}}", [1, 2, 3, 4]),
        ("{atol: {q: 0, scale: 1e-4}}", [1, 4]),
        ("{atol: {q: 'A'}, rtol: 1e-6}", [1, 2, 3]),
        ("{atol: {q: 1}, error: {scale: accumulate(10)}}", [1, 2]),
    ],
)
def test_an_output_may_have_a_tolerance_of_its_own(rounded, verify, right):
    rounded.edit("{A: [1, 2, 3]}", "{A: [1, 2, 3, 4]}")
    rounded.edit("{rtol: {scale: 1e-6}, atol: {q: 1}}", verify)
    for number in (1, 2, 3, 4):
        done = rounded.run("run", "double.yaml", "--device", "fake", "--config", f"A={number}")
        assert (done.returncode == 0) == (number in right), (number, done.stderr)
        assert done.returncode == 0 or "wrong_result" in done.stderr


def test_advice_on_a_tolerance_is_for_its_output_alone(rounded):
    rounded.edit("{A: [1, 2, 3]}", "{A: [1, 4]}")
    done = rounded.run("run", "double.yaml", "--device", "fake", "--config", "A=4")
    assert "`verify: {rtol: {scale: 1e-4}}` in the space file allows it" in done.stderr


@pytest.mark.parametrize(
    ("verify", "message"),
    [
        ("{atol: {p: 1}}", "verify.atol.p: expected an output: q, scale"),
        ("{rtol: {scale: B}}", "verify.rtol.scale: unknown name 'B'"),
        ("{rtol: [1]}", "verify.rtol: expected a mapping of names to values"),
    ],
)
def test_a_mistake_in_a_tolerance_of_an_output_is_named(rounded, verify, message):
    rounded.edit("{rtol: {scale: 1e-6}, atol: {q: 1}}", verify)
    with pytest.raises(SpaceError) as error:
        load_space(rounded.space)
    assert message in str(error.value)
