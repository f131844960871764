"""The candidates of a sweep: the best configurations of each size, measured at other sizes and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from math import prod
from pathlib import Path

from autotune.core.records import Config
from autotune.core.text import size_text
from autotune.core.trials import Budget, Failure, Trial
from autotune.errors import InputError, SetupError
from autotune.evaluation.buffers import device_bytes
from autotune.evaluation.instance import KernelInstance
from autotune.plans.variants import cover, neighbours
from autotune.processes.deadline import Deadline
from autotune.processes.machine_load import cpu_times
from autotune.searchers.base import evaluate
from autotune.serving.interpolation import SizeRow
from autotune.tuning.check_outcomes import is_finding
from autotune.tuning.context import POLICY, TuningContext, open_context
from autotune.tuning.finalists import fastest_trials
from autotune.tuning.finish_search import begin_finish, finish_search
from autotune.tuning.journaled_task import JournaledTask
from autotune.tuning.last_round import LastRoundSetting, mark_failed
from autotune.tuning.limits import limited_last_round, usual_last_round
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.remeasure import FRESH_SEEDS, remeasure
from autotune.tuning.result import SearchResult
from autotune.tuning.shared_processes import Processes
from autotune.tuning.task import TuningTask
from autotune.tuning.winner_checks import WinnerChecks

TRIED_OF_EACH = 3  # the best of each size that are also timed at others
FAR_SLOWER = 1.2  # times the best of a size: a slower candidate is not tried at the neighbours
LARGE_BYTES = 2**29  # arrays of at least this size in device memory take long to draw
LABEL = "sweep"  # the engine's name in the cache


@dataclass(eq=False)
class SweepProblem:
    """One problem of a sweep with its trials: the search's, and all others at it so far."""

    journaled: JournaledTask
    searched: tuple[Trial, ...] = ()
    tried: tuple[Trial, ...] = ()  # by the search, and candidates of other sizes
    resumed: int = 0  # trials of the search that the journal had

    @property
    def task(self) -> TuningTask:
        """Its task."""
        return self.journaled.task

    @property
    def label(self) -> str:
        """Its sizes and element type, for progress."""
        problem = self.task.space.problem
        return f"{size_text(problem.sizes)}, {problem.dtype}"

    @property
    def elements(self) -> int:
        """The product of its sizes, to order problems."""
        return prod(self.task.space.problem.sizes.values())


class Candidates:
    """The best configurations of one element type; measures them at its sizes."""

    def __init__(
        self,
        problems: Sequence[SweepProblem],
        halfway: Iterable[SweepProblem],
        options: Options,
        observer: Observer,
        processes: Processes,
        root: Path,
    ) -> None:
        """Choose nothing yet.

        At the problems half-way between the others, candidates are only timed; large ones are left out.
        """
        self._problems = problems
        self.configs: list[Config] = []
        self._seed, self._limit_s = options.seed, options.budget.seconds
        self._options = replace(options, budget=Budget())
        self._observer, self._processes, self._root = observer, processes, root
        self._checks = WinnerChecks()
        self._failures: dict[Config, Failure] = {}  # failures that these checks found
        self._left_out: set[SweepProblem] = set()  # half-way problems that failed
        self._halfway = list(filter(self._is_small, halfway))
        self._all = sorted((*problems, *self._halfway), key=lambda problem: problem.elements)

    def choose(self, limit: int, count: int) -> None:
        """Choose, by all trials, the set that loses least over all sizes, and the best of each size.

        The set has at most `limit`, and `count` is the number of the best. A configuration that is wrong or
        crashes at any size, searched or half-way, is left out.
        """
        best = (trial.config for problem in self._problems for trial in fastest_trials(problem.tried, count))
        wrong = {
            trial.config for problem in self._all for trial in problem.tried if is_finding(trial.failure)
        }
        right = _rows(self._all, lambda config: config not in wrong)
        chosen = dict.fromkeys([*cover(right, limit), *best])
        self.configs = [config for config in chosen if config not in wrong]

    def check(self, checks_s: float) -> None:
        """Keep the candidates that pass the checks before storing, which may take `checks_s`.

        Each is checked once, at the size at which it is valid and has most kernels: Triton compiles a
        kernel anew for some sizes, and only those compiled here are checked.
        """
        deadline = Deadline.after(checks_s)
        left = self.configs
        for problem in sorted(self._problems, key=lambda one: -len(self._default(one).names)):
            here = [config for config in left if config in problem.task.space]
            if here:
                with self._context(problem) as context:
                    self._failures |= self._checks.check(context, here, deadline)
                left = [config for config in left if config not in here]
        passed = self._checks.outcomes.keys() - self._failures.keys()
        self.configs = [config for config in self.configs if config in passed]

    def spread(self) -> None:
        """Verify and time each candidate from size to size, while it stays nearly as fast as the best.

        From larger sizes to smaller ones first, because the device still has the arrays of the largest. On
        the way back, sizes are skipped if their inputs would be drawn again for only a few candidates.
        """
        pairs = neighbours([problem.task.space.problem.sizes for problem in self._all])
        downwards = range(len(self._all) - 1, -1, -1)
        upwards = (place for place in reversed(downwards) if not self._is_large(self._all[place]))
        for place in [*downwards, *upwards]:
            beside = [high if place == low else low for low, high in pairs if place in (low, high)]
            near = _rows(self._all[other] for other in beside)
            fast = {
                config for row in near for config, time in row.relative_times.items() if time <= FAR_SLOWER
            }
            self._try(self._all[place], [config for config in self.configs if config in fast])

    def _try(self, problem: SweepProblem, configs: Sequence[Config]) -> None:
        """Verify and time the candidates that have not been tried at a size."""
        tried = [trial.config for trial in problem.tried]
        new = [config for config in configs if config in problem.task.space and config not in tried]
        if not new or problem in self._left_out:
            return
        is_halfway = problem in self._halfway
        try:
            with self._context(problem) as context:
                where = f"{problem.label}, half-way" if is_halfway else problem.label
                note = f"sweep: the best of nearby sizes at {where}"
                best = [trial.config for trial in fastest_trials(problem.tried, 1)]  # timed with the others
                self._observer.started(problem.task, len(best) + len(new), context.journal, note)
                problem.tried += tuple(evaluate(context.evaluator, [*best, *new])[len(best) :])
        except (InputError, SetupError) as error:
            if not is_halfway:
                raise
            self._leave_out(problem, error)

    def halfway_rows(self) -> list[SizeRow]:
        """The times of the candidates at the sizes half-way between the swept ones."""
        return _rows(self._halfway, self.configs.__contains__)

    def choose_in_rounds(self) -> None:
        """Choose the winner and the ties of a round in turns of the best of each size, for `check`."""
        chosen: dict[Config, None] = {}
        for number, problem in enumerate(self._problems, 1):
            note = f"sweep: the best at {problem.label}, {number} of {len(self._problems)}"
            with self._last_round(problem, note, self._own_best(problem)) as (context, setting):
                chosen |= dict.fromkeys(begin_finish(context, setting))
        self.configs = list(chosen)

    def finish_search(self, problem: SweepProblem, note: str, *, is_own: bool) -> SearchResult:
        """The last round at one size; `note` is for progress.

        Its own best take part if `is_own`, else the best of all other sizes.
        """
        tried = [trial.config for trial in problem.tried]
        named = self._own_best(problem) if is_own else [one for one in self.configs if one in tried]
        self._checks.forget_late()  # there may be time now for checks that had none at an earlier size
        with self._last_round(problem, note, named) as (context, setting):
            wrong = [one for one in self._failures if one in tried and one != context.task.spec.default]
            for trial in evaluate(context.evaluator, wrong):  # a race may not show at this size
                context.ledger.put(mark_failed(context.journal, trial, self._failures[trial.config]))
            return replace(finish_search(context, setting, self._checks), resumed=problem.resumed)

    def _own_best(self, problem: SweepProblem) -> list[Config]:
        return [trial.config for trial in fastest_trials(problem.tried, TRIED_OF_EACH)]

    @contextmanager
    def _last_round(
        self, problem: SweepProblem, note: str, named: Sequence[Config]
    ) -> Iterator[tuple[TuningContext, LastRoundSetting]]:
        """Open a last round at one size, in which the named configurations take part."""
        began, limit_s = cpu_times(), self._limit_s
        with self._context(problem) as context:
            self._observer.started(problem.task, len(problem.tried), context.journal, note)
            context.ledger.recall(problem.tried)
            spent_s = context.ledger.spent_s
            setting = LastRoundSetting(
                self._root,
                LABEL,
                self._seed,
                spent_s,
                began,
                usual_last_round(spent_s) if limit_s is None else limited_last_round(limit_s, limit_s),
                named=tuple(named),
                measure_again=partial(remeasure, seeds=FRESH_SEEDS[:1]),  # trials used the search's inputs
            )
            yield context, setting

    def _is_large(self, problem: SweepProblem) -> bool:
        """True if a problem's inputs take long to draw."""
        return device_bytes(self._default(problem).workload) > LARGE_BYTES

    def _default(self, problem: SweepProblem) -> KernelInstance:
        return self._processes.maker(problem.journaled).make(problem.task.spec.default)

    def _is_small(self, problem: SweepProblem) -> bool:
        """True if a problem half-way takes little time, and its inputs can be made."""
        try:
            return not self._is_large(problem)
        except (InputError, SetupError) as error:
            self._leave_out(problem, error)
            return False

    def _leave_out(self, problem: SweepProblem, error: Exception) -> None:
        """Skip a size half-way, which nobody asked for, with a warning."""
        self._left_out.add(problem)
        self._observer.warn(f"{problem.label}, half-way between two sizes, is not timed: {error}")

    def _context(self, problem: SweepProblem) -> AbstractContextManager[TuningContext]:
        return open_context(problem.journaled, self._options, self._observer, POLICY, self._processes)


def _rows(
    problems: Iterable[SweepProblem], counts: Callable[[Config], bool] = lambda _: True
) -> list[SizeRow]:
    """The relative times of the configurations that count; none at a size where none has a time."""
    rows = []
    for problem in problems:
        tried = (trial for trial in problem.tried if counts(trial.config))
        times_ms = {trial.config: trial.time_ms for trial in tried if trial.time_ms}
        best_ms = min(times_ms.values(), default=0.0)
        times = {config: time_ms / best_ms for config, time_ms in times_ms.items()}
        rows += [SizeRow(problem.task.space.problem.sizes, times)] if times else []
    return rows
