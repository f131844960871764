"""The compilers and the device processes of a run, which searches of one space may share."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING

from autotune.checks.device_sanitizer import Sanitizer, find_sanitizer
from autotune.compilers.binary_cache import default_folder
from autotune.core.stages import unobserved
from autotune.core.trials import Problem
from autotune.devices import Address
from autotune.errors import InputError
from autotune.evaluation.compiler_pool import CompilerPool, compiler_setting
from autotune.evaluation.device_process import DeviceSetting
from autotune.evaluation.fleet import Fleet, LocalFleet
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.evaluation.job_runner import JobRunner, OneDevice
from autotune.evaluation.references import References
from autotune.evaluation.trusting_worker import TrustingWorker
from autotune.evaluation.worker import Worker
from autotune.evaluation.wrong_result import WrongArrays
from autotune.problem.reference_cache import ReferenceCache
from autotune.problem.stored_inputs import StoredInputs
from autotune.problem.workload import Workload
from autotune.processes.files import user_folder
from autotune.processes.scratch_folder import scratch_folder
from autotune.space import SpaceSpec
from autotune.space.spec import TRUSTED
from autotune.tuning.journaled_task import JournaledTask
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask

if TYPE_CHECKING:  # needs the extra `cluster`
    from autotune.cluster.connection import Cluster


class Processes:
    """The processes of a run; searches of one space may share them, whatever their problem.

    Searches that share them have the same device, reference and functions, so any search's task will do.
    """

    def __init__(self, task: TuningTask, options: Options, observer: Observer, opened: ExitStack) -> None:
        """Start nothing yet; what is started later is closed with `opened`."""
        self._task, self._options, self._opened = task, options, opened
        self._on_stage = observer.stage
        self.skips_sanitizers = not options.sanitizer  # as the options say, whether or not any is installed
        self.scratch = opened.enter_context(scratch_folder())
        self._awaited = opened.enter_context(ExitStack())  # waits for workers that are being killed
        self.binaries = default_folder() if options.binary_cache else Path(self.scratch) / "binaries"
        self.wrong_arrays = WrongArrays.into(options.dump_wrong) if options.dump_wrong else None
        self._reference_cache = ReferenceCache(
            user_folder("references"),
            self.scratch if options.fresh else "",
            of_run=Path(self.scratch) / "references",
        )
        self._workers: dict[Address, Worker] = {}
        self._stored: tuple[Problem, StoredInputs] | None = None  # the latest problem's
        self._makers: dict[JournaledTask, InstanceMaker] = {}
        self._finding = Lock()  # so that two threads do not find two sanitizers, each with processes

    @cached_property
    def pool(self) -> CompilerPool:
        """The compilers."""
        task, options = self._task, self._options
        pool = CompilerPool(
            compiler_setting(task.address, task.device, task.spec.compiler),
            size=options.compilers or compiler_processes(task.device.kind),
            timeout_s=options.compile_timeout_s,
            binaries=self.binaries,
            are_kept=options.binary_cache,
        )
        self._opened.callback(pool.close)
        return pool

    @property
    def sanitizer(self) -> Sanitizer | None:
        """The device's sanitizer, if the options want one and it is installed; threads get the same."""
        with self._finding:
            return self._sanitizer

    @cached_property
    def _sanitizer(self) -> Sanitizer | None:
        task = self._task
        program = None if self.skips_sanitizers else find_sanitizer(task.address)
        if program is None:
            return None
        return Sanitizer(program, task.address, task.spec.reference)

    def maker(self, journaled: JournaledTask) -> InstanceMaker:
        """Return the instance maker of a task, which caches much of what it evaluates."""
        if journaled not in self._makers:
            task, problem = journaled.task, journaled.task.space.problem
            if self._stored is None or self._stored[0] != problem:  # a new try of a problem has the same
                if self._stored is not None:
                    self._stored[1].close()
                self._stored = problem, StoredInputs(task.spec, Path(self.scratch))
                self._opened.callback(self._stored[1].close)
            given = task.space, task.source, task.dialect, task.environment, self._stored[1]
            self._makers[journaled] = InstanceMaker(*given)
        return self._makers[journaled]

    @contextmanager
    def devices(
        self,
        maker: InstanceMaker,
        default: KernelInstance,
        cluster: Cluster | None,
        on_lost: Callable[[str, str], None],
    ) -> Iterator[JobRunner]:
        """Begin to open the task's devices, or those that the workers of a cluster claim.

        `on_lost` gets one of several that fails, and the reason.
        """
        if cluster is not None or self._task.others:
            _require_parallel(maker.space.spec)
        if cluster is not None:
            with self._cluster_fleet(default, cluster, on_lost) as fleet:
                yield fleet
            return
        workers = self._workers_for(maker, default)
        if self._task.others:
            with closing(LocalFleet(workers, on_lost)) as fleet:
                yield fleet
        else:
            (single,) = workers.values()
            yield OneDevice(single)

    def _workers_for(self, maker: InstanceMaker, default: KernelInstance) -> Mapping[Address, Worker]:
        """Begin to open the task's devices, each in a process of its own.

        Later problems share the processes, except for trusted kernels: each problem has its own workers.
        """
        if self._task.spec.full == TRUSTED:
            for earlier in self._workers.values():
                earlier.end()  # else each problem's process would hold device memory to the end
            timeout_s = self._options.timeout_s
            trusting = partial(TrustingWorker, maker=maker, pool=self.pool, timeout_s=timeout_s)
            self._begin_workers(trusting, default.verify_workloads)
        elif not self._workers:
            self._begin_workers(Worker, (*default.verify_workloads, default.workload))
        else:
            for worker in self._workers.values():
                worker.set_workloads((*default.verify_workloads, default.workload))
        return self._workers

    def _begin_workers(self, make: Callable[..., Worker], workloads: tuple[Workload, ...]) -> None:
        """Make a worker for each device, and begin to open it."""
        task = self._task
        on_stage = unobserved if task.others else self._on_stage  # several would report at the same time
        for address in (task.address, *task.others):
            setting = self._setting(address, workloads)
            worker = self._workers[address] = make(setting, on_stage)
            self._opened.callback(worker.end, waits=False)
            self._awaited.callback(worker.end)
            worker.start()

    def _setting(self, address: Address, workloads: tuple[Workload, ...]) -> DeviceSetting:
        reference = self._task.spec.reference
        return DeviceSetting(address, reference, workloads, self.wrong_arrays, self._reference_cache)

    def references(self) -> References:
        """Return the process for later references; it starts when it is first used."""
        return References(self._task.spec.reference, self._reference_cache)

    def _cluster_fleet(
        self, default: KernelInstance, cluster: Cluster, on_lost: Callable[[str, str], None]
    ) -> AbstractContextManager[Fleet]:
        """Let the workers of a cluster claim their devices."""
        from autotune.cluster.device_host import HostSetting
        from autotune.cluster.fleet import open_fleet
        from autotune.cluster.travelling_files import paths_of

        workloads = (*default.verify_workloads, default.workload)
        process = self._setting(cluster.address, workloads)
        reference = process.reference.absolute()
        setting = HostSetting(
            search=uuid.uuid4().hex[:12],
            run=cluster.run,
            list_addresses=cluster.list_addresses,
            process=replace(process, reference=reference),
            files={path: Path(path).read_bytes() for path in (str(reference), *paths_of(workloads))},
        )
        return open_fleet(cluster.client, setting, on_lost)


@contextmanager
def open_processes(task: TuningTask, options: Options, observer: Observer) -> Iterator[Processes]:
    """Open the processes of a run, and close them at the end whatever happens."""
    with ExitStack() as opened:
        yield Processes(task, options, observer, opened)


def _require_parallel(spec: SpaceSpec) -> None:
    """Raise InputError for features that need one device process for all configurations."""
    if spec.full == TRUSTED:
        raise InputError(f"{spec.path}: full: {TRUSTED}: search with one device, or write `full: reference`")
    if spec.functions.verify is not None:
        raise InputError(f"{spec.path}: a Python function verifies results: search with one device")


def compiler_processes(kind: str) -> int:
    """Their number: one per core; with a GPU, two cores are left to the worker and to this process."""
    cores = len(os.sched_getaffinity(0))
    return cores if kind == "cpu" else max(1, cores - 2)
