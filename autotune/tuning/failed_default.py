"""Why the default configuration fails: the place to look at, and what to write there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from autotune.compilers.base import undefined_names
from autotune.compilers.kernel_source import portable_names
from autotune.core.expressions import integer, parse
from autotune.core.launch_plan import arguments
from autotune.core.text import bare_code, nearest, size_text
from autotune.core.trials import Status, Trial
from autotune.errors import ExpressionError
from autotune.space import lint_source, located, source_place
from autotune.tuning.task import TuningTask

_CAUSES = ("signature", "unknown_macro")  # findings about the source that explain a failure
_SIMILAR = 0.65  # WORK_PER_THREAD is no misspelt ORDER_INTERLEAVED
_DECLARED_BLOCK = r"\b(?:KERNEL_BLOCK|reqd_work_group_size)\s*\(([^()]*)\)[\s)]*(?:void\s+)?"
_UNWRITTEN = re.compile(r"\b(\w+)(?:\[[\d, ]+\])? was never written")


def failed_default(task: TuningTask, trial: Trial, *, is_dumped: bool) -> tuple[str, str]:
    """Where to look when the default configuration fails, and how to mend it as the end of a message.

    Args:
        task: What is tuned.
        trial: That of the default.
        is_dumped: Whether the wrong arrays are written to a folder.
    """
    source, text = task.spec.source, task.source.text
    if undefined := [name for name in undefined_names(trial.detail) if name.isupper()]:
        name = undefined[0]
        if name in portable_names():
            mend = f'{name} comes from portable.h: write #include "portable.h" at the top of {source.name}'
        else:
            mend = _undeclared(task, name)
        return source_place(task.space, text, name), f"; {mend}"
    doubtful = (one for one in lint_source(task.space, text) if one.kind in _CAUSES)
    if cause := next(doubtful, None):
        return cause.place, f"; {cause.subject}: {cause.detail}"
    if "INVALID_WORK_GROUP_SIZE" in trial.detail and (other := _other_block(task, trial)):
        return other
    if trial.status is not Status.WRONG_RESULT:
        return str(source), ""
    place = source_place(task.space, text, task.spec.launch[0].entry.partition("<")[0])
    kernel = f"the kernel at {Path(place).name}"
    mends = list(_other_numbers(task, trial))
    if unwritten := _UNWRITTEN.search(trial.detail):
        mends = [mend for mend in mends if "sizes[" in mend] or [_left_alone(task, unwritten[1], kernel)]
    elif "this may be rounding" in trial.detail:
        verify = located(task.spec.path, "verify")
        is_there = verify != located(task.spec.path, "")
        mends.append(f"{verify} has `verify`" if is_there else f"{task.spec.path.name} has no `verify` yet")
    elif "expected" in trial.detail:
        reference = f"`reference` in {task.spec.reference.name}"
        mends.append(f"{kernel} and {reference} compute different things: correct the one that is wrong")
    if not is_dumped:
        mends.append("--dump-wrong DIR writes both arrays")
    return place, "".join(f"; {mend}" for mend in mends)


def _left_alone(task: TuningTask, name: str, kernel: str) -> str:
    """How to mend a space whose kernel leaves an output, or elements of it, as they are."""
    number = next(at for at, item in enumerate(task.spec.arguments) if item.name == name)
    grid, role = "launch[0].grid", f"arguments[{number}].role"
    return (
        f"correct the index with which {kernel} writes {name}; or, if the kernel reads {name} before it "
        f"writes it (`+=`), write `=`; or, if the launch is too small, {located(task.spec.path, grid)}: "
        f"{grid}; or, if elements are added to or left alone on purpose, {located(task.spec.path, role)}: "
        f"{role}: write inout, and `fill: {{constant: 0}}`"
    )


def _undeclared(task: TuningTask, name: str) -> str:
    """How to mend a source that uses a macro which the space does not define."""
    declared = ", ".join(parameter.name for parameter in task.space.parameters)
    known = {*task.space.macros(task.spec.default), *portable_names()}
    near = nearest(name, known, _SIMILAR).removeprefix("; ")
    code = bare_code(task.source.text, is_python=task.spec.source.suffix == ".py")
    if not near and re.search(rf"\b{name}\s*\(", code):
        return f"functions of CUDA and OpenCL have lower-case names: write {name.lower()} for {name}"
    unused = [one.name for one in task.space.parameters if not re.search(rf"\b{one.name}\b", code)]
    instead = (
        f"write {unused[0]}, which the source does not use yet, for {name}, or " if len(unused) == 1 else ""
    )
    mend = near or (
        f"{instead}add `{name}: [...]` to `parameters` and one of its values to `default` in "
        f"{task.spec.path.name}, or define it in {task.spec.source.name}"
    )
    return f"the parameters in {task.spec.path.name} are {declared}; {mend}"


def _other_block(task: TuningTask, trial: Trial) -> tuple[str, str] | None:
    """Where the launch plan has a block other than the one that the source declares, and what to write."""
    code = bare_code(task.source.text)
    values = task.space.launch_values(task.space.values(trial.config))
    for number, step in enumerate(task.spec.launch):
        found = re.search(rf"{_DECLARED_BLOCK}{re.escape(step.entry)}\s*\(", code)
        texts = [text.strip() for text in found[1].split(",")] if found else []
        try:
            declared = [integer(parse(text), values) for text in texts]
        except ExpressionError:  # a macro of the source
            continue
        block = [integer(parse(text), values) for text in step.block]
        block, declared = ([*given, 1, 1][:3] if given else [] for given in (block, declared))
        if declared and block != declared:
            while texts[1:] and texts[-1] == "1":
                texts.pop()
            what = f"launch[{number}].block"
            return located(task.spec.path, what), (
                f"; {what} gives {block}, but {step.entry} is declared for blocks of {declared} in "
                f"{task.spec.source.name}; write block: [{', '.join(texts)}]"
            )
    return None


def _other_numbers(task: TuningTask, trial: Trial) -> Iterator[str]:
    """Numbers that the kernel gets and that are no size: the reference has to use the same ones."""
    tried = (task.space.problem.sizes, *task.spec.verify_sizes)
    sizes = next((one for one in tried if f"(at {size_text(one)})" in trial.detail), tried[0])
    given = arguments(
        task.spec.arguments,
        task.space.launch_values(task.space.values(trial.config, sizes)),
        task.space.problem.dtype,
    )
    reference = task.spec.reference.name
    for number, (item, evaluated) in enumerate(zip(task.spec.arguments, given, strict=True)):
        if item.value is None or item.value in sizes:
            continue
        place = f"arguments[{number}].value"
        got = f"{located(task.spec.path, place)}: {place}: the kernel gets {item.name}={evaluated.value}"
        if item.name in sizes:
            yield (
                f"{got} from `{item.value}`, and {reference} sizes[{item.name!r}]={sizes[item.name]}: "
                f"write `value: {item.name}`, or compute with {item.value} in {reference} too"
            )
        else:
            yield f"{got}: {reference} has to compute with the same number"
