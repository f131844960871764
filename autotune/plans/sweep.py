"""A sweep: one run that tunes many sizes, and chooses a few variants that serve all between.

For a program that serves sizes from a table of its own, each size gets its best instead.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import chain, pairwise
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.core.records import Config, Sizes, VariantTable
from autotune.core.text import size_text
from autotune.core.trials import Objective, problem_distance
from autotune.errors import InputError, SpaceError
from autotune.evaluation.journal import Journal
from autotune.frameworks import Format
from autotune.frameworks.config_file import KEY, TOKENS
from autotune.frameworks.installed import InstalledConfigs
from autotune.hardware.names import traits_of
from autotune.plans.fewer_launches import with_fewer_launches
from autotune.plans.sweep_candidates import TRIED_OF_EACH, Candidates, SweepProblem
from autotune.plans.variants import cover, left_out_slowdowns
from autotune.processes.machine_load import cpu_times
from autotune.searchers import check_searcher, make_searcher
from autotune.searchers.base import PriorResults, Searcher
from autotune.serving.cache import store
from autotune.serving.interpolation import SizeRow
from autotune.serving.validity import KernelOnDevice
from autotune.space import bind, problem_of
from autotune.tuning.cache_entry import kernel_record, result_folder
from autotune.tuning.context import POLICY, open_context
from autotune.tuning.finalists import fastest_trials
from autotune.tuning.journaled_task import JournaledTask, with_journal
from autotune.tuning.limits import checks_time_s
from autotune.tuning.observer import Observer
from autotune.tuning.options import MAX_PROBLEMS, Options
from autotune.tuning.prior_results import gather_priors, origin_of
from autotune.tuning.result import SearchResult
from autotune.tuning.shared_processes import Processes, open_processes
from autotune.tuning.task import Target, TuningTask, read_task
from autotune.tuning.tuner import choose_engine, explore, require_usable

if TYPE_CHECKING:  # takes long to import
    from autotune.searchers.surrogate import PooledTrials

MIN_TRIALS = 6  # of each problem, at least
# Shares of the budget for the problems after the first. Small sizes get more: they differ from each other,
# few configurations come close to the best, and trials are quick. Large ones are limited by memory bandwidth,
# and alike.
SHARE_FOR_SMALLER, SHARE_FOR_LARGER = 0.6, 0.1
MAX_NEIGHBOURS = 4  # nearest problems, from whose results a search starts
MAX_KNOWN = 2  # the best of a larger problem that are tried with fewer launches
TRIED_PER_VARIANT = 2  # so many candidates, besides TRIED_OF_EACH of each size, are also timed at other sizes
STORED_OF_EACH = 1  # the best of each size whose times are stored
# A midpoint is rounded to this fraction of the largest power of two that divides both sizes, so a kernel that
# only takes multiples of 64 still has one between 512 and 1,024.
HALFWAY_PARTS = 8


@dataclass(frozen=True)
class Sweep:
    """The results of a sweep."""

    results: tuple[SearchResult, ...]  # one for each problem
    rows: tuple[SizeRow, ...]  # relative times at each problem, of candidates or of what a framework serves
    tables: tuple[VariantTable, ...]  # one for each element type; none for a framework
    seconds: float
    form: Format | None = None  # the framework's files that the results are for


def bind_sweep(
    target: Target,
    points: Sequence[Sizes],
    dtypes: Sequence[str],
    observer: Observer,
    form: Format | None = None,
) -> list[TuningTask]:
    """Bind a target to every combination of points, the sizes that vary, and element types.

    Without element types, it is the space's first. For files of a framework, it is also every number of
    tokens unless sizes have one, and tasks know what the framework serves now. Raises InputError for wrong
    input.
    """
    if form is not None and KEY not in {*target.sizes, *points[0]}:
        points = [{**sizes, KEY: tokens} for sizes in points for tokens in TOKENS]
    if not 1 <= len(points) * max(1, len(dtypes)) <= MAX_PROBLEMS:
        raise InputError(f"a sweep has 1 to {MAX_PROBLEMS:,} combinations of sizes and element types")
    first = read_task(
        replace(target, sizes={**target.sizes, **points[0]}, dtype=dtypes[0] if dtypes else None),
        observer.stage,
    )
    tasks = []
    for dtype in dtypes or (first.space.problem.dtype,):
        for sizes in points:
            all_sizes = {**target.sizes, **sizes}
            problem = problem_of(first.spec, first.device, all_sizes, dtype, data=target.data)
            tasks.append(replace(first, space=bind(first.spec, first.device, problem)))
    return tasks if form is None else _with_installed(tasks, form, observer)


def _with_installed(tasks: Sequence[TuningTask], form: Format, observer: Observer) -> list[TuningTask]:
    """Tasks that know what a framework serves now; warns of what their space does not have."""
    installed, left_out, done = InstalledConfigs(form, tasks[0].device.name), [], []
    for task in tasks:
        sizes = task.space.problem.sizes
        config, where = installed.config(sizes, task.spec.default)
        if config is not None and (reasons := task.space.why_invalid(config)):
            config, where = None, f"{where}: {config}: {'; '.join(reasons)}"
        if config is None:
            left_out.append(f"{KEY}={sizes[KEY]}: {where}")
        done.append(replace(task, served_elsewhere=(config,) if config else ()))
    if left_out:
        observer.warn(f"not compared with what {form.package} serves now: {', '.join(left_out)}")
    return done


def halfway_tasks(tasks: Sequence[TuningTask]) -> list[TuningTask]:
    """The tasks half-way between neighbours on a logarithmic axis, if the default is valid there.

    Empty if several sizes vary: there would be more midpoints than tasks.
    """
    problem = tasks[0].space.problem
    swept = {name: sorted({task.space.problem.sizes[name] for task in tasks}) for name in problem.sizes}
    varied = [name for name, sizes in swept.items() if len(sizes) > 1]
    if len(varied) != 1:
        return []
    (name,) = varied
    halfway = []
    for low, high in pairwise(swept[name]):
        step = max(1, min(low & -low, high & -high) // HALFWAY_PARTS)
        middle = step * round(sqrt(low * high) / step)
        if low < middle < high:
            between = replace(problem, sizes={**problem.sizes, name: middle})
            with suppress(SpaceError):  # nothing is valid there
                task = replace(tasks[0], space=bind(tasks[0].spec, tasks[0].device, between))
                if not task.space.why_invalid(task.spec.default):
                    halfway.append(task)
    return halfway


def sweep(
    tasks: Sequence[TuningTask],
    options: Options,
    observer: Observer,
    max_variants: int,
    form: Format | None = None,
) -> Sweep:
    """Tune several problems of a kernel, and choose variants that lose least at all sizes.

    The sizes are searched from the middle of the range outwards: the first with the whole budget, the others
    with a share of it and a model that learns from all earlier ones. Then the best of each size are measured
    at its midpoints and its neighbours, and from there at further sizes while they stay nearly as fast as the
    best. A last round at each size measures these in turns; results and a table are stored in the cache.
    Element types follow one another; each starts from the results of the earlier ones.

    For a framework, nothing is timed half-way and no variants are chosen: it serves the best of a key.

    Args:
        tasks: The problems: one space on one device, as `bind_sweep` makes them.
        options: How to search; the budget is for one search.
        observer: Receives the events of all searches.
        max_variants: The most variants of an element type.
        form: The files of a framework that the results are for.

    Raises:
        InputError: The options or the space are wrong; nothing was written.
        SetupError: The default configuration fails. The journals are kept, and so are the results of earlier
            element types.
        WriteError: A journal cannot be written.
        CacheError: The cache cannot be written.
    """
    began_s, first = time.perf_counter(), tasks[0]
    problems = [SweepProblem(with_journal(task, options)) for task in tasks]
    root = _checked_root(problems, options, observer)
    of_type: dict[str, list[SweepProblem]] = {}
    for problem in problems:
        of_type.setdefault(problem.task.space.problem.dtype, []).append(problem)
    for dtype, of_dtype in of_type.items():
        replaced = [] if form else _wider_tables(of_dtype, root)
        for wider in replaced:
            swept = f"{size_text(wider.sizes[0])} to {size_text(wider.sizes[-1])}, {dtype}"
            observer.warn(f"the variants of this sweep replace those of a wider one: {swept}")
    with open_processes(first, options, observer) as processes:
        from autotune.searchers.surrogate import PooledTrials  # takes long to import

        between = {
            dtype: [
                SweepProblem(with_journal(task, options))
                for task in (() if form else halfway_tasks([problem.task for problem in of_dtype]))
            ]
            for dtype, of_dtype in of_type.items()
        }
        if options.fresh:  # before the first search, so an interrupted sweep resumes with new trials only
            for problem in (*problems, *chain.from_iterable(between.values())):
                _start_over(problem.journaled)
            options = replace(options, fresh=False)
        pooled = PooledTrials([task.space for task in tasks])
        run = _Sweep(problems, between, pooled, options, observer, processes, root, max_variants, form)
        results = run.results(of_type)
    return Sweep(results, tuple(run.rows), tuple(run.tables), time.perf_counter() - began_s, form)


def _start_over(journaled: JournaledTask) -> None:
    """Empty a journal, if there is one; raises JournalError if it is in use, and WriteError."""
    if journaled.journal_path.exists():
        Journal(journaled.journal_path, journaled.header, notes=journaled.notes, fresh=True).close()


@dataclass
class _Sweep:
    """A sweep under way: what it learns and stores."""

    problems: Sequence[SweepProblem]
    between: Mapping[str, Sequence[SweepProblem]]  # half-way between them, by element type
    pooled: PooledTrials  # learns from the trials of all problems
    options: Options
    observer: Observer
    processes: Processes
    root: Path  # the cache folder
    max_variants: int
    form: Format | None
    done: list[SweepProblem] = field(default_factory=list)
    rows: list[SizeRow] = field(default_factory=list)
    tables: list[VariantTable] = field(default_factory=list)

    def results(self, of_type: Mapping[str, Sequence[SweepProblem]]) -> tuple[SearchResult, ...]:
        """One element type after the other: search each size, choose, then finish each."""
        total, results = len(self.problems), list[SearchResult]()
        for dtype, problems in of_type.items():
            order = _in_order(problems)
            for problem in order:
                note = f"sweep: {problem.label}, {len(self.done) + 1} of {total}"
                share = _share(problem, self.done, len(problems))
                warns = problem is order[0]  # mistakes in the source, and other programs, are warned of once
                self._explore(problem, note, _part(self.options, share), warns=warns)
                self.done.append(problem)
            candidates = self._candidates(problems, self.between[dtype])
            for problem in problems:
                note = f"sweep: last round at {problem.label}, {len(results) + 1} of {total}"
                results.append(candidates.finish_search(problem, note, is_own=bool(self.form)))
            self._store(problems, candidates, results[-1])
        return tuple(results)

    def _explore(self, problem: SweepProblem, note: str, options: Options, *, warns: bool) -> None:
        """The search at one size, without its last round; it starts from the sizes before it."""
        fewer = with_fewer_launches(problem.task.space, self._known(problem))
        searcher = self._searcher(problem, options, fewer)
        with open_context(problem.journaled, options, self.observer, POLICY, self.processes) as context:
            explore(context, searcher, options, note, cpu_times(), fewer, warns=warns)
            problem.searched = problem.tried = tuple(context.ledger.trials.values())
            problem.resumed = context.ledger.resumed
        self.pooled.learn(problem.task.space, problem.tried)

    def _known(self, problem: SweepProblem) -> list[Config]:
        """The best few of the nearest problem, if it is larger."""
        nearest = min(self.done, key=lambda earlier: _distance(earlier, problem), default=problem)
        if nearest.elements <= problem.elements:
            return []
        best = (trial.config for trial in fastest_trials(nearest.searched, MAX_KNOWN))
        return [config for config in best if config in problem.task.space]

    def _searcher(self, problem: SweepProblem, options: Options, first: Sequence[Config]) -> Searcher:
        """The searcher that the options name; it starts from results of other problems.

        The default searcher learns from the trials of the problems already done, and begins with the `first`.
        """
        task, stops = problem.task, options.stop_when_unlikely
        engine, strategy = choose_engine(options, len(task.space))
        if engine == "surrogate" and self.done:
            from autotune.searchers.surrogate import PooledSearch  # takes long to import

            return PooledSearch(self.pooled, [task.spec.default, *first], stop_when_unlikely=stops)
        stops = stops and engine != "exhaustive"  # taken for small spaces; to name it is an error
        return make_searcher(engine, strategy, priors=self._priors(problem), stop_when_unlikely=stops)

    def _priors(self, problem: SweepProblem) -> tuple[PriorResults, ...]:
        """The results of the nearest problems of the sweep; for the first one, results of earlier searches.

        Earlier results of the sweep's own tasks do not count, so it resumes as it began.
        """
        task = problem.task
        if not self.done:
            swept = (other.task for other in (*self.problems, *chain.from_iterable(self.between.values())))
            return gather_priors(task, self.options, ignored=swept) if self.options.transfer else ()
        nearest = sorted(self.done, key=lambda earlier: _distance(earlier, problem))[:MAX_NEIGHBOURS]
        traits = traits_of(task.device)
        return tuple(
            PriorResults(
                origin_of(earlier.task),
                tuple((trial.config, trial.time_ms) for trial in earlier.tried if trial.config in task.space),
                traits,
            )
            for earlier in nearest
        )

    def _candidates(self, problems: Sequence[SweepProblem], between: Sequence[SweepProblem]) -> Candidates:
        """The candidates of an element type, after they were timed near the sizes where they are best."""
        part = _part(self.options, 1 / len(problems))
        candidates = Candidates(problems, between, part, self.observer, self.processes, self.root)
        most = 0 if self.form else self.max_variants
        candidates.choose(TRIED_PER_VARIANT * most, STORED_OF_EACH if self.form else TRIED_OF_EACH)
        candidates.spread()
        for problem in problems:  # for later element types
            self.pooled.learn(problem.task.space, problem.tried)
        checks_s = checks_time_s(self.options.budget.seconds)
        if self.form:  # what wins somewhere is checked once, in one go
            candidates.choose_in_rounds()
            candidates.check(checks_s * len(problems))
        else:
            candidates.choose(most, STORED_OF_EACH)
            candidates.check(checks_s)
        return candidates

    def _store(self, problems: Sequence[SweepProblem], candidates: Candidates, last: SearchResult) -> None:
        """Store the variants of an element type, if it has several sizes and is for no framework."""
        if self.form:
            self.rows += [
                _measured_row(problem.task, problem.task.served_elsewhere, self.root) for problem in problems
            ]
            return
        measured = [_measured_row(problem.task, candidates.configs, self.root) for problem in problems]
        self.rows += measured
        if len(problems) < 2:
            return
        found_at: dict[Config, list[Sizes]] = {}
        for problem in self.problems:
            sizes = problem.task.space.problem.sizes
            for trial in problem.searched:
                if sizes not in (sizes_of_config := found_at.setdefault(trial.config, [])):
                    sizes_of_config.append(sizes)
        task, record = last.task, kernel_record(last, (), self.options.seed, POLICY)
        kernel = KernelOnDevice(record, task.device, task.space.problem.dtype)
        halfway = candidates.halfway_rows()
        configs = tuple(cover((*measured, *halfway), self.max_variants))
        table = VariantTable(
            dtype=kernel.dtype,
            sizes=tuple(row.sizes for row in measured),
            configs=configs,
            left_out=left_out_slowdowns(measured, halfway, found_at, self.max_variants, kernel),
            data=task.space.problem.data,
            halfway=tuple((row.sizes, tuple(map(row.relative_times.get, configs))) for row in halfway),
        )
        store(self.root, task.device, replace(record, entries=(), variants=(table,)))
        self.tables.append(table)


def _checked_root(problems: Sequence[SweepProblem], options: Options, observer: Observer) -> Path:
    """Check all input, then return the cache folder; raises InputError or WriteError."""
    if problems[0].journaled.scoring.objective is not Objective.TIME:
        raise InputError("a sweep minimizes the time; leave out --objective, or give --objective time")
    if options.journal is not None:
        raise InputError("a sweep has a journal for each size, in runs/; leave out --journal")
    if options.engine is not None or options.strategy is not None:
        engine, strategy = choose_engine(options, len(problems[0].task.space))
        check_searcher(engine, strategy, stop_when_unlikely=options.stop_when_unlikely)
    for problem in problems:
        require_usable(problem.task)
    return result_folder(problems[0].journaled, options, observer)


def _wider_tables(problems: Sequence[SweepProblem], root: Path) -> list[VariantTable]:
    """The cached tables that the sweep of an element type replaces although they cover more sizes."""
    task, sizes = problems[0].task, [swept.task.space.problem.sizes for swept in problems]
    record = task.cached_record(root)
    if len(problems) < 2 or record is None:  # one size gets no table
        return []
    problem = task.space.problem
    new = VariantTable(problem.dtype, tuple(sizes), (), (), problem.data)

    def is_inside(inner: Sizes) -> bool:
        return all(
            min(s[name] for s in sizes) <= inner[name] <= max(s[name] for s in sizes) for name in inner
        )

    alike = (table for table in record.variants if table.sizes[0].keys() == sizes[0].keys())
    old = (table for table in alike if table.range == new.range)
    return [table for table in old if not all(map(is_inside, table.sizes))]


def _in_order(problems: Sequence[SweepProblem]) -> list[SweepProblem]:
    """The problems of an element type in search order: from the middle outwards.

    The largest comes last: its inputs take longest to draw, and the last inputs are used again.
    """
    middle = min(reversed(problems), key=lambda problem: sum(_distance(problem, other) for other in problems))
    largest = max(problems, key=lambda problem: problem.elements)
    return sorted(problems, key=lambda problem: (problem is largest, _distance(problem, middle)))


def _share(problem: SweepProblem, done: Sequence[SweepProblem], count: int) -> float:
    """The share of the budget for a problem of an element type that has `count`, after those done before."""
    if not done:
        return 1.0
    dtype = problem.task.space.problem.dtype
    alike = [earlier for earlier in done if earlier.task.space.problem.dtype == dtype]
    is_larger = bool(alike) and problem.elements > alike[0].elements
    return max(1 / count, SHARE_FOR_LARGER) if is_larger else SHARE_FOR_SMALLER


def _distance(first: SweepProblem, second: SweepProblem) -> float:
    return problem_distance(first.task.space.problem, second.task.space.problem)


def _part(options: Options, share: float) -> Options:
    trials, seconds = options.budget.trials, options.budget.seconds
    part = replace(
        options.budget,
        trials=None if trials is None else max(MIN_TRIALS, round(trials * share)),
        seconds=None if seconds is None else seconds * share,
    )
    return replace(options, budget=part)


def _measured_row(task: TuningTask, candidates: Sequence[Config], root: Path) -> SizeRow:
    """The cached times of the candidates at one size; without any, the time of its best."""
    entry = task.cached_entry(root)
    times = entry.relative_times if entry is not None else {}
    relative_times = {config: times[config] for config in candidates if config in times}
    best = {entry.config: 1.0} if entry is not None else {}
    return SizeRow(task.space.problem.sizes, relative_times or best)
