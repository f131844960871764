"""Writes a first space and reference next to a kernel; compiles its default, and runs it if possible."""

from __future__ import annotations

import re
import shlex
import shutil
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.analysis.compiled_scaffold import (
    ARCHITECTURE,
    Draft,
    KernelFile,
    compiled_scaffold,
    has_host_code,
    has_nvrtc,
)
from autotune.analysis.missing_definitions import what_helps
from autotune.analysis.stand_in_headers import write_stand_ins
from autotune.core.launch_plan import TRITON
from autotune.core.text import count_text, first_error
from autotune.core.trials import Budget
from autotune.devices import BACKENDS
from autotune.devices.listing import find_devices
from autotune.errors import AutotuneError, InputError, WriteError
from autotune.processes.scratch_folder import scratch_folder
from autotune.scaffold import Assumptions, Scaffold
from autotune.scaffold.triton import TritonScaffold, scaffold_triton
from autotune.sources.triton_module import is_triton
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.single_runs import run_once
from autotune.tuning.task import Target, bind_target, count_space

_RUN_S = 10.0  # time limit of the default's run


@dataclass(frozen=True)
class Note:
    """A sentence on a space that was written; unless it is good, something is left to do or to know."""

    is_good: bool
    text: str

    def __str__(self) -> str:
        return f"{'good' if self.is_good else 'note'}  {self.text}"


@dataclass(frozen=True)
class FirstSpace:
    """The files that were written for a kernel, and how its default did.

    Attributes:
        made: What was found in the source.
        space: The space file.
        reference: The file of the reference.
        notes: What compiling and running said.
        can_run: Whether a device of this machine takes the kernel's dialect.
    """

    made: Scaffold | TritonScaffold
    space: Path
    reference: Path
    notes: tuple[Note, ...]
    can_run: bool


def first_space(path: Path, entry: str | None, observer: Observer) -> FirstSpace:
    """Write both files next to a kernel's source.

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
    if path.suffix in (".yaml", ".yml"):
        raise InputError(f"{path}: this is a space already; search it with: autotune search {path}")
    if path.suffix != ".py":
        return _first_space(path, entry, observer)
    if _is_triton(path):
        return _first_triton_space(path, entry, observer)
    raise InputError(f"{path}: expected a kernel source, such as {path.stem}.cu or {path.stem}.cl")


def _first_space(path: Path, entry: str | None, observer: Observer) -> FirstSpace:
    """The same for a kernel in C or C++."""
    kernel = KernelFile(path, _name(path), entry)
    files = _Files(path.with_name(f"{kernel.name}.yaml"), path.with_name(f"{kernel.name}.py"))
    headers = path.with_name(f"{kernel.name}_headers")
    _require_absent(files.space, files.reference, headers)
    draft = _draft(kernel, headers)
    made, dialect = draft.made, draft.made.source.dialect
    files.write(made)
    can_run = _can_run(dialect)
    if draft.complaint:
        what = f"the default does not compile yet: {first_error(draft.complaint)}"
        open_types = [name for name, meaning in made.kernel.types.items() if meaning]
        tried = Note(False, what + what_helps(draft.complaint, path, dialect, open_types))
    else:
        tried = _tried(files.space, observer, can_run=can_run)
        if can_run and not tried.is_good:
            made, tried = _tried_with_room(kernel, made, tried, files, observer)
    notes = [Note(False, refusal) for refusal in made.source.refusals[:1] if entry is None]
    if dialect == "cuda" and has_host_code(path):
        text = "main() and other code for the host stays: it is left out where the kernels are compiled"
        notes.append(Note(False, text))
    if dialect == "cuda" and not draft.complaint and has_nvrtc():
        notes.append(Note(True, f"the default compiles for {ARCHITECTURE}"))
    return FirstSpace(made, files.space, files.reference, (*notes, tried), can_run)


def _first_triton_space(path: Path, entry: str | None, observer: Observer) -> FirstSpace:
    """The same for a kernel in Triton, whose file keeps its name."""
    name = _name(path)
    files = _Files(path.with_name(f"{name}.yaml"), path.with_name(f"{name}_reference.py"))
    _require_absent(files.space, files.reference)
    made = scaffold_triton(path, name, entry)
    files.write(made)
    can_run = _can_run(TRITON)
    tried = _tried(files.space, observer, can_run=can_run)
    return FirstSpace(made, files.space, files.reference, (tried,), can_run)


@dataclass(frozen=True)
class _Files:
    """The files that are written for a kernel."""

    space: Path
    reference: Path

    def write(self, made: Scaffold | TritonScaffold, mode: str = "x") -> None:
        """Write both; raises WriteError."""
        try:
            for file, text in ((self.space, made.space), (self.reference, made.reference)):
                with file.open(mode) as out:
                    out.write(text)
        except OSError as error:
            raise WriteError(f"{error.filename}: cannot be written: {error.strerror}") from None


def _name(path: Path) -> str:
    name = re.sub(r"\W", "_", path.stem)
    return f"kernel_{name}" if name[0].isdigit() or name == "device" else name


def _require_absent(*files: Path) -> None:
    """Raise InputError for files that are there already."""
    if taken := [str(file) for file in files if file.exists()]:
        folders = "-r " if any(file.is_dir() for file in files) else ""
        is_own = any(file.suffix == ".yaml" and file.exists() for file in files)  # the others came with it
        mend = f"to start anew: rm {folders}{shlex.join(taken)}" if is_own else "move it away first"
        raise InputError(f"{' and '.join(taken)}: there already, and never overwritten; {mend}")


def _is_triton(path: Path) -> bool:
    try:
        return is_triton(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}; expected a kernel source") from None


def _draft(kernel: KernelFile, headers: Path) -> Draft:
    """Write a space with empty headers in the folder `headers` in place of those that are not there.

    If the kernel needs one of these headers, the folder goes again, and they are reported as missing.
    """
    include_dir = write_stand_ins(kernel.path, headers)
    if not include_dir:
        return compiled_scaffold(kernel)
    draft = None
    try:
        draft = compiled_scaffold(replace(kernel, include_dirs=(include_dir,)))
    finally:
        if draft is None or draft.complaint:
            shutil.rmtree(headers)
    return compiled_scaffold(kernel) if draft.complaint else draft


def _can_run(dialect: str) -> bool:
    """True if a device of this machine takes a dialect."""
    return bool(find_devices(name for name, entry in BACKENDS.items() if dialect in entry.accepts))


def _tried_with_room(
    kernel: KernelFile, made: Scaffold, tried: Note, files: _Files, observer: Observer
) -> tuple[Scaffold, Note]:
    """Try the default with more room in its arrays; give the former space back if that does not help."""
    with_room = replace(kernel, include_dirs=made.include_dirs)
    roomy = compiled_scaffold(with_room, Assumptions(is_roomy=True)).made
    files.write(roomy, "w")
    again = _tried(files.space, observer, can_run=True)
    if again.is_good:
        return roomy, again
    files.write(made, "w")
    return made, tried


def _tried(space: Path, observer: Observer, *, can_run: bool) -> Note:
    """Load and count the space that was written, and run its default if a device is there."""
    try:
        if not can_run:
            valid = count_text(len(count_space(Target(space, ARCHITECTURE))[0]), "valid configuration")
            return Note(True, f"the space has {valid}; nothing was run")
        task = bind_target(Target(space))
        with scratch_folder() as folder:
            options = Options(budget=Budget(), timeout_s=_RUN_S, journal=Path(folder) / "run.jsonl")
            trial = run_once(task, options, observer, task.spec.default)
    except AutotuneError as error:
        return Note(False, f"the default does not run yet: {error}")
    if trial.failure:
        return Note(False, f"the default does not run yet: {trial.failure}")
    valid = count_text(len(task.space), "valid configuration")
    return Note(True, f"the space has {valid}; the default took {trial.time_ms:.4g} ms on {task.device.name}")
