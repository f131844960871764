"""The resources that a space's configurations need on an architecture: compiled, not run, without a GPU."""

from __future__ import annotations

import hashlib
import os
import random
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import chain
from math import prod
from pathlib import Path

from autotune.compilers.cubins import Cubins
from autotune.compilers.known_compilers import cuda_compiler
from autotune.compilers.occupancy import Occupancy, occupancy, why_refused
from autotune.compilers.resource_usage import Resources
from autotune.compilers.source_text import SourceText, read_source, render
from autotune.core.launch_plan import TRITON
from autotune.core.records import Config, Launch
from autotune.core.stages import OnStage, Stage, unobserved
from autotune.core.trials import Failure, Status
from autotune.devices import BACKENDS
from autotune.errors import ExpressionError, InputError, LaunchError, SpaceError
from autotune.evaluation.compiler_pool import Compilation, CompilerPool, cuda_setting
from autotune.hardware.architectures import Architecture
from autotune.space import ValidSpace, bind, problem_of, require_seen
from autotune.tuning.task import Target, read_target

_DIALECT = "cuda"
_AHEAD = 8  # configurations per compiler process


@dataclass(frozen=True)
class Checked:
    """One configuration on one architecture: a failure, or the resources that its kernels need.

    Figures are the highest of all launches; `occupancy` is of the launch with the most threads.
    """

    config: Config
    failure: Failure | None
    registers: int | None = None
    local_bytes: int | None = None
    spill_bytes: int | None = None
    shared_bytes: int | None = None  # static and dynamic
    scalar_registers: int | None = None  # of a warp; only AMD's GPUs have such
    accumulation_registers: int | None = None  # part of `registers`, on AMD's GPUs
    occupancy: Occupancy | None = None
    compile_ms: float | None = None  # 0 if the binary is of an earlier run
    cached: bool = False
    work: str = ""  # equal for equal code with equal launches; empty if it does not compile


@dataclass(frozen=True)
class Survey:
    """The checked configurations on one architecture; of a sample, the default is first if it is valid."""

    architecture: Architecture
    valid: int
    checked: tuple[Checked, ...]
    note: str = ""  # why there are no configurations
    failure: str = ""  # why the default, or one that was asked for, cannot run there

    @property
    def idle_parameters(self) -> tuple[str, ...]:
        """The parameters that change no work: most configurations show it, and none the contrary."""
        compiled = [item for item in self.checked if item.work]
        names = compiled[0].config if compiled else ()
        return tuple(name for name in names if _is_idle(name, compiled))


@dataclass(frozen=True)
class Settings:
    """How many configurations to check (None: all), which ones, and how to compile them."""

    count: int | None = None
    seed: int = 0
    timeout_s: float = 60.0
    compilers: int | None = None  # processes; None: one per core
    binaries: Path | None = None  # the cache of binaries; None keeps none
    configs: tuple[Config, ...] = ()  # the only ones to check
    options: tuple[str, ...] = ()  # of the compiler, after the space's


def _is_idle(name: str, compiled: Iterable[Checked]) -> bool:
    works: dict[Config, list[str]] = {}
    for item in compiled:
        others = Config({parameter: value for parameter, value in item.config.items() if parameter != name})
        works.setdefault(others, []).append(item.work)
    compared = sum(len(alike) for alike in works.values() if len(alike) > 1)
    total = sum(map(len, works.values()))
    return compared > total / 2 and all(len({*alike}) == 1 for alike in works.values())


def survey(
    target: Target, architectures: list[Architecture], settings: Settings, on_stage: OnStage = unobserved
) -> list[Survey]:
    """Check a space on each architecture; `target.device` is not used.

    `on_stage` is called before the first configuration of an architecture, and after each.

    Raises:
        InputError: The space is wrong, not written for CUDA, or for AMD's GPUs not in Triton.
        MissingExtra: NVRTC is not installed.
        SetupError: The space needs nvcc, which is not installed.
    """
    target, spec = read_target(target)
    if spec.dialect not in BACKENDS[_DIALECT].accepts:
        raise InputError(f"{spec.path}: expected a kernel for CUDA, found dialect {spec.dialect!r}")
    amd = next((item.name for item in architectures if item.is_amd), None)
    if amd and spec.compiler != TRITON:
        raise InputError(
            f"{spec.path}: expected a kernel in Triton for AMD's {amd}, found dialect {spec.dialect!r}"
            + ("" if spec.dialect == "cuda" else "; on a device of AMD, its OpenCL compiler takes this one")
        )
    source = read_source(spec.source, spec.include_dirs)
    cuda_compiler(architectures[0].name, spec.compiler)  # report a missing compiler once, not per process
    surveys = []
    for architecture in architectures:
        device = architecture.device
        problem = problem_of(spec, device, target.sizes, target.dtype)
        try:
            space = bind(spec, device, problem)
        except SpaceError as error:
            surveys.append(Survey(architecture, 0, (), str(error)))
            continue
        require_seen(space, source.text)
        configs = _chosen_configs(space, settings)
        stage = Stage(f"compiling for {architecture.name}", total=len(configs))
        on_stage(stage)
        checked = []
        for result in _compiled(configs, space, source, architecture, settings):
            checked.append(result)
            on_stage(replace(stage, done=len(checked)))
        surveys.append(
            Survey(architecture, len(space), tuple(checked), failure=_failure(space, checked, settings))
        )
    return surveys


def _failure(space: ValidSpace, checked: list[Checked], settings: Settings) -> str:
    """The reason why the default, or a requested configuration, cannot run; empty if all can."""
    wanted = settings.configs or (space.spec.default,)
    invalid = ("; ".join(space.why_invalid(config)) for config in wanted)
    failures = (item.failure.detail for item in checked if item.config in wanted and item.failure)
    return next(filter(None, chain(invalid, failures)), "")


def _chosen_configs(space: ValidSpace, settings: Settings) -> list[Config]:
    """The default, then all others or a sample of them; or those that were asked for, if they are valid."""
    if settings.configs:
        return [config for config in settings.configs if config in space]
    default_row = space.index(space.spec.default)
    others = [row for row in range(len(space)) if row != default_row]
    count = len(space) if settings.count is None else settings.count
    rows = ([] if default_row is None else [default_row])[:count]
    left = min(len(others), count - len(rows))
    if left < len(others):
        others = random.Random(settings.seed).sample(others, left)
    return [space.config(row) for row in [*rows, *others]]


def _compiled(
    configs: list[Config],
    space: ValidSpace,
    source: SourceText,
    architecture: Architecture,
    settings: Settings,
) -> Iterator[Checked]:
    """The results in the order of the configurations; compilers run ahead."""
    compilers = settings.compilers or len(os.sched_getaffinity(0))
    pool = CompilerPool(
        cuda_setting(architecture.name, space.spec.compiler),
        size=compilers,
        timeout_s=settings.timeout_s,
        binaries=settings.binaries,
    )
    with closing(pool):
        pending: deque[tuple[Config, Future[Compilation]]] = deque()
        for config in configs:
            text = render(source, space.macros(config))
            options = (*space.options(config, _DIALECT), *settings.options)
            pending.append((config, pool.compile_source(text, options, _symbol_names(config, space))))
            if len(pending) > compilers * _AHEAD:
                oldest, compiled = pending.popleft()
                yield _checked(oldest, compiled.result(), space, architecture)
        for config, compiled in pending:
            yield _checked(config, compiled.result(), space, architecture)


def _symbol_names(config: Config, space: ValidSpace) -> tuple[str, ...]:
    try:
        return space.symbol_names(space.launches(config))
    except ExpressionError:  # `_checked` says so
        return ()


def _checked(config: Config, compiled: Compilation, space: ValidSpace, architecture: Architecture) -> Checked:
    if isinstance(compiled, Failure):
        return Checked(config, compiled)
    cubins = Cubins(compiled)
    try:
        launches = space.launches(config)
        used = [(cubins.completed(step), cubins.resources(step.entry)) for step in launches]
    except (ExpressionError, LaunchError) as error:
        reason = f"no launch: {error}" if isinstance(error, ExpressionError) else str(error)
        return Checked(config, Failure(Status.LAUNCH_ERROR, reason), cached=compiled.cached)
    checked = _with_resources(config, used, architecture)
    work = _code_sha256(cubins, [step for step, _ in used])
    return replace(checked, compile_ms=compiled.compile_ms, cached=compiled.cached, work=work)


def _code_sha256(cubins: Cubins, launches: Iterable[Launch]) -> str:
    """A hash of launches and their code, without their entries: in Triton these name all options."""
    digest = hashlib.sha256()
    for step in launches:
        digest.update(repr(replace(step, entry=cubins.symbol(step.entry).decode())).encode())
        digest.update(cubins.contents[cubins.key(step.entry)])
    return digest.hexdigest()


def _with_resources(
    config: Config, used: list[tuple[Launch, Resources]], architecture: Architecture
) -> Checked:
    """The resources of a configuration's kernels, and the reason why a launch would be refused."""
    refused = (
        (step, why_refused(architecture, step, kernel.registers, kernel.shared_bytes, kernel.max_threads))
        for step, kernel in used
    )
    reason = next((f"{reason} ({step.entry})" for step, reason in refused if reason), None)
    largest, kernel = max(used, key=lambda item: item[0].threads)
    threads, shared_bytes = prod(largest.block), kernel.shared_bytes + largest.shared_bytes
    figures = kernel.registers, shared_bytes, kernel.scalar_registers
    return Checked(
        config=config,
        failure=Failure(Status.LAUNCH_ERROR, reason) if reason else None,
        registers=max(kernel.registers for _, kernel in used),
        local_bytes=max(kernel.local_bytes for _, kernel in used),
        spill_bytes=max(kernel.spill_bytes for _, kernel in used),
        shared_bytes=max(kernel.shared_bytes + step.shared_bytes for step, kernel in used),
        scalar_registers=max(kernel.scalar_registers for _, kernel in used),
        accumulation_registers=max(kernel.accumulation_registers for _, kernel in used),
        occupancy=None if reason else occupancy(architecture, threads, *figures),
    )
