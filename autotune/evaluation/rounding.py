"""Whether rounding can decide results that are compared exactly."""

from __future__ import annotations

from collections.abc import Set
from pathlib import Path

from autotune.core.error_bounds import UNIT_ROUNDOFF
from autotune.devices.array_compare import EXACT
from autotune.errors import BrokenReference
from autotune.evaluation.inputs import draw_inputs
from autotune.evaluation.reference import run_magnitude
from autotune.evaluation.work_item import ProblemInstance


def is_order_free(problem: ProblemInstance, reference: Path, compared: Set[str]) -> bool:
    """Whether sums that are compared exactly are the same in any order.

    They are as long as the sums of magnitudes are whole numbers that the element type holds exactly.
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
