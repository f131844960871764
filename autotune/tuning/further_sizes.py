"""Workloads at sizes that a space does not list, where a configuration does something new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Lock
from typing import NamedTuple

from autotune.checks.host_sanitizer import can_run_on_cpu, workloads_for_cpu
from autotune.core.launch_plan import TRITON
from autotune.core.records import Config, Sizes
from autotune.core.text import size_text
from autotune.errors import ExpressionError, InputError, SetupError
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.problem.covering import Domain, at_limits, at_tiles, beyond_16_bits, covering, divisors
from autotune.problem.index_runs import IndexRun, IndexRuns, index_runs
from autotune.problem.large_indices import LARGE, IndexLimit, limit_of, unknown_beyond
from autotune.problem.loops import Loops
from autotune.problem.repeated import Repeated, repeated
from autotune.problem.workload import Make, Workload, entries

MAX_SIZES = 6  # sizes near the tiles of a configuration, at most
MAX_CHANGED_BYTES = 2**31  # the most for the arrays of a workload at which a condition changes
CHANGED_SHARE = 1 / 16  # and this share of the device's memory, which on a CPU is the reference's as well
_SEED_OFFSET_OF_LOOPS = 1000  # first seed of workloads for loops: those near tiles have smaller ones


class SmallWorkloads(NamedTuple):
    """Workloads for slow checks."""

    verified: Sequence[Workload]  # the fewest and smallest that show all that the sizes to verify show
    # for loops without a second iteration in a verified one that the CPU can run, and of the largest sizes
    further: Sequence[Workload] = ()
    is_whole: bool = True  # True if the CPU is known to run a second iteration of each loop


class FurtherSizes:
    """Makes the workloads of further sizes."""

    def __init__(self, maker: InstanceMaker) -> None:
        """Prepare to make workloads; the maker makes inputs and expected results as well."""
        self._maker, self._planner = maker, maker.without_data()
        self._space = maker.space
        self._small: dict[str, SmallWorkloads] = {}  # by the key of an instance
        self._kernels: dict[str, IndexRuns | None] = {}
        self._limits: dict[str, IndexLimit] = {}
        self._one_at_a_time = Lock()  # threads that compute at the same time would delay every other one

    def is_declared(self, instance: KernelInstance, workload: Workload) -> bool:
        """True if the sizes of a workload divide as the space's do: then any wrong result there counts."""
        return self._domain(instance).is_declared(workload.problem.sizes)

    def advice(self, instance: KernelInstance, workload: Workload) -> str:
        """The constraint to write if a kernel is not made for the sizes of a workload; empty without one."""
        sizes = workload.problem.sizes
        rules = " or ".join(f"`{rule}`" for rule in self._domain(instance).excluding(sizes))
        where = f"`constraints` of {self._space.spec.path.name}"
        return f"; if {size_text(sizes)} makes no sense, write {rules} into {where}" if rules else ""

    def workload_of(self, config: Config, workload: Workload) -> Workload | None:
        """The same workload for a configuration; None if it is not valid there, or the reference fails."""
        return _problem_at(self._maker, config, workload.problem.sizes, self._seed_offset(workload))

    def variant(self, config: Config, workload: Workload, name: str) -> Workload | None:
        """The same workload with a variant of its inputs; raises SetupError if `inputs` does not make it."""
        return self._maker.workload_to_verify(
            config, workload.problem.sizes, self._seed_offset(workload), name
        )

    def _seed_offset(self, workload: Workload) -> int:
        return workload.problem.seed - self._space.problem.seed

    def of_tiles(self, instance: KernelInstance) -> Iterator[Workload]:
        """The workloads at sizes around the configuration's own tiles.

        If it has 16-bit integers, the sizes at which its indices truncate a size or a number of tiles come
        first, and other sizes beyond 16 bits last, because time may run out.
        """
        config, timed, verified = instance.config, instance.workload, instance.verify_workloads

        def make(sizes: Sizes, seed_offset: int) -> Workload | None:
            return _problem_at(self._planner, config, sizes, seed_offset)

        def cuts(workload: Workload) -> bool:
            return any(run.cuts_to_16_bits for run in self._runs_of(instance, workload))

        if timed.trusted:
            return
        cut, others = [], []
        if any(run.has_16_bits for run in self._runs_of(instance, timed)):
            if not cuts(timed):  # else it does so on purpose
                tiles = (1, *divisors((*verified, timed), config))
                cut = [*beyond_16_bits(verified, timed, make, tiles, cuts)]
            taken = [workload.problem.sizes for workload in cut]
            long = beyond_16_bits(verified, timed, make)
            others = [workload for workload in long if workload.problem.sizes not in taken]
        for planned in (*cut, *at_tiles(verified, timed, config, make, MAX_SIZES), *others):
            if workload := self.workload_of(config, planned):
                yield workload

    def at_changed_condition(self, instance: KernelInstance) -> Iterator[Workload]:
        """The workload at which a condition differs from all sizes of the space, if memory has room."""
        planned = self.index_limit(instance).changed
        room_bytes = min(MAX_CHANGED_BYTES, CHANGED_SHARE * self._space.device.memory_bytes)
        if planned is None or planned.size_bytes > room_bytes:
            return
        if workload := self.workload_of(instance.config, planned):
            yield workload

    def reached(self, instance: KernelInstance) -> set[str]:
        """The arrays that the kernels surely access at the size to tune for; none if they cannot be read."""
        runs = self._runs_of(instance, instance.workload)
        return {name for run in runs for name, places, _ in run.reached if places}

    def small(self, instance: KernelInstance) -> SmallWorkloads:
        """The workloads for slow checks of a configuration."""
        with self._one_at_a_time:
            if instance.key not in self._small:
                self._small[instance.key] = self._find_small(instance)
            return self._small[instance.key]

    def _find_small(self, instance: KernelInstance) -> SmallWorkloads:
        timed, runs = instance.workload, self._runs(instance)
        verified = covering(instance.verify_workloads or (timed,), instance.config)
        if not instance.verify_workloads or timed.trusted or runs is None:
            return SmallWorkloads(verified)
        make = self._make(instance)
        looping, is_whole = Loops(runs).further(verified, workloads_for_cpu(verified), timed, make)
        limits = filter(can_run_on_cpu, at_limits((*instance.verify_workloads, timed), make))
        further = [self.workload_of(instance.config, workload) for workload in (*looping, *limits)]
        is_whole &= all(map(can_run_on_cpu, looping))
        return SmallWorkloads(verified, [*filter(None, further)], is_whole)

    def large(
        self, instance: KernelInstance, free_bytes: float, powers: Sequence[int]
    ) -> Iterator[tuple[int, Repeated]]:
        """Workloads whose arrays fit into memory and have more elements than a power of two, with the power.

        For each size that can grow alone, at the largest of the powers.
        """
        timed, domain, make = instance.workload, self._domain(instance), self._make(instance)
        compiled = entries(*instance.verify_workloads, timed)
        if timed.views or any(array.symbol for array in timed.arrays):
            return
        for name in timed.problem.sizes:
            planned = [(power, repeated(timed, name, 2**power, domain, make)) for power in powers]
            fitting = ((power, one) for power, one in planned if one and one.many.size_bytes <= free_bytes)
            power, workloads = next(fitting, (0, None))
            if workloads is None or not entries(*workloads.few, workloads.many) <= compiled:
                continue
            first = workloads.few[0].problem.sizes
            drawn = _problem_at(self._maker, instance.config, first, _SEED_OFFSET_OF_LOOPS)
            if drawn is not None and drawn.expected is None:
                yield power, workloads._replace(few=(drawn, *workloads.few[1:]))

    def index_limit(self, instance: KernelInstance) -> IndexLimit:
        """The sizes at which the configuration's indices overflow; unknown if its kernels cannot be read."""
        with self._one_at_a_time:
            if instance.key not in self._limits:
                runs, given = self._runs(instance), (instance.verify_workloads, instance.workload)
                domain, make = self._domain(instance), self._make(instance)
                limit = limit_of(runs, *given, domain, make) if runs else unknown_beyond(min(LARGE))
                self._limits[instance.key] = limit
            return self._limits[instance.key]

    def _runs_of(self, instance: KernelInstance, workload: Workload) -> Sequence[IndexRun]:
        """The runs of a configuration's indices at a workload's sizes; none if its kernels cannot be read."""
        with self._one_at_a_time:
            runs = self._runs(instance)
            return [] if runs is None else runs.runs_of(workload)

    def _runs(self, instance: KernelInstance) -> IndexRuns | None:
        """The kernels of a configuration; None if they cannot be read."""
        if instance.key not in self._kernels:
            runs = None
            with suppress(InputError):
                spec = self._space.spec
                dialect = TRITON if spec.dialect == TRITON else self._maker.dialect
                runs = index_runs(instance.source, dialect, spec.source)
            self._kernels[instance.key] = runs
        return self._kernels[instance.key]

    def _make(self, instance: KernelInstance) -> Make:
        return lambda sizes: _problem_at(self._planner, instance.config, sizes, _SEED_OFFSET_OF_LOOPS)

    def _domain(self, instance: KernelInstance) -> Domain:
        return Domain([one.problem.sizes for one in (*instance.verify_workloads, instance.workload)])


def _problem_at(maker: InstanceMaker, config: Config, sizes: Sizes, seed_offset: int) -> Workload | None:
    try:
        return maker.workload_to_verify(config, sizes, seed_offset)
    except (ExpressionError, SetupError):
        return None
