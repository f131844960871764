"""What is open during a run: journal, compilers, worker and the evaluator over them.

This module says where trials go, what a journal's rows are true of, and that everything is closed again.
"""

from __future__ import annotations

import hashlib
import math
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Protocol as Interface

from autotune.binary_cache import default_folder
from autotune.candidates import CandidateMaker, environment
from autotune.compiling import COMPILER_PROCESS, CompilerPool, compiler_opener
from autotune.devices import cold_environment
from autotune.evaluator import Evaluator
from autotune.jobs import Protocol
from autotune.journal import Journal
from autotune.memory import enough_memory
from autotune.process import discard_spares, keep_ready
from autotune.sanitizer import Sanitizer, find_sanitizer
from autotune.scratch import scratch_folder
from autotune.targets import Bound
from autotune.trials import Budget, Objective, Trial
from autotune.worker import DEVICE_PROCESS, Worker

_NVIDIA_DRIVER = Path("/proc/driver/nvidia/version")
DEFAULT_BUDGET = Budget(trials=100)
PROTOCOL = Protocol()
# energy is no matter of the fastest samples: a slower configuration may use less, so none is given up early
ENERGY_PROTOCOL = Protocol(
    hopeless_factor=math.inf, screen_factor=math.inf, race_factor=math.inf, energy_s=1.0
)
# for figures that are compared
FULL_PROTOCOL = Protocol(hopeless_factor=math.inf, screen_factor=math.inf, race_factor=math.inf)
VERIFICATION = 3  # goes up when verification finds what it did not find before: older rows do not count then


@dataclass(frozen=True)
class Options:
    """How to search; `engine` None: exhaustive when the budget covers the space, else the surrogate.

    `transfer`: start from what is known of other devices and problems.
    """

    engine: str | None = None
    strategy: str | None = None
    budget: Budget = DEFAULT_BUDGET
    seed: int = 0
    timeout_s: float = 30.0
    compile_timeout_s: float = 60.0
    workers: int | None = None  # compiler processes; None: one per core
    journal: Path | None = None
    fresh: bool = False
    transfer: bool = True
    stop_when_unlikely: bool = False
    objective: Objective = Objective.TIME
    cache: Path | None = None
    sanitizer: bool = True  # have the winner looked at by compute-sanitizer, where there is one
    binary_cache: bool = True  # take binaries of earlier runs from the disk


class Observer(Interface):
    """Is told how a run goes; rendering is its business."""

    def started(self, bound: Bound, total: int | None, journal: Journal, note: str = "") -> None:
        """Before the first trial; `total` is the number of trials to come, None if time decides.

        `note`: what else is to be said, if anything.
        """

    def tried(self, trial: Trial) -> None:
        """After each trial."""

    def last_round(self, count: int) -> None:
        """Before the finalists are timed in turns."""


@dataclass(frozen=True)
class Rig:
    """What is open during a run."""

    bound: Bound
    maker: CandidateMaker
    pool: CompilerPool
    worker: Worker
    journal: Journal
    evaluator: Evaluator
    timeout_s: float
    protocol: Protocol
    objective: Objective
    sanitizer: Sanitizer | None


def default_journal(bound: Bound, suffix: str = "jsonl") -> Path:
    """Where a run's trials go unless the user says otherwise: one file per kernel, device and problem."""
    problem = bound.space.problem
    sizes = "-".join(f"{name}{size}" for name, size in sorted(problem.sizes.items()))
    return Path("runs") / f"{bound.spec.kernel}.{bound.device.slug}.{sizes}.{problem.dtype}.{suffix}"


def get_ready(device: str | None, workers: int | None = None) -> None:
    """Start what a search on an NVIDIA GPU will need, while files are read and devices found."""
    wants_cuda = device is None or device.startswith("cuda")
    if wants_cuda and _NVIDIA_DRIVER.exists() and find_spec("cuda.core") is not None:
        keep_ready(DEVICE_PROCESS, 1, ("autotune.bench", "autotune.devices.cuda"))
        keep_ready(
            COMPILER_PROCESS, workers or _compiler_processes("gpu"), ("autotune.devices.cuda_compiler",)
        )


@contextmanager
def open_rig(
    bound: Bound, options: Options, observer: Observer, protocol: Protocol = PROTOCOL
) -> Iterator[Rig]:
    """Journal, compilers and worker, closed in the end whatever happens."""
    maker = CandidateMaker(bound.space, bound.source, bound.dialect, bound.compiler)
    default = maker.make(bound.spec.default)
    with ExitStack() as opened:
        opened.callback(discard_spares)
        opened.enter_context(enough_memory(maker, default.case))
        journal = Journal(options.journal or default_journal(bound), _header(bound), fresh=options.fresh)
        opened.callback(journal.close)
        scratch = opened.enter_context(scratch_folder())
        environment_of_children = cold_environment(scratch)
        pool = CompilerPool(
            compiler_opener(bound.address, bound.device, bound.spec.compiler),
            workers=options.workers or _compiler_processes(bound.device.kind),
            timeout_s=options.compile_timeout_s,
            kept=default_folder() if options.binary_cache else None,
            environment=environment_of_children,
        )
        opened.callback(pool.close)
        cases = (*default.checks, default.case)
        worker = Worker(bound.address, bound.spec.reference, cases, environment_of_children)
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
        program = find_sanitizer(bound.address) if options.sanitizer else None
        reference, environment = bound.spec.reference, environment_of_children
        yield Rig(
            *(bound, maker, pool, worker, journal, evaluator),
            timeout_s=options.timeout_s,
            protocol=protocol,
            objective=options.objective,
            sanitizer=Sanitizer(program, bound.address, reference, environment) if program else None,
        )


def _compiler_processes(kind: str) -> int:
    """One per core; where a GPU computes, two cores are left to the worker and to this process."""
    cores = len(os.sched_getaffinity(0))
    return cores if kind == "cpu" else max(1, cores - 2)


def _header(bound: Bound) -> dict[str, str]:
    """What a journal's rows are true of; parameters and constraints may change, for rows carry their own."""
    spec, problem = bound.spec, bound.space.problem
    arguments = repr((spec.arguments, spec.verify_sizes, spec.rtol, spec.atol))
    return environment(bound.device, bound.compiler) | {
        "verification": str(VERIFICATION),
        "kernel": spec.kernel,
        "source": bound.source.sha256[:16],
        "reference": hashlib.sha256(spec.reference.read_bytes()).hexdigest()[:16],
        "sizes": repr(sorted(problem.sizes.items())),
        "dtype": problem.dtype,
        "arguments": hashlib.sha256(arguments.encode()).hexdigest()[:16],
    }
