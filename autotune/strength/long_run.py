"""Shows that a mistake which verification missed is real: with more sizes, more data and closer comparisons.

A problem counts where the kernel without the mistake passes.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

from autotune.checks.host_sanitizer import UnparsedEnd, judged
from autotune.compilers.source_text import perturbed
from autotune.core.launch_plan import TRITON
from autotune.core.outcomes import data_check
from autotune.core.records import Config, Sizes
from autotune.core.text import size_text
from autotune.core.trials import Failure
from autotune.errors import ExpressionError
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.problem.covering import divisors, threads
from autotune.problem.data_sets import DATA_SETS, other_data
from autotune.problem.workload import Workload
from autotune.processes.deadline import Deadline
from autotune.tuning.context import TuningContext
from autotune.tuning.data_checks import default_command
from autotune.tuning.sanitizer_checks import host_sanitizer
from autotune.tuning.stress_checks import SCHEDULES

_SEEDS = (101, 102)  # of more data
_SCALES = (0.0, 1e-4, 1e-3, 1e-2, 1e-1)  # of the tolerance
_MARGIN = 8.0  # how much worse than the right kernel a wrong one is
_MAX_BYTES = 2**26  # arrays of one problem
_MAX_THREADS = 2**22
_MAX_SIZES = 40
_ON_HOST = 4  # sizes under sanitizers
_COMMON = (1, 2, 3, 33, 257, 1025, 4099, 65_537)  # sizes of any kernel; the last needs 17 bits
_MAX_TILE = 4096


@dataclass(frozen=True)
class Witness:
    """A failure that shows a mistake, and a change of the space that would have caught it."""

    failure: Failure
    mend: str


class LongRun:
    """Runs configurations with a mistake on every problem that the right kernel can solve."""

    def __init__(self, context: TuningContext, timeout_s: float) -> None:
        """Run nothing yet; the context is that of the kernel without a mistake."""
        self._context, self._timeout_s = context, timeout_s
        self._right: dict[tuple[str, str], bool] = {}  # by source and problem
        self._sizes: dict[Config, list[tuple[str, Workload]]] = {}

    def witness(self, maker: InstanceMaker, configs: Sequence[Config], deadline: Deadline) -> Witness | None:
        """A failure that a maker's sources have and the right sources do not; None if there is none."""
        slow = (self._in_orders, self._on_host)
        for look in (self._at_sizes, self._on_data, self._closely, *slow):
            for config in configs[:1] if look in slow else configs:
                if deadline.is_over:
                    return None
                right, wrong = self._context.maker.make(config), maker.make(config)
                witness = next(look(right, wrong, deadline), None)
                if witness is not None:
                    return witness
        return None

    def is_same(self, maker: InstanceMaker, configs: Sequence[Config]) -> bool:
        """True if a compiler makes the same binaries from a maker's sources as from the right ones."""
        right = self._context.maker
        return all(self._binary(right, config) == self._binary(maker, config) for config in configs)

    def _binary(self, maker: InstanceMaker, config: Config) -> str:
        binary = self._context.pool.compile(maker.make(config)).result()
        return str(binary) if isinstance(binary, Failure) else binary.sha256

    def _at_sizes(
        self, right: KernelInstance, wrong: KernelInstance, deadline: Deadline
    ) -> Iterator[Witness]:
        for name, workload in self._more_sizes(right):
            if deadline.is_over:
                return
            if failure := self._differs(right, wrong, workload):
                yield Witness(failure, self._size_mend(right, name, workload.problem.sizes))

    def _on_data(self, right: KernelInstance, wrong: KernelInstance, deadline: Deadline) -> Iterator[Witness]:
        for workload in right.verify_workloads:
            if deadline.is_over:
                return
            for name in DATA_SETS:
                renewed = other_data(workload, name)
                if renewed and (failure := self._differs(right, wrong, renewed)):
                    yield Witness(failure, self._data_mend(workload.problem.sizes, name))
            for seed in _SEEDS:
                drawn = replace(workload, problem=replace(workload.problem, seed=seed))
                if failure := self._differs(right, wrong, drawn):
                    yield Witness(failure, "other random inputs show it: give `fill` a wider range")

    def _closely(self, right: KernelInstance, wrong: KernelInstance, deadline: Deadline) -> Iterator[Witness]:
        for workload in (*right.verify_workloads, right.workload):
            if deadline.is_over:
                return
            for scale in _SCALES:
                if self._passes(right, _scaled(workload, scale)):
                    near = _scaled(workload, scale * _MARGIN)
                    if failure := self._differs(right, wrong, near):
                        where = size_text(workload.problem.sizes)
                        mend = f"the tolerance hides it: with {near.tolerance}, {where} shows it"
                        yield Witness(failure, mend)
                    break

    def _in_orders(self, right: KernelInstance, wrong: KernelInstance, _: Deadline) -> Iterator[Witness]:
        if self._context.task.spec.dialect == TRITON:
            return
        sizes = self._more_sizes(right)[:_ON_HOST]
        for seed in SCHEDULES:
            others = [replace(item, source=perturbed(item.source, seed)) for item in (right, wrong)]
            for name, workload in sizes:
                if failure := self._differs(others[0], others[1], workload):
                    yield Witness(failure, self._size_mend(right, name, workload.problem.sizes))

    def _on_host(self, right: KernelInstance, wrong: KernelInstance, deadline: Deadline) -> Iterator[Witness]:
        host = host_sanitizer(self._context)
        workloads = [workload for _, workload in self._more_sizes(right)][:_ON_HOST]
        if host is None or not workloads:
            return
        outcome = host.check(wrong.source, workloads, deadline)
        if not isinstance(outcome, Failure | UnparsedEnd):
            return
        of_right = host.check(right.source, workloads, deadline)
        outcome = judged(outcome, of_right)
        if isinstance(outcome, Failure) and not isinstance(of_right, Failure):
            sizes = "; ".join(size_text(workload.problem.sizes) for workload in workloads)
            yield Witness(outcome, f"sanitizers see it at one of these sizes: {sizes}")

    def _differs(self, right: KernelInstance, wrong: KernelInstance, workload: Workload) -> Failure | None:
        """The failure of the wrong one on a workload that the right one passes."""
        if self._right.get((right.source, workload.identity_text)) is False:
            return None
        failure = self._failure(wrong, workload)
        return failure if failure is not None and self._passes(right, workload) else None

    def _passes(self, right: KernelInstance, workload: Workload) -> bool:
        key = right.source, workload.identity_text
        if key not in self._right:
            self._right[key] = self._failure(right, workload) is None
        return self._right[key]

    def _failure(self, instance: KernelInstance, workload: Workload) -> Failure | None:
        binary = self._context.pool.compile(instance).result()
        if isinstance(binary, Failure):
            return None  # which says nothing about its results
        failure = self._context.verify(binary, workload, self._timeout_s)
        return failure if failure is not None and not failure.by_machine else None

    def _more_sizes(self, right: KernelInstance) -> list[tuple[str, Workload]]:
        """Problems that differ from a verified one in one size, whose name comes first."""
        if right.config not in self._sizes:
            self._sizes[right.config] = [*islice(self._made_sizes(right), _MAX_SIZES)]
        return self._sizes[right.config]

    def _made_sizes(self, right: KernelInstance) -> Iterator[tuple[str, Workload]]:
        known = right.verify_workloads or (right.workload,)
        by_size = sorted(known, key=threads)
        verified = [workload.problem.sizes for workload in known]
        least = {name: min(sizes[name] for sizes in verified) for name in verified[0]}
        for turn, value in enumerate(_telling_sizes(_tiles(right))):
            near = by_size[turn % len(known)].problem.sizes
            for name in least:
                is_new = value > max(sizes[name] for sizes in verified)
                # a large size may only fit beside small ones, but beside 1 it may do nothing
                bases = [workload.problem.sizes for workload in reversed(by_size)] if is_new else [near]
                rows = ({**base, name: value} for base in (*bases, least))
                made = (self._problem(right.config, sizes) for sizes in rows if sizes not in verified)
                if workload := next(filter(None, made), None):
                    verified.append(workload.problem.sizes)
                    yield name, workload

    def _problem(self, config: Config, sizes: Sizes) -> Workload | None:
        """A problem that the space allows and that is small enough."""
        maker = self._context.maker
        problem = replace(maker.space.problem, sizes=sizes)
        try:
            if maker.space.valid_values(config, problem.sizes) is None:
                return None
            workload = maker.workload(config, problem)
        except ExpressionError:
            return None
        return workload if workload.size_bytes <= _MAX_BYTES and threads(workload) <= _MAX_THREADS else None

    def _data_mend(self, sizes: Sizes, name: str) -> str:
        """The reason why the checks before storing do not show what a data set shows."""
        task, where = self._context.task, f"{data_check(name)} at {size_text(sizes)}"
        default = self._context.default
        own = (other_data(known, name) for known in default.verify_workloads if known.problem.sizes == sizes)
        workload = next(filter(None, own), None)
        failure = workload and self._failure(default, workload)
        if workload is None or failure is None:
            return f"{where} shows it, which is left out: rounding may decide there, or no time was left"
        fills = {item.name: item.fill for item in workload.arrays if item.fill and item.fill[0] == "constant"}
        given = ", ".join(f"{array} `fill: {{constant: {fill[-1]}}}`" for array, fill in fills.items())
        command = default_command(task, "run" if fills else "check", sizes if fills else None)
        repeat = f"give {given} and run {command}" if fills else command
        return (
            f"default and reference disagree with {where}, so it is left out: {failure}; to repeat: {repeat}"
        )

    def _size_mend(self, right: KernelInstance, name: str, sizes: Sizes) -> str:
        verified = [workload.problem.sizes[name] for workload in right.verify_workloads]
        row = ", ".join(f"{axis}: {size}" for axis, size in sizes.items())
        return f"no verify size of `{name}` {lacking(verified, sizes[name], _tiles(right))}: add {{{row}}}"


def _scaled(workload: Workload, scale: float) -> Workload:
    """The workload with its tolerances multiplied."""
    bounds = tuple((name, bound.times(scale)) for name, bound in workload.bounds)
    return replace(workload, tolerance=workload.tolerance.times(scale), bounds=bounds)


def _tiles(instance: KernelInstance) -> list[int]:
    return [tile for tile in divisors([instance.workload], instance.config) if tile <= _MAX_TILE]


def _telling_sizes(tiles: Sequence[int]) -> list[int]:
    """Sizes of any kernel, then those around tiles, each once."""
    around = (size for tile in tiles for size in (tile + 1, tile - 1, tile, 2 * tile + 1))
    return list(dict.fromkeys((*_COMMON, *around)))


def lacking(verified: Sequence[int], size: int, tiles: Sequence[int]) -> str:
    """The property that this size has and no verified size, to follow the words "no verify size"."""
    whole = [tile for tile in tiles if size % tile == 0 and all(known % tile for known in verified)]
    rest = [tile for tile in tiles if size % tile and not any(known % tile for known in verified)]
    if verified and size > max(verified):
        return "is as large"
    if verified and size < min(verified):
        return "is as small"
    if rest:
        return f"leaves a tail of tiles of {rest[-1]}"
    if whole:
        return f"is a multiple of {whole[-1]}"
    return f"is {size}"
