"""Write a first space file and reference for a kernel; comments mark each guess to check."""

from __future__ import annotations

import argparse
import os
import shlex
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.core.stages import Stage
from autotune.drafting.space_draft import USUAL_LIMITS, Limits

if TYPE_CHECKING:
    from autotune.drafting.first_space import FirstSpace

EXAMPLE = "autotune new my_kernel.cu"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kernel",
        type=Path,
        help="a source in CUDA C++, OpenCL C, the portable dialect or Triton, or a program with a source in "
        "a string",
    )
    parser.add_argument(
        "--entry", metavar="NAME", help="which kernel of the source to tune (default: the first)"
    )
    parser.add_argument(
        "--define",
        metavar="NAME=VALUE",
        type=_definition,
        action="append",
        default=[],
        help="set a macro that the source leaves to its user, also in the space; repeat for more",
    )
    parser.add_argument(
        "--include",
        metavar="DIR",
        type=Path,
        action="append",
        default=[],
        help="a folder of headers, also for the space; repeat for more",
    )
    parser.add_argument(
        "--time",
        metavar="SECONDS",
        type=opt.seconds,
        default=USUAL_LIMITS.total_s,
        help="time limit of reading, compiling and running, all together (default %(default)g)",
    )
    opt.add_verbosity(parser)


def run(parsed: argparse.Namespace) -> None:
    with opt.progress(parsed, first_line_s=0.3) as progress:
        progress.stage(Stage(f"reading {parsed.kernel.name}"))
        from autotune.drafting.first_space import first_space  # progress shows before this is imported

        result = first_space(
            parsed.kernel,
            parsed.entry,
            progress.stage,
            include_dirs=parsed.include,
            definitions=parsed.define,
            limits=Limits.of(parsed.time),
        )
    emit("\n".join((findings(result), *map(str, result.notes), next_steps(result))))


def _definition(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not name.isidentifier():
        raise argparse.ArgumentTypeError(f"{text!r}: expected NAME=VALUE, such as WIDTH=4")
    return name, value if separator else "1"  # as compilers take it


def findings(result: FirstSpace) -> str:
    """A text of the kernels, arguments and parameters found, and the files written."""
    draft, space = result.draft, result.space
    several = len(draft.kernels) > 1
    chosen = f"; the space is for {draft.entry}; for another, give --entry" if several else ""
    lines = [f"{', '.join(draft.kernels)}: dialect {draft.dialect}{chosen}", ""]
    for title, rows in draft.tables:
        lines += [title, *(f"  {name:<40} {meaning}" for name, meaning in rows)]
    guessed = (
        "guessed from the kernel's formula"
        if draft.has_reference
        else "returns nothing yet, so nothing is compared"
    )
    lines += ["", f"wrote {space}: read its comments", f"wrote {result.reference}: {guessed}"]
    if draft.stand_ins:
        folder = space.with_name(Path(draft.stand_ins).parts[0])
        taken = shlex.join(map(str, (space, result.reference, folder)))
        lines.append(
            f"wrote {folder}: empty headers for the source's headers that were not found; put the real ones "
            f"there, or start anew with their folder: rm -r {taken} && autotune new "
            f"{shlex.quote(str(result.source))} --include {_near_folder(result, folder)}"
        )
    return "\n".join(lines)


def _near_folder(result: FirstSpace, stand_ins: Path) -> str:
    """A folder around the source that has a header for which `stand_ins` has an empty one."""
    from autotune.drafting.stand_in_headers import folders_of_headers

    files = (file.relative_to(stand_ins).parts for file in stand_ins.rglob("*") if file.is_file())
    missing = ["/".join(part for part in parts if part != "up") for parts in files]
    found = folders_of_headers(result.source, missing, stand_ins)
    return shlex.quote(os.path.normpath(result.source.parent / found[0])) if found else "FOLDER"


def next_steps(result: FirstSpace) -> str:
    """The next steps; a kernel that no device here takes is run on the CPU and compiled first."""
    from autotune.drafting.space_draft import ARCHITECTURE

    draft, space = result.draft, result.space
    steps = [f"autotune search {space}"]
    if not result.can_run:
        is_proved = draft.has_reference and result.notes[-1].is_good
        looks = [] if is_proved else ["--run"]  # on the CPU
        looks += [] if draft.dialect == "opencl" else [f"--compile --device {ARCHITECTURE}"]
        steps = [f"on a machine with a device for {draft.dialect}: {steps[0]}"]
        steps = [*(f"autotune space {space} {look}" for look in looks), *steps]
    if not draft.has_reference:
        steps.insert(0, f"complete {result.reference}: it has to return the expected results")
    if draft.complaint:
        again = f"; autotune run {space} --default tries it" if result.can_run else ""
        steps.insert(0, f"mend what does not compile{again}")
    if draft.arrays:
        named = (f'**{{"{name}": ...}}' if iskeyword(name) else f"{name}=..." for name in draft.numbers)
        arguments = ", ".join((*draft.arrays, *named))
        steps.append(f'in a program: autotune.load_kernel("{space.stem}")({arguments})')
    return "\n".join(f"{'then' if number else 'next'}  {step}" for number, step in enumerate(steps))
