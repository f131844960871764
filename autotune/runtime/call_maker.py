"""Prepares calls of a loaded kernel: looks up the configuration, compiles it and packs its launches."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from autotune.compilers.base import driver_compiler
from autotune.compilers.kernel_source import SourceText, render
from autotune.core.c_types import struct_fields
from autotune.core.launch_plan import TRITON, symbol_names
from autotune.core.records import Argument, CallSpec, DeviceInfo, Launch, Provenance, Tier
from autotune.core.text import size_text
from autotune.devices.element_types import is_floating, numpy_dtype, scalar_of
from autotune.errors import CompileError, InputError, LaunchError, SetupError
from autotune.runtime.alignment import needed_alignment_bytes
from autotune.runtime.packages import Make, package_of
from autotune.runtime.prepared import CallPlan, Hidden, Launcher, View, Workspace
from autotune.runtime.shipped import ShippedBinaries, binary_key
from autotune.serving.best import Best
from autotune.serving.cache import Folder
from autotune.serving.cache_schema import damaged
from autotune.serving.device_records import newest_record
from autotune.serving.lookup import best_config
from autotune.serving.matching import change_sentence

if TYPE_CHECKING:
    from autotune.runtime.background_tuning import BackgroundTuning

CHECK_S = 1.0  # how often cache files are looked at for changes


class StaleWarning(UserWarning):
    """A result was tuned with another source, space, driver, runtime or compiler than is now in use."""


@dataclass(slots=True)
class Call:
    """Launches that are ready for all calls that look alike."""

    run: Callable[[Sequence[Any]], Any]  # queues the launches, as `Prepared` has it
    bind: Callable[[Sequence[Any]], Callable[[], Any]]  # likewise
    best: Best
    ask: Callable[[], Best]  # asks the cache for the configuration again
    makers: tuple[Make, ...]  # of the outputs that are returned
    like: int  # the place of the array that outputs are made beside
    number: Callable[[str, Any], Any]  # converts a scalar of a call
    needed_alignment_bytes: Callable[[], int]  # the multiple that arrays of a GPU have to begin at
    until: float = field(default_factory=lambda: monotonic() + CHECK_S)  # when to look at the cache again

    def is_current(self) -> bool:
        """Whether the cache still gives this configuration; then it is not looked at for a while."""
        self.until = monotonic() + CHECK_S
        return self.ask() is self.best


class Request(NamedTuple):
    """What `load_kernel` was asked for."""

    kernel: str
    device: object
    dtype: str | None
    min_match: Tier
    cache: Folder | None
    source: SourceText
    data: str | None
    tuning: BackgroundTuning | None = None  # of what the cache has no fitting result for


class CallMaker:
    """Makes the calls of one kernel; programs and scratch memory are shared by calls that look different."""

    def __init__(self, request: Request, shipped: ShippedBinaries) -> None:
        self.kernel, self.source = request.kernel, request.source
        self._shipped = shipped
        self._request = request
        self._programs: dict[tuple[object, ...], Any] = {}
        self._workspaces: dict[Any, Workspace] = {}
        self._alignments_bytes: dict[tuple[str, tuple[str, ...]], int] = {}
        self.describe()

    def describe(self) -> None:
        """Read from the newest record what callers pass."""
        record = self.record = newest_record(self.kernel, self._request.cache)
        self.names = tuple(
            item.name for item in record.arguments if item.role not in ("scratch", "local", "scalar", "view")
        )
        self.scalars = {item.name for item in record.arguments if item.role == "scalar"}
        self.sizes = {name for entry in record.entries for name in entry.sizes}
        self.inputs = record.call.inputs if record.call else ()
        self.written = {item.name for item in record.arguments if item.role in ("out", "inout")}

    def close(self) -> None:
        """Drop the scratch memory, which is freed once no prepared call uses it."""
        self._workspaces.clear()

    def refused(self, best: Best, error: Exception) -> SetupError:
        """The error for a configuration that does not compile or launch."""
        return SetupError(f"{self.source.path}: {best.config}: {error}")

    def make(
        self,
        names: Sequence[str],
        given: Mapping[str, Any],
        views: Mapping[str, View],
        stream: Any,
        sizes: dict[str, int],
        numbers: Mapping[str, Any],
    ) -> Call:
        """Look up the configuration, compile it and pack its launches.

        Args:
            names: Of the arrays of the call, absent ones too, in their order.
            given: The arrays.
            views: Their views.
            stream: As in a call.
            sizes: Those that were given as numbers.
            numbers: Scalars of the call.
        """
        arrays = list(given.values())
        package = package_of(arrays[0])
        launcher = package.open(arrays, stream)
        sizes = self._complete(sizes, views)
        ask = self._question(launcher, views, sizes)
        best = ask()
        if self._request.tuning is not None:
            self._request.tuning.request(best, sizes)
        expected = {argument.name: argument for argument in best.arguments(**sizes)}
        launches = best.launch(**sizes)
        call = best.record.call or CallSpec()
        if self.record.compiler == TRITON:
            self._require_no_integers(expected[name] for name in numbers)
        variables = [argument for argument in expected.values() if argument.symbol]
        passed = self._used(launches, expected)
        pointers = [expected[name] for name in dict.fromkeys(passed) if expected[name].role == "view"]
        parents = [item.of for item in pointers]
        used = dict.fromkeys([*passed, *parents, *(argument.name for argument in variables)])
        made = [name for name in call.returns if name not in views]
        if made and stream is not None and launcher.dialect == "cuda":
            raise self._not_allocated(made)
        hidden = []
        for name in used:
            if name in views:
                self._require(expected[name], views[name])
            elif name not in made and expected[name].role not in ("local", "scalar", "view"):
                hidden.append(self._hidden(expected[name], call))
        plan = CallPlan(
            given=(*(name if name in views else "" for name in names), *made, *numbers),
            scalars=self._scalars((expected[name] for name in used), numbers),
            hidden=tuple(hidden),
            variables=tuple((item.symbol, item.name, _size_bytes(item)) for item in variables),
            launches=launches,
            local={name: _size_bytes(expected[name]) for name in used if expected[name].role == "local"},
            views=tuple((item.name, item.of, item.offset_bytes) for item in pointers),
        )
        symbols = symbol_names(launches, variables)
        try:
            program = self._program(launcher, best, symbols)
            workspace = self._workspaces.setdefault(launcher.queue, Workspace())
            prepared = launcher.prepare(program, plan, workspace)
        except (CompileError, LaunchError) as error:
            raise self.refused(best, error) from None
        return Call(
            run=prepared.run,
            bind=prepared.bind,
            best=best,
            ask=ask,
            makers=tuple(
                package.empty(arrays[0], expected[name].shape, expected[name].dtype) for name in made
            ),
            like=names.index(next(iter(given))),
            number=lambda name, value: launcher.number(self._scalar(expected[name], value)),
            needed_alignment_bytes=lambda: self._needed_alignment_bytes(launcher, best, symbols),
        )

    def _needed_alignment_bytes(self, launcher: Launcher, best: Best, symbols: Sequence[str]) -> int:
        """The multiple that arrays of a GPU have to begin at for a configuration; found once."""
        text = render(self.source, best.defines) if self.source.text else ""
        key = (text, best.options(launcher.dialect))
        if key not in self._alignments_bytes:
            self._alignments_bytes[key] = needed_alignment_bytes(
                launcher.device, best.record.compiler, *key, symbols
            )
        return self._alignments_bytes[key]

    def _scalars(self, arguments: Iterable[Argument], given: Container[str]) -> dict[str, Any]:
        """The values of scalars that the caller does not give."""
        return {
            item.name: self._scalar(item, item.value)
            for item in arguments
            if item.role == "scalar" and item.name not in given
        }

    def _not_allocated(self, outputs: Iterable[str]) -> InputError:
        """The error for outputs that would have to be allocated on a stream that is not the current one."""
        return InputError(
            f"{self.kernel}: outputs are allocated on the current stream: make this one current, or pass "
            f"{', '.join(outputs)}, too"
        )

    def _require_no_integers(self, arguments: Iterable[Argument]) -> None:
        """Raise InputError for a number of a call for whose value a Triton kernel is compiled."""
        for argument in arguments:
            if not is_floating(numpy_dtype(argument.dtype)):
                raise InputError(
                    f"{self.kernel}: {argument.name} is a whole number, for whose value Triton compiles; "
                    "make it a size of the space"
                )

    def _complete(self, sizes: dict[str, int], views: Mapping[str, View]) -> dict[str, int]:
        """The given sizes, completed from the arrays' shapes; raises InputError for a contradiction."""
        for spec in self.record.arguments:
            view = views.get(spec.name)
            if view is None or view.shape is None or len(view.shape) != len(spec.shape):
                continue
            for name, extent in zip(spec.shape, view.shape, strict=True):
                if name in self.sizes and sizes.setdefault(name, extent) != extent:
                    raise InputError(
                        f"{self.kernel}: {spec.name} has shape {view.shape}: {name} would be {extent}, "
                        f"and is {sizes[name]}"
                    )
        if missing := sorted(self.sizes - sizes.keys()):
            raise InputError(
                f"{self.kernel}: no array's shape gives {', '.join(missing)}; pass {missing[0]}=..."
            )
        return sizes

    def _question(
        self, launcher: Launcher, views: Mapping[str, View], sizes: dict[str, int]
    ) -> Callable[[], Best]:
        """The question to `best_config`; it is asked again from time to time, as the cache may change."""
        generic = [item.name for item in self.record.arguments if item.dtype == "DTYPE"]
        found = next((views[name].dtype for name in generic if name in views and views[name].dtype), None)
        return lambda: best_config(
            self.kernel,
            launcher.device if self._request.device is None else self._request.device,
            dtype=self._request.dtype or found,
            strict=False,
            min_match=self._request.min_match,
            on_miss=None,
            cache=self._request.cache,
            data=self._request.data,
            **sizes,
        )

    def _used(self, launches: Sequence[Launch], expected: Mapping[str, Argument]) -> list[str]:
        """The arguments that launches pass; raises InputError without any, CacheError for a wrong one."""
        if not launches:
            raise InputError(f"{self.kernel}: its launch plan has no launch for these sizes")
        for step in launches:
            if unknown := sorted(set(step.arguments) - expected.keys()):
                raise damaged(f"results of {self.kernel}", f"the launch of {step.entry} takes {unknown[0]}")
        return [name for step in launches for name in step.arguments]

    def _require(self, argument: Argument, view: View) -> None:
        """Raise InputError unless an array is what an argument needs."""
        expected, size_bytes = self._expected(argument), _size_bytes(argument)
        if (view.dtype is None or struct_fields(argument.dtype)) and view.size_bytes < size_bytes:
            raise InputError(f"{expected}, {size_bytes} bytes, found {view.size_bytes} bytes")
        # A package without unsigned types passes the same bytes as a signed type.
        if not (view.dtype is None or struct_fields(argument.dtype)) and (
            view.dtype.removeprefix("u") != argument.dtype.removeprefix("u") or view.shape != argument.shape
        ):
            raise InputError(f"{expected}, found {view.dtype} of shape {view.shape}")

    def _expected(self, argument: Argument) -> str:
        return f"{self.kernel}: {argument.name}: expected {argument.dtype} of shape {argument.shape}"

    def _hidden(self, argument: Argument, call: CallSpec) -> Hidden:
        """Memory for an array that the caller does not pass; raises InputError if the caller has to."""
        name, size_bytes = argument.name, _size_bytes(argument)
        if argument.role == "scratch":
            return Hidden(name, size_bytes)
        if argument.role == "out" and call.inputs:
            return Hidden(name, size_bytes)
        if name in call.kept:
            return Hidden(name, size_bytes, scalar_of(argument.dtype, call.kept[name]).tobytes())
        if name in call.copies:
            return Hidden(name, size_bytes, copy_of=call.copies[name])
        raise InputError(f"{self._expected(argument)}, found none; pass it, too")

    def _scalar(self, argument: Argument, value: Any) -> np.generic:
        """Convert a number to the argument's type; raises InputError if the type cannot hold it."""
        dtype = numpy_dtype(argument.dtype)
        if isinstance(value, tuple):  # from the launch plan
            return scalar_of(argument.dtype, value)
        if isinstance(value, int | float | np.integer | np.floating):
            with suppress(ValueError, OverflowError):
                number: np.generic = dtype.type(value)
                if number == value or is_floating(dtype):
                    return number
        raise InputError(f"{self.kernel}: {argument.name} = {value!r}: expected a value of type {dtype}")

    def _program(self, launcher: Launcher, best: Best, names: tuple[str, ...]) -> Any:
        options = best.options(launcher.dialect)
        key = (launcher.dialect, launcher.place, tuple(best.defines.items()), options, names)
        if key not in self._programs:
            self._programs[key] = self._compiled(launcher, best, options, names)
        return self._programs[key]

    def _compiled(
        self, launcher: Launcher, best: Best, options: tuple[str, ...], names: tuple[str, ...]
    ) -> Any:
        """Load the binary that is shipped with the cache, or compile."""
        architecture, kind = launcher.device.architecture, best.record.compiler
        key = binary_key(self.source, architecture, kind, best.defines, options)
        shipped = self._shipped.find(key) if launcher.dialect == "cuda" else None
        if shipped is not None:
            binary, compiler = shipped
            self._warn_if_stale(launcher, best, compiler)
            return launcher.load(binary)
        if not self.source.text:
            raise InputError(
                f"{self.kernel}: there is neither a source nor a binary for {architecture}: {best.config}; "
                f"run autotune build {self.kernel} --architecture {architecture}, or name the source"
            )
        self._warn_if_stale(launcher, best, launcher.compiler(kind))
        return launcher.compile(render(self.source, best.defines), options, kind, names)

    def _warn_if_stale(self, launcher: Launcher, best: Best, compiler: str) -> None:
        reasons, origin = list(best.stale_reasons), best.provenance
        if origin and origin.source_sha256 != self.source.sha256:
            reasons.insert(0, f"{self.source.path} is not the source that was tuned.")
        if (
            origin
            and origin.compiler not in ("", compiler)
            and not (
                compiler == driver_compiler(launcher.device)
                and _is_driver_expected(launcher.device, best, origin)
            )
        ):
            reasons.append(change_sentence("compiler", origin.compiler, compiler))
        if reasons:
            what = f"{self.kernel} on {best.source_device} for {size_text(best.match.source_sizes or {})}"
            warnings.warn(f"{what} is stale: {' '.join(reasons)}", StaleWarning, stacklevel=7)


def _is_driver_expected(now: DeviceInfo, best: Best, origin: Provenance) -> bool:
    """Whether the driver with its compiler is another device's, or a reason tells its change."""
    if not best.match.tier.reaches(Tier.NEAREST_SIZE):
        return True
    reported = {
        change_sentence("driver", origin.driver, now.driver),
        change_sentence("runtime", origin.runtime, now.runtime),
    }
    return not reported.isdisjoint(best.stale_reasons)


def _size_bytes(argument: Argument) -> int:
    return prod(argument.shape) * numpy_dtype(argument.dtype).itemsize
