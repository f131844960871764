"""One run of a space's reference before any search, at the smallest of the sizes to verify."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from pathlib import Path

from autotune.compilers.source_text import SourceText
from autotune.errors import BrokenReference, ChildFailed, ChildRaised, ExpressionError
from autotune.evaluation.instance import InstanceMaker, environment
from autotune.hardware.architectures import NOT_HERE
from autotune.problem.inputs import prepare
from autotune.problem.reference_file import ReferenceFile
from autotune.problem.workload import Workload
from autotune.processes.child import Child
from autotune.space import Finding, ValidSpace
from autotune.space.arguments import INPUTS

_START_TIMEOUT_S, _TIMEOUT_S = 60.0, 5.0
_PLACE = re.compile(r"(.*?\.py(?::\d+)?): (.*)", re.DOTALL)  # the beginning of a broken reference's message


def check_reference(space: ValidSpace, source: SourceText) -> tuple[Finding, ...]:
    """Find, without a device, what a search would report about the reference; at most one finding.

    Nothing is reported if inputs are stored or made by a function, if the reference needs a device that is
    not here, or if it takes more than a few seconds.
    """
    path = space.spec.reference
    reference = ReferenceFile(path)
    fills = {argument.fill.kind for argument in space.spec.arguments if argument.fill is not None}
    if not path.is_file():
        return ()
    if INPUTS not in fills and (line := reference.inputs_line) is not None:
        detail = f"no argument has `fill: {INPUTS}`, so {INPUTS}() is never called"
        return (Finding("reference", path.name, detail, f"{path}:{line}"),)
    workload = _smallest(space, source)
    if workload is None or fills & {"file", INPUTS}:
        return ()
    if space.device.driver == NOT_HERE and reference.may_use_device:
        return ()
    child = Child(int)
    try:
        child.call(_start, timeout_s=_START_TIMEOUT_S)
        child.call(_prepare, workload, path, timeout_s=_TIMEOUT_S)
    except ChildRaised as error:
        if error.kind == BrokenReference.__name__:
            match = _PLACE.match(error.message)
            place, detail = match.groups() if match else ("", error.message)
            return (Finding("reference", path.name, detail, place),)
    except ChildFailed:  # too slow, or too large for this machine
        pass
    finally:
        child.kill()
    return ()


def _smallest(space: ValidSpace, source: SourceText) -> Workload | None:
    """The default configuration's workload at the smallest sizes to verify; None if it has none.

    Sizes of 1 come last, because they hide wrong shapes.
    """
    smallest_first = sorted(
        space.spec.verify_sizes, key=lambda sizes: (1 in sizes.values(), math.prod(sizes.values()))
    )
    if not smallest_first:
        return None
    problem = replace(space.problem, sizes={**space.problem.sizes, **smallest_first[0]})
    maker = InstanceMaker(space, source, space.spec.dialect, environment(space.device, ""))
    try:
        return maker.workload(space.spec.default, problem)
    except ExpressionError:
        return None


def _start(_state: object) -> None:
    """Do nothing: the imports of this module are done."""


def _prepare(_state: object, workload: Workload, reference: Path) -> None:
    prepare(workload, reference)
