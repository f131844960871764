"""Turns configurations into trials: has them compiled, verified, timed and journaled; keeps the budget.

A searcher passes configurations and receives trials. Only this module spends the budget.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from autotune.core.records import Config
from autotune.core.stages import OnStage, Stage, unobserved
from autotune.core.trials import Binary, Budget, Failure, Objective, Status, Trial
from autotune.errors import BudgetSpent
from autotune.evaluation.compile_ahead import CompileAhead, Compiling, Known, Ready
from autotune.evaluation.compiler_pool import CompilerPool
from autotune.evaluation.device_process import arrays_after_run, read_and_remove
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.evaluation.journal import Journal
from autotune.evaluation.scoring import Scoring
from autotune.evaluation.work_item import Incumbent, MeasurementPolicy, Outcome, WorkItem
from autotune.evaluation.worker import DeviceWorker
from autotune.space.functions import function_name

MIN_TIMEOUT_S = 10.0
COMPILE_AHEAD = 4  # configurations per compiler process
NO_ENERGY = "the device has no energy counter; search for time instead"
BY_MACHINE = "the machine may be the cause: the next search tries again"
TIMEOUT_FACTOR = 20  # a trial may take this many times as long as the default's

RunKey = tuple[str, str]
OnTrial = Callable[[Trial], None]
_RUNNING = Stage("verifying and timing")
_CHOOSING = Stage("choosing what to try next")


@dataclass(frozen=True)
class Running:
    """A configuration that is verified and timed."""

    ready: Compiling
    instance: KernelInstance
    binary: Binary

    @property
    def key(self) -> RunKey:
        """Configurations with the same key run the same binary with the same launches and arguments."""
        return _run_key(self.instance, _short(self.binary))


class Evaluator:
    """The function that a searcher receives: `evaluate(configs) -> trials`."""

    def __init__(
        self,
        maker: InstanceMaker,
        pool: CompilerPool,
        worker: DeviceWorker,
        journal: Journal,
        budget: Budget,
        *,
        policy: MeasurementPolicy,
        timeout_s: float,
        on_trial: OnTrial,
        on_stage: OnStage = unobserved,
        scoring: Scoring | None = None,
    ) -> None:
        self._maker = maker
        self._worker = worker
        self._journal = journal
        self._budget = budget
        self._policy = policy
        self._timeout_s = timeout_s
        self._on_trial, self._on_stage = on_trial, on_stage
        self._scoring = scoring or Scoring(maker.space, Objective.TIME)
        # few under a time limit, which many would overrun
        count = pool.workers * (1 if budget.seconds is not None else COMPILE_AHEAD)
        self.compile_ahead = CompileAhead(maker, pool, journal, self._scoring, count, on_stage)
        self._binaries: dict[RunKey, Trial] = {}
        self._charged = 0
        self._started = self._lap_began = time.perf_counter()
        self._pending: Running | None = None  # what runs on the device
        self._resumed_s = 0.0
        self.trials: dict[Config, Trial] = {}
        self.best: Trial | None = None
        self._incumbent: Incumbent | None = None
        self._batch = journal.batch  # runs per sample
        self._finished: list[tuple[Trial, Trial | None]] = []  # not reported yet; its row, if it has none yet
        self.resumed = 0
        self.beside_budget = 0  # trials that cost no budget
        self.time_was_over = False  # before the configurations or the other limit were used up

    @property
    def devices(self) -> int:
        """How many devices measure at the same time."""
        return 1

    @property
    def spent_s(self) -> float:
        """Wall time of this search, including the time that its resumed trials took."""
        return time.perf_counter() - self._started + self._resumed_s

    def __call__(self, configs: Sequence[Config]) -> list[Trial]:
        """Return one trial per configuration, in order; raise BudgetSpent when the budget is used up."""
        fresh, pruned = self._new(configs)
        affordable = self._charge(fresh)
        self._evaluate(affordable, self._budget.seconds)
        if len(affordable) < len(fresh):
            raise BudgetSpent
        return [self.trials.get(config) or pruned[config] for config in configs]

    @property
    def may_begin_early(self) -> bool:
        """Whether compilers may work while the device times something: not if they share its cores."""
        return not self.compile_ahead.shares_cores

    def begin_early(self, configs: Sequence[Config]) -> None:
        """Begin to compile configurations that will be evaluated next, as far as the budget covers them."""
        begun, limit = self.compile_ahead.begun, self._budget.trials
        fresh = [config for config in self._new(configs)[0] if config not in begun]
        left = None if limit is None else max(0, limit - self._charged - len(begun))
        self.compile_ahead.begin_early(fresh[:left])

    def run_early(self) -> None:
        """Let the device run the first configuration that was begun early, if it is compiled.

        The next call waits for it. It costs budget now, and has to be the first that is asked for.
        """
        limit_s = self._budget.seconds
        if limit_s is not None and self.spent_s >= limit_s:
            return
        try:
            while self._pending is None and (ready := self.compile_ahead.take_compiled()) is not None:
                self._charged += 1
                self._submit(ready)
        finally:  # some may have ended without a run
            self._report()

    def _new(self, configs: Sequence[Config]) -> tuple[list[Config], dict[Config, Trial]]:
        """The valid configurations that have no trial and do not run, each once; trials of invalid ones."""
        fresh: dict[Config, None] = {}
        pruned: dict[Config, Trial] = {}
        running = None if self._pending is None else self._pending.instance.config
        for config in configs:
            if config in self.trials or config == running:
                continue
            reasons = self._maker.space.why_invalid(config)
            if reasons:
                pruned[config] = Trial(config, "", Status.PRUNED, "; ".join(reasons))
            else:
                fresh[config] = None
        return list(fresh), pruned

    def _charge(self, configs: Sequence[Config]) -> Sequence[Config]:
        """Charge the budget, and return those that it covers."""
        limit = self._budget.trials
        affordable = configs[: None if limit is None else max(0, limit - self._charged)]
        self._charged += len(affordable)
        return affordable

    def admit(self, config: Config, *, charged: bool) -> Trial:
        """Evaluate one valid configuration, even beyond the budget; it costs budget only if `charged`."""
        if config not in self.trials:
            self._charged += charged
            self.beside_budget += not charged
            self._evaluate([config], None)
        return self.trials[config]

    def recall(self, trials: Iterable[Trial]) -> None:
        """Take over trials of an earlier evaluator with the same journal, without looking them up again."""
        for trial in trials:
            self.trials[trial.config] = trial
            self._resumed_s += trial.cost_s / self.devices
            self._on_trial(trial)

    def _evaluate(self, configs: Sequence[Config], limit_s: float | None) -> None:
        """Run one at a time on the device while the next ones are compiled and the last ones journaled."""
        try:
            for ready in self.compile_ahead.in_order(configs):
                self._collect()
                if limit_s is not None and self.spent_s >= limit_s:
                    self.time_was_over = True
                    raise BudgetSpent
                self._submit(ready)
                if self.compile_ahead.shares_cores:
                    self._collect()
                self._report()
            self._collect()
        finally:
            self._report()
        self._on_stage(_CHOOSING)

    def _submit(self, ready: Ready) -> None:
        """Send one configuration to the device, unless its trial is known without a run."""
        if isinstance(ready, Known):
            self._record(ready.trial, ready)
            return
        instance, compiled = ready.instance, ready.compilation.result()
        if isinstance(compiled, Failure):
            self._record(self._trial(instance, None, Outcome(compiled), ""), ready)
            return
        earlier = self._binaries.get(_run_key(instance, _short(compiled)))
        if earlier is not None:
            detail = f"same binary and launches as {earlier.config}"
            outcome = Outcome(None, earlier.measurement)
            self._record(self._trial(instance, compiled, outcome, detail), ready)
            return
        item = instance.work_item(compiled, self._policy, self._incumbent, self._batch)
        self._run(Running(ready, instance, compiled), item)

    def _run(self, running: Running, item: WorkItem) -> None:
        """Begin to verify and time a configuration, or record why that is not possible."""
        failure = self._verified_here(running.instance, running.binary) or self._worker.begin_item(
            item, self._item_timeout_s
        )
        if failure is not None:
            self._land(running, Outcome(failure), self._lap_s())
            return
        self._on_stage(_RUNNING)
        self._pending = running

    @property
    def _item_timeout_s(self) -> float:
        return self._timeout_s + self._policy.energy_limit_s

    def _verified_here(self, instance: KernelInstance, binary: Binary) -> Failure | None:
        """The failure that the caller's function `verify` reports; None if it passes, or without one."""
        functions = self._maker.space.spec.functions
        verify = functions.verify
        if verify is None:
            return None
        unprepared = self._worker.prepare(*instance.checks, instance.problem)
        if unprepared is not None:
            return unprepared
        files = self._worker.run(
            arrays_after_run, binary, instance.problem, functions.verified, timeout_s=self._timeout_s
        )
        if isinstance(files, Failure):
            return files
        if verify(instance.config, {name: read_and_remove(path) for name, path in files.items()}):
            return None
        return Failure(Status.WRONG_RESULT, f"{function_name(verify)} says that the result is wrong")

    def _collect(self) -> None:
        """Wait for the configuration on the device, if any, and record its trial."""
        if self._pending is None:
            return
        running, self._pending = self._pending, None
        outcome = self._worker.finish_item()
        self._land(running, outcome, self._lap_s())

    def _land(self, running: Running, outcome: Outcome, cost_s: float, device: str = "") -> None:
        """Record the trial of a configuration that ran."""
        if self.best is None and outcome.failure is None:
            self._timeout_s = min(self._timeout_s, max(MIN_TIMEOUT_S, TIMEOUT_FACTOR * cost_s))
        trial = self._trial(running.instance, running.binary, outcome, "", cost_s)
        self._record(replace(trial, device=device), running.ready)

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
            objective=self._scoring.objective,
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

    def _record(self, trial: Trial, ready: Ready) -> None:
        is_journaled = isinstance(ready, Known) and ready.is_journaled
        row = None if is_journaled else trial  # the journal keeps its time, whatever the score is
        if row is None:
            self.resumed += 1
            self._resumed_s += trial.cost_s / self.devices
        if ready.instance is not None and trial.status is Status.OK:
            self._binaries.setdefault(_run_key(ready.instance, trial.binary_sha256), trial)
        trial = self._scoring.scored(trial)
        if trial.status is Status.OK and trial.score is None:
            trial = replace(trial, status=Status.MEASUREMENT_ERROR, detail=NO_ENERGY)
        self.trials[trial.config] = trial
        if trial.score is not None and (self.best is None or trial.score < (self.best.score or 0.0)):
            self.best, self._incumbent = trial, _incumbent(ready, trial)
        if trial.measurement is not None:
            self._batch = max(self._batch or 1, trial.measurement.batch)
        self._finished.append((trial, row))

    def _report(self) -> None:
        """Journal the trials that have finished and pass them on, while the device runs the next one."""
        finished, self._finished = self._finished, []
        if rows := [row for _, row in finished if row is not None]:
            self._journal.append(*rows)
        for trial, _ in finished:
            self._on_trial(trial)


def _short(binary: Binary) -> str:
    return binary.sha256[:16]


def _run_key(instance: KernelInstance, binary_sha256: str) -> RunKey:
    return binary_sha256, instance.runs


def _incumbent(ready: Ready, trial: Trial) -> Incumbent:
    assert ready.instance is not None and trial.measurement is not None
    compiled = ready.compilation.result() if isinstance(ready, Compiling) else None
    binary = compiled if isinstance(compiled, Binary) else None
    return Incumbent(trial.measurement, binary, ready.instance.problem)
