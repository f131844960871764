"""Steps that read a source and draft a space for it."""

from __future__ import annotations

import shlex
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from autotune.compilers.source_text import missing_headers
from autotune.core.launch_plan import TRITON
from autotune.core.text import count_text
from autotune.devices import BACKENDS, WITHOUT_HARDWARE
from autotune.devices.listing import find_devices
from autotune.drafting.compiled_draft import (
    Deadlines,
    compiled_scaffold,
    has_host_code,
    plain_scaffold,
    why_unread,
    with_nvcc,
)
from autotune.drafting.complaints import refused_c, refused_triton
from autotune.drafting.front_matter import with_front
from autotune.drafting.space_draft import KernelFile, SpaceDraft
from autotune.drafting.stand_in_headers import folders_of_headers, write_stand_ins
from autotune.drafting.trials import compile_default
from autotune.errors import AutotuneError, InputError, KernelUnread
from autotune.processes.deadline import Deadline
from autotune.scaffold import Assumptions, Scaffold
from autotune.scaffold.guessed_launch import PLACEHOLDER
from autotune.scaffold.guessed_reference import variable_name
from autotune.scaffold.roles import Role
from autotune.scaffold.triton import TritonScaffold, scaffold_triton
from autotune.scaffold.triton_guesses import TritonGuess
from autotune.sources.bare_code import WORD
from autotune.sources.dialects import OPENCL
from autotune.sources.triton_module import is_triton
from autotune.sources.triton_places import find_place
from autotune.tuning.task import verify_all_command

_SHOWN = 5  # names of macros
_SETTLED = ("NotImplementedError", "NameError", "cannot be run")  # complaints that no other guess mends


def is_in_triton(path: Path) -> bool:
    """True for a file with functions under `@triton.jit`; raises InputError if it cannot be read."""
    if path.suffix != ".py":
        return False
    try:
        return is_triton(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read: {error}; expected a kernel source") from None


def can_run(dialect: str) -> bool:
    """True if a device of this machine takes a dialect."""
    able = (name for name, entry in BACKENDS.items() if dialect in entry.accepts)
    return bool(find_devices(name for name in able if name not in WITHOUT_HARDWARE))


def draft(kernel: KernelFile, headers: Path) -> SpaceDraft:
    """Draft a space; empty headers are written to the folder `headers` in place of those that are not there.

    Raises InputError if the file has no kernel that can be tuned as it is.
    """
    stand_ins = write_stand_ins(kernel.path, _folders(kernel), headers)
    assumed = Assumptions(defined=kernel.definitions)
    whole = _with_headers(kernel, stand_ins)
    try:
        made = plain_scaffold(whole, assumed)
    except KernelUnread as error:
        raise KernelUnread(error.file, error.line, *why_unread(whole)) from None
    return _described(made, kernel, stand_ins)


def compiled(kernel: KernelFile, stand_ins: str, front: Path, within_s: float) -> SpaceDraft:
    """Draft a space whose default compiles, as far as that can be achieved in a time.

    If the kernel needs what the headers of `stand_ins` should have, those that other folders have are taken
    from there, and others are reported.
    What the source leaves to its host is written into the file `front`, which includes the source.
    """
    deadlines = Deadlines(Deadline.after(within_s), Deadline.after(1.5 * within_s))
    made = compiled_scaffold(_with_headers(kernel, stand_ins), deadlines=deadlines)
    if stand_ins and made.complaint:
        missing = missing_headers(kernel.path, _folders(kernel))
        own = kernel.path.with_name(Path(stand_ins).parts[0])
        folders = folders_of_headers(kernel.path, missing, own)
        kernel = replace(kernel, include_dirs=(*kernel.include_dirs, *folders))
        stand_ins = stand_ins if folders else ""
        made = compiled_scaffold(_with_headers(kernel, stand_ins), deadlines=deadlines)
    if made.complaint and (fronted := with_front(_with_headers(kernel, stand_ins), made, front, deadlines)):
        kernel, made = fronted
    if made.complaint:
        made = with_nvcc(_with_headers(kernel, stand_ins), made, deadlines.compiled)
    return _described(made, kernel, stand_ins)


def with_room(kernel: KernelFile, stand_ins: str) -> SpaceDraft:
    """Draft a space whose arrays have more room than their indices show."""
    assumed = Assumptions(is_roomy=True)
    made = compiled_scaffold(_with_headers(kernel, stand_ins), assumed)
    return _described(made, kernel, stand_ins)


def draft_triton(kernel: KernelFile) -> SpaceDraft:
    """Draft a space for a kernel in Triton."""
    return _described_triton(scaffold_triton(kernel.path, kernel.name, kernel.entry), kernel)


def compiled_triton(kernel: KernelFile, space: Path, within_s: float) -> SpaceDraft:
    """Draft a space whose default compiles, that of the file `space` or with another guess.

    The file has the guess that was tried last. If none compiles in the time, the draft is the first one, with
    a complaint if Triton has one: any other is said when the space is loaded, or its default tried.
    """
    deadline = Deadline.after(within_s)
    made = scaffold_triton(kernel.path, kernel.name, kernel.entry)
    first = _described_triton(made, kernel)
    try:
        said = compile_default(space)[-1]
    except AutotuneError:
        return first
    if said.is_good:
        return first
    complaint = said.text.removeprefix("not compiled: ")
    place = find_place(complaint, kernel.path)
    if not any(words in complaint for words in _SETTLED):
        reached = place.parameters(made.guess.kernel.entry) if place is not None else set()
        for assumed in made.guess.others(complaint, reached):
            if deadline.is_over:
                break
            with suppress(AutotuneError):  # such as a rule of the source that no value fits
                other = replace(made, guess=TritonGuess(made.guess.kernel, assumed))
                space.write_text(other.space)
                if compile_default(space)[-1].is_good:
                    return _described_triton(other, kernel)
    told = refused_triton(complaint, place, made.guess, space.name)
    return replace(first, complaint=told)


def _described_triton(made: TritonScaffold, kernel: KernelFile) -> SpaceDraft:
    found = made.guess.kernel
    parameters = ((name, ", ".join(map(str, values))) for name, values in made.guess.values.items())
    return SpaceDraft(
        kernel=kernel,
        dialect=TRITON,
        entry=found.entry,
        kernels=(found.entry,),
        space=made.space,
        reference=made.reference,
        has_reference=False,
        tables=(("array", (*found.roles.items(),)), ("parameter", (*parameters,))),
        arrays=(),
        notes=_about_configs(made, kernel.path.with_name(f"{kernel.name}.yaml")),
    )


def _folders(kernel: KernelFile) -> list[Path]:
    return [kernel.path.parent / folder for folder in kernel.include_dirs]


def _with_headers(kernel: KernelFile, stand_ins: str) -> KernelFile:
    return replace(kernel, include_dirs=(*kernel.include_dirs, stand_ins)) if stand_ins else kernel


def _described(made: Scaffold, kernel: KernelFile, stand_ins: str) -> SpaceDraft:
    """What was found and written, without what only the reader of sources knows."""
    path = kernel.path
    launch, source = made.guess.launch, made.source
    arguments = (
        (
            item.argument.text,
            f"= {item.value}" if item.role is None else f"{item.role.value} [{', '.join(item.shape)}]",
        )
        for item in made.guess.arguments
    )
    fixed = [name for name in source.fixed if name not in launch.names]
    macros = []
    for parameter in launch.parameters:
        is_said = not parameter.remark or (fixed and parameter.name == PLACEHOLDER)  # by a note
        remark = "" if is_said else f"  ({parameter.remark})"
        macros.append((parameter.name, ", ".join(map(str, parameter.values)) + remark))
    macros += [(macro.name, f"left at {macro.default}") for macro in launch.fixed_macros]
    arrays = [item for item in made.guess.arguments if item.role not in (None, Role.LOCAL)]
    formulas = launch.names  # what a value is worked out from for each call
    passed = launch.kernel.passed
    own = [item for item in made.guess.arguments if item.role is None and item.argument.name in passed]
    numbers = [item for item in own if formulas.isdisjoint(WORD.findall(item.value))]
    notes = [*source.refusals.values()][:1] if kernel.entry is None else []
    notes += launch.doubts
    if source.dialect != OPENCL and has_host_code(path):
        notes.append(
            "main() and other code for the host stays: it is left out where the kernels are compiled"
        )
    if fixed:
        named = ", ".join(fixed[:_SHOWN])
        files = [str(path.with_name(name)) for name in (f"{kernel.name}.yaml", kernel.reference)]
        anew = f"rm {shlex.join(files)} && autotune new {shlex.quote(str(path))}"
        notes.append(
            f"{named}: fixed by the source; #ifndef NAME around a #define makes it a parameter, with: {anew}"
        )
    return SpaceDraft(
        kernel=kernel,
        dialect=source.dialect,
        entry=made.kernel.entry,
        kernels=tuple(one.entry for one in source.kernels),
        space=made.space.replace(f"\nreference: {kernel.name}.py\n", f"\nreference: {kernel.reference}\n", 1),
        reference=made.reference,
        has_reference=bool(made.guess.reference),
        tables=(("argument", tuple(arguments)), ("macro", tuple(macros))),
        arrays=tuple(variable_name(item.argument.name) for item in arrays),
        numbers=tuple(item.argument.name for item in numbers),
        notes=tuple(notes),
        stand_ins=stand_ins,
        complaint=refused_c(made, path, _folders(kernel)),
    )


def _about_configs(made: TritonScaffold, space: Path) -> tuple[str, ...]:
    kernel = made.guess.kernel
    if kernel.unread:
        return (
            f"the list of @triton.autotune was not read, for nothing of the file is run: {kernel.unread}; "
            "write its values into the space",
        )
    if not kernel.configs:
        return ()
    count = count_text(len(kernel.configs), "configuration")
    if not made.guess.landmarks:
        return (
            f"the {count} of @triton.autotune are all combinations of the parameters' values, so none became "
            f"a landmark; to verify all without a GPU: {verify_all_command(space, len(kernel.configs))}",
        )
    return (f"{count} of @triton.autotune became landmarks",)
