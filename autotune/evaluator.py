"""From configurations to trials: dedupe, compile ahead, verify and time, journal, budget.

This is the only place where a search spends anything. A searcher hands in configurations and gets trials.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass

from autotune.bench import run_job
from autotune.candidates import Candidate, CandidateMaker
from autotune.compiling import Compilation, CompilerPool
from autotune.errors import BudgetSpent, ExpressionError
from autotune.jobs import Outcome, Protocol
from autotune.journal import Journal
from autotune.model import Config, Launch
from autotune.trials import Binary, Budget, Failure, Status, Trial
from autotune.worker import Worker

SHORTEST_TIMEOUT_S = 10.0
COMPILE_AHEAD = 4  # configurations per compiler process
TIMEOUT_FACTOR = 20  # a trial may take this many times as long as the default's

OnTrial = Callable[[Trial], None]


@dataclass(frozen=True)
class _Ready:
    """A candidate whose compilation is under way, or a trial that needs none; known: from the journal."""

    candidate: Candidate | None
    compilation: Future[Compilation] | None
    trial: Trial | None
    is_known: bool


class Evaluator:
    """Callable that a searcher is handed: `evaluate(configs) -> trials`."""

    def __init__(
        self,
        maker: CandidateMaker,
        pool: CompilerPool,
        worker: Worker,
        journal: Journal,
        budget: Budget,
        *,
        protocol: Protocol,
        timeout_s: float,
        on_trial: OnTrial,
    ) -> None:
        self._maker = maker
        self._pool = pool
        self._worker = worker
        self._journal = journal
        self._budget = budget
        self._protocol = protocol
        self._timeout_s = timeout_s
        self._on_trial = on_trial
        self._binaries: dict[tuple[str, tuple[Launch, ...]], Trial] = {}
        self._started = time.perf_counter()
        self._resumed_s = 0.0
        self.trials: dict[Config, Trial] = {}
        self.best: Trial | None = None
        self.resumed = 0

    @property
    def spent_s(self) -> float:
        """Wall time of this search, with what its resumed trials took when they were run."""
        return time.perf_counter() - self._started + self._resumed_s

    def __call__(self, configs: Sequence[Config]) -> list[Trial]:
        """One trial per configuration, in order; raises BudgetSpent once nothing more may be spent."""
        answers: dict[Config, Trial] = {}
        fresh: list[Config] = []
        for config in configs:
            if config in self.trials or config in answers:
                continue
            reasons = self._maker.space.why_invalid(config)
            if reasons:
                answers[config] = Trial(config, "", Status.PRUNED, "; ".join(reasons))
            elif config not in fresh:
                fresh.append(config)
        affordable = fresh[: self._trials_left()]
        if fresh and not affordable:
            raise BudgetSpent
        self._evaluate(affordable)
        if len(affordable) < len(fresh):
            raise BudgetSpent
        return [self.trials.get(config) or answers[config] for config in configs]

    def _evaluate(self, configs: Sequence[Config]) -> None:
        began = time.perf_counter()
        for ready in self._compiled_ahead(configs):
            if self._budget.seconds is not None and self.spent_s >= self._budget.seconds:
                raise BudgetSpent
            self._record(ready.trial or self._run(ready, began), resumed=ready.is_known)
            began = time.perf_counter()

    def _record(self, trial: Trial, *, resumed: bool) -> None:
        if resumed:
            self.resumed += 1
            self._resumed_s += trial.cost_s
        elif trial.key:  # one without launches has no key, and costs nothing to find out again
            self._journal.append(trial)
        self.trials[trial.config] = trial
        if trial.time_ms is not None and (self.best is None or trial.time_ms < (self.best.time_ms or 0.0)):
            self.best = trial
        self._on_trial(trial)

    def _compiled_ahead(self, configs: Sequence[Config]) -> Iterator[_Ready]:
        """Keep the compilers a few configurations ahead of the device.

        On a CPU the compilers would disturb the timing, so there a window is compiled before it is timed.
        """
        shares_cores = self._maker.space.device.kind == "cpu"
        pending: deque[_Ready] = deque()
        for config in configs:
            pending.append(self._begin(config))
            if len(pending) < COMPILE_AHEAD * self._pool.workers:
                continue
            yield from _drain(pending) if shares_cores else (pending.popleft(),)
        yield from _drain(pending)

    def _begin(self, config: Config) -> _Ready:
        try:
            candidate = self._maker.make(config)
        except ExpressionError as error:
            return _Ready(None, None, Trial(config, "", Status.LAUNCH_ERROR, str(error)), is_known=False)
        known = self._journal.trials.get(candidate.key)
        if known is not None:
            return _Ready(candidate, None, known, is_known=True)
        compilation = self._pool.submit(candidate.source, candidate.options)
        return _Ready(candidate, compilation, None, is_known=False)

    def _run(self, ready: _Ready, began: float) -> Trial:
        assert ready.candidate is not None and ready.compilation is not None
        candidate, compiled = ready.candidate, ready.compilation.result()
        if isinstance(compiled, Failure):
            cost_s = time.perf_counter() - began
            return Trial(candidate.config, candidate.key, compiled.status, compiled.detail, cost_s=cost_s)
        same = (compiled.sha256, candidate.case.launches)
        twin = self._binaries.get(same)
        if twin is not None:
            outcome = Outcome(None, twin.measurement)
            detail = f"same binary and launches as {twin.config}"
        else:
            outcome, detail = self._on_device(candidate, compiled), ""
        trial = _trial(candidate, compiled, outcome, detail, time.perf_counter() - began)
        if trial.status is Status.OK:
            self._binaries.setdefault(same, trial)
        return trial

    def _on_device(self, candidate: Candidate, binary: Binary) -> Outcome:
        best = self.best
        job = candidate.job(binary, self._protocol, best.time_ms if best else None)
        began = time.perf_counter()
        answer: Outcome | Failure = self._worker.run(run_job, job, timeout_s=self._timeout_s)
        if isinstance(answer, Failure):
            return Outcome(answer)
        if best is None and answer.failure is None:
            elapsed_s = time.perf_counter() - began
            self._timeout_s = min(self._timeout_s, max(SHORTEST_TIMEOUT_S, TIMEOUT_FACTOR * elapsed_s))
        return answer

    def _trials_left(self) -> int | None:
        return None if self._budget.trials is None else max(0, self._budget.trials - len(self.trials))


def _trial(candidate: Candidate, binary: Binary, outcome: Outcome, detail: str, cost_s: float) -> Trial:
    failure = outcome.failure
    return Trial(
        config=candidate.config,
        key=candidate.key,
        status=failure.status if failure else Status.OK,
        detail=failure.detail if failure else detail,
        measurement=None if failure else outcome.measurement,
        compile_ms=binary.compile_ms,
        cost_s=cost_s,
        binary_sha256=binary.sha256[:16],
        registers=binary.registers,
        spill_bytes=binary.spill_bytes,
        shared_bytes=binary.shared_bytes,
    )


def _drain(pending: deque[_Ready]) -> Iterator[_Ready]:
    """Wait for every compilation, then hand out all that is pending."""
    wait([ready.compilation for ready in pending if ready.compilation is not None])
    while pending:
        yield pending.popleft()
