"""What is left to find once a search has ended."""

from __future__ import annotations

from collections.abc import Mapping

from autotune.core import timeline
from autotune.core.records import Config
from autotune.core.trials import Objective, Trial
from autotune.searchers.base import StoppingEstimate
from autotune.tuning.context import TuningContext
from autotune.tuning.finalists import FinalistChoice


def estimate_untried(
    context: TuningContext, trials: Mapping[Config, Trial], choice: FinalistChoice, winner: Trial
) -> StoppingEstimate:
    """Estimate the gain of untried configurations; no estimated time beats the memory bandwidth.

    It takes seconds, and is left out if finalists were named: trials at other sizes tell more.
    """
    tried = context.ledger.trials | {winner.config: winner}  # the winner may come from an earlier search
    valid = len(context.task.space)
    if len(tried) == valid:
        return StoppingEstimate(valid, valid, 0.0, 0.0)
    if choice.named:
        return StoppingEstimate(len(tried), valid, None, None)
    floor_ms = context.maker.make(winner.config).floor_ms if context.objective is Objective.TIME else 0.0
    with timeline.span("import the model"):
        from autotune.searchers.surrogate import stopping_estimate  # takes long to import

    with timeline.span("estimate what is left to find"):
        return stopping_estimate(context.task.space, [trials[config] for config in tried], floor_ms)
