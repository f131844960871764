"""Write a first space and reference beside a kernel, and try its default: compiled, and run where it can be.

What a source leaves to its user is found by compiling: what the compiler does not know becomes a parameter or
a type of the space.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from autotune.compilers.base import Compiler, cuda_compiler, undefined_names
from autotune.compilers.host_code import device_part
from autotune.compilers.kernel_source import SourceText, missing_headers, read_source, render
from autotune.compilers.portable_words import portable_names
from autotune.core.launch_plan import TRITON, entry_name, macros
from autotune.core.records import Parameter
from autotune.core.text import count_text, first_error
from autotune.core.trials import Budget, Failure
from autotune.core.triton_source import is_triton
from autotune.devices import BACKENDS, Address
from autotune.devices.listing import find_devices
from autotune.errors import AutotuneError, InputError, MissingExtra, WriteError
from autotune.evaluation.compiler_pool import CompilerPool, device_compiler
from autotune.processes.temporary_folder import scratch_folder
from autotune.scaffold import Assumptions, Scaffold, scaffold
from autotune.scaffold.assumptions import USUAL
from autotune.scaffold.triton import TritonScaffold, scaffold_triton
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.single_runs import run_once
from autotune.tuning.task import Target, bind_target, count_space

_ATTEMPTS = 4  # to find what the source leaves to its user
ARCHITECTURE = "sm_90"  # that is compiled for
_TIMEOUT_S = 120.0
_RUN_S = 10.0  # time limit of the default's run
_INTRODUCER = re.compile(
    r"\b(?:KERNEL|__global__|__kernel)\b|\bkernel\s+(?:void|__attribute__)\b|\bvoid\s+kernel\b"
)


@dataclass(frozen=True)
class FirstSpace:
    """The files that were written for a kernel, and how its default did.

    Attributes:
        made: What was found in the source.
        space: The space file.
        reference: The file of the reference.
        notes: What compiling and running said, a sentence each.
        can_run: Whether a device of this machine takes the kernel's dialect.
    """

    made: Scaffold | TritonScaffold
    space: Path
    reference: Path
    notes: tuple[str, ...]
    can_run: bool


def first_space(path: Path, entry: str | None, observer: Observer) -> FirstSpace:
    """Write both files beside a kernel's source.

    Args:
        path: The source.
        entry: Name of the kernel; None takes the first.
        observer: Receives the events of the default's run.

    Raises:
        InputError: It is no kernel's source, has no such kernel, or one of the files is there already.
        WriteError: A file cannot be written.
    """
    if path.is_dir():
        raise InputError(f"{path}: Is a directory; expected a kernel source")
    if path.suffix == ".py" and _is_triton(path):
        return _first_triton_space(path, entry, observer)
    if path.suffix in (".py", ".yaml", ".yml"):
        near = (
            f"this is a space already; search it with: autotune search {path}"
            if path.suffix in (".yaml", ".yml")
            else f"expected a kernel source, such as {path.stem}.cu or {path.stem}.cl"
        )
        raise InputError(f"{path}: {near}")
    name = _name(path)
    headers = path.with_name(f"{name}_headers")
    space, reference, _ = _new_files(path.with_name(f"{name}.yaml"), path.with_name(f"{name}.py"), headers)
    if include_dir := _write_stand_ins(path, headers):
        made, complaint = _without_headers(path, name, entry, include_dir, headers)
    else:
        made, complaint = compiled_scaffold(path, name, entry)
    texts = {space: made.space, reference: made.reference}
    _write(texts)
    can_run = _can_run(made.source.dialect)
    if complaint:
        said = f"note  the default does not compile yet: {first_error(complaint)}"
    else:
        said = _checked(space, observer, can_run=can_run)
        if can_run and not said.startswith("good"):
            roomy, _ = compiled_scaffold(path, name, entry, made.include_dirs, Assumptions(is_roomy=True))
            _write({space: roomy.space, reference: roomy.reference}, "w")
            if (again := _checked(space, observer, can_run=can_run)).startswith("good"):
                made, said = roomy, again
            else:
                _write(texts, "w")
    notes = []
    if made.source.dialect == "cuda" and _has_host_code(path):
        notes += [
            "note  main() and other code for the host stays: it is left out where the kernels are compiled"
        ]
    if not complaint and made.source.dialect == "cuda" and has_nvrtc():
        notes += [f"good  the default compiles for {ARCHITECTURE}"]
    return FirstSpace(made, space, reference, (*notes, said), can_run)


def _first_triton_space(path: Path, entry: str | None, observer: Observer) -> FirstSpace:
    """The same for a kernel in Triton, whose file keeps its name."""
    name = _name(path)
    space, reference = _new_files(path.with_name(f"{name}.yaml"), path.with_name(f"{name}_reference.py"))
    made = scaffold_triton(path, name, entry)
    _write({space: made.space, reference: made.reference})
    can_run = _can_run(TRITON)
    return FirstSpace(made, space, reference, (_checked(space, observer, can_run=can_run),), can_run)


def _name(path: Path) -> str:
    name = re.sub(r"\W", "_", path.stem)
    return f"kernel_{name}" if name[0].isdigit() or name == "device" else name


def _new_files(*files: Path) -> tuple[Path, ...]:
    if taken := [str(file) for file in files if file.exists()]:
        folders = "-r " if any(file.is_dir() for file in files) else ""
        is_own = any(file.suffix == ".yaml" and file.exists() for file in files)  # the others came with it
        mend = f"to start anew: rm {folders}{shlex.join(taken)}" if is_own else "move it away first"
        raise InputError(f"{' and '.join(taken)}: there already, and never overwritten; {mend}")
    return files


def _write(texts: Mapping[Path, str], mode: str = "x") -> None:
    try:
        for file, text in texts.items():
            with file.open(mode) as out:
                out.write(text)
    except OSError as error:
        raise WriteError(f"{error.filename}: cannot be written: {error.strerror}") from None


def _write_stand_ins(path: Path, folder: Path) -> str:
    """Write an empty file for each header that is not there, for a kernel may need none of it.

    Returns the folder to search for them, as the space file names it; empty if nothing was written. It lies
    so deep that `../own.h` stays inside. Nothing is written if a missing header has an absolute path.
    """
    missing = [Path(os.path.normpath(header)) for header in missing_headers(path)]
    if not missing or any(header.is_absolute() for header in missing):
        return ""
    depth = max(header.parts.count("..") for header in missing)
    searched = folder.joinpath(*["up"] * depth)
    try:
        searched.mkdir(parents=True, exist_ok=True)
        for header in dict.fromkeys(missing):
            place = Path(os.path.normpath(searched / header))
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("x") as out:
                out.write(f"// In place of {header}, which was not found: put the real one here.\n")
    except OSError as error:
        raise WriteError(f"{error.filename}: cannot be written: {error.strerror}") from None
    return searched.relative_to(path.parent).as_posix()


def _without_headers(
    path: Path, name: str, entry: str | None, include_dir: str, headers: Path
) -> tuple[Scaffold, str]:
    """The same with headers that are not there; they are reported as missing if the kernel needs them."""
    complaint = "unknown"
    try:
        made, complaint = compiled_scaffold(path, name, entry, (include_dir,))
    finally:
        if complaint:
            shutil.rmtree(headers)
    return compiled_scaffold(path, name, entry) if complaint else (made, "")


def _is_triton(path: Path) -> bool:
    try:
        return is_triton(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}; expected a kernel source") from None


def compiled_scaffold(
    path: Path,
    name: str,
    entry: str | None,
    include_dirs: tuple[str, ...] = (),
    assumed: Assumptions = USUAL,
) -> tuple[Scaffold, str]:
    """Write a space whose default compiles if a compiler is at hand; also give its last complaint.

    What the compiler does not know is left to the user, and so becomes a parameter or a type. A default that
    takes too much shared memory gives way to one that takes little. A template that no floating-point type
    fits is tried with whole numbers.
    """
    folders = [path.parent / folder for folder in include_dirs]
    source = read_source(path, folders)  # raises InputError if an include is missing
    text, host = _texts(path, source.text)
    given = assumed
    for _ in range(_ATTEMPTS):
        made = scaffold(
            path.name, name, text, portable_names(), entry, assumed, host=host, include_dirs=include_dirs
        )
        log = _complaint(made, source)
        unknown = [word for word in undefined_names(log) if not _is_called(word, source.text)]
        fresh = [
            word
            for word in unknown
            if word not in assumed.undefined and not _is_variable(word, unknown, source)
        ]
        if not fresh and (assumed.is_small or "shared" not in log):
            break
        undefined = dict.fromkeys((*assumed.undefined, *fresh))
        assumed = replace(assumed, undefined=tuple(undefined), is_small=assumed.is_small or not fresh)
    if log and "DTYPE" in made.kernel.entry:
        whole, complaint = compiled_scaffold(path, name, entry, include_dirs, replace(given, generic="int"))
        return (made, log) if complaint else (whole, "")
    return made, log


def _texts(path: Path, whole: str) -> tuple[str, str]:
    """The kernels' text, that of the file itself if it has one, and the program that launches them."""
    own = path.read_text()
    text = own if _INTRODUCER.search(device_part(own) if "__global__" in own else own) else whole
    return device_part(text) if "__global__" in text else text, own if "<<<" in own else ""


def _has_host_code(path: Path) -> bool:
    text = path.read_text()
    return device_part(text) != text


def _is_called(word: str, text: str) -> bool:
    return re.search(rf"\b{word}\s*\(", text) is not None


def _is_variable(word: str, unknown: Sequence[str], source: SourceText) -> bool:
    """Whether a word is only unknown because the type is that it is declared with."""
    types = "|".join(unknown)
    return re.search(rf"\b(?:{types})\s+\**\s*{word}\s*[=;,)\[]", source.text) is not None


def _complaint(made: Scaffold, source: SourceText) -> str:
    """What a compiler says against the default configuration; empty if nothing, or without a compiler."""
    parameters = [Parameter(item.name, item.values) for item in made.guess.launch.parameters]
    config = {item.name: item.default for item in made.guess.launch.parameters}
    symbols = [item.symbol for item in made.kernel.arguments if item.symbol]
    names = (entry_name(made.kernel.entry, {"DTYPE": "float32", **config}), *symbols)
    options = tuple(f"-D{name}={meaning}" for name, meaning in made.kernel.types.items())
    text = render(source, macros(parameters, config, "float32"))
    openers: dict[str, Callable[[], Compiler]] = {
        "cuda": partial(cuda_compiler, ARCHITECTURE),
        "opencl": partial(device_compiler, Address("opencl", 0)),
    }
    opener = openers.get(made.source.dialect)
    if opener is None or (made.source.dialect == "cuda" and not has_nvrtc()):
        return ""
    pool = CompilerPool(opener, workers=1, timeout_s=_TIMEOUT_S)
    try:
        compiled = pool.submit(text, options, names).result()
    finally:
        pool.close()
    return compiled.detail if isinstance(compiled, Failure) else ""


def has_nvrtc() -> bool:
    """Whether NVRTC is installed."""
    try:
        cuda_compiler(ARCHITECTURE)
    except MissingExtra:
        return False
    return True


def _can_run(dialect: str) -> bool:
    """Whether a device of this machine takes a dialect."""
    return bool(find_devices(name for name, entry in BACKENDS.items() if dialect in entry.accepts))


def _checked(space: Path, observer: Observer, *, can_run: bool) -> str:
    """Load and count the space that was written, run its default if a device is there; say how it went."""
    try:
        if not can_run:
            valid = len(count_space(Target(space, ARCHITECTURE))[0])
            return f"good  the space has {count_text(valid, 'valid configuration')}; nothing was run"
        task = bind_target(Target(space))
        with scratch_folder() as folder:
            options = Options(budget=Budget(), timeout_s=_RUN_S, journal=Path(folder) / "run.jsonl")
            trial = run_once(task, options, observer, task.spec.default)
    except AutotuneError as error:
        return f"note  the default does not run yet: {error}"
    if trial.failure:
        return f"note  the default does not run yet: {trial.failure}"
    valid_text = count_text(len(task.space), "valid configuration")
    return f"good  the space has {valid_text}; the default took {trial.time_ms:.4g} ms on {task.device.name}"
