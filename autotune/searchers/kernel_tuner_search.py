"""Kernel Tuner's strategies as searchers: they only propose configurations.

The one module that uses the library's internals (version 1.5): its runner class, options, table of strategies
and search space. The search space is built here, because the library's parser of constraints is not exact.
"""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from kernel_tuner import util
from kernel_tuner.interface import Options, strategy_map
from kernel_tuner.runners.runner import Runner
from kernel_tuner.searchspace import Searchspace

from autotune.core.records import Value
from autotune.core.trials import Status, Trial
from autotune.searchers.base import TrialStream, evaluate
from autotune.searchers.whole_space import RandomSearch
from autotune.space import ValidSpace

Point = tuple[Value, ...]

MIN_SPACE = 64  # several strategies crash or never return on smaller ones, which are tried exhaustively
MAX_STALL = 500  # requests in a row without a new configuration that end a run: some would never end
MAX_TOTAL_STALL = 3 * MAX_STALL  # the same, over several runs, that end the search
DEFECTS = {
    "pyatf_strategies": "breaks down before its first proposal with pyatf 0.0.13",
    "bayes_opt": "records a failed configuration as a time of 1.8e308 ms, which ruins its model",
    **dict.fromkeys(
        ("greedy_ils", "greedy_mls", "mls", "ordered_greedy_mls"),
        "handles neighbours wrongly and is no better than random search",
    ),
}
# Errors that a defect in a strategy raises.
BREAKDOWNS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


class KernelTunerSearch:
    """Runs a strategy repeatedly with other seeds until it proposes nothing new."""

    def __init__(self, strategy: str) -> None:
        self._strategy = strategy

    def search(self, space: ValidSpace, stream: TrialStream, *, seed: int) -> None:
        """Propose until the space was tried, or 1500 requests in a row had no new configuration.

        NoMoreTrials passes through. Warn of strategies that are broken in the pinned version.
        """
        if len(space) < MIN_SPACE:
            RandomSearch().search(space, stream, seed=seed)
            return
        if self._strategy in DEFECTS:
            warnings.warn(f"Kernel Tuner's {self._strategy} {DEFECTS[self._strategy]}", stacklevel=2)
        runner = _EvaluateRunner(space, stream)
        with _seeded_globals(seed):
            while runner.evaluated < len(space) and runner.idle_requests < MAX_TOTAL_STALL:
                runner.requests = 0
                self._run_once(runner, seed)
                if not runner.requests:  # it broke down before its first proposal
                    return
                seed += 1

    def _run_once(self, runner: _EvaluateRunner, seed: int) -> None:
        strategy, options = strategy_map[self._strategy], _options(self._strategy, runner, seed)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.filterwarnings("ignore", module="kernel_tuner|scipy|sklearn|pymoo|skopt")
                strategy.tune(runner.searchspace(), runner, options)
        except util.StopCriterionReached:
            pass
        except BREAKDOWNS as error:
            if runner.error is None:
                reason = f"broke down and is restarted ({type(error).__name__}: {error})"
                warnings.warn(f"Kernel Tuner's {self._strategy} {reason}", stacklevel=3)
        if runner.error is not None:
            raise runner.error


class _EvaluateRunner(Runner):  # type: ignore[misc]
    """Answers a strategy's requests; each configuration is evaluated once."""

    max_threads = 1024  # read by bayes_opt, without effect: the space is built here

    def __init__(self, space: ValidSpace, stream: TrialStream) -> None:
        super().__init__()
        self.dev = self
        self.requests = 0  # of this run of the strategy
        self.idle_requests = 0  # of all runs, since the last new configuration
        self.size = len(space)
        self.error: Exception | None = None  # the evaluator's, such as NoMoreTrials: strategies catch some
        self.tune_params = {parameter.name: list(parameter.values) for parameter in space.parameters}
        columns = zip(self.tune_params.values(), space.rows.T.tolist(), strict=True)
        points = zip(*([values[position] for position in column] for values, column in columns), strict=True)
        self._rows: dict[Point, int] = {point: row for row, point in enumerate(points)}
        self._outcomes: dict[Point, dict[str, Any]] = {}
        self._space = space
        self._stream = stream

    @property
    def evaluated(self) -> int:
        """Number of configurations that were evaluated."""
        return len(self._outcomes)

    def searchspace(self) -> Any:
        """A search space for one run of a strategy: it has state, which must not leak into the next run."""
        cache = {row: dict(zip(self.tune_params, point, strict=True)) for point, row in self._rows.items()}
        return Searchspace(None, None, None, from_cache={"tune_params": self.tune_params, "cache": cache})

    def get_device_info(self) -> Any:
        """The device of the runner interface."""
        return self.dev

    def get_environment(self, tuning_options: Any) -> dict[str, Any]:
        """Empty: the evaluator records the environment."""
        return {}

    def run(self, parameter_space: Iterable[Any], tuning_options: Any) -> list[dict[str, Any]]:
        """One result per request, in order; raises StopCriterionReached to end the run."""
        points = [tuple(point) for point in parameter_space]
        new = [p for p in points if p in self._rows and p not in self._outcomes]
        self.requests += len(points)
        self.idle_requests = 0 if new else self.idle_requests + len(points)
        stalled = min(self.requests, self.idle_requests) >= MAX_STALL
        if self.error is not None or self.evaluated == self.size or stalled:
            raise util.StopCriterionReached("nothing new, or the evaluator has ended the search")
        try:
            trials = evaluate(self._stream, [self._space.config(self._rows[point]) for point in new])
        except Exception as error:
            self.error = error
            raise util.StopCriterionReached("the evaluator ends the search") from error
        self._outcomes.update(zip(new, map(_outcome, trials), strict=True))
        unknown = {"__error__": util.InvalidConfig()}
        return [dict(zip(self.tune_params, p, strict=True)) | self._outcomes.get(p, unknown) for p in points]


def _options(strategy: str, runner: _EvaluateRunner, seed: int) -> Any:
    """The options of a tuning run that strategies read; the evaluator keeps the budget."""
    own = Options() if strategy == "brute_force" else Options(max_fevals=runner.size)
    if strategy in ("firefly_algorithm", "pso"):  # ignore their own default
        own["constraint_aware"] = True
    if strategy == "diff_evo":  # its 16 points per parameter are too many for small spaces
        own["popsize"] = max(1, min(16, runner.size // (2 * len(runner.tune_params))))
    return Options(
        tune_params=runner.tune_params,
        strategy=strategy,
        strategy_options=own,
        objective=["time"],
        objective_higher_is_better=[False],
        verbose=False,
        seed=seed,
        cache={},
        simulation_mode=False,
        budget=util.TuningBudget(None, runner.size),
        max_fevals=runner.size,
    )


def _outcome(trial: Trial) -> dict[str, Any]:
    if trial.score is not None:
        return {"time": float(trial.score)}
    compiling = trial.status in (Status.COMPILE_ERROR, Status.COMPILE_TIMEOUT)
    return {"__error__": util.CompilationFailedConfig() if compiling else util.RuntimeFailedConfig()}


@contextmanager
def _seeded_globals(seed: int) -> Iterator[None]:
    """Seed the global generators, which most strategies use, and restore them afterwards."""
    before, before_numpy = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(before_numpy)
