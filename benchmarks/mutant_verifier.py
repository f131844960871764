"""Wrong versions of the shipped kernels, and which way of verification catches one: for mutants.py."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT))

from autotune.checks.device_sanitizer import Sanitizer
from autotune.checks.host_sanitizer import HostSanitizer, judged
from autotune.compilers.source_text import perturbed, read_source
from autotune.core.outcomes import PASSED, first_failure
from autotune.core.records import DeviceInfo
from autotune.core.text import size_text
from autotune.core.trials import Binary, Failure
from autotune.devices import BACKENDS, Address
from autotune.evaluation.compiler_pool import CompilerPool, compiler_setting
from autotune.evaluation.device_process import DeviceSetting, verify_often, verify_once
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.evaluation.worker import Worker
from autotune.problem.covering import covering
from autotune.problem.data_sets import (
    DATA_SETS,
    MAX_BYTES,
    OnOtherData,
    on_other_data,
    other_data,
    with_margin,
)
from autotune.problem.stored_inputs import StoredInputs
from autotune.problem.workload import Workload
from autotune.processes.deadline import Deadline
from autotune.space import SpaceSpec, load_space
from autotune.tuning.check_outcomes import FINDINGS
from autotune.tuning.data_checks import rounding_is_tolerated
from autotune.tuning.stress_checks import MAX_RUNS, MAX_RUNS_S, SCHEDULES
from tests.sampled_configurations import Sample, sampled

WAYS = ("results", "size", "data", "schedules", "runs", "host", "sanitizer")
MAX_OFTEN = 4  # configurations that run often
MAX_ON_HOST = 40  # configurations of a mutant that no run on the device catches
MAX_SANITIZED = 4  # and under compute-sanitizer, which takes longer
UNREACHED = "unreached"
TIMEOUT_S = 20.0
Tried = tuple[KernelInstance, tuple[Workload, ...]]
Compilation = Future[Binary | Failure]
Run = tuple[KernelInstance, tuple[Workload, ...], int]  # with the seed of its schedule, 0 for the usual one


@dataclass(frozen=True)
class Mutant:
    """A wrong version of a kernel: a text of its source, and what replaces it."""

    kernel: str
    kind: str
    old: str
    new: str
    file: str
    place: int  # which occurrence of the text, from one
    warps: bool
    equivalent: str

    def text(self) -> str:
        """The file with the mistake."""
        parts = (ROOT / "kernels" / self.file).read_text().split(self.old)
        if len(parts) <= self.place:
            raise SystemExit(f"{self.file}: has no {self.old!r}: change mutants.yaml with the kernel")
        return self.old.join(parts[: self.place]) + self.new + self.old.join(parts[self.place :])

    def __str__(self) -> str:
        return f"{self.kernel}: {self.kind}: {self.old!r} -> {self.new!r}"

    @property
    def key(self) -> tuple[str, ...]:
        """What tells it from all others."""
        return self.kernel, self.file, str(self.place), self.old, self.new


def read_mutants(path: Path) -> list[Mutant]:
    """All mutants of a file such as mutants.yaml."""
    kernels = yaml.safe_load(path.read_text())
    return [
        Mutant(
            kernel,
            row["class"],
            row["old"],
            row["new"],
            row.get("file", f"{kernel}.cu"),
            row.get("place", 1),
            row.get("warps", False),
            row.get("equivalent", ""),
        )
        for kernel, rows in kernels.items()
        for row in rows
    ]


@functools.cache
def samples(kernel: str, device: DeviceInfo, pairwise: int) -> tuple[SpaceSpec, list[Sample]]:
    """The space of a kernel, and the configurations to try."""
    spec = load_space(ROOT / "spaces" / f"{kernel}.yaml")
    return spec, sampled(spec, device, pairwise)


class Verifier:
    """Verifies the mutants of one kernel on one device."""

    def __init__(
        self,
        kernel: str,
        address: Address,
        device: DeviceInfo,
        sanitizer: str | None,
        compilers: int,
        pairwise: int,
        host: HostSanitizer | None,
        ways: Sequence[str],
    ) -> None:
        self._opened = ExitStack()
        folder = self._opened.enter_context(tempfile.TemporaryDirectory())
        os.environ["POCL_WORK_GROUP_SPECIALIZATION"] = "0"  # of all processes
        self._folder = Path(folder) / "kernels"
        shutil.copytree(ROOT / "kernels", self._folder)
        self._spec, self._samples = samples(kernel, device, pairwise)
        self._stored = StoredInputs(self._spec, Path(folder))
        self._dialect = BACKENDS[address.backend].dialect
        self._options = ("-cl-opt-disable",) if self._dialect == "opencl" else ()
        self._pool = CompilerPool(
            compiler_setting(address, device, self._spec.compiler),
            size=compilers,
            timeout_s=120,
        )
        self._opened.callback(self._pool.close)
        self._originals = [instance.source for instance, _ in self._instances(None)]
        self._defaults = list(self._of_default())  # of each element type
        smallest = self._defaults[0][1][:1]  # it tells which outputs are compared
        self._worker = Worker(DeviceSetting(address, self._spec.reference, smallest))
        self._opened.callback(self._worker.end)
        self._host = host
        self._ways = ways
        self._is_sound = False
        self._compilations: dict[tuple[str, tuple[str, ...]], Compilation] = {}
        self._unfit: dict[str, set[tuple[str, str]]] = {}  # sizes and element types, by data set
        self._sanitizer = Sanitizer(sanitizer, address, self._spec.reference) if sanitizer else None

    def close(self) -> None:
        """End the processes."""
        self._opened.close()

    def caught(self, mutant: Mutant) -> tuple[str, str]:
        """The first of WAYS that catches a mutant and what it says; empty if none does."""
        self._compilations.clear()
        if not self._is_sound:
            if words := self._verified([(one, workloads, 0) for one, workloads in self._defaults]):
                raise SystemExit(f"{self._spec.kernel}: its default fails without a mistake: {words}")
            self._is_sound = True
        tried = [
            changed
            for changed, before in zip(self._instances(mutant), self._originals, strict=True)
            if preprocessed(changed[0].source, self._dialect) != preprocessed(before, self._dialect)
        ]
        if not tried:
            return UNREACHED, "no configuration that was tried has it"
        runs: dict[str, Callable[[], Iterable[Run]]] = {
            "results": lambda: ((one, workloads, 0) for one, workloads in tried),
            "size": lambda: (
                (one, (one.workload,), 0) for one, workloads in tried if one.workload not in workloads
            ),
            "data": lambda: self._on_other_data(tried),
            "schedules": lambda: ((one, workloads, seed) for one, workloads in tried for seed in SCHEDULES),
        }
        for way, rows in runs.items():
            words = self._verified(list(rows())) if way in self._ways else ""
            if words:
                return way, words
        if words := self._often(some(tried, MAX_OFTEN)) if "runs" in self._ways else "":
            return "runs", words
        if self._host is not None:
            part = some(tried, MAX_ON_HOST)
            with ThreadPoolExecutor(self._pool.size) as threads:
                run, deadline = self._host.check, Deadline()
                checks = [
                    threads.submit(run, one.source, covering(workloads, one.config), deadline)
                    for one, workloads in part
                ]
                for check in as_completed(checks):
                    found = judged(check.result(), PASSED)  # as the default has
                    if isinstance(found, Failure):
                        threads.shutdown(cancel_futures=True)
                        return "host", found.detail
        if self._sanitizer is not None:
            part = some(tried, MAX_SANITIZED)
            compiled = [self._compiled(one) for one, _ in part]
            built = [
                (binary.result(), covering(workloads, one.config))
                for binary, (one, workloads) in zip(compiled, part, strict=True)
            ]
            sound = [(binary, workloads) for binary, workloads in built if isinstance(binary, Binary)]
            for failed in filter(None, map(first_failure, self._sanitizer.check(sound, Deadline()))):
                return "sanitizer", failed.detail
        return "", f"{len(tried)} configurations tried"

    def _often(self, tried: Sequence[Tried]) -> str:
        """The first failure in many runs of a configuration, or nothing."""
        compiled = [self._compiled(one) for one, _ in tried]
        for (_, workloads), compilation in zip(tried, compiled, strict=True):
            binary, workload = compilation.result(), workloads[len(workloads) // 2]
            if isinstance(binary, Failure) or self._worker.load(workload):
                continue
            arguments = (binary, workload, MAX_RUNS, MAX_RUNS_S)
            failure: Failure | None = self._worker.run(
                verify_often, *arguments, timeout_s=TIMEOUT_S, workloads=(workload,)
            )
            if failure is not None and failure.status in FINDINGS:
                return failure.detail
        return ""

    def _on_other_data(self, tried: Sequence[Tried]) -> Iterator[Run]:
        """The runs on each data set; as in a search, none on which the right default fails."""
        for name in (*DATA_SETS, *self._spec.special):
            for instance, workloads in tried:
                on_set = on_other_data(name, workloads, instance.workload)
                fit = tuple(one.other for one in on_set if self._is_fit(name, one.other))
                if fit:
                    yield instance, fit, 0

    def _is_fit(self, name: str, workload: Workload) -> bool:
        if name in self._spec.special:
            return True
        if name not in self._unfit:
            self._unfit[name] = {
                what_of(one)
                for default, workloads in self._defaults
                for one in (*workloads, default.workload)  # those of any configuration
                if one is not default.workload or one.size_bytes <= MAX_BYTES
                if (other := other_data(one, name))
                and (
                    not rounding_is_tolerated(self._worker, OnOtherData(one, other))
                    or self._verified([(default, (with_margin(other),), 0)])
                )
            }
        return what_of(workload) not in self._unfit[name]

    def _of_default(self) -> Iterator[Tried]:
        source = read_source(self._folder / self._spec.source.name)
        for space, _, _ in self._samples:
            if self._spec.default in space:
                maker = InstanceMaker(space, source, self._dialect, {}, self._stored)
                instance = maker.make(self._spec.default)
                yield instance, instance.verify_workloads or (instance.workload,)

    def _instances(self, mutant: Mutant | None) -> Iterator[Tried]:
        """What to compile, each with the problems to run it on."""
        path = self._folder / self._spec.source.name
        changed = self._folder / (mutant.file if mutant else path.name)
        before = changed.read_text()
        if mutant:
            changed.write_text(mutant.text())
        source = read_source(path)
        changed.write_text(before)
        for space, known, pairwise in self._samples:
            maker = InstanceMaker(space, source, self._dialect, {}, self._stored)
            for number, config in enumerate((*known, *pairwise)):
                instance = maker.make(config)
                workloads = instance.verify_workloads or (instance.workload,)
                if number >= len(known):
                    count = len(workloads)
                    turns = sorted({number % count, (number + count // 2) % count})
                    workloads = tuple(workloads[turn] for turn in turns)
                yield instance, workloads

    def _verified(self, tried: Sequence[Run]) -> str:
        """The first failure of a configuration with a schedule (0: the usual one), or nothing."""
        ahead = 2 * self._pool.size
        for start in range(0, len(tried), ahead):
            part = tried[start : start + ahead]
            compiled = [self._compiled(one, seed) for one, _, seed in part]
            for (one, workloads, seed), compilation in zip(part, compiled, strict=True):
                failure = self._failure(compilation.result(), workloads)
                if failure is None or failure.by_machine:
                    continue
                if not seed or failure.status in FINDINGS:
                    place = tried.index((one, workloads, seed))
                    return f"configuration {place + 1}: {failure.status.value}: {failure.detail}"
        return ""

    def _compiled(self, instance: KernelInstance, seed: int = 0) -> Compilation:
        """The compilation with a schedule (0: the usual one); one of each for all data sets and sizes."""
        source = perturbed(instance.source, seed) if seed else instance.source
        what = source, (*instance.options, *self._options)
        if what not in self._compilations:
            self._compilations[what] = self._pool.compile_source(*what)
        return self._compilations[what]

    def _failure(self, binary: Binary | Failure, workloads: tuple[Workload, ...]) -> Failure | None:
        if isinstance(binary, Failure):
            return binary
        failure = self._worker.load(*workloads)
        if failure is not None:  # an earlier mutant may have written anywhere
            self._worker.discard_child()
            failure = self._worker.load(*workloads)
        if failure is not None:  # the reference does not take these data
            return failure
        for workload in workloads:
            found: Failure | None = self._worker.run(
                verify_once, binary, workload, timeout_s=TIMEOUT_S, workloads=workloads
            )
            if isinstance(found, Failure):
                self._worker.discard_child()  # it may have written anywhere
                return found
        return None


def what_of(workload: Workload) -> tuple[str, str]:
    """Its sizes and its element type."""
    return size_text(workload.problem.sizes), workload.problem.dtype


def some(tried: Sequence[Tried], count: int) -> Sequence[Tried]:
    """At most so many of them, the first and others at the same distance."""
    return tried[:: -(-len(tried) // count)]


@functools.cache
def preprocessed(source: str, dialect: str) -> str:
    """What the preprocessor leaves of a source; the source itself where there is no preprocessor."""
    program = shutil.which("cpp")
    if program is None:
        return source
    defined = "-D__OPENCL_VERSION__=120" if dialect == "opencl" else "-D__CUDA_ARCH__=900"
    done = subprocess.run(
        [program, "-P", "-undef", "-w", defined], input=source, capture_output=True, text=True
    )
    return done.stdout
