"""The compilers and the device process of a run, which the searches of a sweep share."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.compilers.binary_cache import default_folder
from autotune.core.trials import Problem
from autotune.devices import cold_environment
from autotune.errors import InputError
from autotune.evaluation.compiler_pool import CompilerPool, compiler_setting
from autotune.evaluation.device_process import DeviceSetting
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.evaluation.memory_check import enough_memory
from autotune.evaluation.references import References
from autotune.evaluation.trusting_worker import TrustingWorker
from autotune.evaluation.worker import Worker
from autotune.evaluation.wrong_result import WrongArrays
from autotune.problem.kept_results import KeptResults
from autotune.problem.stored_inputs import StoredInputs
from autotune.processes.files import user_folder
from autotune.processes.scratch_folder import scratch_folder
from autotune.space.spec import TRUSTED
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask

if TYPE_CHECKING:  # these need the extra `cluster`
    from autotune.cluster.connection import Cluster
    from autotune.cluster.fleet import Fleet


class Processes:
    """The compilers and the device process of a run, which searches of one space may share."""

    def __init__(self, task: TuningTask, options: Options, observer: Observer, opened: ExitStack) -> None:
        """Start nothing yet; what is started later is closed with `opened`."""
        self._task, self._options, self._opened = task, options, opened
        self._on_stage = observer.stage
        self.scratch = opened.enter_context(scratch_folder())
        self._ended = opened.enter_context(ExitStack())  # last, once all others are being killed
        self.variables = cold_environment(self.scratch)
        self._wrong = WrongArrays.into(options.dump_wrong) if options.dump_wrong else None
        references = user_folder("references")
        run = self.scratch if options.fresh else ""
        self._kept = KeptResults(references, run) if references else None
        self._worker: Worker | None = None
        self._stored: tuple[Problem, StoredInputs] | None = None  # the latest problem's
        self._makers: dict[int, tuple[TuningTask, InstanceMaker]] = {}  # by identity of the task

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
            environment=self.variables,
        )
        self._opened.callback(pool.close)
        return pool

    def stored(self, task: TuningTask) -> StoredInputs:
        """Return the stored inputs of a problem: the previous context's if they are the same."""
        problem = task.space.problem
        if self._stored is None or self._stored[0] != problem:
            self._stored = problem, StoredInputs(task.spec, Path(self.scratch), self.variables)
        return self._stored[1]

    def maker(self, task: TuningTask) -> InstanceMaker:
        """Return the instance maker of a task, which caches much of what it evaluates."""
        if id(task) not in self._makers:
            maker = InstanceMaker(task.space, task.source, task.dialect, task.compiler, self.stored(task))
            self._makers[id(task)] = task, maker
        return self._makers[id(task)][1]

    def begin(self, task: TuningTask) -> None:
        """Start the compilers, and begin to open the device for a task.

        Raises NoMemory if the arrays of its default take more memory than the device has.
        """
        maker = self.maker(task)
        default = maker.make(task.spec.default)
        with enough_memory(maker, default.problem):
            _ = self.pool
            if task.spec.full != TRUSTED:  # these need a new process for each problem
                self.worker(task, default)

    def worker(self, task: TuningTask, default: KernelInstance) -> Worker:
        """Return the device process, shared with earlier problems, except for trusted kernels."""
        trusts = task.spec.full == TRUSTED
        problems = default.checks if trusts else (*default.checks, default.problem)
        if self._worker is not None and not trusts:
            self._worker.turn_to(problems)
            return self._worker
        if self._worker is not None:
            self._worker.end()  # else each problem's process would hold device memory to the end
        maker = self.maker(task)
        make = partial(TrustingWorker, maker=maker, pool=self.pool, timeout_s=self._options.timeout_s)
        setting = DeviceSetting(task.address, task.spec.reference, problems, self._wrong, self._kept)
        worker = self._worker = (make if trusts else Worker)(setting, self.variables, self._on_stage)
        self._ended.callback(worker.end)
        self._opened.callback(worker.end, waits=False)
        worker.start()
        return worker

    def references(self, task: TuningTask) -> References:
        """Return the process for later references, which is not begun yet."""
        return References(DeviceSetting(task.address, task.spec.reference, kept=self._kept), self.variables)

    def fleet(
        self,
        task: TuningTask,
        default: KernelInstance,
        cluster: Cluster,
        on_lost: Callable[[str, str], None],
    ) -> AbstractContextManager[Fleet]:
        """Let the workers of a cluster claim their devices; `on_lost` as for `Fleet`.

        Raises InputError for a task that needs one device.
        """
        from autotune.cluster.device_host import HostSetting
        from autotune.cluster.fleet import open_fleet
        from autotune.cluster.travelling_files import paths_of

        _require_parallel(task)
        problems, reference = (*default.checks, default.problem), task.spec.reference.absolute()
        setting = HostSetting(
            search=uuid.uuid4().hex[:12],
            run=cluster.run,
            list_addresses=cluster.list_addresses,
            reference=reference,
            problems=problems,
            files={path: Path(path).read_bytes() for path in (str(reference), *paths_of(problems))},
            wrong=self._wrong,
            kept=self._kept,
        )
        return open_fleet(cluster.client, setting, on_lost)


def _require_parallel(task: TuningTask) -> None:
    """Raise InputError for features that need one device process for all configurations."""
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


def compiler_processes(kind: str) -> int:
    """One per core; with a GPU, two cores are left to the worker and to this process."""
    cores = len(os.sched_getaffinity(0))
    return cores if kind == "cpu" else max(1, cores - 2)
