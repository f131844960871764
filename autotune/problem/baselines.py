"""Times baselines, the functions of a reference file that a kernel is compared with, in a separate process.

A function `baseline_NAME(inputs, sizes)` prepares a run, for example by bringing the inputs to a GPU, and
returns two functions: one that begins a run, and one that waits until all runs have ended. On the host,
`baseline_numpy` runs on one thread, and `baseline_numpy_all_cores` on as many as its libraries have.

`NAME.c` next to the reference file `NAME.py` has a C function of that name for the host, whose parameters are
arrays and sizes of the space, by name. It is timed on a scalar thread, with vectors and on all cores. One
source makes all three: loops that may run in parallel have a directive of OpenMP, of which the first build
reads nothing and the second one `simd` alone.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from autotune.core.records import Value
from autotune.core.text import first_error
from autotune.devices.element_types import numpy_dtype
from autotune.errors import BrokenReference, InputError
from autotune.problem.inputs import draw_inputs
from autotune.problem.reference import call, functions_of, run_reference
from autotune.problem.reference_file import BASELINE
from autotune.problem.workload import Workload
from autotune.sources.kernel_source import read_kernel_source

Run = Callable[[], object]

NUMPY, ALL_CORES = "numpy", "numpy_all_cores"
_ONE_THREAD, _QUEUED = "one thread", "runs one after the other, caches warm"
_ROUND_MS = 5.0  # runs are repeated until they take this long
_MAX_REPEATS = 200
_ROUNDS = 3
_LONG_MS = 500.0  # a longer run is not repeated
_COMMON = ("-O3", "-std=gnu11", "-shared", "-fPIC", "-fno-math-errno")
_TIMEOUT_S = 60.0  # the C compiler may take this long
_TOLERANCE = 1e-3  # relative to the largest result: float32 is added up in another order


class Build(NamedTuple):
    """A way to compile a C source."""

    name: str
    options: tuple[str, ...]
    detail: str


BUILDS = (
    Build("C, scalar", ("-fno-tree-vectorize", "-fno-tree-slp-vectorize"), "one thread without vectors"),
    Build("C, vectors", ("-march=native", "-fopenmp-simd"), "one thread with vectors"),
    Build("C, all cores", ("-march=native", "-fopenmp"), "a thread with vectors on each core"),
)


@dataclass(frozen=True)
class BaselineTime:
    """The time of one run of a baseline in ms; None if it failed.

    `detail` says how it ran, or why it failed.
    """

    name: str
    time_ms: float | None
    detail: str
    on_host: bool


class Baselines:
    """The baselines of a reference file, with the inputs of one workload.

    C functions may use the given macros.
    """

    def __init__(self, reference: Path, workload: Workload, macros: Mapping[str, Value]) -> None:
        self._path, self._workload, self._macros = reference, workload, macros
        self._sizes = dict(workload.problem.sizes)
        self._inputs = draw_inputs(workload.problem, workload.arrays)

    def times(self) -> tuple[BaselineTime, ...]:
        """The time of every baseline; if none is in C or uses numpy, the reference is timed instead."""
        functions = functions_of(self._path)
        named = {
            name.removeprefix(BASELINE): function
            for name, function in functions.items()
            if name.startswith(BASELINE)
        }
        timed = (*self.in_c(), *(self._time(name, function) for name, function in named.items()))
        if any(one.on_host for one in timed):
            return timed
        run = partial(functions["reference"], self._inputs, self._sizes)
        with threadpool_limits(1):
            reference = BaselineTime(f"{NUMPY} (reference)", _time_ms(run), _ONE_THREAD, on_host=True)
        return (reference, *timed)

    def in_c(self) -> Iterator[BaselineTime]:
        """The time of each build of the C function, if there is one, and its results are right."""
        source, workload = self._path.with_suffix(".c"), self._workload
        if not source.is_file():
            return
        outputs = {
            array.name: np.zeros(array.shape, numpy_dtype(array.dtype))
            for array in workload.arrays
            if array.role != "in"
        }
        right: Mapping[str, NDArray[Any]] = {}
        with tempfile.TemporaryDirectory() as folder:
            for number, build in enumerate(BUILDS):
                try:
                    library = Path(folder, f"{number}.so")
                    run = self._built(source, library, build, {**self._inputs, **outputs})
                    run()
                    right = right or run_reference(
                        self._path, self._inputs, workload.problem, workload.arrays
                    )
                    for name in outputs.keys() & right.keys():
                        _compare(name, outputs[name], right[name])
                    yield BaselineTime(build.name, _time_ms(run), build.detail, on_host=True)
                except (InputError, OSError, subprocess.TimeoutExpired) as error:
                    yield BaselineTime(build.name, None, str(error).partition("\n")[0], on_host=True)

    def _built(
        self, source: Path, library: Path, build: Build, arrays: Mapping[str, NDArray[Any]]
    ) -> Callable[[], object]:
        """A function that runs a build; raises InputError if it cannot be made."""
        compiler = shutil.which("gcc") or shutil.which("clang")
        if compiler is None:
            raise InputError("needs gcc or clang")
        defined = [f"-D{name}={value}" for name, value in self._macros.items()]
        done = subprocess.run(
            [compiler, *_COMMON, *build.options, *defined, source, "-o", library, "-lm"],
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
        )
        if done.returncode:
            raise InputError(f"{source.name}: {first_error(done.stderr)}")
        name, values = source.stem, {name: str(value) for name, value in self._macros.items()}
        functions = read_kernel_source(source.read_text(), values, "cuda").functions
        parameters = next((one.parameters for one in functions if one.name == name), None)
        if parameters is None:
            raise InputError(f"{source.name}: defines no function {name}")
        given: list[Any] = []
        for parameter in parameters:
            if parameter.pointers and parameter.name in arrays:
                given.append(ctypes.c_void_p(arrays[parameter.name].ctypes.data))
            elif not parameter.pointers and parameter.name in self._sizes:
                given.append(ctypes.c_long(self._sizes[parameter.name]))
            else:
                raise InputError(f"{source.name}: {parameter.text}: the space has no such array or size")
        return partial(ctypes.CDLL(str(library))[name], *given)

    def _time(self, name: str, prepare: Callable[..., tuple[Run, Run]]) -> BaselineTime:
        usage, on_host = f"{prepare.__name__}(inputs, sizes)", name.startswith(NUMPY)
        detail = "all threads of its libraries" if name == ALL_CORES else _ONE_THREAD
        try:
            with threadpool_limits(1) if name == NUMPY else nullcontext():
                run, wait = call(self._path, prepare, usage, self._inputs, self._sizes)
                time_ms = call(self._path, _time_ms, usage, run, wait)
                return BaselineTime(name, time_ms, detail if on_host else _QUEUED, on_host)
        except BrokenReference as error:
            return BaselineTime(name, None, str(error).partition("\n")[0].rpartition(" raised ")[2], on_host)


def _compare(name: str, result: NDArray[Any], right: NDArray[Any]) -> None:
    """Raise InputError for a result that is not the reference's."""
    wide = right.reshape(result.shape).astype(np.float64)
    error = np.max(np.abs(result - wide), initial=0.0)
    if not error <= _TOLERANCE * max(1.0, np.max(np.abs(wide), initial=0.0)):
        raise InputError(f"{name} is wrong: off by {error:.3g}")


def _time_ms(run: Run, wait: Run = lambda: None) -> float:
    """The least mean time of a run over several rounds of runs that begin together, after a warm-up."""
    first_ms = elapsed_ms(run, wait)
    if first_ms > _LONG_MS:
        return first_ms
    once_ms = elapsed_ms(run, wait)
    repeats = max(1, min(_MAX_REPEATS, int(_ROUND_MS / max(once_ms, 1e-3))))
    return min(elapsed_ms(run, wait, repeats) for _ in range(_ROUNDS))


def elapsed_ms(run: Run, wait: Run = lambda: None, repeats: int = 1) -> float:
    """The mean wall time of runs that begin together, with one wait at the end."""
    began = time.perf_counter()
    for _ in range(repeats):
        run()
    wait()
    return (time.perf_counter() - began) * 1e3 / repeats
