"""Notes what the kernels of a program under `@triton.autotune` are tuned for, as the program runs.

It surrounds `Autotuner.run`. Triton's own listener is told less: not the arguments of the call, from which
the sizes of a problem follow. Triton 3.6 has none.
"""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any
from weakref import WeakKeyDictionary

from autotune.recording.tunings import DEFAULT, Plain, RecordedArray, Tuning, add_tuning, is_known
from autotune.serving.lookup import RECORD

_AUTOTUNER = "triton.runtime.autotuner"


@contextmanager
def record(path: Path | str = DEFAULT) -> Iterator[Path]:
    """Note every kernel under `@triton.autotune` that is called meanwhile, with its keys and tuning times.

        with autotune.record():
            train()

    `autotune search --recorded FILE` tunes what was noted. What `best_config` does not find is added to the
    cache's requests.

    Args:
        path: The file; what it has is kept.

    Yields:
        The file's path, absolute.
    """
    from triton.runtime.autotuner import Autotuner

    file, original, outer = Path(path).absolute(), Autotuner.run, os.environ.get(RECORD)
    _surround(Autotuner, file)
    os.environ[RECORD] = str(file)
    try:
        yield file
    finally:
        Autotuner.run = original
        del os.environ[RECORD]
        if outer is not None:
            os.environ[RECORD] = outer


class RecordWhenImported(MetaPathFinder):
    """Begins to record when the program imports Triton, which a program without it never does."""

    def __init__(self, path: Path) -> None:
        """Note into this file."""
        self._path = path

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """The usual loader of Triton's autotuner, and what begins after it."""
        if name != _AUTOTUNER:
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _AfterLoader(spec.loader, lambda module: _surround(module.Autotuner, self._path))
        return spec


class _AfterLoader(Loader):
    """A loader that does something with the module that another has loaded."""

    def __init__(self, loader: Loader, then: Callable[[Any], None]) -> None:
        self._loader, self._then = loader, then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        return self._loader.create_module(spec)

    def exec_module(self, module: ModuleType) -> None:
        self._loader.exec_module(module)
        self._then(module)


def _surround(autotuner: Any, path: Path) -> None:
    """Note the first call with each key; a kernel that cannot be noted is called all the same."""
    original = autotuner.run
    seen: WeakKeyDictionary[Any, set[Any]] = WeakKeyDictionary()

    @functools.wraps(original)
    def run(tuner: Any, *args: Any, **kwargs: Any) -> Any:
        given = dict(zip(tuner.arg_names, args, strict=False)) | kwargs
        key = _key(tuner, given)
        known = seen.setdefault(tuner, set())
        if key in known:
            return original(tuner, *args, **kwargs)
        function = _function(tuner)
        if function is None:  # Triton interprets it
            return original(tuner, *args, **kwargs)
        tuner.nargs = dict(zip(tuner.arg_names, args, strict=False))
        pruned = tuner.prune_configs(kwargs) if len(tuner.configs) > 1 else tuner.configs
        tuner.bench_time = 0.0  # it is set by a tuning only
        done = original(tuner, *args, **kwargs)
        known.add(key)
        try:
            add_tuning(path, _tuning(tuner, function, key, given, pruned))
        except Exception as error:  # noqa: BLE001 - no program ends by being recorded
            warnings.warn(f"autotune record: {tuner.base_fn.__name__}: {error}", stacklevel=2)
        return done

    autotuner.run = run


def _key(tuner: Any, given: Mapping[str, Any]) -> tuple[Any, ...]:
    """The key of a call, by Triton's rule."""
    mine = {name: value for name, value in given.items() if name in tuner.arg_names}
    types = (str(value.dtype) for value in mine.values() if hasattr(value, "dtype"))
    return (*(mine[name] for name in tuner.keys if name in mine), *types)


def _tuning(
    tuner: Any, function: Any, key: tuple[Any, ...], given: Mapping[str, Any], pruned: list[Any]
) -> Tuning:
    import triton
    from triton.runtime.driver import driver

    target = driver.active.get_current_target()
    passed = {name: value for name, value in given.items() if name in tuner.arg_names}
    arrays = {name: value for name, value in passed.items() if hasattr(value, "dtype")}
    best = tuner.best_config
    return Tuning(
        function=function.__name__,
        file=str(Path(function.fn.__code__.co_filename).absolute()),
        triton=triton.__version__,
        target=f"{target.backend}:{target.arch}",
        key=tuple(map(_plain, key)),
        scalars={name: _plain(value) for name, value in passed.items() if name not in arrays},
        arrays={
            name: RecordedArray(str(array.dtype).rpartition(".")[2], tuple(map(int, array.shape)))
            for name, array in arrays.items()
        },
        passed=tuple(parameter.name for parameter in function.params if not parameter.is_constexpr),
        parameters=tuple(sorted({name for config in pruned for name in config.kwargs})),
        configurations=len(pruned),
        has_hook=any(config.pre_hook is not None for config in pruned),
        best={name: _plain(value) for name, value in best.all_kwargs().items()},
        seconds=round(float(tuner.bench_time), 3),
        digest=_digest(function, target, key, pruned) if is_known(triton.__version__) else "",
    )


def _function(tuner: Any) -> Any:
    """The kernel under all decorators; None where it is not compiled."""
    from triton.runtime.jit import JITFunction

    function = tuner.fn
    while function is not None and not isinstance(function, JITFunction):
        function = getattr(function, "fn", None)
    return function


def _digest(function: Any, target: Any, key: tuple[Any, ...], pruned: list[Any]) -> str:
    """The name under which `Autotuner.check_disk_cache` looks for a result."""
    from triton._C.libtriton import get_cache_invalidating_env_vars
    from triton.compiler.compiler import make_backend
    from triton.runtime.cache import triton_key

    environment = str(sorted(get_cache_invalidating_env_vars().items()))
    parts = [
        triton_key(),
        make_backend(target).hash(),
        function.cache_key,
        environment,
        str(key),
        *map(str, pruned),
    ]
    return hashlib.sha256("-".join(parts).encode()).hexdigest()


def _plain(value: Any) -> Plain:
    """A value as JSON has it; the type of any other."""
    return (
        value if value is None or isinstance(value, bool | int | float | str) else f"<{type(value).__name__}>"
    )
