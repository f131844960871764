"""Find mistakes by running the launches of a few configurations on indices alone.

A finding concerns a valid configuration at sizes of the space, and threads that certainly do what it says.
Where a kernel is not understood, or takes too long, there is none.
"""

from __future__ import annotations

import ast
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from autotune.core.argument_values import arguments, pointed
from autotune.core.c_types import element_bytes, struct_fields
from autotune.core.expressions import names_behind, parse
from autotune.core.launch_plan import NO_ARRAY
from autotune.core.records import Argument, Config, Launch, Sizes
from autotune.errors import AutotuneError
from autotune.sources.dry_run import DryRun, blocks_of
from autotune.sources.kernel_source import KernelSource, read_kernel_source
from autotune.sources.launch_run import (
    Beyond,
    Divergent,
    FollowedArray,
    LaunchRun,
    NotUnderstood,
    OddTile,
    OutOfSteps,
    Steps,
)
from autotune.sources.thread_values import Bools, Ints
from autotune.sources.triton_dry_run import TritonDryRun
from autotune.sources.triton_module import TritonModule
from autotune.space.findings import Finding, Findings
from autotune.space.signatures import arguments_of_template, own_name, space_macros
from autotune.space.source_places import place_at
from autotune.space.space import ValidSpace
from autotune.space.yaml_document import located

_MOST_THREADS = 16_384  # of a launch that runs whole; of a larger one only the corner blocks run
_STEPS = 15_000  # of all runs for a space
_STEPS_OF_PLAN = 4_000  # of one configuration at some sizes
_MOST_LETTERS = 200_000  # of a source, which is read for each configuration


_Written = dict[str, tuple[str, Bools]]  # outputs: a configuration, and the elements that it writes


def run_mistakes(space: ValidSpace, read: KernelSource | TritonModule) -> Findings:
    """The mistakes in a few configurations at the sizes to verify and to time, each mistake once."""
    spec = space.spec
    is_long = isinstance(read, KernelSource) and len(read.original) > _MOST_LETTERS
    if spec.functions.source is not None or is_long:
        return Findings()
    rows = (space.config(0), space.config(len(space) - 1))
    configs = [config for config in dict.fromkeys((spec.default, *rows)) if config in space]
    sources: dict[Config, _Source] = {}
    for config in configs:
        with suppress(AutotuneError):  # other branches of the source, or options, fail when they are tried
            sources[config] = (
                _InTriton(read) if isinstance(read, TritonModule) else _InC.of(space, config, read)
            )
    steps, of_grids = Steps(_STEPS), Steps(_STEPS)
    findings: dict[tuple[str, str, str], Finding] = {}
    ends: dict[str, Finding] = {}  # told if nothing else is found that may be their cause
    left_out: list[Sizes] = []
    # all configurations at a size, the smallest first: what they write is compared before steps run out
    for sizes in (*sorted(spec.verify_sizes, key=lambda sizes: math.prod(sizes.values())), {}):
        written: _Written = {}
        for config, source in sources.items():
            plan = _Plan(space, config, sizes, source)
            for finding in [*plan.mistakes(steps, of_grids)] or plan.differing(written):
                findings.setdefault((finding.kind, finding.subject, finding.place), finding)
            ends = {one.subject: one for one in plan.unwritten(with_ends=True)} | ends
            if plan.takes_too_long and plan.sizes not in left_out:
                left_out.append(plan.sizes)
    return Findings((*(findings or ends).values(),), (*left_out,))


def leaves_arrays(space: ValidSpace, config: Config, before: KernelSource, after: KernelSource) -> str:
    """Why a changed source may leave arrays where the source does not; empty if it surely stays inside."""
    lost: list[set[str]] = []
    for read in (before, after):
        plan = _Plan(space, config, {}, _InC(space, read, 0))
        try:
            beyond, unknown = plan.reach(Steps(_STEPS))
        except OutOfSteps:
            return "its accesses take too long to follow"
        except (NotUnderstood, RecursionError):
            return "its accesses are not understood"
        if read is after and beyond:
            return beyond[0].detail.partition(";")[0]
        lost.append(unknown)
    more = sorted(lost[1] - lost[0])
    return f"its accesses to {', '.join(more)} are not understood" if more else ""


class _Source(ABC):
    """What a configuration compiles."""

    who = "thread"  # runs, in messages
    taker = "block"  # takes some elements
    mend = "guard the access"

    @abstractmethod
    def prepared(
        self, launch: Launch, passed: Mapping[str, FollowedArray | int | None], steps: Steps
    ) -> tuple[LaunchRun, Callable[[Ints], None]]:
        """A run of a launch, and what runs some blocks in it; raises NotUnderstood."""

    @abstractmethod
    def place(self, at: int) -> str:
        """Where in the source something was found, as FILE:LINE."""


@dataclass(frozen=True)
class _InC(_Source):
    """A source in C, and the statements of its functions that were read so far."""

    space: ValidSpace
    read: KernelSource
    ahead: int  # letters in front of the source
    bodies: dict[str, list[ast.stmt]] = field(default_factory=dict)

    @classmethod
    def of(cls, space: ValidSpace, config: Config, read: KernelSource) -> _InC:
        """The source of a configuration, given that of the default."""
        macros = space_macros(space, config)
        head = ""
        if any(kernel.has_error for kernel in read.kernels):  # the name of a macro is a part of another one
            head = "".join(f"#define {name} {value}\n" for name, value in macros.items())
            macros = {}
        elif config == space.spec.default:
            return cls(space, read, 0)
        return cls(space, read_kernel_source(head + read.original, macros, space.spec.dialect), len(head))

    def prepared(
        self, launch: Launch, passed: Mapping[str, FollowedArray | int | None], steps: Steps
    ) -> tuple[LaunchRun, Callable[[Ints], None]]:
        run = DryRun(self.read, steps, self.bodies)
        kernels = [kernel for kernel in self.read.kernels if kernel.name == own_name(launch.entry)]
        if len(kernels) != 1 or len(kernels[0].parameters) != len(launch.arguments):
            raise NotUnderstood
        given = [passed[name] for name in launch.arguments]
        return run, partial(run.run, kernels[0], launch, arguments_of_template(launch.entry) or (), given)

    def place(self, at: int) -> str:
        letter = max(0, self.read.code.place(at) - self.ahead)
        return place_at(self.space.spec.source, self.read.original[self.ahead :], letter)


@dataclass(frozen=True)
class _InTriton(_Source):
    """A file with kernels in Triton."""

    module: TritonModule
    who = taker = "program"
    mend = "mask the access"

    def prepared(
        self, launch: Launch, passed: Mapping[str, FollowedArray | int | None], steps: Steps
    ) -> tuple[LaunchRun, Callable[[Ints], None]]:
        run = TritonDryRun(self.module, steps)
        return run, partial(run.run, launch, passed)

    def place(self, at: int) -> str:
        return f"{self.module.path}:{at}"


class _Plan:
    """The launches of a configuration at some sizes."""

    def __init__(self, space: ValidSpace, config: Config, sizes: Sizes, source: _Source) -> None:
        self._space, self._config, self._source = space, config, source
        self.sizes = {**space.problem.sizes, **sizes}
        self.takes_too_long = False
        self._memories: dict[str, FollowedArray] = {}
        self._arguments: dict[str, Argument] = {}
        self._is_whole = False  # True once all that its launches reach is followed

    def mistakes(self, steps: Steps, of_grids: Steps) -> Iterator[Finding]:
        """What goes wrong in them; steps of their own ask whether further blocks reach more."""
        launches = self._launches()
        own = Steps(min(_STEPS_OF_PLAN, steps.left))
        begun = own.left
        with suppress(NotUnderstood, RecursionError):
            yield from self._launch_all(launches, own, of_grids)
        self.takes_too_long = own.left < 0
        steps.left = max(0, steps.left - begun + own.left)

    def reach(self, steps: Steps) -> tuple[list[Finding], set[str]]:
        """The accesses outside arrays, and the arrays some of whose accesses could not be followed.

        Raises NotUnderstood or OutOfSteps if that cannot be determined.
        """
        findings: list[Finding] = []
        launches = self._launches()
        for launch in launches:
            run = self._launched(launch, _some_blocks(launch), steps)
            if steps.left < 0:
                raise OutOfSteps
            if not run.is_whole:
                raise NotUnderstood
            findings += (finding for finding in self._findings_of(run) if finding.kind == "out_of_bounds")
        if not launches:
            raise NotUnderstood
        return findings, {name for name, memory in self._memories.items() if memory.is_lost}

    def _launches(self) -> list[Launch]:
        """The launches, each once, with memories for their arguments; none if they cannot be known."""
        space = self._space
        values = space.valid_values(self._config, self.sizes)
        if values is None:
            return []
        try:
            launches = [*dict.fromkeys(space.launches(self._config, self.sizes))]
            passed = arguments(space.spec.arguments, values, space.problem.dtype)
        except AutotuneError:
            return []
        if space.device.backend == "opencl":  # where the source says how much shared memory its arrays have
            launches = [replace(item, shared_bytes=space.device.shared_bytes_per_block) for item in launches]
        self._arguments = {argument.name: argument for argument in passed}
        self._memories = {item.name: _memory(item) for item in passed if item.value is None and not item.of}
        return launches

    def _launch_all(self, launches: Sequence[Launch], steps: Steps, of_grids: Steps) -> Iterator[Finding]:
        is_whole = all(map(_has_all, launches))
        for launch in launches:
            run = self._launched(launch, _some_blocks(launch), steps)
            yield from self._findings_of(run)
            is_whole = is_whole and run.is_whole
            if steps.left < 0:
                return
        self._is_whole = is_whole
        if is_whole:
            small = [*self._small_grids(launches, of_grids)]
            yield from small or self.unwritten(with_ends=False)

    def _launched(self, launch: Launch, blocks: Ints, steps: Steps) -> LaunchRun:
        """A run of some blocks, which is not whole if it takes too long."""
        passed = {name: self._passed(name) for name in launch.arguments}
        run, run_blocks = self._source.prepared(launch, passed, steps)
        try:
            run_blocks(blocks)
        except OutOfSteps:
            run.is_whole = False
        return run

    def _passed(self, name: str) -> FollowedArray | int | None:
        argument = self._arguments[name]
        if argument.of or argument.symbol:
            raise NotUnderstood
        if argument.value is None:
            return self._memories[name]
        for array in pointed(argument.value):  # which statements reach in a way that is not followed
            if array not in self._memories:
                raise NotUnderstood
            self._memories[array].is_lost = True
        return argument.value if isinstance(argument.value, int) else None

    def _findings_of(self, run: LaunchRun) -> Iterator[Finding]:
        where = self._where()
        for (at, _), trouble in run.found.items():
            place = self._source.place(at)
            if isinstance(trouble, Divergent):
                yield Finding(
                    "divergent_barrier",
                    "barrier",
                    f"thread {trouble.thread} of block {trouble.block} reaches this barrier, and thread "
                    f"{trouble.other} does not, {where}; every thread of a block has to reach it: put it "
                    "where no condition depends on the thread",
                    place,
                )
            elif isinstance(trouble, OddTile):
                yield Finding(
                    "odd_tile",
                    "tile",
                    f"this tile has {trouble.length} elements, {where}; Triton takes powers of two: "
                    "take the next one, and mask the rest",
                    place,
                )
            else:
                verb = "writes" if trouble.is_written else "reads"
                mend = (
                    self._mend(trouble)
                    if trouble.memory.kind == "argument"
                    else f"make {trouble.memory.name} larger, or keep the index within it"
                )
                yield Finding(
                    "out_of_bounds",
                    trouble.memory.name,
                    f"{trouble.who} {verb} element {trouble.element} of "
                    f"{trouble.memory.name}, which has {trouble.elements}, {where}; {mend}",
                    place,
                )

    def _mend(self, access: Beyond) -> str:
        """The ways to keep an access within an argument; a vector at its end allows only whole vectors."""
        name, width = access.memory.name, access.together
        ways = self._source.mend, f"correct the shape of {name}"
        size = self._shape(name)[-1]
        if width == 1 or size not in self.sizes or self.sizes[size] % width == 0:
            return ", or ".join(ways)
        named = next((key for key, value in self._config.items() if value == width), str(width))
        return f"{', '.join(ways)}, or write {size} % {named} == 0 in `constraints`"

    def _small_grids(self, launches: Sequence[Launch], steps: Steps) -> Iterator[Finding]:
        """Grids that need more blocks: further ones would reach array elements that no block reaches.

        Either the source keeps blocks within an array: none leaves it, and one far behind its end does not
        touch it. Or the next block writes elements of an output, and leaves no array.
        """
        before = {
            name: memory.reached()
            for name, memory in self._memories.items()
            if memory.read is not None and self._has_own_shape(name) and not memory.is_lost
        }
        if all(reached.all() for reached in before.values()):
            return
        for launch in launches:
            number = self._number(launch)
            texts = self._space.spec.launch[number].grid
            unreached = [self._left_out(launch, axis, before, steps) for axis in range(len(texts))]
            count, name, element = max(unreached, default=(0, "", 0))
            if count:
                axis, taker = unreached.index((count, name, element)), self._source.taker
                yield self._in_space(
                    "small_grid",
                    f"launch[{number}].grid[{axis}]",
                    f"{texts[axis]} is {launch.grid[axis]}, too few {taker}s: none reaches element {element} "
                    f"of {name}, {self._where()}; correct it, for example to ceil_div(SIZE, TILE), if a "
                    f"{taker} takes TILE elements",
                )

    def _left_out(
        self, launch: Launch, axis: int, before: Mapping[str, Bools], steps: Steps
    ) -> tuple[int, str, int]:
        """How many elements of an array only further blocks reach, the array, and the first of them."""
        extent, farthest = launch.grid[axis], max(map(len, before.values()))
        near = self._further(
            launch, axis, [extent + (1 << step) - 1 for step in range(farthest.bit_length())], steps
        )
        new = {name: near[name] & ~reached for name, reached in before.items() if name in near}
        far = (
            self._further(launch, axis, [extent + farthest], steps) if any(map(np.any, new.values())) else {}
        )
        new = {name: new[name] for name in new.keys() & far.keys() if not far[name].any()}
        if not any(map(np.any, new.values())):
            following = self._further(launch, axis, [extent], steps)
            outputs = [name for name in before if self._arguments[name].role == "out"]
            is_inside = following.keys() >= before.keys()
            new = {name: following[name] & ~before[name] for name in outputs} if is_inside else {}
        counted = ((int(elements.sum()), name, int(elements.argmax())) for name, elements in new.items())
        return max((item for item in counted if item[0]), default=(0, "", 0))

    def _further(self, launch: Launch, axis: int, indices: Sequence[int], steps: Steps) -> dict[str, Bools]:
        """The elements that blocks beyond a grid reach, in arrays that these blocks do not leave."""
        axes = [[*range(extent)] for extent in launch.grid]
        axes[axis] = [*indices]
        grid = [*launch.grid]
        grid[axis] = indices[-1] + 1
        if math.prod(map(len, axes)) * math.prod(launch.block) > _MOST_THREADS:
            return {}
        kept = self._memories
        self._memories = {item.name: _memory(item) for item in self._arguments.values() if item.name in kept}
        further = replace(launch, grid=(grid[0], grid[1], grid[2]))
        run = self._launched(further, blocks_of(axes), steps)
        memories, self._memories = self._memories, kept
        if not run.is_whole:
            return {}
        return {
            name: memory.reached()
            for name, memory in memories.items()
            if memory.read is not None and not memory.is_lost
        }

    def _shape(self, name: str) -> tuple[str, ...]:
        return next(argument.shape for argument in self._space.spec.arguments if argument.name == name)

    def _has_own_shape(self, name: str) -> bool:
        """True if an array's shape depends on no parameter: then it has no room beyond what is needed."""
        shape = self._shape(name)
        read = names_behind((word for text in shape for word in parse(text).names), self._space.spec.derived)
        return read.isdisjoint(parameter.name for parameter in self._space.parameters)

    def unwritten(self, *, with_ends: bool) -> Iterator[Finding]:
        """Outputs with elements that no thread writes.

        An output may have room at its end: `with_ends` also counts what is missing there, if its first extent
        is a size. No output has room where programs write over each other's elements.
        """
        for name, memory in self._memories.items() if self._is_whole else ():
            if self._arguments[name].role == "out" and not memory.is_lost and memory.written is not None:
                missing = np.flatnonzero(~memory.written)
                is_sure = memory.is_overwritten or (with_ends and self._shape(name)[0] in self.sizes)
                if len(missing) and (is_sure or memory.written[missing[0] :].any()):
                    mend = (
                        "programs write over each other's elements: correct a stride, the grid or the source"
                        if memory.is_overwritten
                        else f"correct {'a guard such as `i < n`' if with_ends else 'the grid'}, the source "
                        "or the shape, or write role: inout if these elements keep their values"
                    )
                    yield self._in_space(
                        "unwritten_output",
                        self._argument_place(name),
                        f"no {self._source.who} writes {len(missing)} of the {len(memory.written)} elements "
                        f"of {name}, such as element {missing[0]}, {self._where()}; {mend}",
                    )

    def differing(self, others: _Written) -> Iterator[Finding]:
        """Outputs of which another configuration writes more or fewer elements; the first is added to them.

        That settles whether there is room at the end of one.
        """
        for name, memory in self._memories.items() if self._is_whole else ():
            if memory.written is None or memory.is_lost or self._arguments[name].role != "out":
                continue
            other, elements = others.setdefault(name, (str(self._config), memory.written))
            if self._has_own_shape(name) and len(differing := np.flatnonzero(elements != memory.written)):
                element = differing[0]
                names = (str(self._config), other) if elements[element] else (other, str(self._config))
                yield self._in_space(
                    "unwritten_output",
                    self._argument_place(name),
                    f"no {self._source.who} writes element {element} of {name} with {names[0]} at "
                    f"{self._at()}, but one does with {names[1]}; correct the grid or the source",
                )

    def _in_space(self, kind: str, subject: str, detail: str) -> Finding:
        """What is wrong in the space file at a place such as `launch[0].grid`."""
        return Finding(kind, subject, detail, located(self._space.spec.path, subject))

    def _argument_place(self, name: str) -> str:
        """The place of an argument in the space file."""
        return f"arguments[{[argument.name for argument in self._space.spec.arguments].index(name)}]"

    def _number(self, launch: Launch) -> int:
        plan = self._space.spec.launch
        return next(
            number
            for number, step in enumerate(plan)
            if own_name(step.entry) == own_name(launch.entry)
            and {*step.arguments} - {NO_ARRAY} == {*launch.arguments}
        )

    def _where(self) -> str:
        return f"with {self._config} at {self._at()}" if self._config else f"at {self._at()}"

    def _at(self) -> str:
        return ", ".join(f"{name}={size}" for name, size in self.sizes.items())


def _memory(argument: Argument) -> FollowedArray:
    if struct_fields(argument.dtype):
        return FollowedArray(argument.name, None, 0, "argument")
    unit, count = element_bytes(argument.dtype), math.prod(argument.shape)
    is_asked = argument.role in ("in", "out", "inout") and count <= 1 << 22
    read, written = (np.zeros(count, np.bool_) if is_asked else None for _ in range(2))
    return FollowedArray(argument.name, unit * count, unit, "argument", read, written)


def _has_all(launch: Launch) -> bool:
    """True if all blocks of a launch run."""
    return math.prod(launch.grid) * math.prod(launch.block) <= _MOST_THREADS


def _some_blocks(launch: Launch) -> Ints:
    """All blocks of a launch, or only its corner blocks."""
    has_all = _has_all(launch)
    return blocks_of([range(extent) if has_all else sorted({0, extent - 1}) for extent in launch.grid])
