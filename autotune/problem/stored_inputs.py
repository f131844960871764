"""Real inputs: read from .npy files, or returned by the function `inputs` of a reference file.

They are made once per problem, before any trial, and stored in .npy files. The hash of their content is part
of a trial's key. The same goes for the expected results that a Python function returns.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from autotune.core.text import size_text
from autotune.core.trials import Problem
from autotune.devices.element_types import is_floating, loaded, numpy_dtype
from autotune.errors import BrokenReference, ChildFailed, ChildRaised, InputError, SetupError
from autotune.problem.inputs import draw_inputs, load_array
from autotune.problem.reference import call, call_reference, load_function
from autotune.problem.workload import Array, StoredArray
from autotune.processes.child import Child
from autotune.space import SpaceSpec
from autotune.space.arguments import DATA, INPUTS, FilledArgument

TIMEOUT_S = 600.0
_CHUNK_BYTES = 2**24  # of an array, hashed in parallel; the hash depends on it
_T = TypeVar("_T")


class StoredInputs:
    """The stored inputs of a space, by problem; `folder` holds the arrays that `inputs` returns."""

    def __init__(self, spec: SpaceSpec, folder: Path) -> None:
        self._spec = spec
        self._folder = folder
        self._inputs: dict[str, Mapping[str, StoredArray]] = {}  # by problem
        self._results: dict[str, tuple[tuple[str, StoredArray], ...]] = {}
        # by identity of the returned array
        self._returned: dict[tuple[int, str], tuple[Any, StoredArray]] = {}
        self._lock = threading.Lock()
        self._child: Child | None = None  # calls `inputs` of the reference file

    def close(self) -> None:
        """End the process that calls `inputs`; another call would start one."""
        child, self._child = self._child, None
        if child is not None:
            child.kill()

    def arrays_of(self, problem: Problem) -> Mapping[str, StoredArray]:
        """Arrays by argument name; raises InputError for a wrong file, SetupError for a wrong `inputs`."""
        declared = [item for item in self._spec.arguments if item.fill and item.fill.kind in ("file", INPUTS)]
        if not declared:
            return {}
        key = repr(replace(problem, sizes=dict(sorted(problem.sizes.items()))))
        return self._once(self._inputs, key, "inputs", partial(self._store_inputs, problem, declared))

    def expected(
        self, problem: Problem, arrays: tuple[Array, ...]
    ) -> tuple[tuple[str, StoredArray], ...] | None:
        """The expected results from a Python function; None if a reference file will compute them later.

        Exceptions of the function pass through. Raises SetupError if its results do not fit the arrays.
        """
        if self._spec.functions.reference is None:
            return None
        drawn = tuple(array for array in arrays if array.role != "scratch")
        key = repr((sorted(problem.sizes.items()), problem.dtype, problem.seed, drawn))
        return self._once(self._results, key, "expected", partial(self._store_results, problem, drawn))

    def _once(self, stored: dict[str, _T], key: str, kind: str, store: Callable[[Path], _T]) -> _T:
        """The result of `store`, which runs once, in a folder of its own."""
        with self._lock:
            if key not in stored:
                stored[key] = store(Path(tempfile.mkdtemp(prefix=f"{kind}-", dir=self._folder)))
            return stored[key]

    def _store_inputs(
        self, problem: Problem, declared: Sequence[FilledArgument], folder: Path
    ) -> Mapping[str, StoredArray]:
        stored, dtypes = {}, {}
        for item in declared:
            dtype = problem.dtype if item.dtype == "DTYPE" else item.dtype
            assert item.fill is not None
            if item.fill.kind == INPUTS:
                dtypes[item.name] = dtype
            else:
                path = self._spec.path.parent / str(item.fill.arguments[0])
                path = Path(str(path).replace(DATA, problem.data))
                stored[item.name] = _from_file(path, item.name, dtype, folder)
        return stored | self._call_inputs(problem, dtypes, folder) if dtypes else stored

    def _store_results(
        self, problem: Problem, drawn: tuple[Array, ...], folder: Path
    ) -> tuple[tuple[str, StoredArray], ...]:
        reference = self._spec.functions.reference
        assert reference is not None
        inputs = draw_inputs(problem, drawn)
        results = call_reference(reference, lambda _, *given: reference(*given), inputs, problem, drawn)
        declared = {array.name: array.dtype for array in drawn}
        return tuple(
            (name, _stored(values, folder / name, declared[name])) for name, values in results.items()
        )

    def trusted(self, data_key: str) -> str:
        """The file for the results of trusted configurations on a problem's inputs."""
        return str(self._folder / f"trusted-{hashlib.sha256(data_key.encode()).hexdigest()[:16]}.results")

    def _call_inputs(
        self, problem: Problem, dtypes: Mapping[str, str], folder: Path
    ) -> dict[str, StoredArray]:
        """Run the user's function `inputs`; from a reference file, in a child process."""
        if self._spec.functions.inputs is not None:
            returned = self._spec.functions.inputs(*_arguments(problem))
            try:
                arrays = _checked_arrays(returned, dtypes)
                return {name: self._stored_once(arrays[name], name, dtypes[name], folder) for name in dtypes}
            except SetupError as error:
                raise SetupError(f"inputs() at {size_text(problem.sizes)}: {error}") from None
        child, self._child = self._child or Child(int), None
        try:
            stored: dict[str, StoredArray] = child.call(
                _inputs_in_child, self._spec.reference, problem, dtypes, str(folder), timeout_s=TIMEOUT_S
            )
            self._child = child
        except ChildFailed as error:
            if isinstance(error, ChildRaised) and error.kind == BrokenReference.__name__:
                raise BrokenReference(f"{error.message} (at {size_text(problem.sizes)})") from None
            place = f"{self._spec.reference}: inputs() at {size_text(problem.sizes)}"
            raise SetupError(f"{place}: {error}") from None
        finally:
            if self._child is not child:
                child.kill()
        return stored

    def _stored_once(self, values: Any, name: str, dtype: str, folder: Path) -> StoredArray:
        """Store an array, unless the function returned it before."""
        key = (id(values), dtype)
        if key not in self._returned:
            known = self._spec.functions.hashes.get(name, "")
            array = _converted(values, dtype, name)
            self._returned[key] = values, _stored(array, folder / name, dtype, known)
        return self._returned[key][1]


def _arguments(problem: Problem) -> tuple[Any, ...]:
    """The arguments of `inputs(sizes, rng)`, and the names of data and variant if the problem has them."""
    arguments = (dict(problem.sizes), np.random.default_rng(problem.seed))
    return (*arguments, *filter(None, (problem.data, problem.variant)))


def _checked_arrays(returned: Any, dtypes: Mapping[str, str]) -> Mapping[str, Any]:
    """The arrays from `inputs`; raises SetupError unless they are exactly the declared ones."""
    if not isinstance(returned, Mapping):
        raise SetupError(f"returned {type(returned).__name__}, expected a dict of arrays by argument name")
    missing, unknown = sorted(dtypes.keys() - returned.keys()), sorted(returned.keys() - dtypes.keys())
    if missing or unknown:
        unasked = f"{', '.join(unknown)}, with no fill: {INPUTS}"
        raise SetupError(f"returned nothing for {', '.join(missing)}" if missing else f"returned {unasked}")
    return returned


def _inputs_in_child(
    _state: object, reference: Path, problem: Problem, dtypes: Mapping[str, str], folder: str
) -> dict[str, StoredArray]:
    """Call `inputs` of a reference file and store its arrays; runs in a child."""
    named = [name for name in ("data", "variant") if getattr(problem, name)]
    signature = f"{INPUTS}({', '.join(('sizes', 'rng', *named))})"
    function = load_function(reference, INPUTS, f"{signature} that fills {', '.join(dtypes)}")
    arrays = _checked_arrays(call(reference, function, signature, *_arguments(problem)), dtypes)
    return {
        name: _stored(_converted(arrays[name], dtype, name), Path(folder) / name, dtype)
        for name, dtype in dtypes.items()
    }


def _from_file(path: Path, name: str, dtype: str, folder: Path) -> StoredArray:
    """Use a .npy file if it has the argument's element type; else store a converted copy."""
    try:
        array = load_array(path)
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
        raise InputError(f"{path}: {reason}; argument {name} is filled from it") from None
    except ValueError:
        raise InputError(f"{path}: not a .npy file of numbers; argument {name} is filled from it") from None
    if not isinstance(array, np.ndarray):
        raise InputError(f"{path}: holds several arrays; argument {name} needs a .npy file with one")
    array = loaded(array, dtype)
    if array.dtype == numpy_dtype(dtype):
        return StoredArray(str(path.absolute()), dtype, array.shape, content_sha256(array))
    try:
        return _stored(_converted(array, dtype, name), folder / name, dtype)
    except SetupError as error:
        raise InputError(f"{path}: {error}") from None


def _converted(values: Any, dtype: str, name: str) -> NDArray[Any]:
    """Convert to the declared element type; raises SetupError if that would change an integer."""
    array, declared = np.asarray(values), numpy_dtype(dtype)
    is_number = is_floating(array.dtype) or array.dtype.kind in ("biuc" if declared.kind == "c" else "biu")
    if not (array.dtype.names == declared.names if declared.names else is_number):
        raise SetupError(f"argument {name}: elements of type {array.dtype}; expected {dtype}")
    with np.errstate(all="ignore"):
        typed = array.astype(declared, copy=False)
    if typed is not array and typed.dtype.kind in "biu" and not np.array_equal(typed, array):
        raise SetupError(f"argument {name}: has values that {dtype} cannot hold")
    return np.ascontiguousarray(typed).reshape(array.shape)


def _stored(values: NDArray[Any], stem: Path, dtype: str, sha256: str = "") -> StoredArray:
    """Write an array to a file; its hash is computed unless it is known."""
    path = stem.with_suffix(".npy")
    np.save(path, values)
    return StoredArray(str(path), dtype, values.shape, sha256 or content_sha256(values))


def content_sha256(values: NDArray[Any]) -> str:
    """A hash of element type, shape and elements; the chunks of a large array are hashed in parallel."""
    content = np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    digest = hashlib.sha256(repr((values.dtype.str, values.shape)).encode())
    if content.size <= _CHUNK_BYTES:
        digest.update(content.data)
    else:
        chunks = (content[start : start + _CHUNK_BYTES] for start in range(0, content.size, _CHUNK_BYTES))
        with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as threads:
            digest.update(b"".join(threads.map(lambda chunk: hashlib.sha256(chunk.data).digest(), chunks)))
    return digest.hexdigest()[:32]
