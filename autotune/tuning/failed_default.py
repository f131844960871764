"""Explains why the default configuration fails: the place, the cause if known, and what to write there."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path

from autotune.compilers.base import undefined_names
from autotune.compilers.portable_words import portable_for
from autotune.core.argument_values import arguments
from autotune.core.expressions import integer, names_behind, parse
from autotune.core.records import Sizes
from autotune.core.text import nearest
from autotune.core.trials import ArrayFault, Status, Trial
from autotune.errors import ExpressionError
from autotune.sources.bare_code import bare_code
from autotune.sources.dialects import portable_macros
from autotune.sources.facts import BARRIERS
from autotune.space import Finding, lint_source, located, placed_lines, source_place
from autotune.space.lint import read_default
from autotune.tuning.task import TuningTask

# findings about the source that explain a failure
_CAUSES = ("signature", "unknown_macro", "redefined_parameter", "flat_block")
_SIMILAR = 0.65  # WORK_PER_THREAD is no misspelt ORDER_INTERLEAVED
_NOT_FINITE = (
    "nan and inf come from memory that is read before it is written, a division by 0 or an overflow: "
    "look at barriers and first values"
)
_LOOP = re.compile(r"\bwhile\b.*|\bfor\s*\(.*")  # Python's `for` loops end
_ENDLESS = (  # nothing changes between iterations, or nothing is tested
    re.compile(r"^for\s*\([^;]*;[^;]*;(?!.*(?:=|\+\+|--))"),
    re.compile(r"^while\W*(?:true|True|1)\W"),
)
_MAX_LOOPS = 3  # named in a message
_FAR_OFF = ("SIGSEGV", "illegal memory access")  # words of systems and drivers
_CHECK = ": correct it, or keep threads beyond the end from using it, such as by `if (i < n)`"
_LOGS = {  # what compilers say of words of the portable dialect, and what to write
    "must reside in '__global'": "write GLOBAL before the type of every pointer parameter of the kernel",
    "cannot combine with previous 'void'": "KERNEL has `void` in it: remove the one that follows it",
    "invalid combination of type specifiers": "KERNEL has `void` in it: remove the one that follows it",
}
_FOREIGN = re.compile(
    r"__\w+|(?:thread|block)Idx|(?:block|grid)Dim|atomic[A-Z]\w+|get_(?:local|global|group|num)_\w+|barrier"
)


@dataclass(frozen=True)
class FailedDefault:
    """The place to look at, the cause if it is known, and remedies, each a sentence of its own."""

    place: str
    cause: str = ""
    helps: tuple[str, ...] = ()

    def message(self, trial: Trial, device: str) -> str:
        """The message to the user: the cause or the failure first, then one line per remedy."""
        failure = f"the default configuration fails on {device}: {trial.failure}"
        what = f"{self.cause}\n  therefore {failure}" if self.cause else failure
        return "\n  help: ".join((f"{self.place}: {what}", *self.helps))


def failed_default(
    task: TuningTask, trial: Trial, others: Sequence[Trial] = (), *, is_dumped: bool = False
) -> FailedDefault:
    """Find out why the default configuration fails.

    `others` are trials of other configurations, which show whether only the default is wrong. With
    `is_dumped`, the wrong arrays are written to a folder.
    """
    source, text = task.spec.source, task.source.text
    fault = trial.fault or ArrayFault("", task.space.problem.sizes)  # none is known of older journals
    if foreign := _foreign_words(task, trial):
        return foreign
    own = task.space.macros(task.spec.default)  # undefined unless a source defines them
    if undefined := [name for name in undefined_names(trial.detail) if name.isupper() and name not in own]:
        return _undeclared(task, undefined[0])
    findings = lint_source(task.space, text)
    if cause := next((one for one in findings if one.kind in _CAUSES), None):
        what, *mend = cause.detail.split("; ", 1)
        return FailedDefault(cause.place, f"{cause.subject}: {what}", tuple(mend))
    if "INVALID_WORK_GROUP_SIZE" in trial.detail and (other := _other_block(task, trial)):
        return other
    if log := [mend for what, mend in _LOGS.items() if what in trial.detail]:
        return FailedDefault(str(source), helps=(log[0],))
    if trial.status is Status.WRONG_RESULT:
        return _wrong_result(task, trial, fault, others, findings, is_dumped=is_dumped)
    if trial.status is Status.TIMEOUT:
        return FailedDefault(str(source), helps=_endless(task))
    if trial.status is Status.OUT_OF_BOUNDS or any(word in trial.detail for word in _FAR_OFF):
        beyond = _beyond(fault, findings) or f"an index in {source.name} is too large{_CHECK}"
        return FailedDefault(str(source), helps=(beyond,))
    return FailedDefault(str(source))


def _wrong_result(
    task: TuningTask,
    trial: Trial,
    fault: ArrayFault,
    others: Sequence[Trial],
    findings: Sequence[Finding],
    *,
    is_dumped: bool,
) -> FailedDefault:
    place = source_place(task.space, task.source.text, task.spec.launch[0].entry.partition("<")[0])
    kernel = f"the kernel at {Path(place).name}"
    numbers = list(_other_numbers(task, trial, fault.sizes))
    helps = [text for text, _ in numbers]
    if fault.is_unwritten:
        helps = [text for text, is_size in numbers if is_size] or [*_left_alone(task, fault, kernel)]
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
            *filter(None, (_beyond(fault, findings), _NOT_FINITE if is_lost else _suspect(task, others))),
        ]
    if not is_dumped and task.spec.path.is_file():  # of the command line
        helps.append("--dump-wrong DIR writes both arrays")
    return FailedDefault(place, helps=tuple(helps))


def _expecting(task: TuningTask) -> str:
    name = _name_of_reference(task)
    return f"`reference` in {name}" if task.spec.reference.suffix else name


def _name_of_reference(task: TuningTask) -> str:
    """The reference's file, or what the program passed: a function, or the result itself."""
    reference = task.spec.reference
    return reference.name if reference.suffix else f"the {reference.name}"


def _suspect(task: TuningTask, others: Sequence[Trial]) -> str:
    """The side that other configurations show to be wrong; empty if they show neither."""
    if right := [one.config for one in others if one.status is Status.OK]:
        return f"{right[0]} is right: look at what {task.source.path.name} does otherwise for the default"
    if wrong := [str(one.config) for one in others if one.status is Status.WRONG_RESULT]:
        place = located(task.spec.path, "launch[0].arguments")
        what = "`reference`" if task.spec.reference.suffix else _name_of_reference(task)
        return (
            f"{' and '.join(wrong)} {'is' if len(wrong) == 1 else 'are'} wrong too: look at {what} and "
            f"the order of the arguments ({place}) first"
        )
    return ""


def _endless(task: TuningTask) -> tuple[str, ...]:
    """Possible causes of a hang: loops, the ones that look endless first, and barriers."""
    found = []
    for place, line in _own_lines(task):
        if loop := _LOOP.search(line):
            is_suspect = any(pattern.search(loop[0]) for pattern in _ENDLESS)
            found.append((not is_suspect, f"{Path(place).name} `{loop[0].strip()}`"))
    loops = [text for _, text in sorted(found, key=itemgetter(0))][:_MAX_LOOPS]
    barrier = next((word for word in _own_words(task) if word in BARRIERS), "")
    return (
        *([f"make sure that each loop ends: {', '.join(loops)}"] if loops else []),
        *([f"make sure that every thread of a block reaches each {barrier}()"] if barrier else []),
        "if the kernel only takes longer, raise the limit: --timeout SECONDS",
    )


def _own_lines(task: TuningTask) -> Iterator[tuple[str, str]]:
    """The lines of the source without comments, strings and includes, each behind its place."""
    source = task.spec.source
    lines = placed_lines(source, task.source.text)
    return ((place, line) for place, line in lines if place.startswith(f"{source}:"))


def _own_words(task: TuningTask) -> list[str]:
    """The words of these lines, in their order."""
    return [word for _, line in _own_lines(task) for word in re.findall(r"\w+", line)]


def _foreign_words(task: TuningTask, trial: Trial) -> FailedDefault | None:
    """Words of CUDA or OpenCL in a portable source that does not compile, each with its replacement."""
    undefined = [name for name in undefined_names(trial.detail) if _FOREIGN.fullmatch(name)]
    if task.spec.dialect != "portable" or not undefined:
        return None
    words = dict.fromkeys((undefined[0], *filter(_FOREIGN.fullmatch, _own_words(task))))
    mends = [mend for word in words if (mend := portable_for(word))]
    found = re.search(rf"{re.escape(task.spec.source.name)}(:\d+)", trial.detail)
    space = task.spec.path.name
    return FailedDefault(
        f"{task.spec.source}{found[1] if found else ''}",
        f"{undefined[0]} is no word of the portable dialect, which {space} says the source is in",
        (
            f"write {', '.join(mends)}" if mends else f"portable.h has no word for {undefined[0]}",
            f"or, for NVIDIA GPUs alone, set `dialect: cuda` in {space}",
        ),
    )


def _beyond(fault: ArrayFault, findings: Sequence[Finding]) -> str:
    """An access beyond an array that shows on indices alone, best of the one with the fault."""
    found = [one for one in findings if one.kind == "out_of_bounds"]
    found.sort(key=lambda one: one.subject != fault.array)
    return f"{Path(found[0].place).name}: {found[0].detail}" if found else ""


def _left_alone(task: TuningTask, fault: ArrayFault, kernel: str) -> Iterator[str]:
    """The fix for a space whose kernel leaves an output, or some of its elements, unwritten."""
    name = fault.array
    number = next(at for at, item in enumerate(task.spec.arguments) if item.name == name)
    grid, role = "launch[0].grid", f"arguments[{number}].role"
    if fault.is_end:
        yield (
            f"its last elements are left alone: {located(task.spec.path, grid)}: {grid} has too few blocks, "
            f"or a loop of {kernel} ends too early"
        )
        return
    yield f"correct the index with which {kernel} writes {name}"
    yield f"or, if the kernel reads {name} before it writes it (`+=`), write `=`"
    yield f"or, if the launch is too small, correct {grid} ({located(task.spec.path, grid)})"
    yield (
        f"or, if elements are added to or left alone on purpose, write inout for {role} "
        f"({located(task.spec.path, role)}), and `fill: {{constant: 0}}`"
    )


def _undeclared(task: TuningTask, name: str) -> FailedDefault:
    """The fix for a source that uses a macro which neither the space nor the source defines."""
    space, source = task.spec.path.name, task.spec.source.name
    place = source_place(task.space, task.source.text, name)
    if name in portable_macros():
        include = f'write #include "portable.h" at the top of {source}'
        return FailedDefault(
            place, f"{name} comes from portable.h, which the source does not include", (include,)
        )
    declared = ", ".join(parameter.name for parameter in task.space.parameters)
    cause = f"nothing defines {name}; the parameters in {space} are {declared}"
    known = {*task.space.macros(task.spec.default), *portable_macros()}
    code = bare_code(task.source.text, is_python=task.spec.source.suffix == ".py")
    if near := nearest(name, known, _SIMILAR).removeprefix("; "):
        return FailedDefault(place, cause, (near,))
    if re.search(rf"\b{name}\s*\(", code):
        lower = f"functions of CUDA and OpenCL have lower-case names: write {name.lower()} for {name}"
        return FailedDefault(place, cause, (lower,))
    unused = [one.name for one in task.space.parameters if not re.search(rf"\b{one.name}\b", code)]
    added = f"add `{name}: [...]` to `parameters` and one of its values to `default` in {space}"
    helps = [f"write {unused[0]}, which the source does not use yet, for {name}"] if len(unused) == 1 else []
    helps.append(f"{'or ' if helps else ''}{added}, or define it in {source}")
    return FailedDefault(place, cause, tuple(helps))


def _other_block(task: TuningTask, trial: Trial) -> FailedDefault | None:
    """A launch plan whose block differs from the one that the source declares, with the fix."""
    read = read_default(task.space, task.source.text)
    blocks = {} if read is None else {one.name: one.block for one in read.kernels if len(one.block) == 3}
    values = task.space.launch_values(task.space.values(trial.config))
    for number, step in enumerate(task.spec.launch):
        texts = list(blocks.get(step.entry.partition("<")[0], ()))
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
            return FailedDefault(
                located(task.spec.path, what),
                f"{what} gives {block}, but {step.entry} is declared for blocks of {declared} in "
                f"{task.spec.source.name}",
                (f"write block: [{', '.join(texts)}]",),
            )
    return None


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
                f"{got} from `{item.value}`, and {reference} sizes[{item.name!r}]={sizes[item.name]}: "
                f"write `value: {item.name}`, or compute with {item.value} in {reference} too",
                True,
            )
        else:
            yield f"{got}: {reference} has to compute with the same number", False
