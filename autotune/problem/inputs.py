"""A workload's data on the host: inputs drawn from its seed, and the results that the reference returns."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any, TypeAlias

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from autotune.core import timeline
from autotune.core.c_types import is_complex
from autotune.core.fills import SPECIAL_VALUES
from autotune.core.records import Value
from autotune.core.retried import retried
from autotune.core.text import size_text
from autotune.core.trials import Problem
from autotune.devices.array_compare import EXACT, unlike
from autotune.devices.element_types import is_floating, loaded, numpy_dtype, plain_dtype
from autotune.errors import SetupError
from autotune.problem.data_sets import has_special_values
from autotune.problem.reference import run_magnitude, run_reference
from autotune.problem.reference_cache import ReferenceCache, load_results
from autotune.problem.shapes import SHAPES, shaped
from autotune.problem.workload import Array, Workload

_CHUNK = 2**20  # elements per generator; a change changes what every seed draws
_PIECE = 2**18  # elements drawn at once: they fit in a core's cache, and threads seldom wait for Python
_CHOICES = 2**16  # the number of values of a two-byte type
_TOOK_S = "the reference's time in s"  # among results, which are kept; no array has such a name
_SPECIAL_SHARE = 2**10  # one element in so many is a special value

Drawn: TypeAlias = MutableMapping[tuple[int, Array], NDArray[Any]]  # by seed and array
_Draw: TypeAlias = Callable[[Generator, NDArray[Any]], None]  # draws the elements of one part of an array


@dataclass(frozen=True)
class WorkloadData:
    """The data of one workload on the host: inputs, expected outputs and magnitudes of their terms, by array.

    Expected outputs may be NaN if inputs have special values. The reference's time is None if unknown.
    """

    problem: Problem
    inputs: Mapping[str, NDArray[Any]]
    expected: Mapping[str, NDArray[Any]]
    magnitudes: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    may_be_nan: bool = False
    reference_s: float | None = None


def prepare(
    workload: Workload, reference: Path, cache: ReferenceCache | None = None, drawn: Drawn | None = None
) -> WorkloadData:
    """Draw the inputs and run the reference, unless its results are stored already; raises SetupError."""
    problem = workload.problem
    with timeline.span(f"draw the inputs at {size_text(problem.sizes)}"):
        inputs = draw_inputs(problem, workload.arrays, drawn)
    if workload.expected is not None:
        stored = {name: _from_file(array.path, array.dtype) for name, array in workload.expected}
        return WorkloadData(problem, inputs, _with_kept(workload, inputs, stored))
    if workload.trusted:
        results = load_results(Path(workload.trusted))
        if results is None:
            raise SetupError(f"{workload.trusted}: the trusted results are gone; start the search again")
    else:

        def run() -> dict[str, NDArray[Any]]:
            began_s = perf_counter()
            results = run_reference(reference, inputs, problem, workload.arrays)
            return {**results, _TOOK_S: np.array([perf_counter() - began_s])}

        with timeline.span(f"reference at {size_text(problem.sizes)}"):
            results = run() if cache is None else cache.result(reference, workload.data_key, run)
    took_s = results.pop(_TOOK_S, None)
    dtypes = {array.name: array.dtype for array in workload.arrays}
    returned = {name: loaded(values, dtypes[name]) for name, values in results.items()}
    expected = _with_kept(workload, inputs, returned)
    magnitudes = _magnitudes(workload, reference, inputs, cache)
    reference_s = None if took_s is None else float(took_s[0])
    return WorkloadData(
        problem, inputs, expected, magnitudes, has_special_values(workload.arrays), reference_s
    )


def _with_kept(
    workload: Workload, inputs: Mapping[str, NDArray[Any]], results: Mapping[str, NDArray[Any]]
) -> dict[str, NDArray[Any]]:
    """Results with the arrays that callers fill only once: the next call begins with what a run leaves there.

    Raises SetupError for one that the reference changes.
    """
    expected = dict(results)
    for array in workload.arrays:
        if array.is_kept:
            before = inputs[array.name].reshape(-1)
            after = expected.setdefault(array.name, before)
            if before.size == after.size and unlike(after, before, EXACT).any():
                raise SetupError(
                    f"the reference changes {array.name}, which `call` fills before the first run only: add "
                    f"{array.name} to the inputs of `call`, or let every run leave it as it was"
                )
    return expected


def _magnitudes(
    workload: Workload,
    reference: Path,
    inputs: Mapping[str, NDArray[Any]],
    cache: ReferenceCache | None,
) -> dict[str, NDArray[Any]]:
    """The sums of magnitudes of outputs whose tolerance follows from the data."""
    if not workload.outputs_with_magnitude:
        return {}
    run = partial(run_magnitude, reference, inputs, workload.problem, workload.arrays)
    with timeline.span(f"magnitudes at {size_text(workload.problem.sizes)}"):
        magnitudes = (
            run() if cache is None else cache.result(reference, f"magnitude {workload.data_key}", run)
        )
    return {name: magnitudes[name] for name in workload.outputs_with_magnitude if name in magnitudes}


def draw_inputs(
    problem: Problem, arrays: tuple[Array, ...], drawn: Drawn | None = None
) -> dict[str, NDArray[Any]]:
    """Draw every array that has a fill, read-only; the same seed gives the same arrays on every machine.

    An array that is among the `drawn` ones is taken from there, and others are added.
    """
    inputs: dict[str, NDArray[Any]] = {}
    for array in arrays:
        if array.fill is not None:
            known = drawn.get((problem.seed, array)) if drawn is not None else None
            inputs[array.name] = _fill(array, array.fill, problem.seed, inputs) if known is None else known
            inputs[array.name].flags.writeable = False
            if drawn is not None and is_drawn_alone(array):
                drawn[problem.seed, array] = inputs[array.name]
    return inputs


def is_drawn_alone(array: Array) -> bool:
    """True if an input depends on nothing but the array itself and the seed."""
    return array.fill is not None and not {"copy", "transpose"} & {*array.fill}


def load_array(path: str | Path) -> Any:
    """The array in a .npy file, mapped into memory; raises what `np.load` raises."""
    # numpy parses the header as Python, which other threads disturb
    return retried(lambda: np.load(path, mmap_mode="r"), SystemError)


def _from_file(path: str, dtype: str) -> NDArray[Any]:
    """The array in a .npy file, which the parent process has checked."""
    return loaded(np.asarray(load_array(path)), dtype)


def _fill(
    array: Array, fill: tuple[Value, ...], seed: int, earlier: Mapping[str, NDArray[Any]]
) -> NDArray[Any]:
    kind, *numbers = fill
    dtype = numpy_dtype(array.dtype)
    real = np.float64 if array.dtype in ("float64", "complex128", "int64", "uint64") else np.float32
    match kind, numbers:
        case "stored", [_]:
            return _from_file(array.path, array.dtype)
        case "copy", [str(name)]:
            return earlier[name].astype(dtype, copy=False)  # nothing writes to inputs
        case "transpose", [str(name)]:
            return np.ascontiguousarray(earlier[name].T)
        case "alternating", _:  # for data sets, not for spaces
            return np.resize(np.array(numbers, dtype), array.shape)
        case _, [str(drawn), *of_drawn] if kind in SPECIAL_VALUES:
            values = _fill(array, (drawn, *of_drawn), seed, earlier)
            _put_special(values, str(kind), np.random.default_rng([seed, *array.name.encode()]))
            return values
        case _, [str(drawn), *of_drawn] if kind in SHAPES:
            values = _fill(array, (drawn, *of_drawn), seed, earlier)
            draw = np.random.default_rng([seed, *array.name.encode()])
            return shaped(str(kind), values, (drawn, *of_drawn), array.dtype, draw)
        case "constant", [value]:
            return np.full(array.shape, value, dtype)
        case "sequence", [int() | float() as start, int() | float() as step]:
            return (start + step * np.arange(array.count)).astype(dtype).reshape(array.shape)
        case "integers", [int() as low, int() as high]:
            exact = dtype if dtype.kind in "iu" else np.dtype(np.int32)

            def integers(draw: Generator, part: NDArray[Any]) -> None:
                part[:] = draw.integers(int(low), int(high), part.size, exact, endpoint=True)

            return _drawn(array, seed, integers, _PIECE if exact.itemsize >= 4 else _CHUNK)
        case "uniform", [int() | float() as low, int() | float() as high]:
            return _drawn(array, seed, _scaled(Generator.random, real, high - low, low))
        case "normal", [int() | float() as mean, int() | float() as deviation]:
            return _drawn(array, seed, _scaled(Generator.standard_normal, real, deviation, mean))
    raise SetupError(f"argument {array.name}: no such fill: {fill}")


def _put_special(values: NDArray[Any], name: str, draw: Generator) -> None:
    special = np.array(SPECIAL_VALUES[name], values.dtype)
    places = draw.permutation(values.size)[: max(special.size, values.size // _SPECIAL_SHARE)]
    values.reshape(-1)[places] = np.resize(special, places.size)


def _scaled(draw: Callable[..., Any], real: type[np.floating[Any]], factor: float, shift: float) -> _Draw:
    """Draw real numbers, in place if they have the array's type, then scale and shift them."""

    def fill(generator: Generator, part: NDArray[Any]) -> None:
        numbers = part if part.dtype == real else np.empty(part.size, real)
        draw(generator, out=numbers, dtype=real)
        numbers *= factor
        numbers += shift
        if numbers is not part:
            part[:] = numbers

    return fill


def _choosing(draw: _Draw, generator: Generator, dtype: np.dtype[Any]) -> _Draw:
    """Draw elements from _CHOICES that are drawn now, which takes less time where there are few values."""
    choices = np.empty(_CHOICES, dtype)
    draw(generator, choices)

    def choose(own: Generator, part: NDArray[Any]) -> None:
        # `take` lets other threads run, an index in brackets does not
        choices.take(own.integers(0, _CHOICES, part.size, np.uint16), out=part, mode="wrap")

    return choose


def _drawn(array: Array, seed: int, draw: _Draw, piece: int = _PIECE) -> NDArray[Any]:
    """Draw an array in chunks, in parallel, each with its own generator.

    A `piece` is the number of elements that are drawn at once: generators of small integers forget bits
    between two calls.
    """
    values = np.empty(array.count, numpy_dtype(array.dtype))
    if is_complex(array.dtype):  # both parts get drawn
        values = values.view(plain_dtype(array.dtype))
    chunks = -(-values.size // _CHUNK)

    def generator(number: int) -> Generator:
        # seeded by name: an array keeps its content when another one is added before it
        return np.random.default_rng([seed, zlib.crc32(array.name.encode()), number])

    if is_floating(values.dtype) and values.itemsize <= 2 and values.size > _CHOICES:
        draw = _choosing(draw, generator(chunks), values.dtype)
        piece = _PIECE

    def fill(chunk: int) -> None:
        own, end = generator(chunk), min(values.size, (chunk + 1) * _CHUNK)
        for start in range(chunk * _CHUNK, end, piece):
            draw(own, values[start : min(start + piece, end)])

    if chunks <= 1:
        fill(0)
    else:
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
            list(threads.map(fill, range(chunks)))
    return values.view(numpy_dtype(array.dtype)).reshape(array.shape)
