"""Write a first space file and reference for a kernel; comments mark each guess to check."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.cli.output import emit
from autotune.core.text import count_text

if TYPE_CHECKING:
    from autotune.analysis.first_space import FirstSpace
    from autotune.scaffold import Scaffold
    from autotune.scaffold.triton import TritonScaffold
    from autotune.sources.triton import TritonKernel

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
    """Write both files next to the kernel, and print the guesses."""
    from autotune.analysis.first_space import first_space
    from autotune.cli.progress import SearchProgress, Verbosity
    from autotune.scaffold import Scaffold

    with SearchProgress(Verbosity.QUIET) as progress:
        found = first_space(parsed.kernel, parsed.entry, progress)
    if isinstance(found.made, Scaffold):
        said, then = findings(found.made, found.space, found.reference), next_steps(found, found.made)
    else:
        said, then = triton_findings(found.made, parsed.kernel, found), triton_steps(found)
    emit("\n".join((said, *map(str, found.notes), then)))


def findings(made: Scaffold, space: Path, reference: Path) -> str:
    """A text of the kernels, arguments and macros found, and the files written."""
    called = ", ".join(kernel.entry for kernel in made.source.kernels)
    chosen = f"; the space is for {made.kernel.entry}" if len(made.source.kernels) > 1 else ""
    lines = [f"{called}: dialect {made.source.dialect}{chosen}", "", "argument"]
    for item in made.guess.arguments:
        what = f"{item.role.value} [{', '.join(item.shape)}]" if item.role is not None else f"= {item.value}"
        lines.append(f"  {item.argument.text:<40} {what}")
    lines += ["macro"]
    for parameter in made.guess.launch.parameters:
        values = ", ".join(map(str, parameter.values))
        lines.append(
            f"  {parameter.name:<40} {values}" + (f"  ({parameter.remark})" if parameter.remark else "")
        )
    lines += [f"  {macro.name:<40} left at {macro.default}" for macro in made.guess.launch.fixed_macros]
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


def triton_findings(made: TritonScaffold, source: Path, found: FirstSpace) -> str:
    """The same for a kernel in Triton."""
    lines = [f"{source.name}: dialect triton; the space is for {made.kernel.entry}", "", "array"]
    lines += [f"  {array:<40} {role}" for array, role in made.kernel.roles.items()]
    lines += ["parameter"]
    lines += [f"  {one:<40} {', '.join(map(str, values))}" for one, values in made.guess.values.items()]
    lines += [
        "",
        _configs_text(made.kernel),
        f"wrote {found.space}: read its comments",
        f"wrote {found.reference}: returns nothing yet",
    ]
    return "\n".join(lines)


def _configs_text(kernel: TritonKernel) -> str:
    if kernel.unread:
        return (
            f"the list of @triton.autotune was not read, for nothing of the file is run: {kernel.unread}; "
            "write its values into the space"
        )
    count = count_text(len(kernel.configs), "configuration")
    return f"{count} of @triton.autotune became landmarks" if kernel.configs else "no @triton.autotune"


def next_steps(found: FirstSpace, made: Scaffold) -> str:
    """The next steps; a kernel that cannot run here can be compiled, unless it is for OpenCL alone."""
    from autotune.analysis.compiled_scaffold import ARCHITECTURE
    from autotune.scaffold.guessed_reference import variable_name
    from autotune.scaffold.roles import Role

    space = found.space
    steps = [f"autotune search {space}"]
    if not found.can_run and made.source.dialect != "opencl":
        steps = [
            f"autotune space {space} --device {ARCHITECTURE}",
            f"autotune feasible {space} --architectures {ARCHITECTURE}",
        ]
    if not made.guess.reference:
        steps.insert(0, f"write {found.reference}: it says what is expected")
    arrays = [item for item in made.guess.arguments if item.role not in (None, Role.LOCAL)]
    passed = ", ".join(variable_name(item.argument.name) for item in arrays)
    return _in_turn([*steps, f'in a program: autotune.load_kernel("{space.stem}")({passed})'])


def triton_steps(found: FirstSpace) -> str:
    """The same for a kernel in Triton."""
    from autotune.analysis.compiled_scaffold import ARCHITECTURE

    search = f"autotune search {found.space}"
    compile_only = f"autotune feasible {found.space} --architectures {ARCHITECTURE}"
    written = f"write {found.reference}: it says what is expected"
    return _in_turn([written, search if found.can_run else compile_only])


def _in_turn(steps: Sequence[str]) -> str:
    return "\n".join(f"{'then' if number else 'next'}  {step}" for number, step in enumerate(steps))
