"""Finds out why a configuration takes as long as it does, without a profiler's permissions.

A configuration is verified and timed like any other, and then runs again in other forms: with counters in its
PTX, with shared memory that it does not need, without its arithmetic or its memory accesses, and as the same
launches of an empty kernel. Together with the device's ceilings these tell what it waits for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import ceil, prod
from pathlib import Path
from statistics import median

from autotune.analysis.advice import advice_from
from autotune.analysis.bottleneck import Times, verdict
from autotune.analysis.bound import Bound
from autotune.analysis.counting import count_instructions
from autotune.analysis.hardware_counters import hardware_counters, why_not
from autotune.analysis.known_times import known_times
from autotune.analysis.littles_law import (
    ArithmeticInFlight,
    LittlesLaw,
    arithmetic_in_flight,
    littles_law,
)
from autotune.analysis.resource_use import Use, Work, uses
from autotune.analysis.transfers import call_transfer_ms
from autotune.compilers.occupancy import Occupancy, bytes_to_add
from autotune.compilers.ptx_counters import Counts
from autotune.compilers.sass import MachineCode, find_disassembler, read_machine_code, without_unrolling
from autotune.core.records import Config, Launch, Sizes
from autotune.core.stages import Stage
from autotune.core.trials import Binary, Failure, Status, Trial
from autotune.errors import CompileError, InputError, SetupError
from autotune.evaluation.device_samples import sample
from autotune.evaluation.device_use import largest_launch, occupancy_of
from autotune.evaluation.instance import KernelInstance, work
from autotune.evaluation.work_item import ProblemInstance
from autotune.hardware.architectures import ARCHITECTURES, WARP, Architecture
from autotune.serving.ceilings import Ceiling, known_ceilings
from autotune.space.lint import VARIANTS
from autotune.tuning.context import FULL_POLICY, TuningContext, default_journal, open_context
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask

MAX_LADDER = 6  # steps of occupancy
_SAMPLES = 5


@dataclass(frozen=True)
class LadderStep:
    """The time with so many blocks on a multiprocessor."""

    blocks: int
    warps: int
    occupancy: float
    time_ms: float


@dataclass(frozen=True)
class Diagnosis:
    """What a configuration takes, moves, computes and waits for.

    Attributes:
        origin: What the configuration is, such as "the tuned best".
        resident_warps: On a multiprocessor: what fits there, or what the grid has for it.
        launch_ms: Time of the same launches of an empty kernel.
        transfer_ms: Time of copying inputs and outputs, where that was asked for.
        uses: Of each resource whose amount and ceiling are known, the highest share first.
        ladder: Times at lower and lower occupancy, the configuration's own first.
        variants_ms: Times of MEMORY_ONLY and COMPUTE_ONLY, if the source knows them.
        missing: What could not be found out, and why.
        advice: What the known trials say of changing one parameter.
    """

    kernel: str
    device: str
    sizes: Sizes
    dtype: str
    config: Config
    origin: str
    time_ms: float
    bound: Bound
    reason: str
    occupancy: Occupancy | None = None
    resident_warps: int | None = None
    launches: int = 1
    launch_ms: float | None = None
    transfer_ms: float | None = None
    uses: tuple[Use, ...] = ()
    counts: Counts | None = None
    ladder: tuple[LadderStep, ...] = ()
    variants_ms: Mapping[str, float] = field(default_factory=dict)
    littles_law: LittlesLaw | None = None
    arithmetic_in_flight: ArithmeticInFlight | None = None
    machine_code: MachineCode | None = None
    hardware_counters: Mapping[str, float] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()


@contextmanager
def open_diagnosis(task: TuningTask, options: Options, observer: Observer) -> Iterator[TuningContext]:
    """Open the compilers and the worker for diagnoses of a space; trials go to a journal of their own.

    Raises WriteError if the journal cannot be written.
    """
    own = replace(options, journal=options.journal or default_journal(task, "diagnose.jsonl"), fresh=True)
    with open_context(task, own, observer, FULL_POLICY) as context:
        observer.started(task, None, context.journal)
        yield context


def diagnose(
    context: TuningContext,
    config: Config,
    origin: str = "",
    *,
    cache: Path | None = None,
    with_transfers: bool = False,
) -> Diagnosis:
    """Diagnose one configuration.

    Args:
        context: As `open_diagnosis` gives it.
        config: A valid configuration.
        origin: What it is.
        cache: The folder of ceilings and earlier results; None takes the usual ones.
        with_transfers: Judge a call whose inputs come from the host and whose results go back.

    Raises:
        SetupError: The configuration, the reference or the device fails.
    """
    trial = context.evaluator([config])[0]
    if trial.status is not Status.OK:
        raise SetupError(f"{context.task.spec.path}: {config}: {trial.failure}")
    ceilings = known_ceilings(context.task.device.slug, cache)
    return _Examination(context, trial, ceilings).diagnosis(origin, cache, with_transfers)


class _Examination:
    """Runs one configuration in other forms; notes what it cannot find out."""

    def __init__(self, context: TuningContext, trial: Trial, ceilings: Mapping[str, Ceiling]) -> None:
        assert trial.measurement is not None
        self._context, self._trial, self._ceilings = context, trial, ceilings
        self._task, self._space = context.task, context.task.space
        self._device = context.task.device
        self._instance: KernelInstance = context.maker.make(trial.config)
        self._problem = self._instance.problem
        self._main = largest_launch(self._space, trial.config)
        self._measured = trial.measurement
        self._held = occupancy_of(self._space, trial)
        changed = any(one.role == "inout" and one.name in self._problem.used for one in self._problem.arrays)
        self._repeatable = self._measured.batch > 1 or not changed
        self._missing: list[str] = []

    def diagnosis(self, origin: str, cache: Path | None, with_transfers: bool) -> Diagnosis:
        """Run everything and put it together."""
        trial, problem = self._trial, self._space.problem
        binary = self._compiled(self._instance.source)
        counts = self._counts()
        launch_ms = self._launch_ms()
        transfer = self._transfer_ms() if with_transfers else None
        variants = self._variants_ms()
        run_ms = self._measured.median_ms
        if not self._ceilings:
            self._missing.append("ceilings are nominal or unknown: measure them with `autotune ceilings`")
        used = uses(self._device, self._ceilings, self._work(counts), run_ms)
        bound, reason = verdict(Times(run_ms, launch_ms, transfer, variants), used, counts)
        ladder = tuple(self._ladder(binary, run_ms))
        reason += _ladder_text(ladder) if bound is Bound.LATENCY else ""
        warps = self._resident_warps() or 0
        in_flight = counts.bytes_per_thread_in_flight if counts else 0.0
        return Diagnosis(
            kernel=self._task.spec.kernel,
            device=self._device.name,
            sizes=problem.sizes,
            dtype=problem.dtype,
            config=trial.config,
            origin=origin,
            time_ms=run_ms,
            bound=bound,
            reason=reason,
            occupancy=self._held,
            resident_warps=warps or None,
            launches=len(self._problem.launches),
            launch_ms=launch_ms,
            transfer_ms=transfer,
            uses=used,
            counts=counts,
            ladder=ladder,
            variants_ms=variants,
            littles_law=littles_law(self._device, self._ceilings, warps, in_flight),
            arithmetic_in_flight=arithmetic_in_flight(self._device, self._ceilings, warps, problem.dtype),
            machine_code=self._machine_code(binary),
            hardware_counters=self._hardware_counters(binary),
            missing=tuple(self._missing),
            advice=advice_from(trial.config, known_times(self._task, cache), run_ms),
        )

    def _work(self, counts: Counts | None) -> Work:
        """What a run moves and computes; without `work` in the space, every array it uses once."""
        stated = work(self._space, self._trial.config, self._space.problem.sizes)
        sizes = _array_bytes(self._problem)
        array_bytes = sum(size for _, size in sizes)
        stored = sum(size for role, size in sizes if role != "in")
        if counts and counts.global_load_bytes + counts.global_store_bytes:
            share = counts.global_store_bytes / (counts.global_load_bytes + counts.global_store_bytes)
        else:
            share = stored / array_bytes if array_bytes else 0.0
        return Work(
            bytes=stated.get("bytes", array_bytes),
            array_bytes=array_bytes,
            store_share=share,
            flops=stated.get("flops"),
            dtype=self._space.problem.dtype,
            counts=counts,
        )

    def _resident_warps(self) -> int | None:
        """Warps on a multiprocessor: what it holds, or what the grid has for it."""
        if self._held is None:
            return None
        warps = ceil(prod(self._main.block) / WARP)
        blocks = ceil(prod(self._main.grid) / self._device.compute_units)
        return warps * min(self._held.blocks, blocks)

    def _compiled(self, source: str) -> Binary:
        """Compile a source as the configuration's; raises SetupError."""
        pool, instance = self._context.pool, self._instance
        compiled = pool.submit(source, instance.options, instance.names).result()
        if isinstance(compiled, Failure):
            raise SetupError(str(compiled))
        return compiled

    def _time_ms(self, binary: Binary, launches: tuple[Launch, ...]) -> float:
        """The time of other launches, or of another binary; raises SetupError."""
        problem = replace(self._problem, launches=launches)
        failure = self._context.worker.prepare(problem)
        found: tuple[float, ...] | Failure = failure or self._context.worker.run(
            sample,
            binary,
            problem,
            self._context.policy.conditions,
            timeout_s=self._context.timeout_s,
            count=_SAMPLES,
            batch=self._measured.batch,
            repeatable=self._repeatable,
            is_checked=False,
        )
        if isinstance(found, Failure):
            raise SetupError(str(found))
        return median(found)

    def _counts(self) -> Counts | None:
        """What a run executes, counted by its PTX; None where that is not possible."""
        self._stage("counting instructions")
        try:
            return count_instructions(self._context, self._instance)
        except (SetupError, InputError, CompileError) as error:
            self._missing.append(f"instructions were not counted: {error}")
            return None

    def _launch_ms(self) -> float | None:
        """The time of the same launches of empty kernels."""
        self._stage("timing empty launches")
        word = {"cuda": 'extern "C" __global__ void', "opencl": "__kernel void"}.get(self._task.dialect)
        if word is None or self._task.spec.source.suffix == ".py":
            self._missing.append("empty launches were not timed: that needs CUDA C++ or OpenCL C")
            return None
        launches = self._problem.launches
        names = list(dict.fromkeys(step.entry for step in launches))
        source = "".join(f"{word} empty_{place}() {{}}\n" for place in range(len(names)))
        empty = tuple(
            replace(step, entry=f"empty_{names.index(step.entry)}", arguments=()) for step in launches
        )
        compiled = self._context.pool.submit(source, ()).result()
        try:
            if isinstance(compiled, Failure):
                raise SetupError(compiled.detail)
            return self._time_ms(compiled, empty)
        except SetupError as error:
            self._missing.append(f"empty launches were not timed: {error}")
            return None

    def _transfer_ms(self) -> float | None:
        """The time of copying inputs to the device and results back, from pageable memory."""
        self._stage("timing transfers")
        try:
            return call_transfer_ms(self._context, self._problem, pinned=False)
        except SetupError as error:
            self._missing.append(f"no {error}")
            return None

    def _variants_ms(self) -> dict[str, float]:
        """The times of the variants that the source knows, at the same occupancy."""
        found = {}
        for name in VARIANTS:
            if not re.search(rf"^[ \t]*#[^\n]*\b{name}\b", self._task.source.text, re.MULTILINE):
                continue
            self._stage(f"timing {name}")
            try:
                binary = self._compiled(f"#define {name} 1\n{self._instance.source}")
                found[name] = self._time_ms(binary, self._as_occupied(binary))
            except SetupError as error:
                self._missing.append(f"{name}: {error}")
        if not found:
            self._missing.append(f"the source has no variants ({' and '.join(VARIANTS)})")
        return found

    def _as_occupied(self, binary: Binary) -> tuple[Launch, ...]:
        """The launches of a variant that needs less of a multiprocessor, with as many blocks on it."""
        where = ARCHITECTURES.get(self._device.architecture)
        if where is None or self._held is None or self._task.dialect != "cuda":
            return self._problem.launches
        extra = self._extra_bytes(where, self._held.blocks, binary)
        return self._problem.launches if extra is None else self._enlarged(extra)

    def _ladder(self, binary: Binary, run_ms: float) -> Iterator[LadderStep]:
        """Times with fewer and fewer blocks on a multiprocessor, by shared memory that nothing uses."""
        where, held = ARCHITECTURES.get(self._device.architecture), self._held
        if where is None or held is None or self._task.dialect != "cuda":
            self._missing.append("no occupancy ladder: it needs dynamic shared memory, which only CUDA has")
            return
        warps = ceil(prod(self._main.block) / WARP)
        yield LadderStep(held.blocks, held.warps, held.share, run_ms)
        fewer = {round(held.blocks * step / MAX_LADDER) for step in range(1, MAX_LADDER)} - {0, held.blocks}
        for blocks in sorted(fewer, reverse=True):
            self._stage(f"timing {blocks} blocks on a multiprocessor")
            extra = self._extra_bytes(where, blocks, binary)
            if extra is None:
                continue
            try:
                time_ms = self._time_ms(binary, self._enlarged(extra))
            except SetupError as error:
                self._missing.append(f"{blocks} blocks on a multiprocessor: {error}")
                return
            yield LadderStep(blocks, blocks * warps, blocks * warps / where.warps, time_ms)

    def _extra_bytes(self, where: Architecture, blocks: int, binary: Binary) -> int | None:
        """Shared memory to add to a block so that just so many are resident; None if there is no amount."""
        used = (binary.shared_bytes or 0) + self._main.shared_bytes
        return bytes_to_add(where, prod(self._main.block), binary.registers or 1, used, blocks)

    def _enlarged(self, extra_bytes: int) -> tuple[Launch, ...]:
        return tuple(
            replace(step, shared_bytes=step.shared_bytes + extra_bytes) if step == self._main else step
            for step in self._problem.launches
        )

    def _machine_code(self, binary: Binary) -> MachineCode | None:
        """Facts of the largest launch's machine code; None where it cannot be read."""
        program = find_disassembler()
        if self._task.dialect != "cuda" or program is None:
            needed = "nvdisasm, which comes with the CUDA toolkit" if program is None else "a CUDA device"
            self._missing.append(f"machine code was not read: that needs {needed}")
            return None
        source, entry = self._instance.source, self._main.entry
        rolled = without_unrolling(source)
        try:
            code = read_machine_code(binary.data, program).get(binary.symbol(entry))
            if code is None or rolled == source:
                return code
            other = self._compiled(rolled)
            is_unrolled = read_machine_code(other.data, program).get(other.symbol(entry)) != code
            return replace(code, is_unrolled=is_unrolled)
        except SetupError as error:
            self._missing.append(f"machine code was not read: {error}")
            return None

    def _hardware_counters(self, binary: Binary) -> dict[str, float]:
        """Those that Nsight Compute reads; none where it is not installed or not allowed."""
        self._stage("reading hardware counters")
        try:
            return hardware_counters(self._task, binary, self._problem)
        except (InputError, SetupError) as error:
            self._missing.append(why_not(error))
            return {}

    def _stage(self, text: str) -> None:
        self._context.observer.stage(Stage(text))


def _ladder_text(ladder: tuple[LadderStep, ...]) -> str:
    if len(ladder) < 2:
        return ""
    last, first = ladder[-1], ladder[0]
    return (
        f"; with {last.warps} instead of {first.warps} warps on a multiprocessor it takes "
        f"{last.time_ms / first.time_ms:.2f} times as long"
    )


def _array_bytes(problem: ProblemInstance) -> list[tuple[str, int]]:
    return [(one.role, one.size_bytes) for one in problem.arrays if one.name in problem.used]
