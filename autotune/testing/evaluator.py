"""An evaluator for tests of searchers: no kernel, no device, but the contract of the real one."""

from collections.abc import Callable, Sequence

from autotune.core.records import Config
from autotune.core.trials import Measurement, Rule, Status, Trial
from autotune.errors import BudgetSpent
from autotune.space import Space


class InProcessEvaluator:
    """Answers from a formula; as in a real search, repeats and invalid configurations cost nothing."""

    def __init__(
        self, space: Space, outcome: Callable[[Config], float | Status], budget: int | None = None
    ) -> None:
        self.space = space
        self.outcome = outcome
        self.budget = budget
        self.trials: dict[Config, Trial] = {}
        self.asked: list[Config] = []
        self.refusals = 0  # how often BudgetSpent was raised

    def __call__(self, configs: Sequence[Config]) -> list[Trial]:
        self.asked += configs
        for config in configs:
            if config in self.trials or config not in self.space:
                continue
            if self.budget is not None and len(self.trials) >= self.budget:
                self.refusals += 1
                raise BudgetSpent
            self.trials[config] = _trial(config, self.outcome(config))
        return [self.trials.get(config) or Trial(config, "", Status.PRUNED) for config in configs]

    @property
    def tried(self) -> list[Config]:
        """The configurations that used the budget, in order."""
        return list(self.trials)


def _trial(config: Config, outcome: float | Status) -> Trial:
    if isinstance(outcome, Status):
        return Trial(config, config.key, outcome, "as planned")
    return Trial(config, config.key, Status.OK, measurement=Measurement((outcome,), Rule.STEADY))
