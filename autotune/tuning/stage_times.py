"""An observer that adds up the time of each stage of a search, for its timeline and its journal."""

from __future__ import annotations

import time

from autotune.core import timeline
from autotune.core.stages import Stage
from autotune.tuning.observer import Observer, Relay

_FIRST = "starting the search"


class StageTimes(Relay):
    """Passes the events of a search on; `seconds` has the time of every stage that has ended, in order."""

    def __init__(self, observer: Observer) -> None:
        """Begin the first stage."""
        super().__init__(observer)
        self._name, self._began_s = _FIRST, time.perf_counter()
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
