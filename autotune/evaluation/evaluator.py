"""From configurations to trials: dedupe, compile ahead, verify and time, journal, budget.

This is the only place where a search spends anything. A searcher hands in configurations and gets trials.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, replace

from autotune.core.records import Config
from autotune.core.trials import Binary, Budget, Failure, Objective, Status, Trial
from autotune.errors import BudgetSpent, ExpressionError
from autotune.evaluation.compiler_pool import Compilation, CompilerPool
from autotune.evaluation.device_process import run_job
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.evaluation.journal import Journal
from autotune.evaluation.work_item import Incumbent, MeasurementPolicy, Outcome
from autotune.evaluation.worker import Worker

MIN_TIMEOUT_S = 10.0
COMPILE_AHEAD = 4  # configurations per compiler process
NO_ENERGY = "the device counts no energy; search for time instead"
BY_MACHINE = "the machine may be the cause: the next search tries again"
TIMEOUT_FACTOR = 20  # a trial may take this many times as long as the default's

OnTrial = Callable[[Trial], None]


@dataclass(frozen=True)
class _Ready:
    """A candidate whose compilation is under way, or a trial that needs none; known: from the journal."""

    instance: KernelInstance | None
    compilation: Future[Compilation] | None
    trial: Trial | None
    is_known: bool


@dataclass(frozen=True)
class _Pending:
    """A configuration that is on the device."""

    ready: _Ready
    instance: KernelInstance
    binary: Binary


class Evaluator:
    """Callable that a searcher is handed: `evaluate(configs) -> trials`."""

    def __init__(
        self,
        maker: InstanceMaker,
        pool: CompilerPool,
        worker: Worker,
        journal: Journal,
        budget: Budget,
        *,
        protocol: MeasurementPolicy,
        timeout_s: float,
        on_trial: OnTrial,
        objective: Objective = Objective.TIME,
    ) -> None:
        self._maker = maker
        self._pool = pool
        self._worker = worker
        self._journal = journal
        self._budget = budget
        self._protocol = protocol
        self._timeout_s = timeout_s
        self._on_trial = on_trial
        self._objective = objective
        self._binaries: dict[tuple[str, str], Trial] = {}
        self._charged = 0
        self._started = self._lap_began = time.perf_counter()
        self._pending: _Pending | None = None
        self._shares_cores = maker.space.device.kind == "cpu"
        self._resumed_s = 0.0
        self.trials: dict[Config, Trial] = {}
        self.best: Trial | None = None
        self._incumbent: Incumbent | None = None
        self.resumed = 0

    @property
    def spent_s(self) -> float:
        """Wall time of this search, with what its resumed trials took when they were run."""
        return time.perf_counter() - self._started + self._resumed_s

    def __call__(self, configs: Sequence[Config]) -> list[Trial]:
        """One trial per configuration, in order; raises BudgetSpent once nothing more may be spent."""
        answers: dict[Config, Trial] = {}
        fresh: dict[Config, None] = {}  # in order, each once
        for config in configs:
            if config in self.trials or config in answers:
                continue
            reasons = self._maker.space.why_invalid(config)
            if reasons:
                answers[config] = Trial(config, "", Status.PRUNED, "; ".join(reasons))
            else:
                fresh[config] = None
        affordable = list(fresh)[: self._trials_left()]
        if fresh and not affordable:
            raise BudgetSpent
        self._charged += len(affordable)
        self._evaluate(affordable, self._budget.seconds)
        if len(affordable) < len(fresh):
            raise BudgetSpent
        return [self.trials.get(config) or answers[config] for config in configs]

    def admit(self, config: Config, *, charged: bool) -> Trial:
        """Evaluate one valid configuration even when nothing is left to spend."""
        if config not in self.trials:
            self._charged += charged
            self._evaluate([config], None)
        return self.trials[config]

    def _evaluate(self, configs: Sequence[Config], limit_s: float | None) -> None:
        """One at a time on the device, while the next ones are prepared and compiled."""
        for ready in self._compiled_ahead(configs):
            compiled = ready.compilation.result() if ready.compilation is not None else None
            self._collect()
            if limit_s is not None and self.spent_s >= limit_s:
                raise BudgetSpent
            self._submit(ready, compiled)
            if self._shares_cores:
                self._collect()
        self._collect()

    def _submit(self, ready: _Ready, compiled: Compilation | None) -> None:
        """Send one configuration to the device, unless its trial is known without it."""
        if ready.trial is not None:
            self._record(ready.trial, ready)
            return
        assert ready.instance is not None and compiled is not None
        instance = ready.instance
        if isinstance(compiled, Failure):
            self._record(self._trial(instance, None, Outcome(compiled), ""), ready)
            return
        twin = self._binaries.get(_same(instance, _short(compiled)))
        if twin is not None:
            outcome, detail = Outcome(None, twin.measurement), f"same binary and launches as {twin.config}"
            self._record(self._trial(instance, compiled, outcome, detail), ready)
            return
        job = instance.job(compiled, self._protocol, self._incumbent, self._journal.batch)
        failure = self._worker.prepare(*job.checks, job.case)
        if failure is not None:
            self._record(self._trial(instance, compiled, Outcome(failure), ""), ready)
            return
        timeout_s = self._timeout_s + self._protocol.energy_limit_s
        alone = job.alone()
        self._worker.begin(run_job, job, timeout_s=timeout_s, alone=None if alone is None else (alone,))
        self._pending = _Pending(ready, instance, compiled)

    def _collect(self) -> None:
        """Wait for the configuration on the device, if there is one, and record its trial."""
        if self._pending is None:
            return
        flight, self._pending = self._pending, None
        answer: Outcome | Failure = self._worker.finish()
        outcome = Outcome(answer) if isinstance(answer, Failure) else answer
        if outcome.failure is not None and outcome.failure.status is Status.OUT_OF_BOUNDS:
            self._worker.close()  # how far beyond the guard zone it wrote, nobody knows
        cost_s = self._lap_s()
        if self.best is None and outcome.failure is None:
            self._timeout_s = min(self._timeout_s, max(MIN_TIMEOUT_S, TIMEOUT_FACTOR * cost_s))
        self._record(self._trial(flight.instance, flight.binary, outcome, "", cost_s), flight.ready)

    def _trial(
        self,
        instance: KernelInstance,
        binary: Binary | None,
        outcome: Outcome,
        detail: str,
        cost_s: float | None = None,
    ) -> Trial:
        failure = outcome.failure
        if failure is not None:
            detail = f"{failure.detail}; {BY_MACHINE}" if failure.by_machine else failure.detail
        trial = Trial(
            config=instance.config,
            key=instance.key,
            status=failure.status if failure else Status.OK,
            detail=detail,
            measurement=None if failure else outcome.measurement,
            cost_s=self._lap_s() if cost_s is None else cost_s,
            objective=self._objective,
            by_machine=failure is not None and failure.by_machine,
        )
        if binary is None:
            return trial
        return replace(
            trial,
            compile_ms=binary.compile_ms,
            binary_sha256=_short(binary),
            binary_cached=binary.cached,
            registers=binary.registers,
            spill_bytes=binary.spill_bytes,
            shared_bytes=binary.shared_bytes,
        )

    def _lap_s(self) -> float:
        """Wall time since the last trial."""
        began, self._lap_began = self._lap_began, time.perf_counter()
        return self._lap_began - began

    def _record(self, trial: Trial, ready: _Ready) -> None:
        if ready.is_known:
            self.resumed += 1
            self._resumed_s += trial.cost_s
        else:
            self._journal.append(trial)
        if ready.instance is not None and trial.status is Status.OK:
            self._binaries.setdefault(_same(ready.instance, trial.binary_sha256), trial)
        if trial.status is Status.OK and trial.score is None:  # its time is right, and stays in the journal
            trial = replace(trial, status=Status.MEASUREMENT_ERROR, detail=NO_ENERGY)
        self.trials[trial.config] = trial
        if trial.score is not None and (self.best is None or trial.score < (self.best.score or 0.0)):
            self.best, self._incumbent = trial, _incumbent(ready, trial)
        self._on_trial(trial)

    def _compiled_ahead(self, configs: Sequence[Config]) -> Iterator[_Ready]:
        """Keep the compilers a few configurations ahead of the device.

        On a CPU the compilers would disturb the timing, so there a window is compiled before it is timed.
        """
        # compiling a whole window would overrun a time limit by as much
        ahead = self._pool.workers * (1 if self._budget.seconds is not None else COMPILE_AHEAD)
        pending: deque[_Ready] = deque()
        for config in configs:
            pending.append(self._begin(config))
            if len(pending) < ahead:
                continue
            yield from _drain(pending) if self._shares_cores else (pending.popleft(),)
        yield from _drain(pending)

    def _begin(self, config: Config) -> _Ready:
        try:
            instance = self._maker.make(config)
        except ExpressionError as error:
            trial = Trial(config, self._maker.key(config), Status.LAUNCH_ERROR, str(error))
            return _Ready(None, None, trial, is_known=trial.key in self._journal.trials)
        known = self._journal.trials.get(instance.key)
        if known is not None:
            known = replace(known, config=config, objective=self._objective)
            is_answer = known.score is not None if known.status is Status.OK else not known.by_machine
            if is_answer:
                return _Ready(instance, None, known, is_known=True)
        compilation = self._pool.submit(instance.source, instance.options)
        return _Ready(instance, compilation, None, is_known=False)

    def _trials_left(self) -> int | None:
        return None if self._budget.trials is None else max(0, self._budget.trials - self._charged)


def _short(binary: Binary) -> str:
    return binary.sha256[:16]


def _same(instance: KernelInstance, binary_sha256: str) -> tuple[str, str]:
    """What makes two configurations one: the binary, and what is run with it."""
    return binary_sha256, instance.runs


def _incumbent(ready: _Ready, trial: Trial) -> Incumbent:
    assert ready.instance is not None and trial.measurement is not None
    compiled = ready.compilation.result() if ready.compilation is not None else None
    binary = compiled if isinstance(compiled, Binary) else None
    return Incumbent(trial.measurement, binary, ready.instance.case)


def _drain(pending: deque[_Ready]) -> Iterator[_Ready]:
    """Wait for every compilation, then hand out all that is pending."""
    wait([ready.compilation for ready in pending if ready.compilation is not None])
    while pending:
        yield pending.popleft()
