"""Turns a configuration into all that is needed to compile and run it, and into the key of its trial."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from autotune.compilers.hidden_reads import variables_text
from autotune.compilers.source_text import SourceText, render
from autotune.core.argument_values import arguments
from autotune.core.error_bounds import DATA, UNIT_ROUNDOFF, ErrorSpec, accumulated, neighbours
from autotune.core.expressions import number, parse
from autotune.core.launch_plan import TRITON, compiler_options, device_settings, launches
from autotune.core.records import Argument, Config, DeviceInfo, Sizes
from autotune.core.text import size_text
from autotune.core.trials import USUAL, Binary, CallMode, Problem
from autotune.devices.array_compare import Tolerance
from autotune.errors import ExpressionError
from autotune.evaluation.identity import trial_key
from autotune.evaluation.work_item import Incumbent, MeasurementPolicy, WorkItem
from autotune.problem.stored_inputs import StoredInputs
from autotune.problem.workload import Array, Scalar, StoredArray, Workload, identity_of
from autotune.space import Fill, ValidSpace
from autotune.space.arguments import INPUTS
from autotune.space.spec import TRUSTED
from autotune.space.yaml_document import located

_MAX_DATA = 1000  # problems that a maker remembers


@dataclass(frozen=True)
class KernelInstance:
    """One configuration, ready to compile and run; `key` identifies its trial."""

    config: Config
    source: str
    options: tuple[str, ...]
    names: tuple[str, ...]  # C++ names to look up in the binary
    verify_workloads: tuple[Workload, ...]
    workload: Workload
    floor_ms: float
    key: str
    is_triton: bool = False

    @cached_property
    def workloads_key(self) -> str:
        """Identifies what the binary runs."""
        workloads = (*self.verify_workloads, self.workload)
        return identity_of(map(self._with_numbers, workloads) if self.is_triton else workloads)

    def _with_numbers(self, workload: Workload) -> Workload:
        """A workload whose launches name kernels in Triton by their numbers in the binary, not by options."""
        numbers = {name: str(number) for number, name in enumerate(self.names)}
        launches = tuple(
            replace(step, entry=numbers.get(step.entry, step.entry)) for step in workload.launches
        )
        return replace(workload, launches=launches)

    def uncompared(self, compared: Container[str]) -> tuple[str, ...]:
        """Outputs that the launches write and nothing compares; all outputs if none is compared.

        An array that only takes turns with a compared one does not count.
        """
        workload = self.workload
        outputs = [
            array.name
            for array in workload.arrays
            if array.role == "out" or (array.role == "inout" and not _takes_turns(array, workload, compared))
        ]
        some = any(name in compared for name in outputs)
        return tuple(
            name for name in outputs if name not in compared and (name in workload.used_names or not some)
        )

    def work_item(
        self, binary: Binary, policy: MeasurementPolicy, incumbent: Incumbent | None, batch: int | None
    ) -> WorkItem:
        """The work item that verifies and times it."""
        return WorkItem(binary, self.verify_workloads, self.workload, policy, incumbent, batch, self.floor_ms)


def _takes_turns(array: Array, workload: Workload, compared: Container[str]) -> bool:
    """Whether an array begins as a copy of one that is compared, and launches exchange them."""
    if array.fill is None or array.fill[0] != "copy" or array.fill[1] not in compared:
        return False
    entries = {
        (step.entry, step.arguments.index(array.name))
        for step in workload.launches
        if array.name in step.arguments
    }
    return any(
        entry == step.entry and step.arguments[place] == array.fill[1]
        for step in workload.launches
        for entry, place in entries
    )


class InstanceMaker:
    """Makes the kernel instances of one space; the same configuration always gives the same key."""

    def __init__(
        self,
        space: ValidSpace,
        source: SourceText,
        dialect: str,
        environment: Mapping[str, str],
        stored: StoredInputs | None = None,
    ) -> None:
        """Prepare to make instances.

        `dialect` is what the device's compiler takes, `environment` what the function of that name returns.
        `stored` has inputs and results from files and functions; it is None if nothing will run.
        """
        self.space = space
        self._stored = stored
        self._source = source
        self.dialect = dialect
        self._environment = environment
        self._verify_sizes = [{**space.problem.sizes, **sizes} for sizes in space.spec.verify_sizes]
        # by what they depend on; configurations share them, and with them their identity and their encoding
        self._data: dict[tuple[Any, ...], Workload] = {}
        self._launched: dict[tuple[Any, ...], Workload] = {}

    def without_data(self) -> InstanceMaker:
        """A maker of workloads that are only planned: it looks up no data, and its keys are void."""
        return InstanceMaker(self.space, self._source, self.dialect, {})

    def make(self, config: Config) -> KernelInstance:
        """Make one instance; raise ExpressionError when the space's expressions give no usable numbers."""
        space = self.space
        offsets = enumerate(self._verify_sizes, 1)
        at_sizes = [self.workload_to_verify(config, sizes, offset) for offset, sizes in offsets]
        values = space.values(config)
        workloads = (*filter(None, at_sizes), self._workload_at(values, space.problem))
        options = compiler_options(space.spec.compiler_options.get(self.dialect, {}), values)
        generate = space.spec.functions.source
        return KernelInstance(
            config=config,
            source=generate(config) if generate else render(self._source, space.macros(config)),
            options=options,
            names=space.symbol_names(step for workload in workloads for step in workload.launches),
            verify_workloads=workloads[:-1],
            workload=workloads[-1],
            floor_ms=self._floor_ms(values),
            key=self.key(config, options, workloads),
            is_triton=space.spec.compiler == TRITON,
        )

    def key(self, config: Config, options: tuple[str, ...] = (), workloads: tuple[Workload, ...] = ()) -> str:
        """The key of a trial in the journal; without workloads, of a configuration that cannot launch."""
        generate = self.space.spec.functions.source
        text = generate(config).encode() if generate else b""
        return trial_key(
            hashlib.sha256(text).hexdigest() if generate else self._source.sha256,
            config,
            options,
            compiler=self.space.spec.compiler,
            workloads=workloads,
            environment=self._environment,
        )

    def key_now(self, config: Config) -> str | None:
        """The key that a trial of a configuration would have; None if the space does not have it."""
        try:
            return self.make(config).key if config in self.space else None
        except ExpressionError:
            return None

    def has_same_inputs(self, first: Problem, second: Problem) -> bool:
        """True if all inputs of two problems are stored and equal."""
        kinds = {argument.fill.kind for argument in self.space.spec.arguments if argument.fill is not None}
        if self._stored is None or not kinds <= {"file", INPUTS}:
            return False
        hashes = [
            {name: array.sha256 for name, array in self._stored.arrays_of(problem).items()}
            for problem in (first, second)
        ]
        return hashes[0] == hashes[1]

    def workload(self, config: Config, problem: Problem) -> Workload:
        """Evaluate arguments and launches of a configuration for one problem; raises ExpressionError."""
        return self._workload_at(self.space.values(config, problem.sizes), problem)

    def workload_to_verify(
        self, config: Config, sizes: Sizes, seed_offset: int, variant: str = ""
    ) -> Workload | None:
        """The workload to verify a configuration on at these sizes; None if it is not valid there.

        `seed_offset` gives it a seed of its own, hence its own poison. Raises ExpressionError.
        """
        values = self.space.valid_values(config, sizes)
        if values is None:
            return None
        seed = self.space.problem.seed + seed_offset
        problem = replace(self.space.problem, sizes=sizes, seed=seed, variant=variant)
        return self._workload_at(values, problem, to_verify=True)

    def _workload_at(
        self, values: Mapping[str, Any], problem: Problem, *, to_verify: bool = False
    ) -> Workload:
        """The workload of a problem for given values of names.

        `to_verify` is for the sizes to verify, at which nothing but the reference is trusted.
        """
        spec = self.space.spec
        try:
            values = self.space.launch_values(values)
            read = tuple(repr(values[name]) for name in spec.problem_names if name in values)
            key = (to_verify, problem.seed, problem.variant, repr(problem.sizes), read)
            data = _remembered(self._data, key, lambda: self._without_launches(values, problem, to_verify))
            launched = launches(spec.launch, values, spec.arguments)
            if not launched:
                raise ExpressionError("nothing is launched, because no `when` holds", "launch")
            settings = device_settings(spec.device, values)
            return _remembered(
                self._launched,
                (key, launched, settings),
                lambda: replace(data, launches=launched, settings=settings),
            )
        except ExpressionError as error:
            where = located(spec.path, error.place)
            raise ExpressionError(f"{where}: {error} (at {size_text(problem.sizes)})") from None

    def _without_launches(self, values: Mapping[str, Any], problem: Problem, to_verify: bool) -> Workload:
        """The workload of a problem without its launches, the same for most configurations."""
        space = self.space
        evaluated = arguments(space.spec.arguments, values, problem.dtype)
        fills = {item.name: item.fill for item in space.spec.arguments}
        stored = self._stored.arrays_of(problem) if self._stored else {}
        kept = space.spec.call.kept if space.spec.call else {}
        arrays = tuple(
            _stored_array(item, stored[item.name])
            if item.name in stored
            else _array(item, fills[item.name], item.name in kept)
            for item in evaluated
            if item.value is None and item.role not in ("view", "local")
        )
        usual = _tolerance(space.spec.rtol, space.spec.atol, values)
        bounds = {name: _tolerance(*texts, values) for name, texts in space.spec.tolerances.items()}
        for array in arrays:
            if (error := space.spec.errors.get(array.name)) and array.dtype in UNIT_ROUNDOFF:
                bounds[array.name] = _bound(error, array.dtype, bounds.get(array.name, usual), values)
        is_trusted = space.spec.full == TRUSTED and not to_verify
        workload = Workload(
            problem=problem,
            arrays=arrays,
            expected=self._stored.expected(problem, arrays) if self._stored and not is_trusted else None,
            scalars=tuple(
                Scalar(item.name, item.dtype, item.value) for item in evaluated if item.value is not None
            ),
            launches=(),
            tolerance=usual,
            views=_views(evaluated, arrays),
            local=tuple(item for item in evaluated if item.role == "local"),
            bounds=tuple((array.name, bounds[array.name]) for array in arrays if array.name in bounds),
        )
        if not (is_trusted and self._stored):
            return workload
        return replace(workload, trusted=self._stored.trusted(workload.data_key))

    def _floor_ms(self, values: Mapping[str, Any]) -> float:
        """The time to move the work's bytes at the memory's bandwidth; 0 if unknown or held in caches.

        Warm caches hold a part of them even if the whole does not fit.
        """
        bandwidth = self.space.device.memory_bandwidth_bytes_per_s
        work_bytes = _work(self.space, values).get("bytes")
        fits_in_cache = work_bytes is not None and work_bytes <= 2 * self.space.device.cache_bytes
        if bandwidth is None or work_bytes is None or fits_in_cache:
            return 0.0
        held_bytes = self.space.device.cache_bytes if self.space.spec.measure.cache == "warm" else 0
        return (work_bytes - held_bytes) / bandwidth * 1e3


def _remembered(
    remembered: dict[tuple[Any, ...], Workload], key: tuple[Any, ...], make: Callable[[], Workload]
) -> Workload:
    workload = remembered.get(key)
    if workload is None:
        if len(remembered) == _MAX_DATA:
            remembered.clear()
        workload = remembered[key] = make()
    return workload


def environment(device: DeviceInfo, compiler: str, call_mode: CallMode = USUAL) -> dict[str, str]:
    """All that a time depends on except for the kernel: device, driver, runtime, compiler, call mode."""
    measured = {"measure": str(call_mode)} if str(call_mode) else {}
    variables = variables_text("opencl" if device.backend == "opencl" else compiler.partition(" ")[0])
    return (
        {
            "device": device.name,
            "backend": device.backend,
            "driver": device.driver,
            "runtime": device.runtime,
            "compiler": compiler,
        }
        | device.identity
        | measured
        | ({"variables": variables} if variables else {})
    )


def work(space: ValidSpace, config: Config, sizes: Sizes) -> dict[str, float]:
    """The problem's `bytes` and `flops`, if the space file gives them."""
    return _work(space, space.values(config, sizes))


def _work(space: ValidSpace, values: Mapping[str, Any]) -> dict[str, float]:
    return {name: float(number(parse(text), values)) for name, text in space.spec.work.items()}


def _views(evaluated: Iterable[Argument], arrays: Iterable[Array]) -> tuple[Argument, ...]:
    """The arguments that are views; raises ExpressionError for one that begins beyond its array."""
    views = tuple(view for view in evaluated if view.role == "view")
    sizes = {array.name: array.size_bytes for array in arrays}
    for view in views:
        if view.offset_bytes > sizes[view.of]:
            raise ExpressionError(
                f"argument {view.name}: begins {view.offset_bytes} bytes after the start of {view.of}, "
                f"which has {sizes[view.of]}"
            )
    return views


def _not_negative(place: str, text: str, values: Mapping[str, Any]) -> float:
    value = float(number(parse(text), values))
    if value < 0:
        raise ExpressionError(f"{text!r} gives {value}, expected at least 0", place)
    return value


def _tolerance(rtol: str, atol: str, values: Mapping[str, Any]) -> Tolerance:
    return Tolerance(_not_negative("verify", rtol, values), _not_negative("verify", atol, values))


def _bound(error: ErrorSpec, dtype: str, base: Tolerance, values: Mapping[str, Any]) -> Tolerance:
    """The tolerance of one output by its error bound; both results are rounded to the output's type."""
    operations = math.ceil(_not_negative("verify.error", error.operations, values))
    factor = accumulated(operations, error.dtype or dtype, error.kind) * (1 + UNIT_ROUNDOFF[dtype])
    rtol, atol = neighbours(dtype)
    if error.magnitude == DATA:
        return Tolerance(base.rtol + rtol, base.atol + atol, factor)
    magnitude = _not_negative("verify.magnitude", error.magnitude, values)
    return Tolerance(base.rtol + rtol, base.atol + atol + factor * magnitude)


def _array(argument: Argument, fill: Fill | None, is_kept: bool = False) -> Array:
    content = None if fill is None else (fill.kind, *fill.arguments)
    name, dtype, shape, role = argument.name, argument.dtype, argument.shape, argument.role
    return Array(name, dtype, shape, role, content, symbol=argument.symbol, is_kept=is_kept)


def _stored_array(argument: Argument, stored: StoredArray) -> Array:
    """An array that is read from a file; raises ExpressionError when the space declares another shape."""
    if stored.shape != argument.shape:
        shape, declared = list(stored.shape), list(argument.shape)
        raise ExpressionError(
            f"argument {argument.name}: the data has the shape {shape}, the space {declared}"
        )
    return replace(_array(argument, None), fill=("stored", stored.sha256), path=stored.path)
