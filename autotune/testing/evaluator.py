"""An evaluator for tests of searchers: no kernel, no device, but the contract of the real one."""

from collections import deque
from collections.abc import Callable, Sequence

from autotune.core.records import Config
from autotune.core.trials import Failure, Measurement, Rule, Status, Trial
from autotune.errors import NoMoreTrials
from autotune.space import ValidSpace


class InProcessEvaluator:
    """Answers from a formula; as in a real search, repeats and invalid configurations cost nothing."""

    parallel = 1

    def __init__(
        self, space: ValidSpace, outcome: Callable[[Config], float | Status], budget: int | None = None
    ) -> None:
        self.space = space
        self.outcome = outcome
        self.budget = budget
        self.trials: dict[Config, Trial] = {}
        self.asked: list[Config] = []
        self.refusals = 0  # how often NoMoreTrials was raised
        self._ended: deque[Trial] = deque()

    def submit(self, configs: Sequence[Config]) -> None:
        """Evaluate configurations, as far as the budget covers them."""
        self.asked += configs
        for config in configs:
            if config not in self.space:
                self._ended.append(Trial(config, "", Failure(Status.INVALID, "")))
                continue
            if config not in self.trials:
                if self.budget is not None and len(self.trials) >= self.budget:
                    continue
                self.trials[config] = _trial(config, self.outcome(config))
            self._ended.append(self.trials[config])

    def collect(self) -> list[Trial]:
        """The next trial; raises NoMoreTrials after the last one."""
        if not self._ended:
            self.refusals += 1
            raise NoMoreTrials
        return [self._ended.popleft()]

    @property
    def tried(self) -> list[Config]:
        """The configurations that used the budget, in order."""
        return list(self.trials)


def _trial(config: Config, outcome: float | Status) -> Trial:
    if isinstance(outcome, Status):
        return Trial(config, config.key, Failure(outcome, "as planned"))
    return Trial(config, config.key, measurement=Measurement((outcome,), Rule.STEADY))
