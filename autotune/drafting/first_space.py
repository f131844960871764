"""Writes a first space and reference next to a kernel, and proves them: loaded, compiled and run in time."""

from __future__ import annotations

import os
import re
import shlex
import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from autotune.core.launch_plan import TRITON
from autotune.core.stages import OnStage, Stage
from autotune.core.text import count_text
from autotune.devices import BACKENDS
from autotune.drafting.space_draft import ARCHITECTURE, USUAL_LIMITS, KernelFile, Limits, Note, SpaceDraft
from autotune.drafting.workshop import Stopped, Workshop
from autotune.errors import InputError, SetupError
from autotune.processes.files import writing
from autotune.sources.dialects import OPENCL

_LEAST_S = 3.0  # for another run
_ALONE = {  # what a step does, as a command
    "trials.run_default": "run {} --default",
    "trials.run_on_cpu": "space {} --run",
    "trials.compile_default": f"space {{}} --compile --device {ARCHITECTURE}",
}


@dataclass(frozen=True)
class FirstSpace:
    """The files that were written for a kernel, and how its default did."""

    source: Path
    draft: SpaceDraft
    space: Path
    reference: Path
    notes: tuple[Note, ...]  # what reading, compiling and running said
    can_run: bool  # a device of this machine takes the kernel's dialect


def first_space(
    path: Path,
    entry: str | None,
    on_stage: OnStage,
    *,
    include_dirs: Sequence[Path] = (),
    definitions: Sequence[tuple[str, str]] = (),
    limits: Limits = USUAL_LIMITS,
) -> FirstSpace:
    """Write both files next to a kernel's source; they load, or nothing is written.

    They are for the kernel `entry`, or for the first.

    Raises:
        InputError: It is no kernel's source, has no such kernel, or one of the files is there already.
        WriteError: A file cannot be written.
    """
    if path.is_dir():
        raise InputError(f"{path}: Is a directory; expected a kernel source")
    if path.suffix in (".yaml", ".yml"):
        raise InputError(f"{path}: this is a space already; search it with: autotune search {path}")
    folders = tuple(Path(os.path.relpath(folder, path.parent)).as_posix() for folder in include_dirs)
    name = _name(path)
    kernel = KernelFile(path, name, _reference_name(path, name), entry, folders, tuple(definitions))
    with Workshop(limits.total_s) as workshop, _Written() as written:
        return _Work(workshop, written, limits, on_stage).done(kernel)


class _Written(ExitStack):
    """Files that are removed again unless they are kept."""

    def add(self, file: Path, text: str) -> None:
        """Write a new file; raises WriteError."""
        _write(file, text, "x")
        self.callback(file.unlink, missing_ok=True)

    def keep(self) -> None:
        """Remove nothing any more."""
        self.pop_all()


@dataclass(frozen=True)
class _Work:
    """What it takes to get from a kernel to a space."""

    workshop: Workshop
    written: _Written
    limits: Limits
    on_stage: OnStage

    def done(self, kernel: KernelFile) -> FirstSpace:
        """Find the kernel, and write, load, compile and run its space."""
        path = kernel.path
        self.on_stage(Stage(f"reading {path.name}"))
        if self._read(kernel, "draft_steps.is_in_triton", path):
            return self._proven(kernel, is_triton=True)
        inside = self._read(kernel, "extraction.extracted", path, kernel.entry)
        if inside is None:
            return self._proven(kernel)
        own = path.with_name(f"{kernel.name}_kernel{inside.suffix}")
        copied = replace(kernel, path=own, name=own.stem, reference=_reference_name(own, own.stem))
        _require_absent(own, *_files(copied))
        self.written.add(own, inside.text)
        place = f"{path.name}:{inside.line}"
        text = f"the kernel is in a string at {place}; {own} is a copy of it, which the space is for"
        try:
            space = self._proven(copied)
        except InputError as error:
            what = str(error).removeprefix(f"{own}: ").removeprefix(f"{own.name}: ")
            raise InputError(f"{path}:{inside.line}: the kernel in this string: {what}") from None
        return replace(space, notes=(Note(False, text), *space.notes))

    def _proven(self, kernel: KernelFile, *, is_triton: bool = False) -> FirstSpace:
        """Write, load, compile and run the space of a kernel that is in a file of its own."""
        path = kernel.path
        space, reference, headers, front = _files(kernel)
        _require_absent(space, reference, headers, front)
        if is_triton:
            _require_no_options(kernel)
            draft = self._read(kernel, "draft_steps.draft_triton", kernel)
        else:
            self.written.callback(shutil.rmtree, headers, ignore_errors=True)
            self.written.callback(front.unlink, missing_ok=True)
            draft = self._read(kernel, "draft_steps.draft", kernel, headers)
            draft = self._compiled(draft, "draft_steps.compiled", kernel, draft.stand_ins, front)
            if not draft.stand_ins:
                shutil.rmtree(headers, ignore_errors=True)
            kernel = draft.kernel
            if not kernel.front:
                front.unlink(missing_ok=True)
        self.written.add(space, draft.space)
        self.written.add(reference, draft.reference)
        can_run = self._can_run(draft.dialect)
        if is_triton:
            draft = self._compiled(draft, "draft_steps.compiled_triton", kernel, space)
            _write(space, draft.space, "w")
            _write(reference, draft.reference, "w")
        notes = [Note(False, text) for text in draft.notes]
        if kernel.front:
            text = f"{front} defines what the host may put before {path.name}: guessed, so check it"
            notes.append(Note(False, text))
        notes = [*notes, self._loaded(kernel, space, can_run=can_run)]
        self.written.keep()
        if draft.complaint:
            notes.append(Note(False, f"not compiled: {draft.complaint}"))
        elif can_run:
            draft, said = self._run(kernel, draft, space, reference)
            notes += said
        else:
            notes += self._without_device(draft, space)
        return FirstSpace(path, draft, space, reference, tuple(notes), can_run)

    def _read(self, kernel: KernelFile, step: str, *arguments: object) -> Any:
        """What a step finds in the source; raises InputError if it takes too long or its process ends."""
        try:
            return self.workshop.run(
                step, *arguments, limit_s=min(self.limits.reading_s, self.workshop.left_s)
            )
        except Stopped as why:
            advice = f"move the kernel and what it uses to a file of its own{self._or_more_time(why)}"
            raise InputError(f"{kernel.path}: not read: {why}; {advice}") from None

    def _compiled(self, draft: SpaceDraft, step: str, *arguments: object) -> SpaceDraft:
        """A draft whose default compiles, or the draft as it is with the reason why it does not."""
        self.on_stage(Stage("compiling the default"))
        most_s = self._most_s
        try:
            compiled: SpaceDraft = self.workshop.run(step, *arguments, most_s / 2, limit_s=most_s)
        except Stopped as why:
            alone = "trials.run_default" if draft.dialect == OPENCL else "trials.compile_default"
            return replace(draft, complaint=_unlimited(why, _files(draft.kernel)[0], alone))
        return compiled

    @property
    def _most_s(self) -> float:
        """The time limit of a step after which the space has to be loaded still."""
        return self.workshop.left_s - self.limits.reading_s

    def _or_more_time(self, why: Stopped) -> str:
        """The other remedy for a step that took too long, as the end of a sentence."""
        more = f", or give all steps more than their {self.limits.total_s:g} s with --time SECONDS"
        return more if why.is_late else ""

    def _can_run(self, dialect: str) -> bool:
        """True if a device of this machine takes a dialect; one that stalls takes none."""
        self.on_stage(Stage("finding devices"))
        try:
            return bool(self.workshop.run("draft_steps.can_run", dialect, limit_s=self._most_s))
        except Stopped:
            return False

    def _loaded(self, kernel: KernelFile, space: Path, *, can_run: bool) -> Note:
        """Load the space and count it; raises InputError if it does not load, and so is not kept."""
        self.on_stage(Stage("loading the space"))
        try:
            limit_s = max(self.limits.reading_s, self.workshop.left_s)  # the last step that must succeed
            count = self.workshop.run("trials.count", space, has_device=can_run, limit_s=limit_s)
        except Stopped as stopped:
            advice = f"write the space by hand (docs/space-format.md){self._or_more_time(stopped)}"
            raise InputError(
                f"{kernel.path}: no space was written, for loading the one that was guessed did not end: "
                f"{stopped}; {advice}"
            ) from None
        except (InputError, SetupError) as error:
            why = re.sub(rf"^{re.escape(str(space))}:(?:\d+:)?", "", str(error)).strip()
            raise InputError(
                f"{kernel.path}: no space was written, because the guessed one does not load: {why}; "
                "name another kernel with --entry, or write the space by hand (docs/space-format.md)"
            ) from None
        return Note(True, f"the space has {count_text(count, 'valid configuration')}")

    def _run(
        self, kernel: KernelFile, draft: SpaceDraft, space: Path, reference: Path
    ) -> tuple[SpaceDraft, list[Note]]:
        """Run the default; if it fails, again with room in its arrays."""
        said = self._tried("trials.run_default", space)
        if said[-1].is_good or draft.dialect == TRITON or self.workshop.left_s < _LEAST_S:
            return draft, said
        try:
            limit_s = self.workshop.left_s
            roomy = self.workshop.run("draft_steps.with_room", kernel, draft.stand_ins, limit_s=limit_s)
        except (InputError, SetupError, Stopped):
            return draft, said
        _write(space, roomy.space, "w")
        _write(reference, roomy.reference, "w")
        again = self._tried("trials.run_default", space)
        if again[-1].is_good:
            return roomy, again
        _write(space, draft.space, "w")
        _write(reference, draft.reference, "w")
        return draft, said

    def _without_device(self, draft: SpaceDraft, space: Path) -> list[Note]:
        """Compile the default, if a compiler for it needs no device, and run it on the CPU."""
        is_compiled = draft.dialect in BACKENDS["cuda"].accepts
        said = self._tried("trials.compile_default", space) if is_compiled else []
        return [*said, *self._tried("trials.run_on_cpu", space)]

    def _tried(self, step: str, space: Path) -> list[Note]:
        """What a step says of the default."""
        is_run = step != "trials.compile_default"
        self.on_stage(Stage(f"{'running' if is_run else 'compiling'} the default"))
        try:
            said: list[Note] = self.workshop.run(step, space, limit_s=self.workshop.left_s)
        except Stopped as why:
            return [Note(False, f"not {'run' if is_run else 'compiled'}: {_unlimited(why, space, step)}")]
        except (InputError, SetupError) as error:
            return [Note(False, f"not {'run' if is_run else 'compiled'}: {error}")]
        return said


def _unlimited(why: Stopped, space: Path, step: str) -> str:
    """Why a step was stopped; if it took too long, how to do the same without a time limit."""
    if not why.is_late:
        return str(why)
    alone = _ALONE[step].format(shlex.quote(str(space)))
    return f"this {why}; without a time limit: autotune {alone}"


def _write(file: Path, text: str, mode: str) -> None:
    with writing(file), file.open(mode) as out:
        out.write(text)


def _require_no_options(kernel: KernelFile) -> None:
    """Raise InputError for what only sources in C have."""
    for option, values in (("--define", kernel.definitions), ("--include", kernel.include_dirs)):
        if values:
            raise InputError(f"{kernel.path}: {option} is for sources in C, not for Triton; leave it out")


def _name(path: Path) -> str:
    name = re.sub(r"\W", "_", path.stem)
    return f"kernel_{name}" if name[0].isdigit() or name == "device" else name


def _reference_name(path: Path, name: str) -> str:
    """A name that is free: a program of the same name may be the kernel's host, or the kernel itself."""
    usual, further = f"{name}.py", f"{name}_reference.py"
    is_ours = path.with_name(f"{name}.yaml").exists() and not path.with_name(further).exists()
    is_taken = path.suffix == ".py" or (path.with_name(usual).exists() and not is_ours)
    return further if is_taken else usual


def _files(kernel: KernelFile) -> tuple[Path, Path, Path, Path]:
    """The space, the reference, the folder of headers and the file in front that a kernel may get."""
    front = f"{kernel.name}_front{kernel.path.suffix}"
    names = (f"{kernel.name}.yaml", kernel.reference, f"{kernel.name}_headers", front)
    space, reference, headers, front_file = map(kernel.path.with_name, names)
    return space, reference, headers, front_file


def _require_absent(*files: Path) -> None:
    """Raise InputError for files that are there already."""
    if taken := [str(file) for file in files if file.exists()]:
        folders = "-r " if any(file.is_dir() for file in files) else ""
        is_own = any(file.suffix == ".yaml" and file.exists() for file in files)  # the others came with it
        mend = f"to start anew: rm {folders}{shlex.join(taken)}" if is_own else "move it away first"
        raise InputError(f"{' and '.join(taken)}: there already, and never overwritten; {mend}")
