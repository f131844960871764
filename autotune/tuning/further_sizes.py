"""Problems at sizes that a space does not list, where a configuration does something new."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from threading import Lock
from typing import NamedTuple

from autotune.core.launch_plan import TRITON
from autotune.core.records import Config, Sizes
from autotune.core.text import size_text
from autotune.errors import ExpressionError, InputError, SetupError
from autotune.evaluation.host_sanitizer import affordable
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.problem.covering import Domain, at_tiles, covering
from autotune.problem.index_runs import IndexRuns
from autotune.problem.large_indices import Overflow, overflow_in_c, overflow_in_triton, overflowing
from autotune.problem.loops import Loops, Make
from autotune.problem.problem_instance import ProblemInstance
from autotune.sources.kernel_source import read_kernel_source

MAX_SIZES = 6  # that the tiles of a configuration make interesting
_SEED_OFFSET_OF_LOOPS = 1000  # of their seeds: problems at sizes of tiles have the smaller ones


class Small(NamedTuple):
    """Problems for slow checks.

    Attributes:
        verified: The fewest and smallest problems that show all that the sizes to verify show.
        looping: Problems in which loops turn again that turn once in each verified problem that the CPU can
            run.
        is_whole: True if each of these loops turns again in one of them.
    """

    verified: Sequence[ProblemInstance]
    looping: Sequence[ProblemInstance] = ()
    is_whole: bool = True


class FurtherSizes:
    """Makes the problems of further sizes."""

    def __init__(self, maker: InstanceMaker) -> None:
        """Prepare to make problems; the maker makes inputs and expected results as well."""
        self._maker, self._planner = maker, maker.without_data()
        self._space = maker.space
        self._small: dict[str, Small] = {}  # by the key of an instance
        self._kernels: dict[str, IndexRuns | None] = {}
        self._one_at_a_time = Lock()  # threads that compute at the same time would delay every other one

    def is_declared(self, instance: KernelInstance, problem: ProblemInstance) -> bool:
        """True if the sizes of a problem divide as all of the space do: whatever is wrong there counts."""
        return self._domain(instance).is_declared(problem.definition.sizes)

    def advice(self, instance: KernelInstance, problem: ProblemInstance) -> str:
        """The constraint to write if a kernel is not made for the sizes of a problem; empty without one."""
        sizes = problem.definition.sizes
        found = " or ".join(f"`{one}`" for one in self._domain(instance).excluding(sizes))
        where = f"`constraints` of {self._space.spec.path.name}"
        return f"; if {size_text(sizes)} makes no sense, write {found} into {where}" if found else ""

    def problem_of(self, config: Config, problem: ProblemInstance) -> ProblemInstance | None:
        """The same problem for a configuration; None if it is not valid there, or the reference fails."""
        return _problem_at(self._maker, config, problem.definition.sizes, self._seed_offset(problem))

    def variant(self, config: Config, problem: ProblemInstance, name: str) -> ProblemInstance | None:
        """The same problem with a variant of its inputs; raises SetupError if `inputs` does not make it."""
        return self._maker.problem_to_verify(
            config, problem.definition.sizes, self._seed_offset(problem), name
        )

    def _seed_offset(self, problem: ProblemInstance) -> int:
        return problem.definition.seed - self._space.problem.seed

    def of_tiles(self, instance: KernelInstance) -> Iterator[ProblemInstance]:
        """The problems at sizes that the configuration's own tiles make interesting."""
        config, timed = instance.config, instance.problem

        def make(sizes: Sizes, seed_offset: int) -> ProblemInstance | None:
            return _problem_at(self._planner, config, sizes, seed_offset)

        count = 0 if timed.trusted else MAX_SIZES
        for planned in at_tiles(instance.verify_problems, timed, config, make, count):
            if problem := self.problem_of(config, planned):
                yield problem

    def small(self, instance: KernelInstance) -> Small:
        """The problems for slow checks of a configuration."""
        with self._one_at_a_time:
            if instance.key not in self._small:
                self._small[instance.key] = self._found_small(instance)
            return self._small[instance.key]

    def _found_small(self, instance: KernelInstance) -> Small:
        timed, runs = instance.problem, self._runs(instance)
        verified = covering(instance.verify_problems or (timed,), instance.config)
        if not instance.verify_problems or timed.trusted or runs is None:
            return Small(verified)
        planned, is_whole = Loops(runs).further(verified, affordable(verified), timed, self._make(instance))
        found = [self.problem_of(instance.config, one) for one in planned]
        return Small(verified, [*filter(None, found)], is_whole)

    def unknown_beyond(self, instance: KernelInstance) -> str:
        """The reason why larger sizes may go wrong; empty if the configuration's indices hold them."""
        found = None
        if (overflow := self._overflow(instance)) is not None:
            found = overflowing(overflow, instance.problem, self._domain(instance), self._make(instance))
        if found is None:
            return "it is not known if indices overflow in arrays of more than 2^31 elements"
        return found

    def _overflow(self, instance: KernelInstance) -> Overflow | None:
        """Finds arrays of which an index overflows; None where the kernels cannot be read."""
        if self._space.spec.dialect == TRITON:
            return overflow_in_triton(instance.source, self._space.spec.source)
        runs = self._runs(instance)
        return None if runs is None else overflow_in_c(runs)

    def _runs(self, instance: KernelInstance) -> IndexRuns | None:
        """The kernels of a configuration; None where they cannot be read."""
        if instance.key not in self._kernels:
            found = None
            with suppress(InputError):
                if self._space.spec.dialect != TRITON:
                    found = IndexRuns(read_kernel_source(instance.source, {}, self._maker.dialect))
            self._kernels[instance.key] = found
        return self._kernels[instance.key]

    def _make(self, instance: KernelInstance) -> Make:
        return lambda sizes: _problem_at(self._planner, instance.config, sizes, _SEED_OFFSET_OF_LOOPS)

    def _domain(self, instance: KernelInstance) -> Domain:
        return Domain([one.definition.sizes for one in (*instance.verify_problems, instance.problem)])


def _problem_at(
    maker: InstanceMaker, config: Config, sizes: Sizes, seed_offset: int
) -> ProblemInstance | None:
    try:
        return maker.problem_to_verify(config, sizes, seed_offset)
    except (ExpressionError, SetupError):
        return None
