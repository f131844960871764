"""One configuration in other forms, each compiled and timed as the configuration itself was.

These are the same launches of empty kernels, variants without arithmetic or memory accesses, and launches
with shared memory that nothing uses, which lets fewer blocks onto a multiprocessor. One more, with counters
in its PTX, runs once and is not timed.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil, prod
from statistics import median
from typing import NamedTuple

from autotune.compilers.nvidia_tools import find_tool
from autotune.compilers.occupancy import Occupancy, bytes_to_add
from autotune.compilers.ptx_counters import COUNTER_BYTES, VARIABLE, Counts, counts_of, with_counters
from autotune.compilers.sass import MachineCode, read_machine_code, without_unrolling
from autotune.core.records import Launch
from autotune.core.trials import Binary, Failure, Trial
from autotune.diagnosis.probing import variable_after_run
from autotune.diagnosis.trial_occupancy import largest_launch, occupancy_of
from autotune.errors import InputError, SetupError
from autotune.evaluation.device_samples import sample
from autotune.evaluation.instance import KernelInstance
from autotune.hardware.architectures import ARCHITECTURES, WARP
from autotune.sources.kernel_source import KernelSource, read_kernel_source
from autotune.sources.removals import ATOMICS, BARRIER_CALLS, CHECKS, without
from autotune.space.dry_runs import leaves_arrays
from autotune.space.signatures import own_name, space_macros
from autotune.tuning.context import TuningContext

MAX_LADDER = 6  # steps of occupancy
_SAMPLES = 5
_REMOVED = {"NO_ATOMICS": ATOMICS, "NO_BARRIERS": BARRIER_CALLS, "NO_BOUNDS_CHECKS": CHECKS}


@dataclass(frozen=True)
class LadderStep:
    """The time with so many blocks on a multiprocessor."""

    blocks: int
    warps: int
    occupancy: float
    time_ms: float


class Form(NamedTuple):
    """A source and its options, and in words how they are made from the configuration's."""

    source: str
    options: tuple[str, ...]
    how: str


class OtherForms:
    """A configuration that was timed; its methods raise SetupError where another form of it fails."""

    def __init__(self, context: TuningContext, trial: Trial) -> None:
        assert trial.measurement is not None
        self._context, self._task, self._measured = context, context.task, trial.measurement
        self.instance: KernelInstance = context.maker.make(trial.config)
        self.workload = self.instance.workload
        self.main = largest_launch(context.task.space, trial.config)
        self.occupancy = occupancy_of(context.task.space, trial)
        self.binary = self._compiled(self.instance.source)
        used = self.workload.used_names
        changed = any(array.role == "inout" and array.name in used for array in self.workload.arrays)
        self._repeatable = self._measured.batch > 1 or not changed

    def resident_warps(self) -> int | None:
        """Warps on a multiprocessor: what it holds, or what the grid has for it; None if not known."""
        if self.occupancy is None:
            return None
        blocks = ceil(prod(self.main.grid) / self._task.device.compute_units)
        return self._warps_per_block * min(self.occupancy.blocks, blocks)

    def counts(self, form: Form | None = None) -> Counts:
        """Counts of the instructions of a run, or of one in another form.

        Raises InputError where the device or the kernel's language has no PTX, and CompileError if NVRTC
        refuses the source.
        """
        task = self._task
        source, options, _ = form or self._own_form
        if not task.address.is_nvidia or task.spec.source.suffix == ".py" or task.spec.compiler == "nvcc":
            raise InputError("that needs a CUDA device and a kernel that NVRTC compiles")
        from autotune.compilers.nvrtc import CudaCompiler

        architecture = task.device.architecture
        ptx, symbols = CudaCompiler(architecture).ptx(source, options, self.instance.names)
        counted = with_counters(ptx, architecture)
        data = counted.text.encode() + b"\0"
        own = {name: symbol for name, symbol in symbols.items() if name != symbol}
        binary = Binary(data, hashlib.sha256(data).hexdigest(), "", 0.0, symbols=own)
        counters = self._context.run(variable_after_run, binary, self.workload, VARIABLE)
        if isinstance(counters, Failure):
            raise SetupError(str(counters))
        return counts_of(counted, struct.unpack(f"<{len(counters) // COUNTER_BYTES}Q", counters))

    def empty_launches_ms(self) -> float:
        """The time of the same launches of empty kernels; raises InputError where none can be written."""
        word = {"cuda": 'extern "C" __global__ void', "opencl": "__kernel void"}.get(self._task.dialect)
        if word is None or self._task.spec.source.suffix == ".py":
            raise InputError("that needs CUDA C++ or OpenCL C")
        launches = self.workload.launches
        names = list(dict.fromkeys(step.entry for step in launches))
        source = "".join(f"{word} empty_{place}() {{}}\n" for place in range(len(names)))
        empty = tuple(
            replace(step, entry=f"empty_{names.index(step.entry)}", arguments=()) for step in launches
        )
        compiled = self._context.pool.compile_source(source, ()).result()
        if isinstance(compiled, Failure):
            raise SetupError(compiled.detail)
        return self._time_ms(compiled, empty)

    def form(self, variant: str) -> Form | None:
        """The configuration as a variant: by its macro, or made from the source or the options; None without.

        Raises InputError where it cannot surely be made.
        """
        source, options, _ = self._own_form
        if self._own_source is not None and variant not in self._values:
            if self._read_with({variant: "1"}).code.text != self._own_source.code.text:
                return Form(f"#define {variant} 1\n{source}", options, "by its macro")
            if variant in _REMOVED:
                text = self._without(_REMOVED[variant], self._own_source)
                return Form(text, options, f"{_REMOVED[variant]} taken out") if text else None
        uncapped = tuple(option for option in options if "maxrregcount" not in option)
        if variant == "NO_SPILLS" and self.binary.spill_bytes and uncapped != options:
            return Form(source, uncapped, "without its cap of registers")
        return None

    def form_ms(self, form: Form) -> float:
        """The time of a form at the same occupancy, also if it needs less of a multiprocessor."""
        binary = self._compiled(form.source, form.options)
        occupancy = self.adjustable_occupancy
        launches = self._launches_with(occupancy.blocks, binary) if occupancy else None
        return self._time_ms(binary, launches or self.workload.launches)

    @cached_property
    def _values(self) -> dict[str, str]:
        return space_macros(self._task.space, self.instance.config)

    @cached_property
    def _own_source(self) -> KernelSource | None:
        """The configuration's source; None for one in Python, or made by a function."""
        source = self._task.source
        is_own = source.path.suffix != ".py" and self.instance.source.endswith(source.text)
        return self._read_with({}) if is_own else None

    def _read_with(self, macros: Mapping[str, str], text: str = "") -> KernelSource:
        """The source, or a changed text of it, with the configuration's macros and others."""
        own = self._task.source.text
        return read_kernel_source(text or own, {**self._values, **macros}, self._task.spec.dialect)

    @property
    def _inputs(self) -> dict[str, set[int]]:
        """The places of inputs among the arguments of each kernel."""
        names = {array.name for array in self.workload.arrays if array.role == "in"}
        inputs: dict[str, set[int]] = {}
        for step in self.workload.launches:
            places = {place for place, name in enumerate(step.arguments) if name in names}
            own = own_name(step.entry)
            inputs[own] = inputs.get(own, places) & places
        return inputs

    def _without(self, kind: str, read: KernelSource) -> str:
        """The source of the configuration without something; empty if it has none."""
        left = without(kind, read, self._inputs)
        if left is None:
            return ""
        if kind == CHECKS:
            after = self._read_with({}, left)
            if why := leaves_arrays(self._task.space, self.instance.config, read, after):
                raise InputError(f"without {kind}, {why}")
        return self.instance.source.removesuffix(read.original) + left

    @property
    def adjustable_occupancy(self) -> Occupancy | None:
        """The occupancy, where shared memory that nothing uses can lower it: on a known CUDA device."""
        is_known = self._task.address.is_nvidia and self._task.device.architecture in ARCHITECTURES
        return self.occupancy if is_known else None

    def ladder(self, occupancy: Occupancy) -> dict[int, tuple[Launch, ...]]:
        """The launches with fewer and fewer blocks on a multiprocessor than it holds, by their number."""
        most = occupancy.blocks
        fewer = {round(most * step / MAX_LADDER) for step in range(1, MAX_LADDER)} - {0, most}
        steps = {blocks: self._launches_with(blocks, self.binary) for blocks in sorted(fewer, reverse=True)}
        return {blocks: launches for blocks, launches in steps.items() if launches is not None}

    def ladder_step(self, blocks: int, launches: tuple[Launch, ...]) -> LadderStep:
        """Time a step of the ladder."""
        warps = blocks * self._warps_per_block
        occupancy = warps / ARCHITECTURES[self._task.device.architecture].warps
        return LadderStep(blocks, warps, occupancy, self._time_ms(self.binary, launches))

    def machine_code(self) -> MachineCode | None:
        """Facts of the largest launch's machine code, if it is there; raises InputError without means."""
        program = find_tool("nvdisasm")
        if program is None:
            raise InputError("that needs nvdisasm, which comes with the CUDA toolkit")
        if not self._task.address.is_nvidia:
            raise InputError("that needs a CUDA device")
        source, entry = self.instance.source, self.main.entry
        rolled = without_unrolling(source)
        code = read_machine_code(self.binary.data, program).get(self.binary.symbol(entry))
        if code is None or rolled == source:
            return code
        binary = self._compiled(rolled)
        is_unrolled = read_machine_code(binary.data, program).get(binary.symbol(entry)) != code
        return replace(code, is_unrolled=is_unrolled)

    @property
    def _warps_per_block(self) -> int:
        return ceil(prod(self.main.block) / WARP)

    def _launches_with(self, blocks: int, binary: Binary) -> tuple[Launch, ...] | None:
        """The launches with so much more shared memory that just so many blocks are resident, if possible."""
        where = ARCHITECTURES[self._task.device.architecture]
        used_bytes = (binary.shared_bytes or 0) + self.main.shared_bytes
        extra_bytes = bytes_to_add(where, prod(self.main.block), binary.registers or 1, used_bytes, blocks)
        if extra_bytes is None:
            return None
        return tuple(
            replace(step, shared_bytes=step.shared_bytes + extra_bytes) if step == self.main else step
            for step in self.workload.launches
        )

    @property
    def _own_form(self) -> Form:
        return Form(self.instance.source, self.instance.options, "as it is")

    def _compiled(self, source: str, options: tuple[str, ...] | None = None) -> Binary:
        """Compile a source with the configuration's options, or with others."""
        given = self.instance.options if options is None else options
        compiled = self._context.pool.compile_source(source, given, self.instance.names).result()
        if isinstance(compiled, Failure):
            raise SetupError(str(compiled))
        return compiled

    def _time_ms(self, binary: Binary, launches: tuple[Launch, ...]) -> float:
        """The time of other launches, or of another binary."""
        workload = replace(self.workload, launches=launches)
        samples = self._context.run_or_discard(
            sample,
            binary,
            workload,
            self._context.policy.call_mode,
            count=_SAMPLES,
            batch=self._measured.batch,
            repeatable=self._repeatable,
            is_checked=False,
        )
        if isinstance(samples, Failure):
            raise SetupError(str(samples))
        return median(samples)
