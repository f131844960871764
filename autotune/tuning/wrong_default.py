"""Advice on a default configuration whose result is wrong: what differs from the reference, and where."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from autotune.core.argument_values import arguments
from autotune.core.expressions import names_behind, parse
from autotune.core.records import Sizes
from autotune.core.trials import ArrayFault, Status, Trial
from autotune.space import Finding, located, source_place
from autotune.tuning.task import TuningTask

_NOT_FINITE = (
    "nan and inf come from memory that is read before it is written, a division by 0 or an overflow: "
    "look at barriers and first values"
)


def wrong_default(
    task: TuningTask,
    trial: Trial,
    fault: ArrayFault,
    others: Sequence[Trial],
    findings: Sequence[Finding],
) -> tuple[str, list[str]]:
    """The place to look at, and remedies for a default whose result is wrong.

    `others` are trials of other configurations, and `findings` likely mistakes in the source.
    """
    place = source_place(task.space, task.source.text, task.spec.launch[0].entry.partition("<")[0])
    kernel = f"the kernel at {Path(place).name}"
    numbers = list(_other_numbers(task, trial, fault.sizes))
    helps = [text for text, _ in numbers]
    if fault.is_unwritten:
        helps = [text for text, is_size in numbers if is_size] or [*_left_alone(task, fault, kernel)]
    elif fault.holder:
        place, helps = _elsewhere(task, fault, place)
    elif fault.allowance:
        verify = located(task.spec.path, "verify")
        where = verify if verify != located(task.spec.path, "") else f"in {task.spec.path.name}"
        helps.append(f"if it is rounding, write `{fault.allowance}` ({where})")
    elif fault.expected:
        is_lost = fault.found.lstrip("-") in ("nan", "inf") and fault.expected != fault.found
        helps = [
            f"for {fault.element}, {kernel} gave {fault.found} and {_expecting(task)} {fault.expected}: "
            "correct the one that is wrong",
            *helps,
            *filter(
                None, (beyond_array(fault, findings), _NOT_FINITE if is_lost else _suspect(task, others))
            ),
        ]
    return place, helps


def _elsewhere(task: TuningTask, fault: ArrayFault, kernel: str) -> tuple[str, list[str]]:
    """The place and what to write where another array has the result, as after an odd number of swaps."""
    name, other, spec = fault.array, fault.holder, task.spec
    for number, step in enumerate(spec.launch):
        if {name, other} == {*step.swap}:
            inputs = [one.name for one in spec.arguments if one.role == "in" or one.name == name]
            return located(spec.path, f"launch[{number}].swap"), [
                f"the result is in {other} after an odd number of repetitions; to have it in {name} after "
                f"any number, write `call: {{inputs: [{', '.join(inputs)}], returns: {name}}}`, and "
                f"`role: inout` and `fill: {{copy: {name}}}` for {other}",
                f"or return {other} in {_name_of_reference(task)}",
            ]
    return kernel, [f"the kernel writes to {other} what {_expecting(task)} gives for {name}: exchange them"]


def _expecting(task: TuningTask) -> str:
    name = _name_of_reference(task)
    return f"`reference` in {name}" if task.spec.reference.suffix else name


def _name_of_reference(task: TuningTask) -> str:
    """The reference's file, or what the program passed: a function, or the result itself."""
    reference = task.spec.reference
    return reference.name if reference.suffix else f"the {reference.name}"


def _suspect(task: TuningTask, others: Sequence[Trial]) -> str:
    """The side that other configurations show to be wrong; empty if they show neither."""
    if right := [trial.config for trial in others if trial.status is Status.OK]:
        return f"{right[0]} is right: look at what {task.source.path.name} does differently for the default"
    if wrong := [str(trial.config) for trial in others if trial.status is Status.WRONG_RESULT]:
        place = located(task.spec.path, "launch[0].arguments")
        suspect = "`reference`" if task.spec.reference.suffix else _name_of_reference(task)
        return (
            f"{' and '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} wrong too: look for races first, "
            f"with `autotune space {task.spec.path} --run`, then at {suspect} and the order of the arguments "
            f"({place})"
        )
    return ""


def beyond_array(fault: ArrayFault, findings: Sequence[Finding]) -> str:
    """An access beyond an array that indices alone show, preferably beyond the array with the fault."""
    beyond = [finding for finding in findings if finding.kind == "out_of_bounds"]
    beyond.sort(key=lambda finding: finding.subject != fault.array)
    return f"{Path(beyond[0].place).name}: {beyond[0].detail}" if beyond else ""


def _left_alone(task: TuningTask, fault: ArrayFault, kernel: str) -> Iterator[str]:
    """The fix for a space whose kernel leaves an output, or some of its elements, unwritten."""
    name = fault.array
    number = next(at for at, argument in enumerate(task.spec.arguments) if argument.name == name)
    grid, role = "launch[0].grid", f"arguments[{number}].role"
    if fault.is_end:
        yield (
            f"the last elements of {name} stay unwritten: {located(task.spec.path, grid)}: {grid} has too "
            f"few blocks, or in {kernel} a guard such as `i < n` is too tight, or a loop ends too early"
        )
        return
    yield f"correct the index with which {kernel} writes {name}"
    yield f"or, if the kernel reads {name} before it writes it (`+=`), write `=`"
    yield f"or, if the launch is too small, correct {grid} ({located(task.spec.path, grid)})"
    yield (
        f"or, if the kernel adds to elements or skips some on purpose, write inout for {role} "
        f"({located(task.spec.path, role)}), and `fill: {{constant: 0}}`"
    )


def _other_numbers(task: TuningTask, trial: Trial, sizes: Sizes) -> Iterator[tuple[str, bool]]:
    """Numbers passed to the kernel that are no sizes: the reference has to use the same ones.

    Each comes with whether it has the name of a size. A number that differs between configurations, such as
    the number of blocks, does not concern the reference.
    """
    given = arguments(
        task.spec.arguments,
        task.space.launch_values(task.space.values(trial.config, sizes)),
        task.space.problem.dtype,
    )
    reference = _name_of_reference(task)
    for number, (item, evaluated) in enumerate(zip(task.spec.arguments, given, strict=True)):
        if item.value is None or item.value in sizes:
            continue
        if not names_behind(parse(item.value).names, task.spec.derived).isdisjoint(trial.config):
            continue
        place = f"arguments[{number}].value"
        got = f"{located(task.spec.path, place)}: {place}: the kernel gets {item.name}={evaluated.value}"
        if item.name in sizes:
            yield (
                f"{got} from `{item.value}`, but {reference} gets sizes[{item.name!r}]={sizes[item.name]}: "
                f"write `value: {item.name}`, or compute with {item.value} in {reference} too",
                True,
            )
        else:
            yield f"{got}: {reference} has to compute with the same number", False
