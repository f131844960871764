"""Opens all that a run uses: the journal, the compilers, the devices and the evaluator."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from autotune.core import timeline
from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.text import size_text
from autotune.core.trials import Binary, Failure, Objective, Status
from autotune.errors import SetupError
from autotune.evaluation.compiler_pool import CompilerPool
from autotune.evaluation.device_process import is_repeatable, verify_once
from autotune.evaluation.evaluator import Evaluator
from autotune.evaluation.fleet import Fleet
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.evaluation.journal import Journal
from autotune.evaluation.ledger import Ledger
from autotune.evaluation.memory_check import MemoryCheck
from autotune.evaluation.references import References
from autotune.evaluation.scoring import Scoring
from autotune.evaluation.work_item import MeasurementPolicy
from autotune.evaluation.worker import DeviceWorker
from autotune.problem.workload import Workload
from autotune.tuning.further_sizes import FurtherSizes
from autotune.tuning.journaled_task import JournaledTask, with_journal
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.shared_processes import Processes, open_processes
from autotune.tuning.task import TuningTask

if TYPE_CHECKING:  # needs the extra `cluster`
    from autotune.cluster.connection import Cluster

_T = TypeVar("_T")

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

    task: TuningTask
    processes: Processes
    maker: InstanceMaker
    default: KernelInstance  # of the default configuration
    worker: DeviceWorker  # for the last round and its checks; with several devices, one of them
    ledger: Ledger
    evaluator: Evaluator  # runs the trials, on all devices
    timeout_s: float
    observer: Observer
    references: References
    further_sizes: FurtherSizes  # workloads for the checks of winners
    fleet: Fleet | None = None  # None: one device

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

    @property
    def scoring(self) -> Scoring:
        """How trials are scored."""
        return self.ledger.scoring

    @property
    def policy(self) -> MeasurementPolicy:
        """How configurations are timed."""
        return self.evaluator.policy

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

    def run(
        self,
        function: Callable[..., _T],
        binary: Binary,
        workload: Workload,
        *arguments: Any,
        timeout_s: float | None = None,
        **options: Any,
    ) -> _T | Failure:
        """Load a workload, run `function(state, binary, workload, ...)`; return its answer or a Failure."""
        limit_s = self.timeout_s if timeout_s is None else timeout_s
        return self.worker.run(
            function, binary, workload, *arguments, timeout_s=limit_s, workloads=(workload,), **options
        )

    def run_default(self, function: Callable[..., _T], name: str, timeout_s: float) -> _T:
        """Compile the default and run `function(state, binary, workload)`; a SetupError has the `name`."""
        answer: Binary | _T | Failure = self.pool.compile(self.default).result()
        if isinstance(answer, Binary):
            answer = self.run(function, answer, self.default.workload, timeout_s=timeout_s)
        if isinstance(answer, Failure):
            raise SetupError(f"{name}: {answer}")
        return answer

    def run_or_discard(self, function: Callable[..., _T], *arguments: Any, **options: Any) -> _T | Failure:
        """Call `run`; after a failure, end the device process: the run may have written anywhere."""
        answer = self.run(function, *arguments, **options)
        if isinstance(answer, Failure):
            self.worker.discard_child()
        return answer

    def verify(self, binary: Binary, workload: Workload, timeout_s: float | None = None) -> Failure | None:
        """Verify a configuration on one workload; all but a crash says at which sizes it fails."""
        failure = self.run_or_discard(verify_once, binary, workload, timeout_s=timeout_s)
        if failure is not None and failure.status is Status.CRASHED:
            return replace(failure, detail=f"{failure.detail} (at {size_text(workload.problem.sizes)})")
        return failure

    def is_repeatable(self, workload: Workload) -> bool:
        """True if what was verified last on a workload can run again without restoring its arrays."""
        return self.worker.run(is_repeatable, workload, timeout_s=self.timeout_s) is True


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
    """Open the journal, the compilers and the devices, and close them at the end whatever happens.

    Without `processes`, which several contexts may share, it has its own; without a cluster, it uses the
    task's devices.
    """
    task = journaled.task
    policy = replace(policy, call_mode=task.spec.measure)
    with ExitStack() as opened:
        processes = processes or opened.enter_context(open_processes(task, options, observer))
        maker = processes.maker(journaled)
        default = maker.make(task.spec.default)
        memory = MemoryCheck(maker, default.workload, is_sampled=task.reference.may_return_samples)
        opened.enter_context(memory.enough_memory())
        if warning := memory.warning():
            observer.warn(warning)
        journal = Journal(
            journaled.journal_path,
            journaled.header,
            notes=journaled.notes,
            fresh=options.fresh,
            keep=options.keep,
            key_of=maker.key_now,
        )
        opened.enter_context(closing(journal))
        if task.source.hidden:
            observer.warn(
                f"{task.spec.source}: what {task.source.hidden} reads cannot be known, so trials and "
                "binaries of earlier runs are not used; name folders of headers in include_dirs"
            )
        pool = processes.pool  # compiles while the devices are opened

        def on_lost(device: str, reason: str) -> None:
            observer.warn(f"{device} is left out: {reason}")
            journal.append_lost(device, reason)

        devices = opened.enter_context(processes.devices(maker, default, cluster, on_lost))
        references = opened.enter_context(closing(processes.references()))
        ledger = Ledger(journal, options.budget, journaled.scoring, observer.tried)
        evaluator = Evaluator(
            maker,
            pool,
            devices,
            ledger,
            policy=policy,
            timeout_s=options.timeout_s,
            on_stage=observer.stage,
        )
        yield TuningContext(
            task=task,
            processes=processes,
            maker=maker,
            default=default,
            worker=devices.worker,
            ledger=ledger,
            evaluator=evaluator,
            timeout_s=options.timeout_s,
            observer=observer,
            references=references,
            further_sizes=FurtherSizes(maker),
            fleet=devices if isinstance(devices, Fleet) else None,
        )
