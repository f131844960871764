"""Write a first space file and reference for a kernel; both run as they are and mark what to check."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from autotune.cli.output import emit
from autotune.errors import InputError, WriteError
from autotune.scaffold import Scaffold

EXAMPLE = "autotune new my_kernel.cu"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options of `autotune new`."""
    parser.add_argument("kernel", type=Path, help="a source in CUDA C++, OpenCL C or the portable dialect")
    parser.add_argument(
        "--entry", metavar="NAME", help="which kernel of the source to tune (default: the first)"
    )


def run(parsed: argparse.Namespace) -> None:
    """Write both files beside the kernel and say what was guessed."""
    from autotune.compilers.kernel_source import include_dir, read_source
    from autotune.scaffold import scaffold

    path: Path = parsed.kernel
    read_source(path)  # raises InputError if an include is missing
    name = re.sub(r"\W", "_", path.stem)
    name = f"kernel_{name}" if name[0].isdigit() or name == "device" else name
    space, reference = path.with_name(f"{name}.yaml"), path.with_name(f"{name}.py")
    if taken := [str(file) for file in (space, reference) if file.exists()]:
        raise InputError(f"{' and '.join(taken)}: exists and is never overwritten; move it away first")
    header = (Path(include_dir()) / "portable.h").read_text()
    made = scaffold(path.name, name, path.read_text(), header, parsed.entry)
    try:
        for file, text in ((space, made.space), (reference, made.reference)):
            with file.open("x") as out:
                out.write(text)
    except OSError as error:
        raise WriteError(f"{error.filename}: cannot be written: {error.strerror}") from None
    emit(findings(made, space, reference))


def findings(made: Scaffold, space: Path, reference: Path) -> str:
    """Say which kernels, arguments and macros were found, what was written and what to do next."""
    called = ", ".join(kernel.entry for kernel in made.source.kernels)
    lines = [f"{called}: dialect {made.source.dialect}; the space is for {made.kernel.entry}", "", "argument"]
    for item in made.guess.arguments:
        what = f"{item.role.value} [{item.shape}]" if item.role is not None else f"= {item.value}"
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
        f"next  autotune search {space}",
    ]
    return "\n".join(lines)
