"""Times a C function that does a kernel's work on the host: on a scalar thread, with vectors, on all cores.

`NAME.c` next to the reference file `NAME.py` has a function of that name, whose parameters are arrays and
sizes of the space, by name. One source makes all three: loops that may run in parallel have a directive of
OpenMP, of which the first build reads nothing and the second one `simd` alone.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from autotune.core.records import Value
from autotune.core.text import first_error
from autotune.devices.element_types import numpy_dtype
from autotune.errors import InputError
from autotune.problem.problem_instance import ProblemInstance
from autotune.sources.kernel_source import read_kernel_source

_COMMON = ("-O3", "-std=gnu11", "-shared", "-fPIC", "-fno-math-errno")
_TIMEOUT_S = 60.0  # of the compiler
_TOLERANCE = 1e-3  # of the largest result: sums in float32 in another order


class Build(NamedTuple):
    """A way to compile the source."""

    name: str
    options: tuple[str, ...]
    detail: str


BUILDS = (
    Build("C, scalar", ("-fno-tree-vectorize", "-fno-tree-slp-vectorize"), "one thread without vectors"),
    Build("C, vectors", ("-march=native", "-fopenmp-simd"), "one thread with vectors"),
    Build("C, all cores", ("-march=native", "-fopenmp"), "a thread with vectors on each core"),
)


def c_times(
    reference: Path,
    problem: ProblemInstance,
    inputs: Mapping[str, NDArray[Any]],
    macros: Mapping[str, Value],
    expected: Callable[[], Mapping[str, NDArray[Any]]],
    time_ms: Callable[[Callable[[], object]], float],
) -> Iterator[tuple[Build, float | str]]:
    """The time of each build in ms, or why it has none; nothing without a C file.

    The source may use the macros. Results are compared with the `expected` ones; `time_ms` times a run.
    """
    path = reference.with_suffix(".c")
    if not path.is_file():
        return
    outputs = {
        one.name: np.zeros(one.shape, numpy_dtype(one.dtype)) for one in problem.arrays if one.role != "in"
    }
    right: Mapping[str, NDArray[Any]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for build in BUILDS:
            try:
                run = _run(path, Path(folder), build, problem, {**inputs, **outputs}, macros)
                run()
                right = right or expected()
                for name in outputs.keys() & right.keys():
                    _compare(name, outputs[name], right[name])
                yield build, time_ms(run)
            except (InputError, OSError, subprocess.TimeoutExpired) as error:
                yield build, str(error).partition("\n")[0]


def _run(
    path: Path,
    folder: Path,
    build: Build,
    problem: ProblemInstance,
    arrays: Mapping[str, NDArray[Any]],
    macros: Mapping[str, Value],
) -> Callable[[], object]:
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise InputError("needs gcc or clang")
    library = folder / f"{BUILDS.index(build)}.so"
    defined = [f"-D{name}={value}" for name, value in macros.items()]
    done = subprocess.run(
        [compiler, *_COMMON, *build.options, *defined, path, "-o", library, "-lm"],
        capture_output=True,
        text=True,
        timeout=_TIMEOUT_S,
    )
    if done.returncode:
        raise InputError(f"{path.name}: {first_error(done.stderr)}")
    name, values = path.stem, {name: str(value) for name, value in macros.items()}
    functions = read_kernel_source(path.read_text(), values, "cuda").functions
    parameters = next((one.parameters for one in functions if one.name == name), None)
    if parameters is None:
        raise InputError(f"{path.name}: defines no function {name}")
    given: list[Any] = []
    for parameter in parameters:
        if parameter.pointers and parameter.name in arrays:
            given.append(ctypes.c_void_p(arrays[parameter.name].ctypes.data))
        elif not parameter.pointers and parameter.name in problem.definition.sizes:
            given.append(ctypes.c_long(problem.definition.sizes[parameter.name]))
        else:
            raise InputError(f"{path.name}: {parameter.text}: the space has no such array or size")
    return partial(ctypes.CDLL(str(library))[name], *given)


def _compare(name: str, found: NDArray[Any], right: NDArray[Any]) -> None:
    """Raise InputError for a result that is not the reference's."""
    wide = right.reshape(found.shape).astype(np.float64)
    error = np.max(np.abs(found - wide), initial=0.0)
    if not error <= _TOLERANCE * max(1.0, np.max(np.abs(wide), initial=0.0)):
        raise InputError(f"{name} is wrong: off by {error:.3g}")
