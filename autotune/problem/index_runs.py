"""Runs the kernels of one configuration on indices alone, at any size."""

from __future__ import annotations

import ast
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from autotune.core.argument_values import pointed
from autotune.core.launch_plan import TRITON
from autotune.core.records import Launch
from autotune.problem.workload import Workload
from autotune.sources.dry_run import DryRun, blocks_of
from autotune.sources.kernel_source import KernelSource, read_kernel_source
from autotune.sources.launch_run import FollowedArray, NotUnderstood, OutOfSteps, Steps
from autotune.sources.thread_values import Ints
from autotune.sources.triton_dry_run import TritonDryRun
from autotune.sources.triton_module import TritonModule
from autotune.space.signatures import arguments_of_template, own_name

AGAIN = 2  # iterations of a loop that are followed: the effect of further ones is unknown
_STEPS = 6000  # of one launch, after which it is given up
_BEFORE_LAST = 16  # a 16th of the grid before its last block, because arrays are a tenth too large
_Passed = dict[str, FollowedArray | int | None]  # the arguments of launches, by name


class IndexRun(NamedTuple):
    """One launch: what `DryRun` has found, and whether it followed all arrays to the launch's end."""

    entry: str
    turns: Mapping[int, int]
    reached: Sequence[tuple[str, bytes, bool]]
    is_whole: bool
    has_16_bits: bool = False
    cuts_to_16_bits: bool = False
    ways: Set[tuple[str, bool]] = frozenset()


class IndexRuns(ABC):
    """The kernels of a configuration, as its rendered source has them."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, bool], list[IndexRun]] = {}

    def runs_of(self, workload: Workload, *, is_wide: bool = False) -> list[IndexRun]:
        """The blocks at the corners of each launch, run; `is_wide` counts with 64 bits in place of 32."""
        key = workload.identity_text, is_wide
        if key not in self._known:
            pointers = [one.name for one in workload.arrays] + [part.name for part in workload.views]
            given: _Passed = {name: FollowedArray(name, None, 0, "argument") for name in pointers}
            given |= {one.name: one.value if isinstance(one.value, int) else None for one in workload.scalars}
            lost = {one.name for one in workload.scalars if pointed(one.value)}  # their arrays stay unseen
            runs = []
            for launch in dict.fromkeys(workload.launches):
                run = self._run(launch, given, is_wide=is_wide)
                runs.append(run._replace(is_whole=run.is_whole and lost.isdisjoint(launch.arguments)))
            self._known[key] = runs
        return self._known[key]

    @abstractmethod
    def _run(self, launch: Launch, given: _Passed, *, is_wide: bool) -> IndexRun:
        """Run the blocks at the corners of one launch."""


class _RunsInC(IndexRuns):
    """Kernels in C."""

    def __init__(self, read: KernelSource) -> None:
        super().__init__()
        self._read = read
        self._kernels = {one.name: one for one in read.kernels}
        self._bodies: dict[str, list[ast.stmt]] = {}

    def _run(self, launch: Launch, given: _Passed, *, is_wide: bool) -> IndexRun:
        run = DryRun(self._read, Steps(_STEPS), self._bodies, most_turns=AGAIN, is_wide=is_wide)
        kernel, is_run = self._kernels.get(own_name(launch.entry)), False
        if kernel is not None and len(kernel.parameters) == len(launch.arguments):
            with suppress(NotUnderstood, OutOfSteps, RecursionError):
                passed = [given.get(name) for name in launch.arguments]
                run.run(kernel, launch, arguments_of_template(launch.entry) or (), passed, _corners(launch))
                is_run = True
        found = run.has_16_bits, run.cuts_to_16_bits, run.ways
        return IndexRun(launch.entry, run.turns, run.reached, is_run, *found)


class _RunsInTriton(IndexRuns):
    """Kernels in Triton."""

    def __init__(self, module: TritonModule) -> None:
        super().__init__()
        self._module = module

    def _run(self, launch: Launch, given: _Passed, *, is_wide: bool) -> IndexRun:
        run, is_whole = TritonDryRun(self._module, Steps(_STEPS), most_turns=AGAIN, is_wide=is_wide), False
        with suppress(NotUnderstood, OutOfSteps, RecursionError):
            run.run(launch, given, _corners(launch))
            is_whole = run.is_whole
        return IndexRun(launch.entry, {}, run.reached, is_whole)


def index_runs(source: str, dialect: str, path: Path) -> IndexRuns:
    """The kernels of a rendered source; raises InputError for one that cannot be read."""
    if dialect == TRITON:
        return _RunsInTriton(TritonModule(source, path))
    return _RunsInC(read_kernel_source(source, {}, dialect))


def _corners(launch: Launch) -> Ints:
    """The first and the last blocks, which may have no work, and some shortly before these."""
    return blocks_of([sorted({0, extent - 1 - extent // _BEFORE_LAST, extent - 1}) for extent in launch.grid])
