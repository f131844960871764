"""The candidates of a sweep: the best configurations of its sizes, measured at others and checked."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.core.records import Config
from autotune.core.text import size_text
from autotune.core.trials import Budget, Failure, Trial
from autotune.evaluation.buffers import device_bytes
from autotune.processes.machine_load import cpu_times
from autotune.serving.interpolation import Row
from autotune.tuning.conclusion import conclude
from autotune.tuning.context import POLICY, TuningContext, open_context
from autotune.tuning.finalists import finalists
from autotune.tuning.fresh_inputs import FRESH_SEEDS
from autotune.tuning.last_round import Searched, mark_failed
from autotune.tuning.limits import strict, unlimited
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.result import Result
from autotune.tuning.shared_processes import Processes
from autotune.tuning.stored_checks import StoredChecks
from autotune.tuning.task import TuningTask
from autotune.tuning.variants import cover, neighbours

FAR_SLOWER = 1.3  # times the best of a size: what is slower there is not tried at its neighbours
# Arrays of a problem in device memory from which it takes long to draw inputs. The last round then has one
# fresh set of inputs: a further one says little beside so many elements.
LARGE_BYTES = 2**29
LABEL = "sweep"  # what the cache names as the engine


@dataclass(eq=False)
class SweepProblem:
    """One problem of a sweep, and its trials: of its search, and of all that was tried at it so far."""

    task: TuningTask
    searched: tuple[Trial, ...] = ()
    tried: tuple[Trial, ...] = ()  # also as candidates
    resumed: int = 0  # of its search

    @property
    def label(self) -> str:
        """Its sizes and element type, for progress."""
        problem = self.task.space.problem
        return f"{size_text(problem.sizes)}, {problem.dtype}"


class Candidates:
    """The best configurations of one element type, and how they are measured at its sizes."""

    def __init__(
        self,
        problems: Sequence[SweepProblem],
        options: Options,
        observer: Observer,
        processes: Processes,
        root: Path,
    ) -> None:
        self.problems = problems  # those of the element type
        self.configs: list[Config] = []
        self._seed, self._limit_s = options.seed, options.budget.seconds
        self._options = replace(options, budget=Budget(), fresh=False)
        self._observer, self._processes, self._root = observer, processes, root
        self._checks = StoredChecks()
        self._failures: dict[Config, Failure] = {}  # found by these checks

    def choose(self, limit: int, each: int) -> None:
        """Choose, by all trials, those that together lose least at all sizes, and the best of each size.

        Args:
            limit: The most that together lose least.
            each: How many of the best of each size.
        """
        best = (trial.config for problem in self.problems for trial in finalists(problem.tried, each))
        self.configs = list(dict.fromkeys([*cover([_row(one) for one in self.problems], limit), *best]))

    def check(self, checks_s: float) -> None:
        """Keep those that pass the checks before storing, which may take `checks_s`.

        Each is checked once: at the first size at which it is valid.
        """
        until_s = time.perf_counter() + checks_s
        left = self.configs
        for problem in self.problems:
            here = [config for config in left if config in problem.task.space]
            if here:
                with self._context(problem.task) as context:
                    self._failures |= self._checks.check(context, here, until_s)
                left = [config for config in left if config not in here]
        self.configs = [config for config in self.configs if config in self._checks.passed]

    def spread(self) -> None:
        """Verify and time each from size to size, for as long as it is nearly as fast as the best there.

        First from larger sizes to smaller ones: the device still has the arrays of the largest.
        """
        pairs = neighbours([one.task.space.problem.sizes for one in self.problems])
        upwards = range(len(self.problems))
        for place in [*reversed(upwards), *upwards]:
            near = [sum(pair) - place for pair in pairs if place in pair]
            rows = [_row(self.problems[other]) for other in near]
            fast = {
                config for row in rows for config, time in row.relative_times.items() if time <= FAR_SLOWER
            }
            self._try(self.problems[place], [config for config in self.configs if config in fast])

    def _try(self, problem: SweepProblem, configs: Sequence[Config]) -> None:
        """Verify and time what has not been tried at a size."""
        tried = [trial.config for trial in problem.tried]
        new = [config for config in configs if config in problem.task.space and config not in tried]
        if new:
            with self._context(problem.task) as context:
                note = f"sweep: the best of nearby sizes at {problem.label}"
                known = len(tried) + len(new)
                self._observer.started(problem.task, known, context.journal, note)
                problem.tried = tuple(context.evaluator([*tried, *new]))

    def conclude(self, problem: SweepProblem, number: str) -> Result:
        """The last round at one size, with the best of its own and of others; `number` is for progress."""
        began, task, is_large = cpu_times(), problem.task, self._is_large(problem)
        tried = [trial.config for trial in problem.tried]
        needed = tuple(config for config in self.configs if config in tried)
        self._checks.forget_late()  # there may be time now for what had none at an earlier size
        with self._context(task) as context:
            note = f"sweep: last round at {problem.label}, {number}"
            self._observer.started(task, len(tried), context.journal, note)
            context.evaluator(tried)  # known from the journal
            wrong = [one for one in self._failures if one in tried and one != task.spec.default]
            for trial in context.evaluator(wrong):  # a race may not show at this size
                marked = mark_failed(context, trial, self._failures[trial.config])
                context.evaluator.trials[trial.config] = marked
            # the trials had the inputs of the search
            seeds = FRESH_SEEDS[:1] if is_large else FRESH_SEEDS
            spent_s, limit_s = context.evaluator.spent_s, self._limit_s
            limits = unlimited(spent_s) if limit_s is None else strict(limit_s, limit_s)
            limits = replace(limits, seeds=seeds)
            searched = Searched(self._root, LABEL, self._seed, spent_s, began, limits, needed=needed)
            return replace(conclude(context, searched, self._checks), resumed=problem.resumed)

    def _is_large(self, problem: SweepProblem) -> bool:
        """Whether it takes long to draw a problem's inputs."""
        task = problem.task
        default = self._processes.maker(task).make(task.spec.default)
        return device_bytes(default.problem) > LARGE_BYTES

    def _context(self, task: TuningTask) -> AbstractContextManager[TuningContext]:
        return open_context(task, self._options, self._observer, POLICY, self._processes)


def _row(problem: SweepProblem) -> Row:
    """The relative times of all that was tried at a size."""
    times_ms = {trial.config: trial.time_ms for trial in problem.tried if trial.time_ms}
    best_ms = min(times_ms.values())
    times = {config: time_ms / best_ms for config, time_ms in times_ms.items()}
    return Row(problem.task.space.problem.sizes, times)
