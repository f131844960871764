"""Tuned configurations for Triton kernels, in place of `@triton.autotune`.

    from autotune.triton import tuned

    @tuned("scale")
    @triton.jit
    def scale(x, y, n, BLOCK: tl.constexpr): ...

    scale[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)

The configuration comes from the cache, by device and sizes of each call; nothing is tuned at run time unless
`on_miss="tune"` asks for it.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Literal

from autotune.compilers.triton_constants import typed
from autotune.core.extras import naming_extra
from autotune.core.launch_plan import TRITON_OPTIONS
from autotune.errors import AutotuneError, InputError
from autotune.serving.best import Best
from autotune.serving.device_records import newest
from autotune.serving.lookup import best_config
from autotune.serving.triton_call import launch_of, reader_of
from autotune.sources.triton_module import kernel_part

with naming_extra("load"):
    from autotune.runtime.background_tuning import BackgroundTuning
    from autotune.runtime.call_signature import CHECK_S
    from autotune.runtime.trust import Trust

_MAX_CHOSEN = 10_000  # a program that passes ever new sizes must not grow without bound


def tuned(
    name: str,
    *,
    on_miss: Literal["record", "tune"] | None = None,
    budget_s: float = 60.0,
    space: str | os.PathLike[str] | None = None,
    **options: Any,
) -> Callable[[Any], TunedKernel]:
    """Launch a `@triton.jit` function with the cached configuration that fits each call.

    Calls are as before, `kernel[grid](*arguments)`, but leave out parameters that the space tunes or computes
    from sizes. Other `tl.constexpr` parameters, and options of Triton, may be given.

    Args:
        name: The kernel's name in the cache.
        on_miss: "record" as for `best_config`; "tune" as for `load_kernel`: no call waits for the search.
        budget_s: Time for each search that "tune" makes, a day at most.
        space: The space file for them, as for `load_kernel`.
        options: As for `best_config`: `cache`, `min_match`, `strict`, `data`.

    Raises:
        NoConfig: The kernel has no results; at a call, none that may be served.
        InputError: The cached kernel is not in Triton, or has no launch of this function.
    """
    if on_miss != "tune":
        return lambda function: TunedKernel(function, name, options | {"on_miss": on_miss})
    tuning = BackgroundTuning(name, space, budget_s, options.get("cache"))
    return lambda function: TunedKernel(function, name, options, tuning)


class TunedKernel:
    """A Triton kernel whose constants and options come from a cache."""

    def __init__(
        self, function: Any, name: str, options: Mapping[str, Any], tuning: BackgroundTuning | None = None
    ) -> None:
        """Take the arguments of `tuned`; `tuning` searches what no result fits."""
        self.fn = function
        self._tuning = tuning
        self._name, self._options = name, dict(options)
        self._names: tuple[str, ...] = tuple(function.arg_names)
        _, _, record, root = newest(name, self._options.get("cache"))
        self._source = root, record.source
        taken = inspect.signature(
            function.fn
        ).parameters.values()  # also where Triton interprets the function
        passed = [parameter.name for parameter in taken if "constexpr" not in str(parameter.annotation)]
        self._reader = reader_of(record, function.__name__, passed)
        self._changes: dict[str, str] = {}
        self._chosen: dict[Any, tuple[float, dict[str, Any]]] = {}

    def __getitem__(self, grid: Any) -> Callable[..., Any]:
        """A function that launches the kernel on this grid."""

        def launch(*arguments: Any, **named: Any) -> Any:
            constants = self.constants(*arguments, **named)
            return self.fn[grid](*arguments, **constants | named)

        return launch

    def constants(self, *arguments: Any, **named: Any) -> dict[str, Any]:
        """The constants and options with which a call is launched."""
        given = dict(zip(self._names, arguments, strict=False)) | named
        sizes = self._reader.sizes(given)
        dtype, device = self._reader.dtype(given), self._reader.device(given)
        key = (*sizes.values(), dtype, device)
        until, constants = self._chosen.get(key, (0.0, {}))
        if monotonic() > until:  # the cache may have changed
            constants = self._look_up(sizes, dtype, device)
            if len(self._chosen) >= _MAX_CHOSEN:
                self._chosen.clear()
            self._chosen[key] = monotonic() + CHECK_S, constants
        return constants

    def _look_up(self, sizes: Mapping[str, int], dtype: str | None, device: Any) -> dict[str, Any]:
        options: dict[str, Any] = {**self._options, **sizes}
        best = best_config(self._name, device, dtype=dtype, **options)
        self._warn_if_stale(best)
        if self._tuning is not None:
            self._tuning.request(best, sizes, self._options.get("data"))
        values = best.kernel.values(best.config, sizes)
        constants = launch_of(self._name, best.record.launch, self.fn.__name__).constants
        if unknown := [name for name in constants if name not in (*self._names, *TRITON_OPTIONS)]:
            raise InputError(
                f"{self._name}: the cached launch sets {', '.join(unknown)}, which is no parameter of "
                f"{self.fn.__name__} and no option of a search ({', '.join(TRITON_OPTIONS)})"
            )
        return typed(self.fn, {name: values[name] for name in constants})

    def _warn_if_stale(self, best: Best) -> None:
        tuned_sha256 = best.provenance.source_sha256 if best.provenance else ""
        if tuned_sha256 not in self._changes:  # by the hash of the source that was tuned
            self._changes[tuned_sha256] = self._changed(tuned_sha256) if tuned_sha256 else ""
        if reasons := [*filter(None, [self._changes[tuned_sha256]]), *best.stale_reasons]:
            from autotune.runtime.call_maker import warn_of_stale  # seldom needed

            warn_of_stale(self._name, best, reasons)

    def _changed(self, tuned_sha256: str) -> str:
        """How the function differs from the tuned function; empty if it does not, or if that is unknown."""
        from autotune.compilers.source_text import read_source

        root, named = self._source
        own = inspect.getsourcefile(self.fn.fn)
        with suppress(AutotuneError, OSError, ValueError):
            tuned_file = Trust().source(root, named) if named else None
            if tuned_file is None or own is None:
                return ""
            if read_source(tuned_file, []).sha256 != tuned_sha256:
                return f"{tuned_file} is not the source that was tuned."
            parts = [
                kernel_part(path.read_text(encoding="utf-8-sig"), path, self.fn.__name__)
                for path in (Path(own), tuned_file)
            ]
            if parts[0] and parts[0] != parts[1]:
                return f"{self.fn.__name__} in {own} is not that of {tuned_file}, which was tuned."
        return ""
