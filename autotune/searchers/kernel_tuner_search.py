"""Kernel Tuner's strategies, run over the evaluator: they propose, and do nothing else.

The one module that touches the library's inner seam (1.5): a runner of our own, its options, its table of
strategies, and its search space, handed over ready-made because its own parser of constraints is not exact.
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
from autotune.errors import BudgetSpent
from autotune.searchers.base import Evaluate
from autotune.searchers.exhaustive import evaluate_rows
from autotune.space import Space

Point = tuple[Value, ...]

MIN_SPACE = 64  # below it several strategies crash or never return; it is tried whole instead
MAX_STALL = 500  # requests in a row with nothing new that end a run: some would never end
LAST_STALL = 3 * MAX_STALL  # the same, over as many runs as it takes, for the search
DEFECTS = {
    "pyatf_strategies": "breaks down before its first proposal with pyatf 0.0.13",
    "bayes_opt": "takes every failed configuration for a time of 1.8e308 ms, which ruins its model",
    **dict.fromkeys(
        ("greedy_ils", "greedy_mls", "mls", "ordered_greedy_mls"),
        "loses its way between neighbours and is no better than random search",
    ),
}
# How a defect in a strategy shows; an error of the evaluator's own is told apart and passes through.
BREAKDOWNS = (ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)


class KernelTunerSearch:
    """Runs a strategy, and again from another start when it ends early, until nothing new comes of it."""

    def __init__(self, strategy: str) -> None:
        self._strategy = strategy

    def search(self, space: Space, evaluate: Evaluate, *, seed: int) -> None:
        """Propose until the space has been seen, or 1500 requests in a row brought nothing new.

        BudgetSpent passes through. Warns of strategies that are broken in the pinned version.
        """
        if len(space) < MIN_SPACE:
            evaluate_rows(space, np.random.default_rng(seed).permutation(len(space)), evaluate)
            return
        if self._strategy in DEFECTS:
            warnings.warn(f"Kernel Tuner's {self._strategy} {DEFECTS[self._strategy]}", stacklevel=2)
        runner = _EvaluateRunner(space, evaluate)
        with _seeded_globals(seed):
            while runner.seen < len(space) and runner.requests - runner.last_new < LAST_STALL:
                runner.began = runner.requests
                self._run_once(runner, seed)
                if runner.spent is not None:
                    raise runner.spent
                if runner.requests == runner.began:  # it broke down before it asked for anything
                    return
                seed += 1

    def _run_once(self, runner: _EvaluateRunner, seed: int) -> None:
        strategy, options = strategy_map[self._strategy], _options(self._strategy, runner, seed)
        try:
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.filterwarnings("ignore", module="kernel_tuner|scipy|sklearn|pymoo|skopt")
                strategy.tune(runner.searchspace(), runner, options)
        except util.StopCriterionReached:
            return
        except BREAKDOWNS as error:
            if runner.evaluating:
                raise
            reason = f"broke down and starts again ({type(error).__name__}: {error})"
            warnings.warn(f"Kernel Tuner's {self._strategy} {reason}", stacklevel=3)


class _EvaluateRunner(Runner):  # type: ignore[misc]
    """Answers a strategy's requests from `evaluate`; each configuration is handed on once."""

    max_threads = 1024  # read by bayes_opt, to no effect: the space is built here

    def __init__(self, space: Space, evaluate: Evaluate) -> None:
        super().__init__()
        self.dev = self
        self.requests = self.last_new = self.began = 0  # in all; up to the last new one; before this run
        self.size = len(space)
        self.evaluating = False
        self.spent: BudgetSpent | None = None
        self.tune_params = {parameter.name: list(parameter.values) for parameter in space.parameters}
        columns = zip(self.tune_params.values(), space.rows.T.tolist(), strict=True)
        points = zip(*([values[position] for position in column] for values, column in columns), strict=True)
        self._rows: dict[Point, int] = {point: row for row, point in enumerate(points)}
        self._outcomes: dict[Point, dict[str, Any]] = {}
        self._space = space
        self._evaluate = evaluate

    @property
    def seen(self) -> int:
        """How many configurations have been evaluated."""
        return len(self._outcomes)

    def searchspace(self) -> Any:
        """The space for one run of a strategy: it keeps state, which must not leak into the next run."""
        cache = {row: dict(zip(self.tune_params, point, strict=True)) for point, row in self._rows.items()}
        return Searchspace(None, None, None, from_cache={"tune_params": self.tune_params, "cache": cache})

    def get_device_info(self) -> Any:
        """What strategies may ask of a device."""
        return self.dev

    def get_environment(self, tuning_options: Any) -> dict[str, Any]:
        """Nothing: results are kept by the evaluator."""
        return {}

    def run(self, parameter_space: Iterable[Any], tuning_options: Any) -> list[dict[str, Any]]:
        """One result per request, in order; raises StopCriterionReached when there is no going on."""
        points = [tuple(point) for point in parameter_space]
        new = [p for p in points if p in self._rows and p not in self._outcomes]
        self.requests += len(points)
        if new:
            self.last_new = self.requests
        stalled = self.requests - max(self.last_new, self.began) >= MAX_STALL
        if self.spent is not None or self.seen == self.size or stalled:
            raise util.StopCriterionReached("nothing new, or nothing left to spend")
        try:
            self._try(new)
        except BudgetSpent as error:
            self.spent = error
            raise util.StopCriterionReached("the budget is spent") from error
        unknown = {"__error__": util.InvalidConfig()}
        return [dict(zip(self.tune_params, p, strict=True)) | self._outcomes.get(p, unknown) for p in points]

    def _try(self, points: list[Point]) -> None:
        self.evaluating = True
        trials = self._evaluate([self._space.config(self._rows[point]) for point in points])
        self.evaluating = False
        self._outcomes.update(zip(points, map(_outcome, trials), strict=True))


def _options(strategy: str, runner: _EvaluateRunner, seed: int) -> Any:
    """What strategies read of the options of a tuning run; the budget is the evaluator's, not theirs."""
    own = Options() if strategy == "brute_force" else Options(max_fevals=runner.size)
    if strategy in ("firefly_algorithm", "pso"):  # their own default is not honoured
        own["constraint_aware"] = True
    if strategy == "diff_evo":  # takes 16 points per parameter, and breaks where there are not so many
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
    """Seed the two global generators, the only ones most strategies draw from, and put them back after."""
    before, before_numpy = random.getstate(), np.random.get_state()
    random.seed(seed)
    np.random.seed(seed % 2**32)
    try:
        yield
    finally:
        random.setstate(before)
        np.random.set_state(before_numpy)
