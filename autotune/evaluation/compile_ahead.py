"""Makes configurations ready for the device: looked up in the journal, or compiled ahead of it."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable, Iterator, Sequence
from concurrent.futures import Future, as_completed
from dataclasses import dataclass, replace
from itertools import islice

from autotune.core.records import Config
from autotune.core.stages import OnStage, Stage
from autotune.core.trials import Status, Trial
from autotune.errors import ExpressionError
from autotune.evaluation.compiler_pool import Compilation, CompilerPool
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.evaluation.journal import Journal
from autotune.evaluation.scoring import Scoring


@dataclass(frozen=True)
class Known:
    """A trial that needs no run."""

    trial: Trial
    instance: KernelInstance | None  # None: there is none, which is why it failed
    is_journaled: bool  # the trial was read from the journal


@dataclass(frozen=True)
class Compiling:
    """A configuration that is being compiled, to run afterwards."""

    instance: KernelInstance
    compilation: Future[Compilation]


Ready = Known | Compiling


class CompileAhead:
    """Keeps the compilers a few configurations ahead of the device."""

    def __init__(
        self,
        maker: InstanceMaker,
        pool: CompilerPool,
        journal: Journal,
        scoring: Scoring,
        count: int,
        on_stage: OnStage,
    ) -> None:
        """Compile nothing yet.

        Args:
            maker: Makes the instances of configurations.
            pool: Compiles them.
            journal: Has trials of earlier runs.
            scoring: What is minimised: a trial without what it needs is run again.
            count: How many configurations to compile ahead.
            on_stage: Is told what is being done.
        """
        self._maker, self._pool, self._journal = maker, pool, journal
        self._scoring, self._on_stage = scoring, on_stage
        self._early: dict[Config, Ready] = {}  # begun before a searcher asked for it
        self.count = count
        self.shares_cores = maker.space.device.kind == "cpu"  # compilers would disturb the timing

    @property
    def begun(self) -> Collection[Config]:
        """The configurations that were begun early and have not been asked for yet."""
        return self._early.keys()

    def begin_first(self, configs: Iterable[Config]) -> None:
        """Begin to compile what is tried first; only one where compilers would disturb its timing.

        Two for each compiler: more would take the cores for longer from the device process, which draws its
        inputs.
        """
        self.begin_early(islice(configs, 1 if self.shares_cores else 2 * self._pool.workers))

    def begin_early(self, configs: Iterable[Config]) -> None:
        """Begin to compile configurations before they are asked for."""
        for config in configs:
            self._early[config] = self.begin(config)

    def take_compiled(self) -> Ready | None:
        """The first configuration that was begun early, if it is ready: nobody has to ask for it any more."""
        config = next(iter(self._early), None)
        if config is None:
            return None
        first = self._early[config]
        is_ready = isinstance(first, Known) or first.compilation.done()
        return self._early.pop(config) if is_ready else None

    def in_order(self, configs: Sequence[Config]) -> Iterator[Ready]:
        """Yield configurations in order, compiled; on a CPU a whole window is compiled before it is timed."""
        pending: deque[Ready] = deque()
        for config in configs:
            pending.append(self.begin(config))
            if len(pending) == self.count:
                yield from self._compiled(pending, 0 if self.shares_cores else self.count - 1)
        self._tell(_compilations(pending))
        yield from self._compiled(pending, 0)

    def begin(self, config: Config) -> Ready:
        """Look up the trial of a configuration, or begin to compile it."""
        if config in self._early:
            return self._early.pop(config)
        try:
            instance = self._maker.make(config)
        except ExpressionError as error:
            trial = Trial(config, self._maker.key(config), Status.LAUNCH_ERROR, str(error))
            return Known(trial, None, is_journaled=trial.key in self._journal.trials)
        earlier = self._journal.trials.get(instance.key)
        if earlier is not None and self._is_answer(earlier):
            earlier = replace(earlier, config=config, objective=self._scoring.objective)
            return Known(earlier, instance, is_journaled=True)
        return Compiling(instance, self._pool.compile(instance))

    def _is_answer(self, trial: Trial) -> bool:
        """Whether a journaled trial has all that its score needs, or failed through its own fault."""
        if trial.status is not Status.OK:
            return not trial.by_machine
        measurement = trial.measurement
        return measurement is not None and not (self._scoring.needs_energy and measurement.energy_j is None)

    def _compiled(self, pending: deque[Ready], count: int) -> Iterator[Ready]:
        """Yield what is pending until `count` are left: each once it is compiled, on a CPU once all are."""
        window = _compilations(pending)
        while len(pending) > count:
            needed = window if self.shares_cores else _compilations([pending[0]])
            if running := [compilation for compilation in needed if not compilation.done()]:
                self._tell(window)
            for _ in as_completed(running):
                self._tell(window)
            yield pending.popleft()

    def _tell(self, window: Sequence[Future[Compilation]]) -> None:
        """Say how many of a window are compiled."""
        if window:
            done = sum(compilation.done() for compilation in window)
            self._on_stage(Stage("compiling", done, len(window)))


def _compilations(pending: Iterable[Ready]) -> list[Future[Compilation]]:
    return [ready.compilation for ready in pending if isinstance(ready, Compiling)]
