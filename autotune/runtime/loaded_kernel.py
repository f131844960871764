"""`load_kernel`: the best cached configuration, compiled, as a callable for a program's arrays."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from autotune.compilers.base import driver_compiler
from autotune.compilers.kernel_source import SourceText, packaged, read_source, render
from autotune.core.launch_plan import symbol_names
from autotune.core.records import Argument, Provenance, Sizes, Tier
from autotune.core.text import size_text
from autotune.errors import CompileError, InputError, LaunchError, SetupError
from autotune.runtime.launchers import Launcher, View, open_launcher
from autotune.serving.best import Best
from autotune.serving.cache import Folder, read_roots
from autotune.serving.cache_schema import damaged
from autotune.serving.device_records import newest_record
from autotune.serving.lookup import best_config
from autotune.serving.matching import change_sentence

_SUFFIXES = (".cu", ".cl")


class StaleWarning(UserWarning):
    """A result was tuned with another source, space, driver, runtime or compiler than is now in use."""


class LoadedKernel:
    """A tuned kernel to call with arrays on a GPU; it is compiled once per configuration and device.

    Arrays are passed in the order of the space's arguments, without scratch arrays and scalars, or by name.
    """

    def __init__(
        self,
        kernel: str,
        device: object,
        dtype: str | None,
        min_match: Tier,
        cache: Folder | None,
        source: SourceText,
        data: str | None,
    ) -> None:
        self.kernel = kernel
        self._data = data
        self.source = source
        self._device = device
        self._dtype = dtype
        self._min_match = min_match
        self._cache = cache
        self._record = newest_record(kernel, cache)
        self._programs: dict[tuple[object, ...], Any] = {}

    def __call__(self, *arrays: Any, stream: Any = None, **named: Any) -> Any:
        """Queue the kernel's launches without waiting.

        Args:
            arrays: In the order of the space's arguments.
            stream: A stream or queue; None takes that of the arrays: torch's current stream, cupy's, or the
                queue of a pyopencl array.
            named: Arrays by name, sizes that no shape determines, and scalars other than the tuned ones.

        Returns:
            pyopencl's event; None for CUDA.

        Raises:
            InputError: Arrays, shapes, types or sizes do not fit.
            NoConfig: The cache has no result that may be served.
            SetupError: The kernel does not compile or launch.
        """
        given, numbers = self._split_arguments(arrays, named)
        launcher = open_launcher(list(given.values()), stream)
        views = {name: self._view(launcher, name, array) for name, array in given.items()}
        sizes = self._sizes(views, numbers)
        best = self._best(launcher, views, sizes)
        expected = {argument.name: argument for argument in best.arguments(**sizes)}
        launches = best.launch(**sizes)
        for step in launches:
            if unknown := sorted(set(step.arguments) - expected.keys()):
                raise damaged(f"results of {self.kernel}", f"the launch of {step.entry} takes {unknown[0]}")
        values: dict[str, Any] = {}
        try:
            variables = [argument for argument in expected.values() if argument.symbol]
            passed = (name for step in launches for name in step.arguments)
            for name in dict.fromkeys((*passed, *(argument.name for argument in variables))):
                values[name] = self._value(launcher, expected[name], views, numbers)
            program = self._program(launcher, best, symbol_names(launches, variables))
            for argument in variables:
                size_bytes = prod(argument.shape) * np.dtype(argument.dtype).itemsize
                launcher.set_variable(program, argument.symbol, values[argument.name], size_bytes)
            for step in launches:
                launcher.launch(program, step, values)
        except (CompileError, LaunchError) as error:
            raise SetupError(f"{self.source.path}: {best.config}: {error}") from None
        finally:
            event = launcher.finish()
        return event

    def _split_arguments(
        self, arrays: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Split the arguments of a call into arrays, and sizes and scalars; both by name."""
        names = [item.name for item in self._record.arguments if item.role not in ("scratch", "scalar")]
        scalars = {item.name for item in self._record.arguments if item.role == "scalar"}
        if len(arrays) > len(names):
            raise InputError(f"{self.kernel}: takes the arrays {', '.join(names)}; {len(arrays)} were given")
        given = dict(zip(names, arrays, strict=False))
        numbers = {}
        for name, value in named.items():
            if name in names and name not in given:
                given[name] = value
            elif name in scalars or name in self._size_names:
                numbers[name] = value
            else:
                known = ", ".join(dict.fromkeys([*names, *sorted(self._size_names | scalars)]))
                raise InputError(
                    f"{self.kernel}: {name} was not expected or is given twice; there are {known}"
                )
        return {name: array for name, array in given.items() if array is not None}, numbers

    @property
    def _size_names(self) -> set[str]:
        return {name for entry in self._record.entries for name in entry.sizes}

    def _view(self, launcher: Launcher, name: str, array: Any) -> View:
        if isinstance(array, np.ndarray):
            raise InputError(
                f"{self.kernel}: {name}: a numpy array is not on the device; copy it there first, with "
                "pyopencl.array.to_device (a CPU device, too), cupy.asarray or torch.as_tensor"
            )
        try:
            return launcher.view(array)
        except (ValueError, AttributeError) as error:
            raise InputError(f"{self.kernel}: {name}: {error}") from None

    def _sizes(self, views: Mapping[str, View], numbers: Mapping[str, Any]) -> Sizes:
        """The given sizes, completed from the arrays' shapes; raises InputError for a contradiction."""
        sizes = {name: numbers[name] for name in self._size_names if name in numbers}
        for spec in self._record.arguments:
            view = views.get(spec.name)
            if view is None or view.shape is None or len(view.shape) != len(spec.shape):
                continue
            for name, extent in zip(spec.shape, view.shape, strict=True):
                if name in self._size_names and sizes.setdefault(name, extent) != extent:
                    raise InputError(
                        f"{self.kernel}: {spec.name} has shape {view.shape}: {name} would be {extent}, "
                        f"and is {sizes[name]}"
                    )
        if missing := sorted(self._size_names - sizes.keys()):
            raise InputError(
                f"{self.kernel}: no array's shape gives {', '.join(missing)}; pass {missing[0]}=..."
            )
        return sizes

    def _best(self, launcher: Launcher, views: Mapping[str, View], sizes: Sizes) -> Best:
        generic = [item.name for item in self._record.arguments if item.dtype == "DTYPE"]
        found = next((views[name].dtype for name in generic if name in views and views[name].dtype), None)
        return best_config(
            self.kernel,
            launcher.device if self._device is None else self._device,
            dtype=self._dtype or found,
            strict=False,
            min_match=self._min_match,
            on_miss=None,
            cache=self._cache,
            data=self._data,
            **sizes,
        )

    def _value(
        self, launcher: Launcher, argument: Argument, views: Mapping[str, View], numbers: Mapping[str, Any]
    ) -> Any:
        """The value of an argument for a launch; raises InputError for a missing or unsuitable array."""
        dtype = np.dtype(argument.dtype)
        if argument.role == "scalar":
            return self._scalar(argument, dtype, numbers.get(argument.name, argument.value))
        size_bytes = prod(argument.shape) * dtype.itemsize
        if argument.role == "scratch":
            return launcher.scratch(size_bytes)
        expected = f"{self.kernel}: {argument.name}: expected {argument.dtype} of shape {argument.shape}"
        view = views.get(argument.name)
        if view is None:
            raise InputError(f"{expected}, found none")
        if view.dtype is None and view.size_bytes < size_bytes:
            raise InputError(f"{expected}, {size_bytes} bytes, found {view.size_bytes} bytes")
        # A package without unsigned types passes the same bytes as a signed type.
        if view.dtype is not None and (
            view.dtype.removeprefix("u") != argument.dtype.removeprefix("u") or view.shape != argument.shape
        ):
            raise InputError(f"{expected}, found {view.dtype} of shape {view.shape}")
        return view.handle

    def _scalar(self, argument: Argument, dtype: np.dtype[Any], value: Any) -> Any:
        """Convert a number to the argument's type; raises InputError if the type cannot hold it."""
        if isinstance(value, int | float | np.integer | np.floating):
            with suppress(ValueError, OverflowError):
                number = dtype.type(value)
                if number == value or dtype.kind == "f":
                    return number
        raise InputError(f"{self.kernel}: {argument.name} = {value!r}: expected a value of type {dtype}")

    def _program(self, launcher: Launcher, best: Best, names: tuple[str, ...]) -> Any:
        options = best.options(launcher.dialect)
        key = (launcher.dialect, launcher.place, tuple(best.defines.items()), options, names)
        if key not in self._programs:
            self._warn_if_stale(launcher, best)
            self._programs[key] = launcher.compile(
                render(self.source, best.defines), options, best.record.compiler, names
            )
        return self._programs[key]

    def _warn_if_stale(self, launcher: Launcher, best: Best) -> None:
        reasons, origin = list(best.stale_reasons), best.provenance
        compiler = launcher.compiler(best.record.compiler)
        if origin and origin.source_sha256 != self.source.sha256:
            reasons.insert(0, f"{self.source.path} is not the source that was tuned.")
        if (
            origin
            and origin.compiler not in ("", compiler)
            and not _is_driver_reported(launcher, best, origin)
        ):
            reasons.append(change_sentence("compiler", origin.compiler, compiler))
        if reasons:
            what = f"{self.kernel} on {best.source_device} for {size_text(best.match.source_sizes or {})}"
            warnings.warn(f"{what} is stale: {' '.join(reasons)}", StaleWarning, stacklevel=4)


def _is_driver_reported(launcher: Launcher, best: Best, origin: Provenance) -> bool:
    """Whether the compiler is the driver's own, and a reason reports the driver's change already."""
    now = launcher.device
    reported = {
        change_sentence("driver", origin.driver, now.driver),
        change_sentence("runtime", origin.runtime, now.runtime),
    }
    return launcher.compiler(best.record.compiler) == driver_compiler(now) and not reported.isdisjoint(
        best.stale_reasons
    )


def load_kernel(
    kernel: str,
    device: object = None,
    *,
    dtype: str | None = None,
    min_match: Tier = Tier.DEFAULT,
    cache: Folder | None = None,
    source: str | os.PathLike[str] | None = None,
    data: str | None = None,
    include_dirs: Sequence[str | os.PathLike[str]] = (),
) -> LoadedKernel:
    """Make a kernel callable in the configuration that `best_config` serves for the sizes of each call.

    Args:
        kernel: Its name in the cache.
        device: As in `best_config`; None is the device of each call's arrays.
        dtype: The element type; None takes that of the arrays.
        min_match: The lowest tier that may be served.
        cache: The folder of results; None for the usual ones.
        source: The kernel's source; None is the one that was tuned, else `kernels/<kernel>.cu` or `.cl` in
            the current folder, else the one that comes with autotune.
        data: As in `best_config`.
        include_dirs: The folders of headers that the space file names.

    Raises:
        NoConfig: The kernel has no results.
        InputError: The kernel has no source.
    """
    found = read_source(_find_source(kernel, source, cache), [Path(folder) for folder in include_dirs])
    return LoadedKernel(kernel, device, dtype, min_match, cache, found, data)


def _find_source(kernel: str, source: str | os.PathLike[str] | None, cache: Folder | None) -> Path:
    if source is not None:
        return Path(source)
    tuned = newest_record(kernel, cache).source
    folders = (Path("kernels"), packaged("kernels"))
    found = [Path(os.path.normpath(Path(root, tuned))) for root in read_roots(cache)] if tuned else []
    found += [folder / f"{kernel}{suffix}" for folder in folders for suffix in _SUFFIXES]
    for path in found:
        if path.is_file():
            return path
    raise InputError(f"{kernel}: no source at {' or '.join(map(str, found))}; name it as source=")
