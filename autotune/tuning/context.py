"""What is open during a run: the journal, the compilers, the worker and the evaluator that uses them.

This module decides where trials are journaled and what a journal's header says, and it closes everything.
"""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import astuple, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from autotune.compilers.binary_cache import default_folder
from autotune.core.stages import Stage
from autotune.core.trials import Binary, Failure, Objective, Problem, Trial
from autotune.devices import cold_environment
from autotune.errors import InputError
from autotune.evaluation.compiler_pool import CompilerPool, compiler_opener
from autotune.evaluation.device_process import verify_once
from autotune.evaluation.evaluator import Evaluator
from autotune.evaluation.identity import journal_header, journal_notes
from autotune.evaluation.instance import InstanceMaker, KernelInstance, environment
from autotune.evaluation.journal import Journal
from autotune.evaluation.kept_results import KeptResults
from autotune.evaluation.memory_check import enough_memory
from autotune.evaluation.sanitizer import Sanitizer, find_sanitizer
from autotune.evaluation.scoring import Scoring
from autotune.evaluation.stored_inputs import StoredInputs
from autotune.evaluation.trusting_worker import TrustingWorker
from autotune.evaluation.work_item import MeasurementPolicy, ProblemInstance
from autotune.evaluation.worker import DeviceWorker, Worker
from autotune.evaluation.wrong_result import WrongArrays
from autotune.processes.files import user_folder
from autotune.processes.temporary_folder import scratch_folder
from autotune.space.spec import TRUSTED
from autotune.tuning.fresh_inputs import drawn_early
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask

if TYPE_CHECKING:  # these need the extra `cluster`
    from autotune.evaluation.fleet import Fleet
    from autotune.tuning.cluster import Cluster

POLICY = MeasurementPolicy()
# for times that are reported beside each other: no configuration is given up early
FULL_POLICY = MeasurementPolicy(hopeless_factor=math.inf, screen_factor=math.inf, race_factor=math.inf)
# none is given up early here either, because a slower configuration may use less energy
ENERGY_POLICY = replace(FULL_POLICY, energy_s=1.0)
VERIFICATION = 5  # raised whenever verification finds more than before, so that older journals are refused


class Observer(Protocol):
    """Receives the events of a run, for example to show its progress."""

    def started(self, task: TuningTask, total: int | None, journal: Journal, note: str = "") -> None:
        """Called before the first trial.

        Args:
            task: What is tuned.
            total: Number of trials to come; None if only the time is limited.
            journal: Where trials are recorded.
            note: Lines to show to the user, such as warnings about the space.
        """

    def tried(self, trial: Trial) -> None:
        """Called after each trial."""

    def stage(self, stage: Stage) -> None:
        """Called when the run begins to do something else, or has done more of the same."""

    def warn(self, text: str) -> None:
        """Called with what makes the result doubtful."""

    def last_round(self, count: int) -> None:
        """Called before `count` finalists are verified again and timed in turns."""


class Unobserved:
    """An observer that ignores all events."""

    def started(self, task: TuningTask, total: int | None, journal: Journal, note: str = "") -> None:
        """Ignore it."""

    def tried(self, trial: Trial) -> None:
        """Ignore it."""

    def stage(self, stage: Stage) -> None:
        """Ignore it."""

    def warn(self, text: str) -> None:
        """Ignore it."""

    def last_round(self, count: int) -> None:
        """Ignore it."""


@dataclass(frozen=True)
class TuningContext:
    """What is open during a run."""

    task: TuningTask
    maker: InstanceMaker
    pool: CompilerPool
    worker: DeviceWorker
    journal: Journal
    evaluator: Evaluator
    timeout_s: float
    policy: MeasurementPolicy
    objective: Objective
    scoring: Scoring
    sanitizer: Sanitizer | None
    skips_sanitizer: bool  # although there may be one
    observer: Observer
    fleet: Fleet | None = None

    def run_on(
        self,
        problem: ProblemInstance,
        function: Callable[..., Any],
        binary: Binary,
        *arguments: Any,
        timeout_s: float | None = None,
        **options: Any,
    ) -> Any:
        """Run `function(state, binary, problem, ...)` on the device; return its answer or a Failure."""
        limit_s = self.timeout_s if timeout_s is None else timeout_s
        return self.worker.prepare(problem) or self.worker.run(
            function, binary, problem, *arguments, timeout_s=limit_s, **options
        )

    def verify(
        self, binary: Binary, problem: ProblemInstance, timeout_s: float | None = None
    ) -> bool | Failure:
        """Verify a configuration on one problem: whether it can be repeated without restoring its arrays."""
        repeatable: bool | Failure = self.run_on(problem, verify_once, binary, timeout_s=timeout_s)
        if isinstance(repeatable, Failure):
            self.worker.close()  # it may have written anywhere
        return repeatable


def scoring_of(task: TuningTask, options: Options) -> Scoring:
    """What a search minimises: the options' objective, else that of the space, else the time."""
    if options.objective is not None:
        return Scoring(task.space, options.objective, options.own)
    own = task.spec.objective
    return Scoring(task.space, Objective.OWN if own else Objective.TIME, own or None)


def default_journal(task: TuningTask, suffix: str = "jsonl") -> Path:
    """The journal of a run that names none: one file per kernel, device and problem."""
    problem = task.space.problem
    sizes = "-".join(f"{name}{size}" for name, size in sorted(problem.sizes.items()))
    content = f"{problem.dtype}.{problem.data}" if problem.data else problem.dtype
    measured = "".join(f".{word}" for word in astuple(task.spec.measure) if word)
    return Path("runs") / f"{task.spec.kernel}.{task.device.slug}.{sizes}.{content}{measured}.{suffix}"


class Processes:
    """The compilers and the device process of a run, which searches of one space may share."""

    def __init__(self, task: TuningTask, options: Options, observer: Observer, opened: ExitStack) -> None:
        """Start nothing yet; what is started later is closed with `opened`."""
        self._task, self._options, self._opened = task, options, opened
        self.scratch = opened.enter_context(scratch_folder())
        self._ended = opened.enter_context(ExitStack())  # last, when all is being killed already
        self.variables = cold_environment(self.scratch)
        wrong = WrongArrays.into(options.dump_wrong) if options.dump_wrong else None
        kept = _kept_results(self.scratch if options.fresh else "")
        self._setting = (self.variables, observer.stage, wrong, kept)
        self._worker: Worker | None = None
        self._stored: tuple[Problem, StoredInputs] | None = None  # of the latest problem
        self._makers: dict[int, tuple[TuningTask, InstanceMaker]] = {}  # by identity of the task

    @cached_property
    def pool(self) -> CompilerPool:
        """The compilers."""
        task, options = self._task, self._options
        pool = CompilerPool(
            compiler_opener(task.address, task.device, task.spec.compiler),
            workers=options.workers or compiler_processes(task.device.kind),
            timeout_s=options.compile_timeout_s,
            binaries=default_folder() if options.binary_cache else None,
            scratch=Path(self.scratch) / "binaries",
            environment=self.variables,
        )
        self._opened.callback(pool.close)
        return pool

    def stored(self, task: TuningTask) -> StoredInputs:
        """Return the stored inputs of a problem: those of the context before if it has the same."""
        problem = task.space.problem
        if self._stored is None or self._stored[0] != problem:
            self._stored = problem, StoredInputs(task.spec, Path(self.scratch), self.variables)
        return self._stored[1]

    def maker(self, task: TuningTask) -> InstanceMaker:
        """Return what makes the instances of a task, which remembers much of what it has evaluated."""
        if id(task) not in self._makers:
            maker = InstanceMaker(task.space, task.source, task.dialect, task.compiler, self.stored(task))
            self._makers[id(task)] = task, maker
        return self._makers[id(task)][1]

    def worker(self, task: TuningTask, default: KernelInstance, maker: InstanceMaker) -> Worker:
        """Return the device process: that of earlier problems, except for trusted kernels."""
        trusts = task.spec.full == TRUSTED
        problems = default.checks if trusts else (*default.checks, default.problem)
        if self._worker is not None and not trusts:
            self._worker.turn_to(problems)
            return self._worker
        if self._worker is not None:
            self._worker.end()  # or each problem's would hold device memory to the end
        setting = (task.address, task.spec.reference, problems, *self._setting)
        make = partial(TrustingWorker, maker=maker, pool=self.pool, timeout_s=self._options.timeout_s)
        has_standby = task.device.kind == "gpu"  # whose driver takes long to load
        upcoming = drawn_early(maker, default) if has_standby else ()
        worker = self._worker = (make if trusts else Worker)(
            *setting, has_standby=has_standby, upcoming=upcoming
        )
        self._ended.callback(worker.end)
        self._opened.callback(worker.end, waits=False)
        worker.start()
        return worker

    def fleet(
        self,
        task: TuningTask,
        default: KernelInstance,
        cluster: Cluster,
        on_lost: Callable[[str, str], None],
    ) -> AbstractContextManager[Fleet]:
        """Let the workers of a cluster claim their devices; `on_lost` is as for `Fleet`.

        Raises InputError for a task that needs one device.
        """
        from autotune.evaluation.device_host import HostSetting
        from autotune.evaluation.fleet import open_fleet
        from autotune.evaluation.travelling_files import paths_of

        _require_parallel(task)
        _, _, wrong, kept = self._setting
        problems, reference = (*default.checks, default.problem), task.spec.reference.absolute()
        setting = HostSetting(
            search=uuid.uuid4().hex[:12],
            run=cluster.run,
            list_addresses=cluster.list_addresses,
            reference=reference,
            problems=problems,
            files={path: Path(path).read_bytes() for path in (str(reference), *paths_of(problems))},
            wrong=wrong,
            kept=kept,
        )
        return open_fleet(cluster.client, setting, on_lost)


def _require_parallel(task: TuningTask) -> None:
    """Raise InputError for what one device process has to see of all configurations."""
    if task.spec.full == TRUSTED:
        raise InputError(
            f"{task.spec.path}: verify.full: {TRUSTED} needs one device; or write `full: reference`"
        )
    if task.spec.functions.verify is not None:
        raise InputError(f"{task.spec.path}: results that a Python function verifies need one device")


@contextmanager
def open_processes(task: TuningTask, options: Options, observer: Observer) -> Iterator[Processes]:
    """Open the processes of a run, and close them at the end whatever happens."""
    with ExitStack() as opened:
        yield Processes(task, options, observer, opened)


@contextmanager
def open_context(
    task: TuningTask,
    options: Options,
    observer: Observer,
    policy: MeasurementPolicy = POLICY,
    processes: Processes | None = None,
    cluster: Cluster | None = None,
) -> Iterator[TuningContext]:
    """Open the journal, the compilers and the worker, and close them at the end whatever happens.

    Args:
        task: What is tuned.
        options: How to search.
        observer: Receives the events of the run.
        policy: How configurations are timed.
        processes: Those of a run with several contexts; None opens some for this one.
        cluster: Where the devices are; None uses the task's device.
    """
    with ExitStack() as opened:
        policy = replace(policy, conditions=task.spec.measure)
        processes = processes or opened.enter_context(open_processes(task, options, observer))
        maker = processes.maker(task)
        default = maker.make(task.spec.default)
        opened.enter_context(enough_memory(maker, default.problem))
        journal = Journal(
            options.journal or default_journal(task),
            _header(task),
            notes=journal_notes(task.spec),
            fresh=options.fresh,
            keep=options.keep,
            key_of=maker.key_now,
        )
        opened.callback(journal.close)
        pool = processes.pool  # compiles while the device is opened
        scoring = scoring_of(task, options)
        worker: DeviceWorker
        make: Callable[..., Evaluator]
        fleet = None
        if cluster is None:
            worker, make = processes.worker(task, default, maker), Evaluator
        else:
            from autotune.evaluation.parallel_evaluator import ParallelEvaluator

            def tell(device: str, reason: str) -> None:
                observer.warn(f"{device} is left out: {reason}")
                journal.append_lost(device, reason)

            fleet = opened.enter_context(processes.fleet(task, default, cluster, tell))
            worker, make = fleet.worker(next(iter(fleet.devices))), partial(ParallelEvaluator, fleet)
        evaluator = make(
            maker,
            pool,
            worker,
            journal,
            options.budget,
            policy=policy,
            timeout_s=options.timeout_s,
            on_trial=observer.tried,
            on_stage=observer.stage,
            scoring=scoring,
        )
        yield TuningContext(
            task=task,
            maker=maker,
            pool=pool,
            worker=worker,
            journal=journal,
            evaluator=evaluator,
            timeout_s=options.timeout_s,
            policy=policy,
            objective=scoring.objective,
            scoring=scoring,
            sanitizer=_sanitizer(task, processes.variables) if options.sanitizer else None,
            skips_sanitizer=not options.sanitizer,
            observer=observer,
            fleet=fleet,
        )


def _kept_results(run: str) -> KeptResults | None:
    references = user_folder("references")
    return KeptResults(references, run) if references else None


def _sanitizer(task: TuningTask, variables: dict[str, str]) -> Sanitizer | None:
    program = find_sanitizer(task.address)
    return Sanitizer(program, task.address, task.spec.reference, variables) if program else None


def compiler_processes(kind: str) -> int:
    """One per core; with a GPU, two cores are left to the worker and to this process."""
    cores = len(os.sched_getaffinity(0))
    return cores if kind == "cpu" else max(1, cores - 2)


def _header(task: TuningTask) -> dict[str, str]:
    compiled = environment(task.device, task.compiler, task.spec.measure)
    conditions = compiled | {"verification": str(VERIFICATION)}
    return conditions | journal_header(task.spec, task.space.problem, task.source.sha256)
