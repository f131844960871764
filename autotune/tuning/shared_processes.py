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
from autotune.evaluation.sanitizer import Sanitizer, find_sanitizer
from autotune.evaluation.trusting_worker import TrustingWorker
from autotune.evaluation.worker import Worker
from autotune.evaluation.wrong_result import WrongArrays
from autotune.problem.kept_results import KeptResults
from autotune.problem.stored_inputs import StoredInputs
from autotune.processes.files import user_folder
from autotune.processes.scratch_folder import scratch_folder
from autotune.space import SpaceSpec
from autotune.space.spec import TRUSTED
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.study import Study
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
        self._kept = KeptResults(user_folder("references"), self.scratch if options.fresh else "")
        self._worker: Worker | None = None
        self._stored: tuple[Problem, StoredInputs] | None = None  # the latest problem's
        self._makers: dict[Study, InstanceMaker] = {}

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

    @cached_property
    def sanitizer(self) -> Sanitizer | None:
        """The device's sanitizer, if the options want one and it is installed."""
        task = self._task
        program = find_sanitizer(task.address) if self._options.sanitizer else None
        return Sanitizer(program, task.address, task.spec.reference, self.variables) if program else None

    def maker(self, study: Study) -> InstanceMaker:
        """Return the instance maker of a study, which caches much of what it evaluates."""
        if study not in self._makers:
            task, problem = study.task, study.task.space.problem
            if self._stored is None or self._stored[0] != problem:  # a new try of a problem has the same
                self._stored = problem, StoredInputs(task.spec, Path(self.scratch), self.variables)
            stored = self._stored[1]
            maker = InstanceMaker(task.space, task.source, task.dialect, task.environment, stored)
            self._makers[study] = maker
        return self._makers[study]

    def begin(self, study: Study) -> None:
        """Start the compilers, and begin to open the device for a study.

        Raises NoMemory if the arrays of its default take more memory than the device has.
        """
        maker, spec = self.maker(study), study.task.spec
        default = maker.make(spec.default)
        with enough_memory(maker, default.problem):
            _ = self.pool
            if spec.full != TRUSTED:  # these need a new process for each problem
                self.worker(study, default)

    def worker(self, study: Study, default: KernelInstance) -> Worker:
        """Return the device process, shared with earlier problems, except for trusted kernels."""
        task = study.task
        trusts = task.spec.full == TRUSTED
        problems = default.verify_problems if trusts else (*default.verify_problems, default.problem)
        if self._worker is not None and not trusts:
            self._worker.turn_to(problems)
            return self._worker
        if self._worker is not None:
            self._worker.end()  # else each problem's process would hold device memory to the end
        limit_s = self._options.timeout_s
        make = partial(TrustingWorker, maker=self.maker(study), pool=self.pool, timeout_s=limit_s)
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
        spec: SpaceSpec,
        default: KernelInstance,
        cluster: Cluster,
        on_lost: Callable[[str, str], None],
    ) -> AbstractContextManager[Fleet]:
        """Let the workers of a cluster claim their devices; `on_lost` as for `Fleet`.

        Raises InputError for a space that needs one device.
        """
        from autotune.cluster.device_host import HostSetting
        from autotune.cluster.fleet import open_fleet
        from autotune.cluster.travelling_files import paths_of

        _require_parallel(spec)
        problems, reference = (*default.verify_problems, default.problem), spec.reference.absolute()
        setting = HostSetting(
            search=uuid.uuid4().hex[:12],
            run=cluster.run,
            list_addresses=cluster.list_addresses,
            process=DeviceSetting(cluster.address, reference, problems, self._wrong, self._kept),
            files={path: Path(path).read_bytes() for path in (str(reference), *paths_of(problems))},
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
    """One per core; with a GPU, two cores are left to the worker and to this process."""
    cores = len(os.sched_getaffinity(0))
    return cores if kind == "cpu" else max(1, cores - 2)
