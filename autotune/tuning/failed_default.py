"""Why the default configuration fails: the place to look at, and what to write there."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from autotune.compilers.base import undefined_names
from autotune.compilers.portable_words import portable_for, portable_names
from autotune.core.expressions import integer, parse
from autotune.core.launch_plan import arguments
from autotune.core.text import bare_code, nearest, size_text
from autotune.core.trials import Status, Trial
from autotune.errors import ExpressionError
from autotune.space import lint_source, located, source_place
from autotune.tuning.task import TuningTask

_CAUSES = ("signature", "unknown_macro", "flat_block")  # findings about the source that explain a failure
_SIMILAR = 0.65  # WORK_PER_THREAD is no misspelt ORDER_INTERLEAVED
_DECLARED_BLOCK = r"\b(?:KERNEL_BLOCK|reqd_work_group_size)\s*\(([^()]*)\)[\s)]*(?:void\s+)?"
_UNWRITTEN = re.compile(r"\b(\w+)(?:\[[\d, ]+\])? was never written")


_REACH = re.compile(r"(\d+) of (\d+) elements differ from \w+\[(\d+)\] to \w+\[(\d+)\]")
_FAR_OFF = ("SIGSEGV", "illegal memory access")
_CHECK = ": correct it, or keep threads beyond the end from using it, such as by `if (i < n)`"
_LOGS = {  # what compilers say of words of the portable dialect, and what to write
    "must reside in '__global'": "write GLOBAL before the type of every pointer parameter of the kernel",
    "cannot combine with previous 'void'": "KERNEL has `void` in it: remove the one that follows it",
    "invalid combination of type specifiers": "KERNEL has `void` in it: remove the one that follows it",
}
_FOREIGN = re.compile(
    r"__\w+|(?:thread|block)Idx|(?:block|grid)Dim|atomic[A-Z]\w+|get_(?:local|global|group|num)_\w+|barrier"
)
_MARK = re.compile(r'^#line \d+ "(.*)"$', re.MULTILINE)  # of the file from which the next lines are


def failed_default(task: TuningTask, trial: Trial, *, is_dumped: bool) -> tuple[str, str]:
    """Where to look when the default configuration fails, and how to mend it as the end of a message.

    Args:
        task: What is tuned.
        trial: That of the default.
        is_dumped: Whether the wrong arrays are written to a folder.
    """
    source, text = task.spec.source, task.source.text
    if foreign := _foreign_words(task, trial):
        return foreign
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
    if log := [mend for what, mend in _LOGS.items() if what in trial.detail]:
        return str(source), f"; {log[0]}"
    if trial.status is Status.WRONG_RESULT:
        return _wrong_result(task, trial, is_dumped=is_dumped)
    if trial.status is Status.TIMEOUT:
        mend = "is there a loop whose condition stays true, or a BARRIER() that some threads never reach"
        return str(source), f"; {mend}? if it only takes longer, raise the limit: --timeout SECONDS"
    if trial.status is Status.OUT_OF_BOUNDS or any(word in trial.detail for word in _FAR_OFF):
        return str(source), _unchecked_sizes(task) or f"; an index in {source.name} is too large{_CHECK}"
    return str(source), ""


def _wrong_result(task: TuningTask, trial: Trial, *, is_dumped: bool) -> tuple[str, str]:
    place = source_place(task.space, task.source.text, task.spec.launch[0].entry.partition("<")[0])
    kernel = f"the kernel at {Path(place).name}"
    mends = list(_other_numbers(task, trial))
    if unwritten := _UNWRITTEN.search(trial.detail):
        mends = [mend for mend in mends if "sizes[" in mend] or [
            _left_alone(task, unwritten[1], kernel, is_end=_is_end(trial.detail))
        ]
    elif "this may be rounding" in trial.detail:
        verify = located(task.spec.path, "verify")
        is_there = verify != located(task.spec.path, "")
        mends.append(f"{verify} has `verify`" if is_there else f"{task.spec.path.name} has no `verify` yet")
    elif "expected" in trial.detail:
        reference = f"`reference` in {task.spec.reference.name}"
        what = f"{kernel} and {reference} compute different things: correct the one that is wrong"
        mends.append(f"{what}{_unchecked_sizes(task)}")
    if not is_dumped:
        mends.append("--dump-wrong DIR writes both arrays")
    return place, "".join(f"; {mend}" for mend in mends)


def _own_code(task: TuningTask) -> str:
    """The source without comments, strings and what it includes."""
    _, *parts = _MARK.split(task.source.text)
    own = "".join(
        text for file, text in zip(parts[::2], parts[1::2], strict=True) if file == task.source.path.name
    )
    return bare_code(own or task.source.text)


def _foreign_words(task: TuningTask, trial: Trial) -> tuple[str, str] | None:
    """Words of CUDA or OpenCL in a portable source that does not compile, and what to write for them."""
    undefined = [name for name in undefined_names(trial.detail) if _FOREIGN.fullmatch(name)]
    if task.spec.dialect != "portable" or not undefined:
        return None
    words = dict.fromkeys((undefined[0], *filter(_FOREIGN.fullmatch, re.findall(r"\w+", _own_code(task)))))
    mends = [mend for word in words if (mend := portable_for(word))]
    known = f"write {', '.join(mends)}" if mends else f"portable.h has no word for {undefined[0]}"
    found = re.search(rf"{re.escape(task.spec.source.name)}(:\d+)", trial.detail)
    space = task.spec.path.name
    return f"{task.spec.source}{found[1] if found else ''}", (
        f"; {space} says that the source is in the portable dialect: {known}; or, for NVIDIA GPUs alone, set "
        f"`dialect: cuda` in {space}"
    )


def _unchecked_sizes(task: TuningTask) -> str:
    """The size that a kernel gets and compares with nothing, as the end of a message; empty if none."""
    code = "" if task.spec.source.suffix == ".py" else _own_code(task)
    for item in task.spec.arguments:
        name = re.escape(item.name)
        is_size = item.value in task.space.problem.sizes and re.search(rf"\b{name}\b", code)
        if is_size and not re.search(rf"[<>]=?[\s(]*{name}\b|\b{name}[\s)]*[<>]|\b(?:min|max)\b", code):
            return (
                f"; {task.source.path.name} compares no index with {item.name}, but a grid of whole blocks "
                f"has more threads: write `if (INDEX < {item.name})` before what it reads and writes"
            )
    return ""


def _left_alone(task: TuningTask, name: str, kernel: str, *, is_end: bool) -> str:
    """How to mend a space whose kernel leaves an output, or elements of it, as they are.

    With `is_end`, these are all elements from one on that is not the first.
    """
    number = next(at for at, item in enumerate(task.spec.arguments) if item.name == name)
    grid, role = "launch[0].grid", f"arguments[{number}].role"
    if is_end:
        return (
            f"its last elements are left alone: {located(task.spec.path, grid)}: {grid} has too few blocks, "
            f"or a loop of {kernel} ends too early"
        )
    return (
        f"correct the index with which {kernel} writes {name}; or, if the kernel reads {name} before it "
        f"writes it (`+=`), write `=`; or, if the launch is too small, {located(task.spec.path, grid)}: "
        f"{grid}; or, if elements are added to or left alone on purpose, {located(task.spec.path, role)}: "
        f"{role}: write inout, and `fill: {{constant: 0}}`"
    )


def _is_end(detail: str) -> bool:
    """Whether the elements of a wrong result are all from one on that is not the first, along one axis."""
    found = _REACH.search(detail.replace(",", ""))
    if found is None:
        return False
    count, total, first, last = map(int, found.groups())
    return first > 0 and last == total - 1 and count == total - first


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
