"""Can rounding decide whether a problem's results count as right?"""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

import numpy as np

from autotune.core.error_bounds import SMALLEST_NORMAL, UNIT_ROUNDOFF
from autotune.devices.array_compare import EXACT, unlike
from autotune.errors import BrokenReference
from autotune.problem.inputs import draw_inputs
from autotune.problem.problem_instance import ProblemInstance
from autotune.problem.reference import run_magnitude, run_reference


def allows_rounding(problem: ProblemInstance, reference: Path, compared: Set[str]) -> bool:
    """True if the tolerance allows additions in any order, and denormal inputs taken for zeros."""
    return is_order_free(problem, reference, compared) and allows_flushing(problem, reference)


def is_order_free(problem: ProblemInstance, reference: Path, compared: Set[str]) -> bool:
    """True if sums that are compared exactly are the same in any order.

    That holds if the sums of magnitudes are whole numbers that the element type holds exactly.
    """
    largest = {
        array.name: 1 / UNIT_ROUNDOFF[array.dtype]
        for array in problem.arrays
        if array.name in compared
        and array.dtype in UNIT_ROUNDOFF
        and problem.tolerance_of(array.name) == EXACT
    }
    if not largest:
        return True
    try:
        inputs = draw_inputs(problem.definition, problem.arrays)
        magnitudes = run_magnitude(reference, inputs, problem.definition, problem.arrays)
    except BrokenReference:
        return True  # it does not take absolute values
    return all(bool((magnitudes[name] <= most).all()) for name, most in largest.items() if name in magnitudes)


def allows_flushing(problem: ProblemInstance, reference: Path) -> bool:
    """True if zeros instead of denormal inputs change no result by more than the tolerance.

    Devices and compiler options decide whether denormals are flushed, often per operation.
    """
    inputs = draw_inputs(problem.definition, problem.arrays)
    smallest = {array.name: SMALLEST_NORMAL.get(array.dtype, 0.0) for array in problem.arrays}
    flushed = {
        name: np.where(np.abs(values) < smallest[name], values.dtype.type(0), values)
        if smallest[name]
        else values
        for name, values in inputs.items()
    }
    if all(np.array_equal(flushed[name], inputs[name]) for name in inputs):
        return True
    try:
        results, others = (
            run_reference(reference, given, problem.definition, problem.arrays) for given in (inputs, flushed)
        )
    except BrokenReference:
        return False  # it is not defined for zeros
    return not any(unlike(others[name], results[name], problem.tolerance_of(name)).any() for name in results)
