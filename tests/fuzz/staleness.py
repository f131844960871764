"""Random kernels whose sources, headers, options, variables and references are edited at random.

Each edit changes what is computed, so nothing of before may be used again: no row of a journal and no binary.
"""

import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.compilers.binary_cache import content_key
from autotune.compilers.hidden_reads import variables_text
from autotune.compilers.source_text import read_source
from autotune.devices.fake import list_devices
from autotune.evaluation.identity import journal_header, journal_notes
from autotune.evaluation.instance import InstanceMaker, environment
from autotune.problem.reference_file import ReferenceFile
from autotune.space import bind, load_space, problem_of
from tests.conftest import LIMIT_S, run_in_process

VARIABLE = "CL_CONFIG_OF_A_TEST"  # as a runtime's compiler reads them; none reads this one
SPACE = """\
schema: 1
kernel: add
dialect: opencl
source: add.cl
reference: reference.py
include_dirs: [inc]
sizes: {default: {n: 256}}
dtypes: [int32]
parameters: {B: [32]}
default: {B: 32}
compiler_options: {opencl: {-DOPTION: "1"}}
arguments:
  - {name: y, dtype: int32, shape: [n], role: out}
  - {name: x, dtype: int32, shape: [n], role: in, fill: {integers: [0, 9]}}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: add, grid: ["ceil_div(n, B)"], block: [B], arguments: [y, x, n]}
verify: {rtol: 0, atol: 0}
"""
KERNEL = """\
__kernel void add(__global int *y, __global const int *x, int n) {
    int i = get_global_id(0);
    if (i < n) y[i] = x[i] + OPTION + ADDED_0;
}
"""
# How a header is included, and whether that works in any file: a compiler looks in the current folder only.
WAYS = {
    "quoted": ('#include "{0}"', True),
    "in a folder": ("#include <{0}>", True),
    "asked for": ('#if __has_include("{0}")\n#include "{0}"\n#endif', True),
    "under a condition": ('#if B > 0\n#include "{0}"\n#endif', True),
    "by a macro": ('#define HEADER_{1} "{0}"\n#include HEADER_{1}', False),
    "with a comment": ('#include /* of */ "{0}"', False),
    "by one of two macros": (
        '#if B > 16\n#define NAME_{1} "{0}"\n#else\n#define NAME_{1} "no.h"\n#endif\n#include NAME_{1}',
        False,
    ),
}
IMPORTS = ("import {0}\nVALUE = 1 + {0}.VALUE", "from {0} import VALUE as more\nVALUE = 1 + more")


@dataclass(frozen=True)
class Case:
    """A kernel in a folder, and what can be edited: the number that follows a text in a file."""

    folder: Path
    edits: tuple[tuple[str, str], ...]

    def edited(self, choice: random.Random, folder: Path) -> str:
        """Change one number in the folder, or a variable, and say which."""
        file, text = choice.choice(self.edits)
        if file == VARIABLE:
            os.environ[VARIABLE] = str(choice.getrandbits(64))
            return VARIABLE
        path = folder / file
        content = path.read_text()
        number = re.search(rf"{re.escape(text)}(\d+)", content)
        assert number is not None
        value = choice.choice([one for one in range(2, 99) if one != int(number[1])])
        path.write_text(f"{content[: number.start(1)]}{value}{content[number.end(1) :]}")
        return f"{file}: {text}{value}"


def case(choice: random.Random, folder: Path) -> Case:
    """Write a kernel with a chain of headers, and a reference with a chain of modules."""
    (folder / "inc").mkdir(parents=True)
    (folder / "add.yaml").write_text(SPACE)
    headers = _write_source(choice, folder)
    modules = _write_reference(choice, folder, len(headers) + 1)
    return Case(folder, (("add.yaml", '-DOPTION: "'), (VARIABLE, ""), *headers, *modules))


def _write_source(choice: random.Random, folder: Path) -> list[tuple[str, str]]:
    """Write a source that adds 1 for each of its headers and for itself; return where these numbers are."""
    depth, file, text = choice.randrange(4), Path("add.cl"), KERNEL
    places, conditional = [], False
    for level in range(depth):
        own = f"#define OWN_{level} "
        names = [
            name
            for name, (_, anywhere) in WAYS.items()
            if anywhere or (file.parent == Path() and not conditional)
        ]
        way = choice.choice(names)
        conditional = conditional or way in ("under a condition", "asked for")
        header = (Path("inc") if way == "in a folder" else file.parent) / f"h{level}.h"
        (folder / file).write_text(f"{WAYS[way][0].format(header.name, level)}\n{own}1\n{text}")
        places.append((str(file), own))
        file, text = header, f"#define ADDED_{level} (OWN_{level} + ADDED_{level + 1})\n"
    last = f"#define ADDED_{depth} "
    (folder / file).write_text(f"{last}1\n{text}")
    return [*places, (str(file), last)]


def _write_reference(choice: random.Random, folder: Path, added: int) -> list[tuple[str, str]]:
    """Write a reference that adds a number, of which its modules have a part each; return where."""
    count, name, places = choice.randrange(3), "reference", []
    text = f"def reference(inputs, sizes):\n    return {{'y': inputs['x'] + VALUE + {added - 3}}}\n"
    for level in range(count + 1):
        own = 3 - count if level == count else 1
        line = f"VALUE = {own}" if level == count else choice.choice(IMPORTS).format(f"module_{level}")
        (folder / f"{name}.py").write_text(f"import sys\nsys.path.insert(0, '.')\n{line}\n{text}")
        places.append((f"{name}.py", "VALUE = "))
        name, text = f"module_{level}", ""
    return places


def keys(folder: Path) -> tuple[str, str, bool]:
    """What a binary and a row are found by, and whether all is known that a compiler reads."""
    spec = load_space(folder / "add.yaml")
    source = read_source(spec.source, spec.include_dirs)
    device = replace(list_devices()[0], backend="opencl")
    problem = problem_of(spec, device)
    space = bind(spec, device, problem)
    made = InstanceMaker(space, source, "opencl", environment(device, "a compiler")).make(spec.default)
    reference = ReferenceFile(spec.reference).sha256
    header = journal_header(spec, problem, source.sha256, reference, source.hidden)
    header |= environment(device, "a compiler")
    row = json.dumps([header, journal_notes(spec), made.key])
    binary = content_key(f"device {variables_text('opencl')}", made.source, made.options)
    return binary, row, not source.hidden


def wrong_keys(count: int, folder: Path) -> Iterator[str]:
    """Edit kernels `count` times; yield each edit after which a binary or a row would be found again.

    Without an edit they have to be found, unless it is not known all that a compiler reads.
    """
    choice = random.Random(1)
    with _variable():
        for number in range(count):
            if number % 10 == 0:
                one = case(choice, folder / str(number))
            before, same = keys(one.folder), keys(one.folder)
            if (before == same) != before[2]:
                yield f"{one.folder}: without an edit"
            what = one.edited(choice, one.folder)
            after = keys(one.folder)
            is_of_reference = what.startswith(("reference", "module"))
            if before[1] == after[1] or (before[0] == after[0] and not is_of_reference):
                yield f"{one.folder}: {what}"


def wrong_searches(count: int, folder: Path) -> Iterator[str]:
    """Edit kernels that were searched; yield each edit after which a search uses what was found before it."""
    choice = random.Random(2)
    for number in range(count):
        if number % 10 == 0:
            one = case(choice, folder / str(number))
            done = _search(one.folder)
            assert done.returncode == 0, done.stderr
        copy = folder / f"{number} edited"
        shutil.copytree(one.folder, copy)
        with _variable():
            what = one.edited(choice, copy)
            again, fresh = _search(copy), _search(copy, "--fresh")
        is_right = what == VARIABLE  # then the kernel still is
        said = fresh.stdout + fresh.stderr
        if (
            again.returncode == 0
            or (fresh.returncode == 0) != is_right
            or "with a binary of an earlier run" in said
        ):
            yield f"{one.folder}: {what}: {again.stderr} {said}"
        shutil.rmtree(copy)


def _search(folder: Path, *options: str) -> subprocess.CompletedProcess:
    command = ["search", "add.yaml", "--device", "opencl", "--budget", "1", *options]
    if VARIABLE not in os.environ:
        return run_in_process(folder, *command)
    program = [sys.executable, "-m", "autotune", *command]  # compilers get the variables of its beginning
    return subprocess.run(program, cwd=folder, capture_output=True, text=True, timeout=LIMIT_S)


@contextmanager
def _variable() -> Iterator[None]:
    """Leave the variable as it was before."""
    before = os.environ.pop(VARIABLE, None)
    try:
        yield
    finally:
        os.environ.pop(VARIABLE, None)
        if before is not None:
            os.environ[VARIABLE] = before
