"""The trials of one search: their cost, the best one, and which of them are in the journal."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import replace

from autotune.core.records import Config
from autotune.core.trials import Binary, Budget, Failure, Status, Trial
from autotune.evaluation.instance import KernelInstance
from autotune.evaluation.journal import Journal
from autotune.evaluation.scoring import Scoring
from autotune.evaluation.work_item import Incumbent

NO_ENERGY = "the device has no energy counter; search for time instead"

RunKey = tuple[str, str]
OnTrial = Callable[[Trial], object]


class Ledger:
    """Keeps the trials of a search and spends its budget."""

    def __init__(self, journal: Journal, budget: Budget, scoring: Scoring, on_trial: OnTrial) -> None:
        """Begin without trials; `on_trial` will be called with each."""
        self.budget, self.journal, self.scoring = budget, journal, scoring
        self._on_trial = on_trial
        self._charged = 0
        self._started_s, self._resumed_s = time.perf_counter(), 0.0
        # a trial for each binary with its launches and arguments
        self.trials_by_run: dict[RunKey, Trial] = {}
        self._unreported: list[tuple[Trial, Trial | None]] = []  # each with its row, if it needs one
        self.trials: dict[Config, Trial] = {}
        self.best: Trial | None = None
        self.incumbent: Incumbent | None = None
        self.batch = journal.batch  # runs per sample
        self.resumed = 0

    @property
    def is_time_over(self) -> bool:
        """True if the wall time of the budget is used up; whatever it is, it covers the first trial."""
        limit_s = self.budget.seconds
        return limit_s is not None and bool(self.trials) and self.spent_s >= limit_s

    @property
    def is_spent(self) -> bool:
        """True if the budget covers no further trial, whatever the time."""
        return self.budget.trials is not None and self._charged >= self.budget.trials

    @property
    def spent_s(self) -> float:
        """Wall time of this search, including the time that its resumed trials took."""
        return time.perf_counter() - self._started_s + self._resumed_s

    def try_charge(self) -> bool:
        """Charge the budget with one trial if it covers one more; True if it does."""
        is_covered = not self.is_spent
        self._charged += is_covered
        return is_covered

    def journaled_trial(self, instance: KernelInstance) -> Trial | None:
        """The journal's trial of a configuration, if it has all measurements for its score.

        A failure that the machine may have caused does not count.
        """
        trial = self.journal.trials.get(instance.key)
        if trial is None or not self._is_answer(trial):
            return None
        return replace(trial, config=instance.config, objective=self.scoring.objective)

    def _is_answer(self, trial: Trial) -> bool:
        if trial.failure is not None:
            return not trial.by_machine
        measured = trial.measurement
        return measured is not None and not (self.scoring.needs_energy and measured.energy_j is None)

    def recall(self, trials: Iterable[Trial]) -> None:
        """Take over trials of an earlier ledger with the same journal, without looking them up again."""
        for trial in trials:
            self.put(trial)
            self._resumed_s += trial.cost_s
            self._on_trial(trial)

    def add(
        self,
        trial: Trial,
        instance: KernelInstance | None,
        binary: Binary | None = None,
        *,
        is_journaled: bool = False,
        devices: int = 1,
    ) -> None:
        """Add a trial without its score; `report` journals it unless it `is_journaled`, and nothing ran.

        `devices` measured at the same time.
        """
        scored = self._scored(trial)
        self.put(scored)
        if is_journaled:
            self.resumed += 1
            self._resumed_s += trial.cost_s / devices
        self._unreported.append((scored, None if is_journaled else trial))  # the journal keeps no score
        if scored.measurement is not None:
            self.batch = max(self.batch or 1, scored.measurement.batch)
        if instance is not None and trial.failure is None:
            self.trials_by_run.setdefault((trial.binary_sha256, instance.workloads_key), trial)
            self._let_lead(scored, instance, binary)

    def _scored(self, trial: Trial) -> Trial:
        """A trial with its score, or the reason why it has none."""
        scored = self.scoring.scored(trial)
        if scored.failure is None and scored.score is None:
            return replace(scored, failure=Failure(Status.MEASUREMENT_ERROR, NO_ENERGY))
        return scored

    def _let_lead(self, trial: Trial, instance: KernelInstance, binary: Binary | None) -> None:
        """Make a trial the best one and the incumbent if no earlier one is as good."""
        if trial.score is not None and (self.best is None or trial.score < (self.best.score or 0.0)):
            assert trial.measurement is not None
            self.best = trial
            self.incumbent = Incumbent(trial.measurement, binary, instance.workload)

    def put(self, trial: Trial) -> None:
        """Add a trial, or replace the trial of its configuration."""
        self.trials[trial.config] = trial

    def report(self) -> None:
        """Journal the trials since the last report, and pass them on."""
        trials, self._unreported = self._unreported, []
        if rows := [row for _, row in trials if row is not None]:
            self.journal.append(*rows)
        for trial, _ in trials:
            self._on_trial(trial)
