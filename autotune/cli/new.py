"""Write a first space file and a reference for a kernel: both run as they are, and say what to look at."""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from autotune.cli.output import emit
from autotune.errors import InputError

EXAMPLE = "autotune new my_kernel.cu"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument("kernel", type=Path, help="a source in CUDA C++, OpenCL C or the portable dialect")
    parser.add_argument("--entry", metavar="NAME", help="which of the source's kernels (default: the first)")


def run(parsed: argparse.Namespace) -> None:
    """Run the command."""
    from autotune.report.new import findings
    from autotune.scaffold import scaffold
    from autotune.sources import include_dir, read_source

    path: Path = parsed.kernel
    read_source(path)  # every include is there
    name = re.sub(r"\W", "_", path.stem)
    name = f"kernel_{name}" if name[0].isdigit() or name == "device" else name
    space, reference = path.with_name(f"{name}.yaml"), path.with_name(f"{name}.py")
    if taken := [str(file) for file in (space, reference) if file.exists()]:
        raise InputError(f"{' and '.join(taken)}: already there, and never overwritten; move it away first")
    header = (Path(include_dir()) / "portable.h").read_text()
    made = scaffold(path.name, name, path.read_text(), header, parsed.entry)
    try:
        for file, text in ((space, made.space), (reference, made.reference)):
            with file.open("x") as out:
                out.write(text)
    except OSError as error:
        raise InputError(f"{error.filename}: cannot be written ({error.strerror})") from None
    emit(findings(made, space, reference))
