"""Write a first space file and reference for a kernel; comments mark each guess to check."""

from __future__ import annotations

import argparse
import os
import re
import shlex
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.cli.output import emit
from autotune.core.text import count_text, first_error
from autotune.errors import AutotuneError, InputError, MissingExtra, WriteError

if TYPE_CHECKING:
    from autotune.compilers.base import Compiler
    from autotune.compilers.kernel_source import SourceText
    from autotune.scaffold import Scaffold

_ATTEMPTS = 4  # to find what the source leaves to its user
_ARCHITECTURE = "sm_90"
_TIMEOUT_S = 120.0
_RUN_S = 10.0  # time limit of the default's run
_INTRODUCER = re.compile(
    r"\b(?:KERNEL|__global__|__kernel)\b|\bkernel\s+(?:void|__attribute__)\b|\bvoid\s+kernel\b"
)
EXAMPLE = "autotune new my_kernel.cu"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `autotune new`."""
    parser.add_argument(
        "kernel", type=Path, help="a source in CUDA C++, OpenCL C, the portable dialect or Triton"
    )
    parser.add_argument(
        "--entry", metavar="NAME", help="which kernel of the source to tune (default: the first)"
    )


def run(parsed: argparse.Namespace) -> None:
    """Write both files beside the kernel and say what was guessed."""
    path: Path = parsed.kernel
    if path.is_dir():
        raise InputError(f"{path}: Is a directory; expected a kernel source")
    if path.suffix == ".py" and _is_triton(path):
        _run_triton(path, parsed.entry)
        return
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
        made, complaint = _scaffold_without_headers(path, name, parsed.entry, include_dir, headers)
    else:
        made, complaint = _scaffold(path, name, parsed.entry)
    texts = {space: made.space, reference: made.reference}
    _write(texts)
    can_run = _can_run(made.source.dialect)
    if complaint:
        said = f"note  the default does not compile yet: {first_error(complaint)}"
    else:
        said = _checked(space, can_run=can_run)
        if can_run and not said.startswith("good"):
            roomy, _ = _scaffold(path, name, parsed.entry, made.include_dirs, is_roomy=True)
            _write({space: roomy.space, reference: roomy.reference}, "w")
            if (again := _checked(space, can_run=can_run)).startswith("good"):
                made, said = roomy, again
            else:
                _write(texts, "w")
    emit(findings(made, space, reference))
    if made.source.dialect == "cuda" and _has_host_code(path):
        emit("note  main() and other code for the host stays: it is left out where the kernels are compiled")
    if not complaint and made.source.dialect == "cuda" and _has_nvrtc():
        emit(f"good  the default compiles for {_ARCHITECTURE}")
    emit(said)
    emit(next_steps(made, space, reference, can_run=can_run))


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
    from autotune.compilers.kernel_source import missing_headers

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


def _scaffold_without_headers(
    path: Path, name: str, entry: str | None, include_dir: str, headers: Path
) -> tuple[Scaffold, str]:
    """The same with headers that are not there; they are reported as missing if the kernel needs them."""
    complaint = "unknown"
    try:
        made, complaint = _scaffold(path, name, entry, (include_dir,))
    finally:
        if complaint:
            shutil.rmtree(headers)
    return _scaffold(path, name, entry) if complaint else (made, "")


def _is_triton(path: Path) -> bool:
    from autotune.core.triton_source import is_triton

    try:
        return is_triton(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}; expected a kernel source") from None


def _run_triton(path: Path, entry: str | None) -> None:
    """The same for a kernel in Triton, whose file keeps its name."""
    from autotune.scaffold.triton import scaffold_triton

    name = _name(path)
    space, reference = _new_files(path.with_name(f"{name}.yaml"), path.with_name(f"{name}_reference.py"))
    made = scaffold_triton(path, name, entry)
    _write({space: made.space, reference: made.reference})
    lines = [f"{path.name}: dialect triton; the space is for {made.entry}", "", "array"]
    lines += [f"  {array:<40} {role}" for array, role in made.roles.items()]
    lines += ["parameter"]
    lines += [f"  {one:<40} {', '.join(map(str, values))}" for one, values in made.parameters.items()]
    found = count_text(len(made.configs), "configuration")
    lines += ["", f"{found} of @triton.autotune became landmarks" if made.configs else "no @triton.autotune"]
    lines += [f"wrote {space}: read its comments", f"wrote {reference}: returns nothing yet"]
    can_run = _can_run("triton")
    emit("\n".join(lines))
    emit(_checked(space, can_run=can_run))
    steps = [f"write {reference}: it says what is expected", f"autotune search {space}"]
    if not can_run:
        steps[1] = f"autotune feasible {space} --architectures {_ARCHITECTURE}"
    emit("\n".join(f"{'then' if number else 'next'}  {step}" for number, step in enumerate(steps)))


def _scaffold(
    path: Path,
    name: str,
    entry: str | None,
    include_dirs: tuple[str, ...] = (),
    *,
    is_roomy: bool = False,
    generic: str = "DTYPE",
) -> tuple[Scaffold, str]:
    """Write a space whose default compiles if a compiler is at hand; also give its last complaint.

    What the compiler does not know is left to the user, and so becomes a parameter or a type. A default that
    takes too much shared memory gives way to one that takes little. `is_roomy` is for a default that fails.
    A template that no floating-point type fits is tried with whole numbers.
    """
    from autotune.compilers.base import undefined_names
    from autotune.compilers.kernel_source import read_source
    from autotune.compilers.portable_words import portable_names
    from autotune.scaffold import scaffold

    folders = [path.parent / folder for folder in include_dirs]
    source = read_source(path, folders)  # raises InputError if an include is missing
    text, host = _texts(path, source.text)
    undefined: dict[str, None] = {}
    is_small = False
    for _ in range(_ATTEMPTS):
        made = scaffold(
            path.name,
            name,
            text,
            portable_names(),
            entry,
            tuple(undefined),
            host=host,
            include_dirs=include_dirs,
            is_small=is_small,
            is_roomy=is_roomy,
            generic=generic,
        )
        log = _complaint(made, source)
        unknown = [word for word in undefined_names(log) if not _is_called(word, source.text)]
        fresh = [
            word for word in unknown if word not in undefined and not _is_variable(word, unknown, source)
        ]
        if not fresh and (is_small or "shared" not in log):
            break
        is_small = is_small or not fresh
        undefined |= dict.fromkeys(fresh)
    if log and "DTYPE" in made.kernel.entry:
        whole, complaint = _scaffold(path, name, entry, include_dirs, is_roomy=is_roomy, generic="int")
        return (made, log) if complaint else (whole, "")
    return made, log


def _texts(path: Path, whole: str) -> tuple[str, str]:
    """The kernels' text, that of the file itself if it has one, and the program that launches them."""
    from autotune.compilers.host_code import device_part

    own = path.read_text()
    text = own if _INTRODUCER.search(device_part(own) if "__global__" in own else own) else whole
    return device_part(text) if "__global__" in text else text, own if "<<<" in own else ""


def _has_host_code(path: Path) -> bool:
    from autotune.compilers.host_code import device_part

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
    from autotune.compilers.base import cuda_compiler
    from autotune.compilers.kernel_source import render
    from autotune.core.launch_plan import entry_name, macros
    from autotune.core.records import Parameter
    from autotune.core.trials import Failure
    from autotune.devices import Address
    from autotune.evaluation.compiler_pool import CompilerPool, device_compiler

    parameters = [Parameter(item.name, item.values) for item in made.guess.parameters]
    config = {item.name: item.default for item in made.guess.parameters}
    symbols = [item.symbol for item in made.kernel.arguments if item.symbol]
    names = (entry_name(made.kernel.entry, {"DTYPE": "float32", **config}), *symbols)
    options = tuple(f"-D{name}={meaning}" for name, meaning in made.kernel.types.items())
    text = render(source, macros(parameters, config, "float32"))
    openers: dict[str, Callable[[], Compiler]] = {
        "cuda": partial(cuda_compiler, _ARCHITECTURE),
        "opencl": partial(device_compiler, Address("opencl", 0)),
    }
    opener = openers.get(made.source.dialect)
    if opener is None or (made.source.dialect == "cuda" and not _has_nvrtc()):
        return ""
    pool = CompilerPool(opener, workers=1, timeout_s=_TIMEOUT_S)
    try:
        compiled = pool.submit(text, options, names).result()
    finally:
        pool.close()
    return compiled.detail if isinstance(compiled, Failure) else ""


def _has_nvrtc() -> bool:
    from autotune.compilers.base import cuda_compiler

    try:
        cuda_compiler(_ARCHITECTURE)
    except MissingExtra:
        return False
    return True


def _can_run(dialect: str) -> bool:
    """Whether a device of this machine takes a dialect."""
    from autotune.devices import BACKENDS
    from autotune.devices.listing import find_devices

    return bool(find_devices(name for name, entry in BACKENDS.items() if dialect in entry.accepts))


def _checked(space: Path, *, can_run: bool) -> str:
    """Load and count the space that was written, run its default if a device is there; say how it went."""
    from autotune.cli.progress import SearchProgress, Verbosity
    from autotune.core.trials import Budget
    from autotune.processes.temporary_folder import scratch_folder
    from autotune.tuning.options import Options
    from autotune.tuning.task import Target, bind_target, count_space
    from autotune.tuning.tuner import run_once

    try:
        if not can_run:
            valid = len(count_space(Target(space, _ARCHITECTURE))[0])
            return f"good  the space has {count_text(valid, 'valid configuration')}; nothing was run"
        task = bind_target(Target(space))
        with scratch_folder() as folder, SearchProgress(Verbosity.QUIET) as progress:
            options = Options(budget=Budget(), timeout_s=_RUN_S, journal=Path(folder) / "run.jsonl")
            trial = run_once(task, options, progress, task.spec.default)
    except AutotuneError as error:
        return f"note  the default does not run yet: {error}"
    if trial.failure:
        return f"note  the default does not run yet: {trial.failure}"
    valid_text = count_text(len(task.space), "valid configuration")
    return f"good  the space has {valid_text}; the default took {trial.time_ms:.4g} ms on {task.device.name}"


def findings(made: Scaffold, space: Path, reference: Path) -> str:
    """Say which kernels, arguments and macros were found, and what was written."""
    called = ", ".join(kernel.entry for kernel in made.source.kernels)
    chosen = f"; the space is for {made.kernel.entry}" if len(made.source.kernels) > 1 else ""
    lines = [f"{called}: dialect {made.source.dialect}{chosen}", "", "argument"]
    for item in made.guess.arguments:
        what = f"{item.role.value} [{', '.join(item.shape)}]" if item.role is not None else f"= {item.value}"
        lines.append(f"  {item.argument.text:<40} {what}")
    lines += ["macro"]
    for parameter in made.guess.parameters:
        values = ", ".join(map(str, parameter.values))
        lines.append(
            f"  {parameter.name:<40} {values}" + (f"  ({parameter.remark})" if parameter.remark else "")
        )
    lines += [f"  {macro.name:<40} left at {macro.default}" for macro in made.guess.fixed_macros]
    guessed = (
        "guessed from its formula" if made.guess.reference else "returns nothing yet: nothing is compared"
    )
    lines += [
        "",
        f"wrote {space}: read its comments",
        f"wrote {reference}: {guessed}",
        *(
            f"wrote {space.with_name(Path(folder).parts[0])}: empty headers, for the source's own were not "
            "found; put them there, or name their folder in include_dirs"
            for folder in made.include_dirs
        ),
    ]
    return "\n".join(lines)


def next_steps(made: Scaffold, space: Path, reference: Path, *, can_run: bool) -> str:
    """Say what to do next; what cannot run on this machine can be compiled, unless it is for OpenCL alone."""
    from autotune.scaffold.outcome import Role, variable_name

    steps = [f"autotune search {space}"]
    if not can_run and made.source.dialect != "opencl":
        steps = [
            f"autotune space {space} --device {_ARCHITECTURE}",
            f"autotune feasible {space} --architectures {_ARCHITECTURE}",
        ]
    if not made.guess.reference:
        steps.insert(0, f"write {reference}: it says what is expected")
    arrays = [item for item in made.guess.arguments if item.role not in (None, Role.LOCAL)]
    passed = ", ".join(variable_name(item.argument.name) for item in arrays)
    steps.append(f'in a program: autotune.load_kernel("{space.stem}")({passed})')
    return "\n".join(f"{'then' if number else 'next'}  {step}" for number, step in enumerate(steps))
