"""What is open during a run: the journal, the compilers, the worker and the evaluator that uses them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from autotune.core import timeline
from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.trials import Binary, Failure, Objective
from autotune.evaluation.compiler_pool import CompilerPool
from autotune.evaluation.device_process import verify_once
from autotune.evaluation.evaluator import Evaluator
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.evaluation.journal import Journal
from autotune.evaluation.ledger import Ledger
from autotune.evaluation.memory_check import enough_memory, memory_warning
from autotune.evaluation.one_device import Devices, OneDevice
from autotune.evaluation.references import References
from autotune.evaluation.sanitizer import Sanitizer
from autotune.evaluation.scoring import Scoring
from autotune.evaluation.work_item import MeasurementPolicy
from autotune.evaluation.worker import DeviceWorker
from autotune.problem.problem_instance import ProblemInstance
from autotune.tuning.further_sizes import FurtherSizes
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.shared_processes import Processes, open_processes
from autotune.tuning.study import Study
from autotune.tuning.task import TuningTask

if TYPE_CHECKING:  # these need the extra `cluster`
    from autotune.cluster.connection import Cluster
    from autotune.cluster.fleet import Fleet

POLICY = MeasurementPolicy()
# for times that are compared in a report: no configuration is given up early
FULL_POLICY = MeasurementPolicy(hopeless_factor=math.inf, screen_factor=math.inf, race_factor=math.inf)
# none is given up early here either, because a slower configuration may use less energy
ENERGY_POLICY = replace(FULL_POLICY, energy_s=1.0)


class Built(NamedTuple):
    """A configuration and its binary."""

    instance: KernelInstance
    binary: Binary


@dataclass(frozen=True)
class TuningContext:
    """What is open during a run."""

    task: TuningTask
    maker: InstanceMaker
    pool: CompilerPool
    worker: DeviceWorker
    journal: Journal
    ledger: Ledger
    evaluator: Evaluator
    timeout_s: float
    policy: MeasurementPolicy
    scoring: Scoring
    sanitizer: Sanitizer | None
    skips_sanitizer: bool  # although there may be one
    observer: Observer
    references: References
    further: FurtherSizes
    fleet: Fleet | None = None

    @property
    def objective(self) -> Objective:
        """What the run minimizes."""
        return self.scoring.objective

    def build(
        self, configs: Iterable[Config], stage: str = ""
    ) -> tuple[dict[Config, Built], dict[Config, Failure]]:
        """Compile configurations, all at the same time; return those that compile, and why others do not.

        `stage` names the progress; empty for work within another stage.
        """
        instances = [self.maker.make(config) for config in configs]
        compilations = [self.pool.compile(instance) for instance in instances]
        built: dict[Config, Built] = {}
        failures: dict[Config, Failure] = {}
        for done, (instance, compilation) in enumerate(zip(instances, compilations, strict=True), 1):
            if stage:
                self.observer.stage(Stage(stage, done, len(instances)))
            with timeline.span("wait: compilers"):
                binary = compilation.result()
            if isinstance(binary, Failure):
                failures[instance.config] = binary
            else:
                built[instance.config] = Built(instance, binary)
        return built, failures

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
        return self.worker.place(problem) or self.worker.run(
            function, binary, problem, *arguments, timeout_s=limit_s, **options
        )

    def check(
        self, problem: ProblemInstance, function: Callable[..., Any], *arguments: Any, **options: Any
    ) -> Any:
        """Run a check as `run_on` does; a failure closes the worker: it may have written anywhere."""
        found = self.run_on(problem, function, *arguments, **options)
        if isinstance(found, Failure):
            self.worker.close()
        return found

    def verify(
        self, binary: Binary, problem: ProblemInstance, timeout_s: float | None = None
    ) -> bool | Failure:
        """Verify a configuration on one problem; True if it can be repeated without restoring its arrays."""
        repeatable: bool | Failure = self.check(problem, verify_once, binary, timeout_s=timeout_s)
        return repeatable


@contextmanager
def open_context(
    study: Study,
    options: Options,
    observer: Observer,
    policy: MeasurementPolicy = POLICY,
    processes: Processes | None = None,
    cluster: Cluster | None = None,
) -> Iterator[TuningContext]:
    """Open the journal, the compilers and the worker, and close them at the end whatever happens.

    Args:
        study: What is tuned.
        options: How to search.
        observer: Receives the events of the run.
        policy: How configurations are timed.
        processes: Compilers and device process, shared by several contexts; None opens some for this one.
        cluster: The cluster that has the devices; None uses the task's device.
    """
    task = study.task
    policy = replace(policy, conditions=task.spec.measure)
    with ExitStack() as opened:
        processes = processes or opened.enter_context(open_processes(task, options, observer))
        maker = processes.maker(study)
        default = maker.make(task.spec.default)
        opened.enter_context(enough_memory(maker, default.problem))
        if warning := memory_warning(maker, default.problem):
            observer.warn(warning)
        journal = Journal(
            study.journal,
            study.header,
            notes=study.notes,
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
        worker: DeviceWorker
        devices: Devices
        fleet = None
        if cluster is not None:
            on_lost = partial(_lost, observer, journal)
            devices = fleet = opened.enter_context(processes.fleet(task.spec, default, cluster, on_lost))
            worker = fleet.worker(next(iter(fleet.devices)))
        else:
            worker = own = processes.worker(study, default)
            devices = OneDevice(own)
        references = processes.references(task)
        opened.callback(references.close)
        ledger = Ledger(journal, options.budget, study.scoring, observer.tried)
        limit_s = options.timeout_s
        evaluator = Evaluator(
            maker, pool, devices, worker, ledger, policy=policy, timeout_s=limit_s, on_stage=observer.stage
        )
        yield TuningContext(
            task=task,
            maker=maker,
            pool=pool,
            worker=worker,
            journal=journal,
            ledger=ledger,
            evaluator=evaluator,
            timeout_s=limit_s,
            policy=policy,
            scoring=study.scoring,
            sanitizer=processes.sanitizer,
            skips_sanitizer=not options.sanitizer,
            observer=observer,
            references=references,
            further=FurtherSizes(task, maker),
            fleet=fleet,
        )


def _lost(observer: Observer, journal: Journal, device: str, reason: str) -> None:
    """Tell that a device has failed."""
    observer.warn(f"{device} is left out: {reason}")
    journal.append_lost(device, reason)
