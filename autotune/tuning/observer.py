"""The interface that receives the events of a run."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from autotune.core import timeline

if TYPE_CHECKING:  # these load numpy, and progress should show from the start
    from autotune.core.stages import Stage
    from autotune.core.trials import Trial
    from autotune.evaluation.journal import Journal
    from autotune.tuning.task import TuningTask


class Observer:
    """Receives the events of a run; a subclass overrides the methods of the events that it needs."""

    def started(self, task: TuningTask, total: int | None, journal: Journal, note: str = "") -> None:
        """Called before the first trial.

        `total` is the number of trials to come, None if only the time is limited. `note` is for
        the user, such as what the search starts from.
        """

    def tried(self, trial: Trial) -> None:
        """Called after each trial."""

    def stage(self, stage: Stage) -> None:
        """Called when the run begins a new stage, or makes progress in the current one."""

    def warn(self, text: str) -> None:
        """Called with a reason to doubt the result."""

    def last_round(self, count: int) -> None:
        """Called before `count` finalists are verified again and timed in turns."""

    def over(self) -> None:
        """Called after the last trial, before the command does anything else."""


class Relay(Observer):
    """Passes the events of a run on to another observer."""

    def __init__(self, observer: Observer) -> None:
        self._observer = observer

    def started(self, task: TuningTask, total: int | None, journal: Journal, note: str = "") -> None:
        """Pass it on."""
        self._observer.started(task, total, journal, note)

    def tried(self, trial: Trial) -> None:
        """Pass it on."""
        self._observer.tried(trial)

    def stage(self, stage: Stage) -> None:
        """Pass it on."""
        self._observer.stage(stage)

    def warn(self, text: str) -> None:
        """Pass it on."""
        self._observer.warn(text)

    def last_round(self, count: int) -> None:
        """Pass it on."""
        self._observer.last_round(count)

    def over(self) -> None:
        """Pass it on."""
        self._observer.over()


class StageTimes(Relay):
    """Passes the events of a search on; `seconds` has the time of every stage that has ended, in order."""

    def __init__(self, observer: Observer) -> None:
        """Begin the first stage."""
        super().__init__(observer)
        self._name, self._began_s = "starting the search", time.perf_counter()
        self.seconds: dict[str, float] = {}

    def turn_to(self, name: str) -> None:
        """End the present stage, and begin another one."""
        if name != self._name:
            began_s, self._began_s = self._began_s, time.perf_counter()
            timeline.add(self._name, began_s, self._began_s, track=timeline.STAGES)
            self.seconds[self._name] = self.seconds.get(self._name, 0.0) + self._began_s - began_s
            self._name = name

    def stage(self, stage: Stage) -> None:
        """Pass it on, and turn to its stage."""
        self.turn_to(stage.name)
        super().stage(stage)
