"""Workloads whose inputs repeat a period along one size: the results of many periods follow from a few.

Beyond 2^31 elements, drawing inputs and running a reference takes minutes. If inputs repeat a period, most
results repeat as well, except near both ends, and others grow by the same amount with each period. The
reference itself shows whether that holds: its results for five periods must follow from three and four.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autotune.devices.array_compare import Tolerance, unlike
from autotune.devices.base import Indices
from autotune.devices.element_types import is_floating
from autotune.problem.covering import Domain
from autotune.problem.inputs import draw_inputs
from autotune.problem.reference import run_magnitude, run_reference
from autotune.problem.sampling import sample_indices
from autotune.problem.workload import Array, Make, Workload

FEW = (3, 4, 5)  # numbers of periods: the first and the last are at an end, those between are not
_PERIOD = 2**18  # elements of a period of the largest array
_LEAST = 64  # periods in the long workload: of fewer and larger ones, five would take the host long
_SPARE = 17 / 16  # the largest array passes the limit by so much: others are smaller by a halo
_OF_SUMS = 0.01  # tolerance of a sum, relative to a typical one: a part that is lost is a seventeenth

Values = Mapping[str, NDArray[Any]]
Places = Mapping[str, Indices]  # by output: flat indices


class Growth(NamedTuple):
    """The axis along which an array grows, and the length of a period there; 0 if it does not grow."""

    axis: int
    length: int


class Sample(NamedTuple):
    """Elements of an output: their flat indices, right results, magnitudes if these count, and tolerance."""

    places: Indices
    expected: NDArray[Any]
    magnitudes: NDArray[Any] | None
    tolerance: Tolerance


class Repeated(NamedTuple):
    """Workloads that differ in one size: one for each number of periods in FEW, and one with many.

    Inputs are drawn for the first alone.
    """

    few: tuple[Workload, ...]
    many: Workload
    periods: int  # the number of periods of `many`

    def growth(self, name: str) -> Growth | None:
        """How an array grows with the number of periods; None if not along one axis by equal steps."""
        shapes = [_array(workload, name).shape for workload in (*self.few, self.many)]
        axes = [axis for axis, lengths in enumerate(zip(*shapes, strict=True)) if len({*lengths}) > 1]
        if not axes:
            return Growth(0, 0)
        first, *others = (shape[axes[0]] for shape in shapes)
        length = others[0] - first
        is_even = others == [first + length * (count - FEW[0]) for count in (*FEW[1:], self.periods)]
        return Growth(axes[0], length) if len(axes) == 1 and length > 0 and is_even else None


def repeated(timed: Workload, name: str, elements: int, domain: Domain, plan: Make) -> Repeated | None:
    """Workloads whose largest array exceeds a number of elements because one size grows.

    All are planned without data. None if the kernel does not allow it, or if arrays do not grow by equal
    steps. `timed` is the workload of the size to tune for.
    """
    sizes = timed.problem.sizes
    step = domain.declared({**sizes, name: 1})[name]
    kept = [array.name for array in timed.arrays if array.role != "scratch"]
    unit = max((_array(timed, one).count // sizes[name] for one in kept), default=0) * step
    if not unit:
        return None
    # three times a power of two: places keep their low bits, and no period ends where 32 bits do
    steps = 3 << max(0, (min(_PERIOD, elements // 64) // (3 * unit)).bit_length() - 1)
    periods = round(_SPARE * elements / (unit * steps)) + 1
    at = [{**sizes, name: count * steps * step} for count in (*FEW, periods)]
    planned = [one for one in map(plan, at) if one is not None]
    is_valid = len(planned) == len(at) and all(domain.declared(one) == one for one in at)
    if not is_valid or periods < _LEAST:
        return None
    workloads = Repeated(tuple(planned[:-1]), planned[-1], periods)
    is_large = max(_array(workloads.many, one).count for one in kept) > elements
    return workloads if is_large and all(map(workloads.growth, kept)) else None


class RepeatedData:
    """Inputs and results of repeated workloads; methods raise SetupError where the reference fails."""

    def __init__(self, workloads: Repeated, reference: Path) -> None:
        """Draw the inputs of one period."""
        self._workloads, self._reference = workloads, reference
        drawn = draw_inputs(workloads.few[0].problem, workloads.few[0].arrays)
        self.periods = {name: self._period(name, values) for name, values in drawn.items()}

    def growth(self, name: str) -> Growth:
        """How an array grows."""
        return self._workloads.growth(name) or Growth(0, 0)

    def _period(self, name: str, values: NDArray[Any]) -> NDArray[Any]:
        axis, length = self.growth(name)
        return np.ascontiguousarray(values.take(range(length), axis)) if length else values

    def computed(self) -> dict[str, Sample] | None:
        """Samples of the results of five periods; None if they do not follow from those of three and four."""
        last = self._workloads.few[-1]
        computed = self._samples(last, partial(self._results, last))
        foretold = self._samples(last, partial(self._following, last, FEW[-1]))
        is_same = not any(
            unlike(foretold[name].expected, sample.expected, sample.tolerance, sample.magnitudes).any()
            for name, sample in computed.items()
        )
        return computed if is_same else None

    def foretold(self) -> dict[str, Sample]:
        """Samples of the results of many periods, as they follow from those of three and four.

        Floating-point sums may have larger errors than at the space's own sizes, which its tolerance is for.
        """
        many, periods = self._workloads.many, self._workloads.periods
        samples = self._samples(many, partial(self._following, many, periods))
        return {
            name: sample if self.growth(name).length else sample._replace(tolerance=_wide(sample))
            for name, sample in samples.items()
        }

    def _samples(self, workload: Workload, values: Callable[..., Values]) -> dict[str, Sample]:
        outputs = [array for array in workload.arrays if array.role in ("out", "inout")]
        places = {array.name: sample_indices(array, workload.problem.seed) for array in outputs}
        magnitudes = values(run_magnitude, places) if workload.outputs_with_magnitude else {}
        return {
            name: Sample(places[name], expected, magnitudes.get(name), workload.tolerance_of(name))
            for name, expected in values(run_reference, places).items()
        }

    def _following(
        self, workload: Workload, periods: int, run: Callable[..., Values], places: Places
    ) -> Values:
        few = []
        for smaller in self._workloads.few[:2]:
            at = {name: self._place_in(smaller, workload, name, one) for name, one in places.items()}
            few.append(self._results(smaller, run, at))
        first, second = few
        return {
            name: values if self.growth(name).length else _extended(values, second[name], periods - FEW[0])
            for name, values in first.items()
        }

    def _place_in(self, few: Workload, workload: Workload, name: str, places: Indices) -> Indices:
        """The places of equivalent elements in a few periods: near both ends, else in the second period."""
        axis, length = self.growth(name)
        if not length:
            return places
        large, small = _array(workload, name).shape, _array(few, name).shape
        at = list(np.unravel_index(places, large))
        inner = np.where(at[axis] < length, at[axis], at[axis] % length + length)
        from_end = large[axis] - at[axis]
        at[axis] = np.where(from_end <= length, small[axis] - from_end, inner)
        flat: Indices = np.ravel_multi_index(at, small)
        return flat

    def _results(self, workload: Workload, run: Callable[..., Values], places: Places) -> Values:
        """The reference's results, or magnitudes, at these places of a few periods."""
        inputs = {
            name: self._repeated(values, _array(workload, name)) for name, values in self.periods.items()
        }
        needed = {name: np.unique(one, return_inverse=True) for name, one in places.items()}
        indices = {name: one for name, (one, _) in needed.items()}
        results = run(self._reference, inputs, workload.problem, workload.arrays, indices)
        at_places = {}
        for name, values in results.items():
            is_whole = values.size == _array(workload, name).count
            chosen = values[indices[name]] if is_whole else values
            at_places[name] = chosen[needed[name][1]]
        return at_places

    def _repeated(self, period: NDArray[Any], array: Array) -> NDArray[Any]:
        axis, length = self.growth(array.name)
        return period.take(np.arange(array.shape[axis]) % length, axis) if length else period


def _array(workload: Workload, name: str) -> Array:
    return next(array for array in workload.arrays if array.name == name)


def _wide(sample: Sample) -> Tolerance:
    if not is_floating(sample.expected.dtype):
        return sample.tolerance
    typical = float(np.abs(sample.expected.astype(np.complex128)).mean())
    return replace(sample.tolerance, atol=max(sample.tolerance.atol, _OF_SUMS * typical))


def _extended(first: NDArray[Any], second: NDArray[Any], steps: int) -> NDArray[Any]:
    """Results after so many further steps like the one from `first` to `second`."""
    if first.dtype.kind not in "iufc":
        return first
    with np.errstate(over="ignore"):  # integers wrap around in kernels as well
        extended: NDArray[Any] = first + (second - first) * np.array(steps).astype(first.dtype)
    return extended
