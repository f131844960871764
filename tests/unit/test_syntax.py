"""Syntax trees of which another thread builds one at the same time, ours and those of numpy."""

import ast
import gc

import numpy as np
import pytest

from autotune.core.syntax import parse_expression, parse_module
from autotune.problem.reference_cache import load_results, save_results


@pytest.fixture
def disturb():
    """Build another tree, as another thread might, at each of the next collections of garbage."""
    left = []

    def build_another(*_):
        if left:
            left.pop()
            build_deep(20)

    def build_deep(calls):  # the two trees have to begin at different depths
        if calls:
            build_deep(calls - 1)
        else:
            compile("1", "", "eval", ast.PyCF_ONLY_AST)

    before = gc.get_threshold()
    gc.callbacks.append(build_another)
    gc.set_threshold(5)
    yield lambda: left.extend([1] * 20)
    gc.callbacks.remove(build_another)
    gc.set_threshold(*before)


def test_an_expression_is_read(disturb):
    for number in range(100):
        disturb()
        tree = parse_expression(f"{number} + A * (2 - B * (3 + A))")
        assert ast.unparse(tree) == f"{number} + A * (2 - B * (3 + A))"


def test_a_file_is_read(disturb):
    for number in range(100):
        disturb()
        assert ast.unparse(parse_module(f"x = {number} * (y - (z + 2))")) == f"x = {number} * (y - (z + 2))"


def test_numpy_s_files_are_read(disturb, tmp_path):
    with (tmp_path / "results").open("wb") as file:
        save_results(file, {"sum": np.full(3, 7), "count": np.ones(1)})
    for _ in range(100):
        disturb()
        found = load_results(tmp_path / "results")
        assert [*found] == ["sum", "count"] and found["sum"].tolist() == [7, 7, 7]


@pytest.mark.parametrize("text", ["a +", "a\0", "\ud800", "(" * 10_000, "-" * 100_000 + "1"])
@pytest.mark.parametrize("parse", [parse_expression, parse_module])
def test_what_is_no_python_is_one_kind_of_error(parse, text):
    with pytest.raises(SyntaxError):
        parse(text)


def test_a_syntax_error_is_raised_with_its_line():
    with pytest.raises(SyntaxError) as caught:
        parse_module("x = 1\ny = (\n")
    assert caught.value.lineno == 2
    with pytest.raises(SyntaxError):
        parse_expression("1 +")
    assert ast.unparse(parse_expression("  1\n")) == "1"
