"""Describes a wrong result: where, how many elements and how far off; and saves its arrays."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.error_bounds import UNIT_ROUNDOFF
from autotune.core.trials import ArrayFault
from autotune.devices.array_compare import Tolerance, unlike
from autotune.devices.element_types import plain_dtype
from autotune.evaluation.buffers import WorkloadBuffers
from autotune.evaluation.guarded_buffer import GuardedBuffer
from autotune.problem.workload import Array, Workload
from autotune.processes.files import writing

MAX_EXAMINED = 2**24  # elements from the first wrong one on; more would take seconds
MAX_KEPT = 5  # wrong results per search whose arrays are written
_ROUNDING = 2**8  # a relative error up to so many units of the last place looks like rounding
_MOST = 2**-5  # unless the error is larger than this, which units of 16 bits would allow
_MAX_TYPICAL = 2**16  # elements of which a typical magnitude is taken
_CANCELLED = 2**4  # so does one up to so many units of a typical element, where large terms cancel
_NUMBERED = re.compile(r"wrong-(\d{1,9})")


def element_text(array: Array, index: int) -> str:
    """An element in a message: `y[3, 7]`."""
    return f"{array.name}[{', '.join(str(int(part)) for part in np.unravel_index(index, array.shape))}]"


def describe(
    guarded: GuardedBuffer, at: int, count: int, buffers: WorkloadBuffers, poisoned: bool
) -> tuple[str, ArrayFault]:
    """Describe how an array, as a run left it, differs from what the reference expects.

    `count` elements differ, the first one at the index `at`. Inputs of the same shape are shown there. If the
    outputs began the run `poisoned`, wrong elements that still hold the poison were never written.
    """
    array, workload = guarded.array, buffers.workload
    tolerance = workload.tolerance_of(array.name)
    places, found, expected = guarded.compared(at, min(MAX_EXAMINED, guarded.count - at))
    is_wrong = unlike(found, expected, tolerance, guarded.magnitude_at(places))
    is_wrong[0] = True  # as the device says, whose arithmetic may end in another last bit
    differs = np.flatnonzero(is_wrong)
    wrong = found[differs]
    is_unwritten = poisoned and guarded.are_unwritten(wrong)
    fault = ArrayFault(
        array.name,
        workload.problem.sizes,
        element_text(array, at),
        "" if is_unwritten else f"{found[0]}",
        f"{expected[0]}",
        is_unwritten=is_unwritten,
        is_end=0 < at == guarded.count - len(differs),
    )
    is_found = "was never written" if is_unwritten else f"is {fault.found}"
    parts = [f"{fault.element} {is_found}, expected {fault.expected}"]
    if at + len(found) == guarded.count:
        count = len(differs)  # both parts of a complex number count as one
    if guarded.count > 1:
        reach = f", from {fault.element} to {element_text(array, int(places[differs[-1]]))}"
        compared = guarded.count if guarded.sample is None else len(guarded.sample)
        of = f"{compared:,}" if compared == guarded.count else f"a sample of {compared:,}"
        parts[0] += f", {count:,} of {of} elements differ{reach if count > 1 else ''}"
    if is_unwritten:
        return parts[0], fault
    if array.is_kept:  # the space says what is right, and no reference is to correct
        detail = f"{parts[0]}; the next call begins with what this one leaves in {array.name}: reset it"
        return detail, replace(fault, expected="")
    parts += [
        f"{element_text(same_shaped.array, at)} is {same_shaped.values(at, 1)[0][0]}"
        for same_shaped in buffers.arrays()
        if same_shaped.array.role == "in" and same_shaped.array.shape == array.shape
    ]
    if holder := _holder(guarded, places[differs], expected[differs], buffers):
        parts.append(f"{holder} has the values expected of {array.name}")
        return "; ".join(parts), replace(fault, holder=holder)
    texts, worst = _errors(array, places[differs], wrong, expected[differs])
    parts += texts
    typical = guarded.compared(0, min(_MAX_TYPICAL, guarded.count))[2]
    allowance = ""
    if len(worst) == 2:
        of = f"{{{array.name}: %s}}" if array.name in dict(workload.bounds) else "%s"
        allowance = _allowance(array, worst, typical, tolerance, of)
    if allowance:
        parts.append(f"this may be rounding; `{allowance}` in the space file allows it")
    elif _seem_made_whole(typical, workload) and not _are_whole(wrong[np.isfinite(wrong)]):
        parts.append("every expected element is whole: does `reference` round, as by `.astype(int)`?")
    parts.append(f"tolerance: {tolerance}")
    return "; ".join(parts), replace(fault, allowance=allowance)


def _holder(
    guarded: GuardedBuffer, places: NDArray[Any], expected: NDArray[Any], buffers: WorkloadBuffers
) -> str:
    """Another array that is written and has the expected elements in these places; empty without one.

    As after an odd number of repetitions that swap two arrays. Equal elements show nothing.
    """
    own, tolerance = guarded.array, buffers.workload.tolerance_of(guarded.array.name)
    if not np.any(expected != expected[0]):
        return ""
    first, count = int(places[0]), int(places[-1] - places[0]) + 1
    for other in buffers.arrays():
        one = other.array
        if one.name != own.name and one.role != "in" and (one.dtype, one.shape) == (own.dtype, own.shape):
            actual = other.values(first, count)[0][places - first]
            if not np.any(unlike(actual, expected, tolerance, guarded.magnitude_at(places))):
                return one.name
    return ""


def _errors(
    array: Array, places: NDArray[Any], found: NDArray[Any], expected: NDArray[Any]
) -> tuple[list[str], list[float]]:
    """The largest absolute and relative error of elements that differ, in words and as numbers."""
    if found.dtype.names:
        return [], []
    wide = np.clongdouble if found.dtype.kind == "c" else np.longdouble  # holds every 64-bit integer
    with np.errstate(all="ignore"):
        errors = np.abs(found.astype(wide) - expected.astype(wide))
        relative = errors / np.abs(expected.astype(wide))
    odd = int(np.count_nonzero(~np.isfinite(found.astype(wide))))
    texts = [f"{odd:,} not finite"] if odd else []
    worst: list[float] = []
    for kind, values in (("error", errors), ("relative error", relative)):
        finite = np.where(np.isfinite(values), values, -1)
        at = int(np.argmax(finite))
        if finite[at] >= 0:
            worst.append(float(finite[at]))
            is_only = len(places) == 1
            where = "" if is_only else f" at {element_text(array, int(places[at]))}"
            texts.append(f"{'' if is_only else 'largest '}{kind} {worst[-1]:.3g}{where}")
    return texts, worst


def _allowance(array: Array, worst: list[float], typical: NDArray[Any], tolerance: Tolerance, of: str) -> str:
    """The `verify` that allows errors which look like rounding, in which each number is written as in `of`.

    `typical` are some expected elements.
    """
    error, relative = worst
    unit = UNIT_ROUNDOFF.get(plain_dtype(array.dtype), 0.0)
    with np.errstate(all="ignore"):
        sizes = np.abs(typical.astype(np.complex128))
        mean = float(np.mean(sizes, where=np.isfinite(sizes)))
    rtol, atol = f"{tolerance.rtol:g}", f"{tolerance.atol:g}"
    if relative <= min(2 * _ROUNDING * unit, _MOST):
        rtol = f"1e{math.ceil(math.log10(2 * max(relative, unit)))}"
    elif error <= 2 * _CANCELLED * unit * mean:
        atol = f"1e{math.ceil(math.log10(2 * error))}"
    else:
        return ""
    numbers = {"rtol": rtol, **({} if atol == "0" else {"atol": atol})}
    return f"verify: {{{', '.join(f'{name}: {of % number}' for name, number in numbers.items())}}}"


def _seem_made_whole(expected: NDArray[Any], workload: Workload) -> bool:
    """True if all expected elements are whole although inputs vary: one, or zeros, may be so by chance."""
    fills = (array.fill for array in workload.arrays if array.role in ("in", "inout"))
    varies = any(fill is not None and fill[0] != "constant" for fill in fills)
    return varies and bool(np.count_nonzero(expected) > 1) and _are_whole(expected)


def _are_whole(values: NDArray[Any]) -> bool:
    """True if all numbers are finite and whole."""
    return values.dtype.kind in "fc" and bool(np.all(np.isfinite(values) & (values == np.rint(values))))


@dataclass(frozen=True)
class WrongArrays:
    """Saves the arrays of the first MAX_KEPT wrong results in a folder, numbered from `number` on."""

    folder: Path
    number: int

    @classmethod
    def into(cls, folder: Path) -> WrongArrays:
        """Continue the numbers of the results in a folder; raises WriteError if it cannot be written."""
        with writing(f"--dump-wrong {folder}"):
            folder.mkdir(parents=True, exist_ok=True)
            numbers = [
                int(match[1]) for path in folder.iterdir() if (match := _NUMBERED.fullmatch(path.name))
            ]
        return cls(folder.absolute(), max(numbers, default=0) + 1)

    def write(self, failure: str, wrong: Iterable[GuardedBuffer]) -> str:
        """Write the found and the expected arrays; return where, as the end of a message, or nothing.

        `failure` is its text.
        """
        try:
            target = self._next()
            if target is None:
                return ""
            (target / "what.txt").write_text(f"{failure}\n")
            for guarded in wrong:
                stem, shape = str(target / guarded.array.name), guarded.array.shape
                if guarded.sample is None:
                    found, expected = (values.reshape(shape) for values in guarded.values(0, guarded.count))
                else:
                    indices, found, expected = guarded.compared(0, guarded.count)
                    np.save(f"{stem}.indices.npy", indices)
                for name, values in (("found", found), ("expected", expected)):
                    is_narrow = guarded.array.dtype == "bfloat16"  # numpy's files do not know it
                    np.save(f"{stem}.{name}.npy", values.astype(np.float32) if is_narrow else values)
        except OSError as error:
            return f"; its arrays cannot be written to {self.folder}: {error.strerror}"
        return f"; arrays in {target}"

    def _next(self) -> Path | None:
        """A new folder for one wrong result; None if there are enough."""
        for number in range(self.number, self.number + MAX_KEPT):
            target = self.folder / f"wrong-{number}"
            if not target.exists():
                target.mkdir()
                return target
        return None
