"""Runs the functions of a user's reference file, and reports their errors by file and line."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import textwrap
import traceback
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.syntax import parse_module
from autotune.core.text import hint, nearest, size_text
from autotune.core.trials import Problem
from autotune.devices.base import Indices
from autotune.errors import BrokenReference
from autotune.problem.reference_results import converted_results
from autotune.problem.sampling import sample_indices, takes_indices
from autotune.problem.workload import Array

_FUNCTIONS = ("reference", "inputs", "magnitude")  # optional functions of a file
_MAX_LETTERS = 300  # letters of an exception's message


def run_reference(
    path: Path,
    inputs: Mapping[str, NDArray[Any]],
    problem: Problem,
    arrays: tuple[Array, ...],
    indices: Mapping[str, Indices] | None = None,
) -> dict[str, NDArray[Any]]:
    """Run `reference(inputs, sizes)` of a file; raises BrokenReference for any error in it.

    With a third parameter, `indices`, it computes only these elements of each output: those given, or else a
    sample. The results are flat and of the arguments' types.
    """
    function = load_function(path, "reference", "reference(inputs, sizes)")
    run = partial(call, path, function)
    try:
        return call_reference(function, run, inputs, problem, arrays, indices)
    except BrokenReference as error:
        raise BrokenReference(f"{error} (at {size_text(problem.sizes)})") from None


def run_magnitude(
    path: Path,
    inputs: Mapping[str, NDArray[Any]],
    problem: Problem,
    arrays: tuple[Array, ...],
    indices: Mapping[str, Indices] | None = None,
) -> dict[str, NDArray[Any]]:
    """The sums of magnitudes behind the outputs: those of `magnitude`, else the reference of |inputs|.

    Arguments and errors are as of `run_reference`. The results have float32 elements.
    """
    wide = tuple(replace(array, dtype="float32") if array.role != "in" else array for array in arrays)
    own = getattr(call(path, _load_module, "the file", path), "magnitude", None)
    if callable(own):
        reference = load_function(path, "reference", "reference(inputs, sizes)")
        if takes_indices(own) != takes_indices(reference):
            raise BrokenReference(
                f"{defined_at(own)}: expected magnitude() with the parameters of reference()"
            )
        return call_reference(own, partial(call, path, own), inputs, problem, wide, indices, "magnitude")
    positive = {
        name: np.abs(values) if values.dtype.kind in "ifcV" else values for name, values in inputs.items()
    }
    try:
        return run_reference(path, positive, problem, wide, indices)
    except BrokenReference as error:
        raise BrokenReference(f"{error}; it was run on absolute values, to bound rounding errors") from None


def call_reference(
    function: Callable[..., Any],
    run: Callable[..., Any],
    inputs: Mapping[str, NDArray[Any]],
    problem: Problem,
    arrays: tuple[Array, ...],
    indices: Mapping[str, Indices] | None = None,
    name: str = "reference",
) -> dict[str, NDArray[Any]]:
    """Run a reference, and check and convert what it returns; raises BrokenReference.

    `run` calls it: it takes the name with parameters, for messages, and the arguments.
    """
    arguments: tuple[Any, ...] = (dict(inputs), dict(problem.sizes))
    if not takes_indices(function):
        return expected_results(function, run(f"{name}(inputs, sizes)", *arguments), arrays)
    outputs = [array for array in arrays if array.role in ("out", "inout")]
    indices = indices or {array.name: sample_indices(array, problem.seed) for array in outputs}
    results = run(f"{name}(inputs, sizes, indices)", *arguments, dict(indices))
    return expected_results(function, results, arrays, indices)


def load_function(path: Path, name: str, wanted: str) -> Callable[..., Any]:
    """Import a reference file and return one of its functions; raises BrokenReference.

    `wanted` describes the function for messages.
    """
    module = call(path, _load_module, "the file", path)
    function = getattr(module, name, None)
    if not callable(function):
        own = [
            key
            for key, value in vars(module).items()
            if getattr(value, "__module__", "") == module.__name__ and key not in _FUNCTIONS
        ]
        word = "it" if len(own) == 1 else "the one that is meant"
        defined = f"only {', '.join(f'`{key}`' for key in own)}; rename {word} to `{name}`" if own else "none"
        raise BrokenReference(f"{path}: expected a function {wanted}, found {defined}")
    return function  # type: ignore[no-any-return]


def functions_of(path: Path) -> dict[str, Callable[..., Any]]:
    """The functions that a reference file defines, by name; raises BrokenReference."""
    module = call(path, _load_module, "the file", path)
    return {name: one for name, one in vars(module).items() if callable(one) and not name.startswith("_")}


def _load_module(path: Path) -> ModuleType:
    specification = importlib.util.spec_from_file_location("autotune_reference", path)
    if specification is None or specification.loader is None:
        raise BrokenReference(f"{path}: expected a Python file, whose name ends with .py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def call(path: Path, function: Callable[..., Any], usage: str, *arguments: Any) -> Any:
    """Call a function of a reference file; its exceptions become BrokenReference.

    `usage` is its name for messages, with the expected parameters.
    """
    try:
        return function(*arguments)
    except (BrokenReference, MemoryError):  # lack of memory is not the file's fault
        raise
    except Exception as error:  # noqa: BLE001 - the user's code may raise anything
        file = str(path.absolute())  # the module's file as Python names it
        said = " ".join(str(error).split())[:_MAX_LETTERS]
        reason = f"{type(error).__name__}: {said}" if said else type(error).__name__
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
        if isinstance(error, SyntaxError) and error.filename == file:
            raise BrokenReference(f"{path}:{error.lineno}: not valid Python: {error.msg}") from None
        if not frames:  # it does not take these arguments
            raise BrokenReference(f"{defined_at(function)}: expected {usage}: {reason}") from None
        line = f" in `{frames[-1].line}`" if frames[-1].line else ""
        advice = _advice(error, arguments)
        raise BrokenReference(f"{path}:{frames[-1].lineno}: {usage} raised {reason}{line}{advice}") from None


def _advice(error: Exception, arguments: tuple[Any, ...]) -> str:
    """Advice on a common mistake, as the end of a message."""
    if isinstance(error, ValueError) and "read-only" in str(error):
        return "; inputs are read-only: change a copy, such as inputs[NAME].copy()"
    values = {name: value for one in arguments if isinstance(one, dict) for name, value in one.items()}
    if isinstance(error, IndexError) and (match := re.search(r"too many indices.* is (\d+)-dim", str(error))):
        shaped = {name: value.shape for name, value in values.items() if isinstance(value, np.ndarray)}
        alike = [f"{name} {list(shape)}" for name, shape in shaped.items() if len(shape) == int(match[1])]
        if alike:
            return f"; inputs have the `shape` of the space file: {', '.join(alike)}"
    names = list(values)
    if isinstance(error, ModuleNotFoundError):
        return f"; install it, for example with `pip install {error.name}`, or remove the import"
    if isinstance(error, NameError) and error.name == "np":
        return "; write `import numpy as np` at the top of the file"
    if isinstance(error, AttributeError) and isinstance(error.obj, dict):
        return f'; inputs and sizes are dictionaries: write ["{error.name}"] for .{error.name}'
    if isinstance(error, KeyError) and names and error.args and isinstance(error.args[0], str):
        key = error.args[0]
        numbers = "; the space file's numbers are not passed to a reference: write the value in it"
        return nearest(key, names) or f"{hint(key, names)}{numbers}"
    return ""


def defined_at(function: Callable[..., Any]) -> str:
    """The place of a function's definition: `FILE:LINE`, or its name if it has no source."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        return getattr(function, "__qualname__", repr(function))
    return f"{_file(code)}:{code.co_firstlineno}"


def _returning(function: Callable[..., Any]) -> str:
    """The place of a function's only return statement, `FILE:LINE`, with its text; else as `defined_at`."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    try:
        lines, first = inspect.getsourcelines(function)
        defined, *_ = parse_module(textwrap.dedent("".join(lines))).body
    except (OSError, TypeError, SyntaxError):
        return defined_at(function)
    returning = [node.lineno - 1 for node in _returns(defined)]
    if code is None or len(returning) != 1:
        return defined_at(function)
    return f"{_file(code)}:{first + returning[0]}: `{lines[returning[0]].strip()}`"


def _returns(node: ast.AST) -> Iterator[ast.Return]:
    """The return statements of a function, without nested functions."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            yield child
        elif not isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield from _returns(child)


def _file(code: Any) -> Path:
    """The file of a function, as short as a user would name it: relative in the current folder."""
    path = Path(code.co_filename)
    return path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path


def expected_results(
    function: Callable[..., Any],
    results: Any,
    arrays: tuple[Array, ...],
    indices: Mapping[str, Indices] | None = None,
) -> dict[str, NDArray[Any]]:
    """As `converted_results`; a BrokenReference names the place where `function` returns."""
    try:
        return converted_results(results, arrays, indices)
    except BrokenReference as error:
        raise BrokenReference(f"{_returning(function)}: reference() returned {error}") from None
