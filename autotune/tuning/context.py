"""Opens all that a run uses: the journal, the compilers, the worker and the evaluator.

Searches of one space may share the compilers and the device process.
"""

from __future__ import annotations

import math
import os
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from autotune.compilers.binary_cache import default_folder
from autotune.core import timeline
from autotune.core.records import Config
from autotune.core.stages import Stage, unobserved
from autotune.core.trials import Binary, Failure, Objective, Problem
from autotune.devices import Address, cold_variables
from autotune.errors import InputError, SetupError
from autotune.evaluation.compiler_pool import CompilerPool, compiler_setting
from autotune.evaluation.device_process import DeviceSetting, verify_once
from autotune.evaluation.evaluator import Evaluator
from autotune.evaluation.fleet import Fleet, LocalFleet
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.evaluation.job_runner import JobRunner, OneDevice
from autotune.evaluation.journal import Journal
from autotune.evaluation.ledger import Ledger
from autotune.evaluation.memory_check import enough_memory, memory_warning
from autotune.evaluation.references import References
from autotune.evaluation.sanitizer import Sanitizer, find_sanitizer
from autotune.evaluation.scoring import Scoring
from autotune.evaluation.trusting_worker import TrustingWorker
from autotune.evaluation.work_item import MeasurementPolicy
from autotune.evaluation.worker import DeviceWorker, Worker
from autotune.evaluation.wrong_result import WrongArrays
from autotune.problem.reference_cache import ReferenceCache
from autotune.problem.stored_inputs import StoredInputs
from autotune.problem.workload import Workload
from autotune.processes.files import user_folder
from autotune.processes.scratch_folder import scratch_folder
from autotune.space import SpaceSpec
from autotune.space.spec import TRUSTED
from autotune.tuning.further_sizes import FurtherSizes
from autotune.tuning.journaled_task import JournaledTask, with_journal
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask

if TYPE_CHECKING:  # needs the extra `cluster`
    from autotune.cluster.connection import Cluster

POLICY = MeasurementPolicy()
# for times that are compared in a report: no configuration is given up early
FULL_POLICY = MeasurementPolicy(hopeless_factor=math.inf, screen_factor=math.inf, race_factor=math.inf)
# none is given up early here either, because a slower configuration may use less energy
ENERGY_POLICY = replace(FULL_POLICY, energy_s=1.0)


class BuiltConfig(NamedTuple):
    """A configuration and its binary."""

    instance: KernelInstance
    binary: Binary


Builds = Mapping[Config, BuiltConfig]


@dataclass(frozen=True)
class TuningContext:
    """All that is open during a run."""

    journaled: JournaledTask
    processes: Processes
    maker: InstanceMaker
    worker: DeviceWorker
    ledger: Ledger
    evaluator: Evaluator
    timeout_s: float
    policy: MeasurementPolicy
    observer: Observer
    references: References
    further_sizes: FurtherSizes  # only the checks of winners need them
    fleet: Fleet | None = None

    @property
    def task(self) -> TuningTask:
        """The task of the run."""
        return self.journaled.task

    @property
    def scoring(self) -> Scoring:
        """The computation of the objective."""
        return self.journaled.scoring

    @property
    def journal(self) -> Journal:
        """The open journal."""
        return self.ledger.journal

    @property
    def pool(self) -> CompilerPool:
        """The compilers."""
        return self.processes.pool

    @property
    def objective(self) -> Objective:
        """The quantity that the run minimizes."""
        return self.scoring.objective

    def build(
        self, configs: Iterable[Config], stage: str = ""
    ) -> tuple[dict[Config, BuiltConfig], dict[Config, Failure]]:
        """Compile configurations, all at the same time; return the binaries, and the failures of the others.

        `stage` names the progress; empty for work within another stage.
        """
        instances = [self.maker.make(config) for config in configs]
        compilations = [self.pool.compile(instance) for instance in instances]
        builds: dict[Config, BuiltConfig] = {}
        failures: dict[Config, Failure] = {}
        for done, (instance, compilation) in enumerate(zip(instances, compilations, strict=True), 1):
            if stage:
                self.observer.stage(Stage(stage, done, len(instances)))
            with timeline.span("wait: compilers"):
                binary = compilation.result()
            if isinstance(binary, Failure):
                failures[instance.config] = binary
            else:
                builds[instance.config] = BuiltConfig(instance, binary)
        return builds, failures

    def compile_ahead(self, configs: Iterable[Config]) -> None:
        """Begin to compile configurations whose binaries will be needed."""
        for config in configs:
            self.pool.compile(self.maker.make(config))

    def run(
        self,
        function: Callable[..., Any],
        binary: Binary,
        workload: Workload,
        *arguments: Any,
        timeout_s: float | None = None,
        **options: Any,
    ) -> Any:
        """Load a workload, run `function(state, binary, workload, ...)`; return its answer or a Failure."""
        limit_s = self.timeout_s if timeout_s is None else timeout_s
        return self.worker.load(workload) or self.worker.run(
            function, binary, workload, *arguments, timeout_s=limit_s, **options
        )

    def run_default(self, function: Callable[..., Any], what: str, timeout_s: float) -> Any:
        """Compile the default and run `function(state, binary, workload)`; raises SetupError for `what`."""
        instance = self.maker.make(self.task.spec.default)
        answer = self.pool.compile(instance).result()
        if not isinstance(answer, Failure):
            answer = self.worker.run(function, answer, instance.workload, timeout_s=timeout_s)
        if isinstance(answer, Failure):
            raise SetupError(f"{what}: {answer}")
        return answer

    def run_or_close(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Run as `run` does; close the worker after a failure, because it may have written anywhere."""
        answer = self.run(function, *arguments, **options)
        if isinstance(answer, Failure):
            self.worker.discard_child()
        return answer

    def verify(self, binary: Binary, workload: Workload, timeout_s: float | None = None) -> bool | Failure:
        """Verify a configuration on one workload; True if it can be repeated without restoring its arrays."""
        repeatable: bool | Failure = self.run_or_close(verify_once, binary, workload, timeout_s=timeout_s)
        return repeatable


class Processes:
    """The compilers and the device process of a run, which searches of one space may share.

    These searches have the same device, reference and functions, so any of their tasks will do.
    """

    def __init__(self, task: TuningTask, options: Options, observer: Observer, opened: ExitStack) -> None:
        """Start nothing yet; what is started later is closed with `opened`."""
        self._task, self._options, self._opened = task, options, opened
        self._on_stage = observer.stage
        self.skips_sanitizers = not options.sanitizer  # although there may be some
        self.scratch = opened.enter_context(scratch_folder())
        self._ended = opened.enter_context(ExitStack())  # last, once all others are being killed
        self.variables = cold_variables(self.scratch)
        self._wrong_arrays = WrongArrays.into(options.dump_wrong) if options.dump_wrong else None
        self._reference_cache = ReferenceCache(
            user_folder("references"),
            self.scratch if options.fresh else "",
            of_run=Path(self.scratch) / "references",
        )
        self._workers: dict[Address, Worker] = {}
        self._stored: tuple[Problem, StoredInputs] | None = None  # the latest problem's
        self._makers: dict[JournaledTask, InstanceMaker] = {}

    @cached_property
    def pool(self) -> CompilerPool:
        """The compilers."""
        task, options = self._task, self._options
        pool = CompilerPool(
            compiler_setting(task.address, task.device, task.spec.compiler),
            workers=options.workers or compiler_processes(task.device.kind),
            timeout_s=options.compile_timeout_s,
            binaries=default_folder() if options.binary_cache else None,
            scratch=Path(self.scratch) / "binaries",
            variables=self.variables,
        )
        self._opened.callback(pool.close)
        return pool

    @cached_property
    def sanitizer(self) -> Sanitizer | None:
        """The device's sanitizer, if the options want one and it is installed."""
        task = self._task
        program = None if self.skips_sanitizers else find_sanitizer(task.address)
        return Sanitizer(program, task.address, task.spec.reference, self.variables) if program else None

    def maker(self, journaled: JournaledTask) -> InstanceMaker:
        """Return the instance maker of a task, which caches much of what it evaluates."""
        if journaled not in self._makers:
            task, problem = journaled.task, journaled.task.space.problem
            if self._stored is None or self._stored[0] != problem:  # a new try of a problem has the same
                if self._stored is not None:
                    self._stored[1].close()
                self._stored = problem, StoredInputs(task.spec, Path(self.scratch), self.variables)
                self._opened.callback(self._stored[1].close)
            stored = self._stored[1]
            maker = InstanceMaker(task.space, task.source, task.dialect, task.environment, stored)
            self._makers[journaled] = maker
        return self._makers[journaled]

    def workers(self, maker: InstanceMaker, default: KernelInstance) -> Mapping[Address, Worker]:
        """Begin to open the task's devices, each in a process of its own.

        Later problems share the processes, except for trusted kernels.
        """
        task, options = self._task, self._options
        trusts = task.spec.full == TRUSTED
        workloads = default.verify_workloads if trusts else (*default.verify_workloads, default.workload)
        for earlier in self._workers.values():
            if trusts:
                earlier.end()  # else each problem's process would hold device memory to the end
            else:
                earlier.turn_to(workloads)
        if trusts or not self._workers:
            trusting = partial(TrustingWorker, maker=maker, pool=self.pool, timeout_s=options.timeout_s)
            on_stage = unobserved if task.others else self._on_stage  # several would tell at the same time
            for address in (task.address, *task.others):
                setting = DeviceSetting(
                    address, task.spec.reference, workloads, self._wrong_arrays, self._reference_cache
                )
                worker = (trusting if trusts else Worker)(setting, self.variables, on_stage)
                self._workers[address] = worker
                self._ended.callback(worker.end)
                self._opened.callback(worker.end, waits=False)
                worker.start()
        return self._workers

    def references(self) -> References:
        """Return the process for later references, which is not begun yet."""
        task = self._task
        return References(
            DeviceSetting(task.address, task.spec.reference, reference_cache=self._reference_cache),
            self.variables,
        )

    def cluster_fleet(
        self, default: KernelInstance, cluster: Cluster, on_lost: Callable[[str, str], None]
    ) -> AbstractContextManager[Fleet]:
        """Let the workers of a cluster claim their devices; `on_lost` as for `Fleet`."""
        from autotune.cluster.device_host import HostSetting
        from autotune.cluster.fleet import open_fleet
        from autotune.cluster.travelling_files import paths_of

        workloads = (*default.verify_workloads, default.workload)
        reference = self._task.spec.reference.absolute()
        setting = HostSetting(
            search=uuid.uuid4().hex[:12],
            run=cluster.run,
            list_addresses=cluster.list_addresses,
            process=DeviceSetting(
                cluster.address, reference, workloads, self._wrong_arrays, self._reference_cache
            ),
            files={path: Path(path).read_bytes() for path in (str(reference), *paths_of(workloads))},
        )
        return open_fleet(cluster.client, setting, on_lost)


def _require_parallel(spec: SpaceSpec) -> None:
    """Raise InputError for features that need one device process for all configurations."""
    if spec.full == TRUSTED:
        raise InputError(f"{spec.path}: verify.full: {TRUSTED} needs one device; or write `full: reference`")
    if spec.functions.verify is not None:
        raise InputError(f"{spec.path}: results that a Python function verifies need one device")


@contextmanager
def open_processes(task: TuningTask, options: Options, observer: Observer) -> Iterator[Processes]:
    """Open the processes of a run, and close them at the end whatever happens."""
    with ExitStack() as opened:
        yield Processes(task, options, observer, opened)


def compiler_processes(kind: str) -> int:
    """Their number: one per core; with a GPU, two cores are left to the worker and to this process."""
    cores = len(os.sched_getaffinity(0))
    return cores if kind == "cpu" else max(1, cores - 2)


def open_run(
    task: TuningTask,
    options: Options,
    observer: Observer,
    suffix: str = "jsonl",
    policy: MeasurementPolicy = FULL_POLICY,
    processes: Processes | None = None,
) -> AbstractContextManager[TuningContext]:
    """Open a run of known configurations; its journal ends with `suffix` unless the options name one."""
    return open_context(with_journal(task, options, suffix), options, observer, policy, processes)


@contextmanager
def open_context(
    journaled: JournaledTask,
    options: Options,
    observer: Observer,
    policy: MeasurementPolicy = POLICY,
    processes: Processes | None = None,
    cluster: Cluster | None = None,
) -> Iterator[TuningContext]:
    """Open the journal, the compilers and the worker, and close them at the end whatever happens.

    Without `processes`, which several contexts may share, it has its own; without a cluster, it uses the
    task's devices.
    """
    task = journaled.task
    policy = replace(policy, call_mode=task.spec.measure)
    is_alone = processes is None
    with ExitStack() as opened:
        processes = processes or opened.enter_context(open_processes(task, options, observer))
        maker = processes.maker(journaled)
        default = maker.make(task.spec.default)
        opened.enter_context(enough_memory(maker, default.workload))
        if warning := memory_warning(maker, default.workload):
            observer.warn(warning)
        journal = Journal(
            journaled.journal,
            journaled.header,
            notes=journaled.notes,
            fresh=options.fresh,
            keep=options.keep,
            key_of=maker.key_now,
        )
        opened.callback(journal.close)
        if task.source.hidden:
            observer.warn(
                f"{task.spec.source}: what {task.source.hidden} reads cannot be known: no trial and no "
                "binary of an earlier run is used; name folders of headers in include_dirs"
            )
        pool = processes.pool  # compiles while the device is opened
        on_lost = partial(_lost, observer, journal)
        worker: DeviceWorker
        devices: JobRunner
        fleet: Fleet | None = None
        on_spent = None
        if cluster is not None or task.others:
            _require_parallel(task.spec)
        if cluster is not None:
            fleet = opened.enter_context(processes.cluster_fleet(default, cluster, on_lost))
        elif task.others:
            workers = processes.workers(maker, default)
            fleet = opened.enter_context(closing(LocalFleet(workers, on_lost)))
        if fleet is not None:
            devices, worker = fleet, fleet.worker(next(iter(fleet.names)))
        else:
            (local_worker,) = processes.workers(maker, default).values()
            devices, worker = OneDevice(local_worker), local_worker
            if is_alone and _has_room_for_two(task):
                on_spent = local_worker.begin_next
        references = processes.references()
        opened.callback(references.close)
        ledger = Ledger(journal, options.budget, journaled.scoring, observer.tried)
        limit_s = options.timeout_s
        evaluator = Evaluator(
            maker,
            pool,
            devices,
            worker,
            ledger,
            policy=policy,
            timeout_s=limit_s,
            on_stage=observer.stage,
            on_spent=on_spent,
        )
        yield TuningContext(
            journaled=journaled,
            processes=processes,
            maker=maker,
            worker=worker,
            ledger=ledger,
            evaluator=evaluator,
            timeout_s=limit_s,
            policy=policy,
            observer=observer,
            references=references,
            further_sizes=FurtherSizes(maker),
            fleet=fleet,
        )


def _has_room_for_two(task: TuningTask) -> bool:
    """True if a process may open the device beside the one that a search uses.

    On a CPU it would disturb times, and the settings of a device, such as its clock, are one process's.
    """
    return task.device.kind == "gpu" and not task.spec.device


def _lost(observer: Observer, journal: Journal, device: str, reason: str) -> None:
    observer.warn(f"{device} is left out: {reason}")
    journal.append_lost(device, reason)
