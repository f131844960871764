"""Runs the kernels of one configuration on indices alone, at any size: see `sources/dry_run.py`."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from autotune.problem.workload import Workload
from autotune.sources.dry_run import DryRun, Memory, OutOfSteps, Steps, blocks_of
from autotune.sources.exact_statements import NotUnderstood
from autotune.sources.kernel_source import KernelSource
from autotune.space.signatures import arguments_of_template, own_name

AGAIN = 2  # turns of a loop; what further ones change is unknown
_STEPS = 6000  # of a launch


class IndexRun(NamedTuple):
    """One launch: what `DryRun` has found, and whether it came to the launch's end."""

    entry: str
    turns: Mapping[int, int]
    reached: Sequence[tuple[str, bytes, bool]]
    is_whole: bool
    has_16_bits: bool
    cuts_to_16_bits: bool


class IndexRuns:
    """The kernels of a configuration, as its rendered source has them."""

    def __init__(self, read: KernelSource) -> None:
        self._read = read
        self._kernels = {one.name: one for one in read.kernels}
        self._bodies: dict[str, list[ast.stmt]] = {}
        self._known: dict[tuple[str, bool], list[IndexRun]] = {}

    def runs_of(self, workload: Workload, *, is_wide: bool = False) -> list[IndexRun]:
        """The blocks at the corners of each launch, run; `is_wide` counts with 64 bits in place of 32."""
        key = workload.identity_text, is_wide
        if key not in self._known:
            self._known[key] = [*self._runs(workload, is_wide)]
        return self._known[key]

    def _runs(self, workload: Workload, is_wide: bool) -> Iterator[IndexRun]:
        given: dict[str, Memory | int | None] = {
            one.name: Memory(one.name, None, 0, "argument") for one in workload.arrays
        }
        given |= {one.name: one.value for one in workload.scalars if isinstance(one.value, int)}
        for launch in dict.fromkeys(workload.launches):
            corners = blocks_of([sorted({0, extent - 1}) for extent in launch.grid])
            run = DryRun(self._read, Steps(_STEPS), self._bodies, most_turns=AGAIN, is_wide=is_wide)
            kernel, is_run = self._kernels.get(own_name(launch.entry)), False
            if kernel is not None and len(kernel.parameters) == len(launch.arguments):
                with suppress(NotUnderstood, OutOfSteps, RecursionError):
                    passed = [given.get(name) for name in launch.arguments]
                    run.run(kernel, launch, arguments_of_template(launch.entry) or (), passed, corners)
                    is_run = True
            yield IndexRun(launch.entry, run.turns, run.reached, is_run, run.has_16_bits, run.cuts_to_16_bits)
