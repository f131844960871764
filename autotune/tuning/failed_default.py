"""Explains why the default configuration fails: the place, the cause if known, and what to write there."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from operator import attrgetter
from pathlib import Path

from autotune.compilers.base import undefined_names
from autotune.compilers.portable_words import portable_for
from autotune.core.expressions import integer, parse
from autotune.core.syntax import parse_module
from autotune.core.text import nearest
from autotune.core.trials import ArrayFault, Status, Trial
from autotune.errors import ExpressionError
from autotune.sources.branches import read_branches
from autotune.sources.dialects import portable_macros
from autotune.sources.facts import BARRIERS
from autotune.sources.kernel_source import KernelSource
from autotune.sources.loops import loops_of
from autotune.sources.triton_places import find_place
from autotune.space import lint_source, located, place_at, source_place
from autotune.space.signatures import read_default
from autotune.tuning.task import TuningTask
from autotune.tuning.wrong_default import beyond_array, wrong_default

# findings about the source that explain a failure
_CAUSES = ("signature", "unknown_macro", "redefined_parameter", "flat_block")
_SIMILAR = 0.65  # WORK_PER_THREAD is no misspelt ORDER_INTERLEAVED
_MAX_LOOPS = 3  # named in a message
_FAR_OFF = ("SIGSEGV", "illegal memory access")  # words of systems and drivers
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
        first = f"{self.cause}\n  therefore {failure}" if self.cause else failure
        return "\n  help: ".join((f"{self.place}: {first}", *self.helps))


def failed_default(task: TuningTask, trial: Trial, others: Sequence[Trial] = ()) -> FailedDefault:
    """Find out why the default configuration fails.

    `others` are trials of other configurations, which show whether only the default is wrong.
    """
    source, text = task.spec.source, task.source.text
    known = trial.failure.fault if trial.failure else None
    fault = known or ArrayFault("", task.space.problem.sizes)  # none is known of older journals
    if foreign := _foreign_words(task, trial):
        return foreign
    macros = task.space.macros(task.spec.default)  # undefined unless a source defines them
    if undefined := [name for name in undefined_names(trial.detail) if name.isupper() and name not in macros]:
        return _undeclared(task, undefined[0])
    findings = lint_source(task.space, text)
    if cause := next((finding for finding in findings if finding.kind in _CAUSES), None):
        reason, *mend = cause.detail.split("; ", 1)
        return FailedDefault(cause.place, f"{cause.subject}: {reason}", tuple(mend))
    if "INVALID_WORK_GROUP_SIZE" in trial.detail and (block := _other_block(task, trial)):
        return block
    if log := [mend for word, mend in _LOGS.items() if word in trial.detail]:
        return FailedDefault(str(source), helps=(log[0],))
    if source.suffix == ".py" and (raised := find_place(trial.detail, source)):
        return FailedDefault(str(raised))
    if trial.status is Status.COMPILE_ERROR:
        return _refused(source, trial.detail)
    if trial.status is Status.WRONG_RESULT:
        place, helps = wrong_default(task, trial, fault, others, findings)
        return FailedDefault(place, helps=tuple(helps))
    if trial.status is Status.TIMEOUT:
        return FailedDefault(str(source), helps=_endless(task))
    if trial.status is Status.OUT_OF_BOUNDS or any(word in trial.detail for word in _FAR_OFF):
        beyond = beyond_array(fault, findings) or (
            f"an index in {source.name} is beyond its array: correct the index, or the shape or the numbers "
            f"in {task.spec.path.name}, or guard the access, for example with `if (i < n)`"
        )
        return FailedDefault(str(source), helps=(beyond,))
    return FailedDefault(str(source))


def _refused(source: Path, log: str) -> FailedDefault:
    """The first line that a compiler's log names, with its text."""
    named = re.search(rf"{re.escape(source.name)}[:(](\d+)", log)
    is_there = named is not None and source.is_file()  # a program may pass a source as text
    lines = source.read_text(encoding="utf-8-sig", errors="replace").splitlines() if is_there else ()
    if named is None or not 0 < int(named[1]) <= len(lines):
        return FailedDefault(str(source))
    return FailedDefault(
        str(source),
        helps=(f"look at {named[0]}{')' * ('(' in named[0])}: `{lines[int(named[1]) - 1].strip()}`",),
    )


def _endless(task: TuningTask) -> tuple[str, ...]:
    """Possible causes of a hang: loops, the ones that look endless first, and barriers."""
    source, text, read = task.spec.source, task.source.text, _read(task)
    loops = sorted(loops_of(read) if read else (), key=attrgetter("looks_endless"), reverse=True)
    is_python = isinstance(read, ast.Module)
    placed = [
        (f"{source}:{loop.place}" if is_python else place_at(source, text, loop.place), loop)
        for loop in loops
    ]
    listed = [f"{Path(place).name} `{loop.head}`" for place, loop in placed if place.startswith(f"{source}:")]
    barrier = next((word for word in BARRIERS if word in _used_names(task, read)), "")
    return (
        *([f"make sure that each loop ends: {', '.join(listed[:_MAX_LOOPS])}"] if listed else []),
        *([f"make sure that every thread of a block reaches each {barrier}()"] if barrier else []),
        "if the kernel only takes longer, raise the limit: --timeout SECONDS",
    )


def _read(task: TuningTask) -> KernelSource | ast.Module | None:
    """The tree of what the default compiles; None for what cannot be read."""
    text = task.source.text
    return parse_module(text) if task.spec.source.suffix == ".py" else read_default(task.space, text)


def _used_names(task: TuningTask, read: KernelSource | ast.Module | None) -> Collection[str]:
    """The names that the source uses, in C also those in branches that the default leaves out."""
    match read:
        case KernelSource():
            branches = read_branches(task.source.text)
            return {*read.code.used, *branches.tested, *branches.constants}
        case ast.Module():
            return {part.id for part in ast.walk(read) if isinstance(part, ast.Name)}
    return ()


def _foreign_words(task: TuningTask, trial: Trial) -> FailedDefault | None:
    """Words of CUDA or OpenCL in a portable source that does not compile, each with its replacement."""
    undefined = [name for name in undefined_names(trial.detail) if _FOREIGN.fullmatch(name)]
    if task.spec.dialect != "portable" or not undefined:
        return None
    read = _read(task)
    words = dict.fromkeys((undefined[0], *sorted(filter(_FOREIGN.fullmatch, _used_names(task, read)))))
    mends = [mend for word in words if (mend := portable_for(word))]
    place = re.search(rf"{re.escape(task.spec.source.name)}(:\d+)", trial.detail)
    space = task.spec.path.name
    return FailedDefault(
        f"{task.spec.source}{place[1] if place else ''}",
        f"{undefined[0]} is no word of the portable dialect, which {space} gives for the source",
        (
            f"write {', '.join(mends)}" if mends else f"portable.h has no word for {undefined[0]}",
            f"or, for NVIDIA GPUs only, set `dialect: cuda` in {space}",
        ),
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
    defined = {*task.space.macros(task.spec.default), *portable_macros()}
    if near := nearest(name, defined, _SIMILAR).removeprefix("; "):
        return FailedDefault(place, cause, (near,))
    read = _read(task)
    if isinstance(read, KernelSource) and any(name in function.called for function in read.device_functions):
        lower = f"functions of CUDA and OpenCL have lower-case names: write {name.lower()} for {name}"
        return FailedDefault(place, cause, (lower,))
    used = _used_names(task, read)
    unused = [parameter.name for parameter in task.space.parameters if parameter.name not in used]
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
        block, declared = ([*extents, 1, 1][:3] if extents else [] for extents in (block, declared))
        if declared and block != declared:
            while texts[1:] and texts[-1] == "1":
                texts.pop()
            block_place = f"launch[{number}].block"
            return FailedDefault(
                located(task.spec.path, block_place),
                f"{block_place} gives {block}, but {step.entry} is declared for blocks of {declared} in "
                f"{task.spec.source.name}",
                (f"write block: [{', '.join(texts)}]",),
            )
    return None
