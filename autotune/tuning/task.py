"""Turns what a user names into a task to run: space file, source, device, problem, enumerated space.

All input is checked here, before anything is written.
"""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from autotune.compilers.source_text import SourceText, packaged, read_source
from autotune.core.json_values import is_name
from autotune.core.launch_plan import TRITON
from autotune.core.records import Config, DeviceInfo, Entry, KernelRecord
from autotune.core.stages import OnStage, Stage, unobserved
from autotune.core.text import nearest
from autotune.core.trials import USUAL, CallMode
from autotune.devices import BACKENDS, INTERPRETER, Address
from autotune.devices.listing import Found, Listing, find_device, listing_for
from autotune.errors import InputError
from autotune.evaluation.compiler_pool import compiler_name
from autotune.evaluation.identity import header_sizes
from autotune.evaluation.imports_ahead import import_ahead
from autotune.evaluation.instance import environment
from autotune.evaluation.journal import read_journal
from autotune.hardware.architectures import ARCHITECTURES
from autotune.hardware.names import known_gpu
from autotune.problem.reference_file import ReferenceFile
from autotune.serving.cache import read_record, record_path
from autotune.sources.triton import read_triton
from autotune.space import SpaceSpec, ValidSpace, bind, load_space, problem_of
from autotune.space.spaces_by_kernel import spaces_by_kernel
from autotune.tuning.local_devices import local_devices

_ARCHITECTURE = "sm_90"  # a machine without a GPU counts spaces for NVIDIA GPUs with this one's limits
_C_DIALECTS = ("cuda", "opencl")
_KERNEL_SUFFIXES = (".cu", ".cuh", ".cl")
_OTHER_FILES = {".py": "a file in Python", ".json": "a file of results", ".html": "a page"}


@dataclass(frozen=True)
class Target:
    """A space file, a device and a problem; None and empty values mean the defaults."""

    space: Path
    device: str | None = None
    sizes: Mapping[str, int] = field(default_factory=dict)
    dtype: str | None = None
    data: str | None = None
    measure: CallMode = USUAL  # empty values follow the space
    devices: str | None = None  # in place of a device: several, as `local_devices` reads them


@dataclass(frozen=True)
class TuningTask:
    """A target with its files read, its device found and its space enumerated."""

    address: Address
    device: DeviceInfo
    spec: SpaceSpec
    source: SourceText
    space: ValidSpace
    others: tuple[Address, ...] = ()  # devices of this machine like the first, which search with it
    served_elsewhere: tuple[Config, ...] = ()  # what a framework serves now: the last round compares it

    @property
    def dialect(self) -> str:
        """The dialect of the device's compiler, which selects the compiler options."""
        return self.address.dialect

    @property
    def is_c(self) -> bool:
        """True for C, which checks may read and rewrite; Triton's compiler makes its own order of threads."""
        return self.dialect in _C_DIALECTS and self.spec.dialect != TRITON

    @cached_property
    def compiler(self) -> str:
        """The compiler's name and version; looked up on first use, because the compiler may be missing."""
        return compiler_name(self.address, self.device, self.spec.compiler)

    @cached_property
    def environment(self) -> dict[str, str]:
        """All that a time depends on except for the kernel: device, driver, runtime, compiler, call mode."""
        return environment(self.device, self.compiler, self.spec.measure)

    @cached_property
    def reference(self) -> ReferenceFile:
        """What the reference file tells before it is run."""
        return ReferenceFile(self.spec.reference)

    @property
    def provenance(self) -> dict[str, Any]:
        """All that a result depends on besides its problem, as fields of `Provenance`."""
        return provenance_of(self.device, self.compiler, self.source, self.spec)

    def cached_record(self, root: str | Path) -> KernelRecord | None:
        """The record in a cache folder of the task's kernel and device, or None."""
        path = record_path(str(root), self.device.slug, self.spec.kernel)
        return read_record(path) if Path(path).exists() else None

    def cached_entry(self, root: str | Path) -> Entry | None:
        """The result in a cache folder for the task's device and problem, or None."""
        record, problem = self.cached_record(root), self.space.problem
        key = problem.dtype, tuple(sorted(problem.sizes.items())), problem.data
        return next((entry for entry in (record.entries if record else ()) if entry.problem == key), None)


def provenance_of(device: DeviceInfo, compiler: str, source: SourceText, spec: SpaceSpec) -> dict[str, Any]:
    """All that a result depends on besides its problem, as fields of `Provenance`."""
    return {
        "driver": device.driver,
        "runtime": device.runtime,
        "compiler": compiler,
        "source_sha256": source.sha256,
        "space_sha256": spec.sha256,
    }


def read_target(target: Target) -> tuple[Target, SpaceSpec]:
    """Read the space of a target.

    A journal in its place also gives the sizes, element type and data that the target leaves open.

    Raises:
        InputError: The space file is missing or wrong, or the journal says no kernel.
    """
    if target.space.suffix != ".jsonl":
        return target, load_space(find_space_file(target.space))
    header = read_journal(target.space).header
    kernel, dtype, data = (str(header.get(name, "")) for name in ("kernel", "dtype", "data"))
    if not is_name(kernel):
        raise InputError(f"{target.space}: a journal without the name of its kernel; name a space file")
    sizes = {**(header_sizes(header) or {}), **target.sizes}
    whole = replace(
        target, sizes=sizes, dtype=target.dtype or dtype or None, data=target.data or data or None
    )
    return whole, load_space(find_space_file(Path(kernel)))


def find_space_file(space: Path) -> Path:
    """The path of a space file, given by itself, its name (here or in the package) or its kernel's (here).

    Raises:
        InputError: There is no such file, or it is a kernel's source, which is an easy mistake.
    """
    if space.suffix in _KERNEL_SUFFIXES:
        file = space.with_suffix(".yaml")
        mend = f"did you mean {file}?" if file.is_file() else f"write one with: autotune new {space}"
        raise InputError(f"{space}: this is a kernel, not a space; {mend}")
    spaces = packaged("spaces")
    try:
        _require_no_other(space)
        if space.exists():
            return space
        folders = (spaces, space.parent) if space == Path(space.name) else (space.parent,)
        files = {file.stem: file for folder in folders for file in folder.glob("*.yaml")}
        files |= {file.name: file for file in space.parent.glob("*.yaml")}
    except OSError:  # not a possible file name; reading it reports the error
        return space
    if space.name in files:
        return files[space.name]
    if own := spaces_by_kernel(sorted(space.parent.glob("*.yaml"))).get(space.name):
        return own
    mend = nearest(space.name, files) or "; write one with: autotune new KERNEL.cu"
    raise InputError(f"{space}: no such file; expected a space file{mend}")


def _require_no_other(space: Path) -> None:
    """Raise InputError for a folder, and for files that are no spaces by their suffix."""
    is_folder = space.is_dir()
    if kind := "a folder" if is_folder else _OTHER_FILES.get(space.suffix):
        listed = sorted((space if is_folder else space.parent).glob("*.yaml"))
        namesakes = [file for file in listed if file.stem == space.stem] or listed
        mend = f"did you mean {namesakes[0]}?" if namesakes else "write one with: autotune new KERNEL.cu"
        raise InputError(f"{space}: this is {kind}, not a space; {mend}")


def read_task(
    target: Target,
    on_stage: OnStage = unobserved,
    found_devices: Found | None = None,
    listing: Listing | None = None,
    files: tuple[SpaceSpec, SourceText] | None = None,
) -> TuningTask:
    """Read the files, find the device and enumerate the space.

    Args:
        target: What to tune.
        on_stage: Is told what is being done.
        found_devices: The device, and others to search with, if they were found already; None looks for the
            target's in this machine.
        listing: The listing of this machine's devices, if it was begun already.
        files: The space and its source, if they were read already; None reads those of the target.

    Raises:
        InputError: The files do not fit each other, the device or the problem.
    """
    if files is None:
        on_stage(Stage(f"reading {target.space.name}"))
        target, spec = read_target(target)
        source = read_source(spec.source, spec.include_dirs)
    else:
        spec, source = files
    on_stage(Stage("finding devices"))
    if found_devices is None:
        listing = listing or listing_for(target.devices or target.device)
        import_ahead(listing, triton=spec.dialect == TRITON)
        found_devices = (
            local_devices(target.devices, listing)
            if target.devices
            else [find_device(target.device, listing=listing)]
        )
    (address, device), *others = found_devices
    _require_dialect(spec, address)
    spec = _with_call_mode(spec, address, target.measure)
    problem = problem_of(spec, device, target.sizes, target.dtype, data=target.data)
    if address.backend == INTERPRETER:
        warn_of_bfloat16(spec, problem.dtype)
    on_stage(Stage("counting valid configurations"))
    space = bind(spec, device, problem)
    return TuningTask(address, device, spec, source, space, tuple(other for other, _ in others))


def verify_all_command(path: Path, configurations: int) -> str:
    """What verifies all configurations of a space in Triton without a GPU."""
    options = ("--device", INTERPRETER, "--budget", str(configurations), "--cache", "rehearsal")
    return shlex.join(("autotune", "search", str(path), *options))


def warn_of_bfloat16(spec: SpaceSpec, dtype: str) -> None:
    """Warn of bfloat16 that a kernel, or another of its file, computes with in Triton's interpreter."""
    if dtype != "bfloat16":
        return
    kernels = read_triton(spec.source.read_text(encoding="utf-8-sig"), spec.source)
    named = [kernel for name, kernel in kernels.items() if name in {step.entry for step in spec.launch}]
    computed = sorted({array for kernel in named or kernels.values() for array in kernel.computed})
    if computed:
        warnings.warn(
            f"Triton's interpreter computes wrongly with bfloat16, and {', '.join(computed)} may not be "
            "converted to float32 first: in doubt, use another --dtype",
            stacklevel=2,
        )


def _with_call_mode(spec: SpaceSpec, address: Address, asked: CallMode) -> SpaceSpec:
    """The space with the requested call mode; raises InputError if the device has no graphs."""
    of_space = spec.measure
    measure = CallMode(asked.cache or of_space.cache, asked.launch or of_space.launch)
    if not address.is_nvidia:
        if measure.launch == "graph":
            raise InputError(
                f"{spec.path}: measure: launch: graph: device {address} has no CUDA graphs; leave graph out"
            )
        measure = replace(measure, launch="")  # eager launches are the only way
    return replace(spec, measure=measure)


def count_space(target: Target) -> tuple[ValidSpace, SourceText]:
    """Enumerate a space for a device that may be absent: a GPU's name or architecture is enough.

    Raises InputError for wrong input.
    """
    target, spec = read_target(target)
    source = read_source(spec.source, spec.include_dirs)
    named = target.device or (_ARCHITECTURE if spec.dialect in ("cuda", TRITON) else "")
    gpu = known_gpu(named)
    try:
        address, device = find_device(target.device)
        _require_dialect(spec, address)
    except InputError as error:
        if gpu is None:
            known_here = ", ".join(ARCHITECTURES)
            advice = f"; to count a space, name a GPU, such as NVIDIA H200, or its architecture: {known_here}"
            raise InputError(f"{error}{advice}") from None
        device = replace(gpu, backend="opencl") if spec.dialect == "opencl" else gpu
        if device.backend == "hip" and spec.dialect != TRITON:
            if spec.dialect == "cuda":
                raise InputError(
                    f"{spec.path}: the kernel is written in CUDA, which {device.name}, of AMD, does not take"
                ) from None
            device = replace(device, backend="opencl")  # AMD's GPUs run a portable kernel through OpenCL
    problem = problem_of(spec, device, target.sizes, target.dtype, data=target.data)
    return bind(spec, device, problem), source


def _require_dialect(spec: SpaceSpec, address: Address) -> None:
    accepted = BACKENDS[address.backend].accepts
    if spec.dialect not in accepted:
        takers = [name for name, backend in BACKENDS.items() if spec.dialect in backend.accepts]
        raise InputError(
            f"{spec.path}: the kernel is written in dialect {spec.dialect!r}, but device {address} "
            f"takes {' or '.join(map(repr, accepted))}; it needs a device of {' or '.join(takers)}: "
            "`autotune devices` lists those of this machine"
            + (
                ", `autotune space --compile` compiles for GPUs that are not here, `--run` runs the kernel "
                "on the CPU"
                if spec.dialect in ("cuda", TRITON)
                else ""
            )
        )
