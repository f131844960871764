"""What is open during a run: journal, compilers, worker and the evaluator over them.

This module says where trials go, what a journal's rows are true of, and that everything is closed again.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol

from autotune.compilers.binary_cache import default_folder
from autotune.core.trials import Objective, Trial
from autotune.devices import cold_environment
from autotune.evaluation.compiler_pool import COMPILER_PROCESS, CompilerPool, compiler_opener
from autotune.evaluation.evaluator import Evaluator
from autotune.evaluation.identity import journal_header
from autotune.evaluation.instance import InstanceMaker, environment
from autotune.evaluation.journal import Journal
from autotune.evaluation.memory_check import enough_memory
from autotune.evaluation.sanitizer import Sanitizer, find_sanitizer
from autotune.evaluation.work_item import MeasurementPolicy
from autotune.evaluation.worker import DEVICE_PROCESS, Worker
from autotune.processes.python_process import discard_spares, keep_ready
from autotune.processes.temporary_folder import scratch_folder
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask

_NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
POLICY = MeasurementPolicy()
# energy is no matter of the fastest samples: a slower configuration may use less, so none is given up early
ENERGY_POLICY = MeasurementPolicy(
    hopeless_factor=math.inf, screen_factor=math.inf, race_factor=math.inf, energy_s=1.0
)
# for figures that are compared
FULL_POLICY = MeasurementPolicy(hopeless_factor=math.inf, screen_factor=math.inf, race_factor=math.inf)
VERIFICATION = 4  # goes up when verification finds what it did not find before: older rows do not count then


class Observer(Protocol):
    """Is told how a run goes; rendering is its business."""

    def started(self, task: TuningTask, total: int | None, journal: Journal, note: str = "") -> None:
        """Before the first trial; `total` is the number of trials to come, None if time decides.

        `note`: what else is to be said, if anything.
        """

    def tried(self, trial: Trial) -> None:
        """After each trial."""

    def waiting(self, what: str) -> None:
        """When something takes longer than a few seconds; called by another thread."""

    def last_round(self, count: int) -> None:
        """Before the finalists are timed in turns."""


@dataclass(frozen=True)
class TuningContext:
    """What is open during a run."""

    task: TuningTask
    maker: InstanceMaker
    pool: CompilerPool
    worker: Worker
    journal: Journal
    evaluator: Evaluator
    timeout_s: float
    protocol: MeasurementPolicy
    objective: Objective
    sanitizer: Sanitizer | None


def default_journal(task: TuningTask, suffix: str = "jsonl") -> Path:
    """Where a run's trials go unless the user says otherwise: one file per kernel, device and problem."""
    problem = task.space.problem
    sizes = "-".join(f"{name}{size}" for name, size in sorted(problem.sizes.items()))
    return Path("runs") / f"{task.spec.kernel}.{task.device.slug}.{sizes}.{problem.dtype}.{suffix}"


def get_ready(device: str | None, workers: int | None = None) -> None:
    """Start what a search on an NVIDIA GPU will need, while files are read and devices found."""
    wants_cuda = device is None or device.startswith("cuda")
    if wants_cuda and _NVIDIA_DRIVER.exists() and find_spec("cuda.core") is not None:
        keep_ready(DEVICE_PROCESS, 1, ("autotune.evaluation.device_process", "autotune.devices.cuda"))
        keep_ready(COMPILER_PROCESS, workers or _compiler_processes("gpu"), ("autotune.compilers.nvrtc",))


@contextmanager
def open_context(
    task: TuningTask, options: Options, observer: Observer, protocol: MeasurementPolicy = POLICY
) -> Iterator[TuningContext]:
    """Journal, compilers and worker, closed in the end whatever happens."""
    maker = InstanceMaker(task.space, task.source, task.dialect, task.compiler)
    default = maker.make(task.spec.default)
    with ExitStack() as opened:
        opened.callback(discard_spares)
        opened.enter_context(enough_memory(maker, default.case))
        path = options.journal or default_journal(task)
        journal = Journal(path, _header(task), fresh=options.fresh)
        opened.callback(journal.close)
        scratch = opened.enter_context(scratch_folder())
        environment_of_children = cold_environment(scratch)
        pool = CompilerPool(
            compiler_opener(task.address, task.device, task.spec.compiler),
            workers=options.workers or _compiler_processes(task.device.kind),
            timeout_s=options.compile_timeout_s,
            kept=default_folder() if options.binary_cache else None,
            environment=environment_of_children,
        )
        opened.callback(pool.close)
        cases = (*default.checks, default.case)
        worker = Worker(task.address, task.spec.reference, cases, environment_of_children, observer.waiting)
        opened.callback(worker.close)
        worker.start()
        evaluator = Evaluator(
            maker,
            pool,
            worker,
            journal,
            options.budget,
            protocol=protocol,
            timeout_s=options.timeout_s,
            on_trial=observer.tried,
            objective=options.objective,
        )
        program = find_sanitizer(task.address) if options.sanitizer else None
        reference, environment = task.spec.reference, environment_of_children
        yield TuningContext(
            *(task, maker, pool, worker, journal, evaluator),
            timeout_s=options.timeout_s,
            protocol=protocol,
            objective=options.objective,
            sanitizer=Sanitizer(program, task.address, reference, environment) if program else None,
        )


def _compiler_processes(kind: str) -> int:
    """One per core; where a GPU computes, two cores are left to the worker and to this process."""
    cores = len(os.sched_getaffinity(0))
    return cores if kind == "cpu" else max(1, cores - 2)


def _header(task: TuningTask) -> dict[str, str]:
    known = environment(task.device, task.compiler) | {"verification": str(VERIFICATION)}
    return known | journal_header(task.spec, task.space.problem, task.source.sha256)
