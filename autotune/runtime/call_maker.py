"""Prepares calls of a loaded kernel: looks up the configuration, compiles it and packs its launches."""

from __future__ import annotations

import hashlib
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, Any, NamedTuple
from weakref import WeakValueDictionary

from autotune.compilers.base import driver_compiler
from autotune.compilers.cubins import Cubins
from autotune.compilers.source_text import SourceText, render
from autotune.core.launch_plan import symbol_names
from autotune.core.records import DeviceInfo, Provenance, Tier
from autotune.core.text import size_text
from autotune.errors import CompileError, DeviceError, InputError, SetupError
from autotune.runtime.call_plan import CallArguments, CallPlanner
from autotune.runtime.call_signature import Call
from autotune.runtime.packages import package_of
from autotune.runtime.prepared import Launcher, Workspace
from autotune.runtime.shipped import ShippedBinaries, binary_key
from autotune.runtime.trust import Trust
from autotune.serving.best import Best
from autotune.serving.cache import Folder, read_roots
from autotune.serving.lookup import best_config
from autotune.serving.query import changes

if TYPE_CHECKING:
    from autotune.runtime.background_tuning import BackgroundTuning


_MAX_KEPT = 64  # programs that no loaded kernel uses: a server may load a kernel for every request


class StaleWarning(UserWarning):
    """A result was tuned with another source, space, driver, runtime or compiler than is now in use."""


class Programs:
    """Programs by what they are made from: all that are in use, and the latest of the others."""

    def __init__(self, max_kept: int = _MAX_KEPT) -> None:
        self._max_kept = max_kept
        self._used: WeakValueDictionary[Hashable, Any] = WeakValueDictionary()
        self._latest: OrderedDict[Hashable, Any] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """The program of a key, made if there is none; what `make` raises passes through."""
        with self._lock:
            program = self._used.get(key)
        if program is None:
            made = make()  # takes long: other threads need not wait
            with self._lock:
                program = self._used.setdefault(key, made)
        with self._lock:
            self._latest[key] = program
            self._latest.move_to_end(key)
            if len(self._latest) > self._max_kept:
                self._latest.popitem(last=False)
        return program


_shared = Programs()  # of this process


class LoadRequest(NamedTuple):
    """A request to `load_kernel`."""

    kernel: str
    device: object
    dtype: str | None
    min_match: Tier
    cache: Folder | None
    source: SourceText
    data: str | None
    trust: Trust
    tuning: BackgroundTuning | None = None  # of problems for which the cache has no fitting result


class CallMaker:
    """Makes the calls of one kernel, which share scratch memory on each stream.

    All kernels of the process share programs.
    """

    def __init__(self, request: LoadRequest, shipped: ShippedBinaries) -> None:
        self.kernel, self.source = request.kernel, request.source
        self._shipped = shipped
        self._request = request
        self._is_trusted = all(map(request.trust.covers, read_roots(request.cache)))
        self._programs: dict[tuple[object, ...], Any] = {}
        self._workspaces: dict[Any, Workspace] = {}

    def close(self) -> None:
        """Drop the scratch memory, which is freed once no prepared call uses it."""
        self._workspaces.clear()

    def refused(self, best: Best, error: Exception) -> SetupError:
        """The error for a configuration that does not compile or launch."""
        return SetupError(f"{self.source.path}: {best.config}: {error}")

    def make(self, given: CallArguments) -> Call:
        """Look up the configuration, compile it and pack its launches."""
        arrays = list(given.arrays.values())
        package = package_of(arrays[0])
        launcher = package.open(arrays, given.stream)
        sizes = given.signature.all_sizes(given.sizes, given.views)
        request = self._request
        ask = partial(  # again from time to time, as the cache may change
            best_config,
            self.kernel,
            launcher.device if request.device is None else request.device,
            dtype=request.dtype or given.signature.dtype(given.views),
            strict=False,
            min_match=request.min_match,
            on_miss=None,
            cache=request.cache,
            data=request.data,
            **sizes,
        )
        best = ask()
        if request.tuning is not None:
            request.tuning.request(best, sizes, request.data)
        planner = CallPlanner(self.kernel, best, sizes)
        made = given.made
        if made and given.stream is not None and launcher.dialect == "cuda":
            raise InputError(
                f"{self.kernel}: outputs are allocated on the current stream: make the given stream current, "
                f"or pass {', '.join(made)}, too"
            )
        plan = planner.plan(given)
        arguments = planner.arguments
        symbols = symbol_names(plan.launches, arguments.values())
        options = best.options(launcher.dialect, sizes, is_trusted=self._is_trusted)
        try:
            # Streams must not share a variable of a program: one would overwrite it while another uses it.
            place = launcher.stream if plan.variables else launcher.place
            program = self._program(launcher, place, best, options, symbols)
            workspace = self._workspaces.setdefault(launcher.stream, Workspace())
            prepared = launcher.prepare(program, plan, workspace)
        except (CompileError, DeviceError) as error:
            raise self.refused(best, error) from None
        return Call(
            run=prepared.run,
            bind=prepared.bind,
            best=best,
            ask=ask,
            makers=tuple(
                package.empty(arrays[0], arguments[name].shape, arguments[name].dtype) for name in made
            ),
            results=given.results,
            like=given.names.index(next(iter(given.arrays))),
            number=lambda name, value: launcher.number(planner.number(name, value)),
            needed_alignment_bytes=lambda: self._needed_alignment_bytes(launcher, best, options, symbols),
        )

    def _needed_alignment_bytes(
        self, launcher: Launcher, best: Best, options: tuple[str, ...], symbols: tuple[str, ...]
    ) -> int:
        """The multiple that arrays of a GPU have to begin at for a configuration."""
        # Rarely needed: most arrays are aligned for any access.
        from autotune.runtime.alignment import needed_alignment_bytes

        text = render(self.source, best.defines) if self.source.text else ""
        where, kind = launcher.device.architecture, best.record.compiler
        return needed_alignment_bytes(where, kind, text, options, symbols)

    def _program(
        self, launcher: Launcher, place: object, best: Best, options: tuple[str, ...], names: tuple[str, ...]
    ) -> Any:
        """The program of a configuration in one place; the process makes it only once."""
        key = (launcher.dialect, place, tuple(best.defines.items()), options, names)
        if key not in self._programs:
            content, make = self._content(launcher, best, options, names)
            is_shared = place is launcher.place  # no other kernel may write the variables of a program
            self._programs[key] = _shared.get((key[:2], content), make) if is_shared else make()
        return self._programs[key]

    def _content(
        self, launcher: Launcher, best: Best, options: tuple[str, ...], names: tuple[str, ...]
    ) -> tuple[Hashable, Callable[[], Any]]:
        """The content of a program, a binary shipped with the cache or the source, and its loader."""
        architecture, kind = launcher.device.architecture, best.record.compiler
        key = binary_key(self.source, architecture, kind, best.defines, options)
        shipped = self._shipped.find(key) if launcher.dialect == "cuda" else None
        if shipped is not None and (not self.source.text or Cubins(shipped[0]).has(names)):
            binary, compiler = shipped
            self._warn_if_stale(launcher, best, compiler)
            return binary.sha256, partial(launcher.load, binary)
        if not self.source.text:
            raise InputError(
                f"{self.kernel}: neither source nor binary for {architecture}, {best.config}; run autotune "
                f"build {self.kernel} --architectures {architecture}, or pass the source as source="
            )
        self._warn_if_stale(launcher, best, launcher.compiler(kind))
        text = render(self.source, best.defines)
        identity = (hashlib.sha256(text.encode(errors="surrogateescape")).digest(), options, kind, names)
        return identity, partial(launcher.compile, text, options, kind, names)

    def _warn_if_stale(self, launcher: Launcher, best: Best, compiler: str) -> None:
        reasons, origin = list(best.stale_reasons), best.provenance
        if origin and origin.source_sha256 != self.source.sha256:
            reasons.insert(0, f"{self.source.path} is not the source that was tuned.")
        if origin:
            is_of_driver = compiler == driver_compiler(launcher.device)
            if not (is_of_driver and _is_driver_expected(launcher.device, best, origin)):
                reasons += changes(origin, {"compiler": compiler})
        warn_of_stale(self.kernel, best, reasons)


def warn_of_stale(kernel: str, best: Best, reasons: Sequence[str]) -> None:
    """Warn of changes since a configuration was tuned, at the program's line that calls the kernel."""
    if reasons:
        subject = f"{kernel} on {best.source_device} for {size_text(best.match.source_sizes or {})}"
        text = f"{subject} is stale: {' '.join(reasons)} Run `autotune search` again."
        warnings.warn(text, StaleWarning, stacklevel=_level_of_caller())


def _level_of_caller() -> int:
    """The `stacklevel` that names the line of the program which called the kernel."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("autotune."):
        level, frame = level + 1, frame.f_back
    return level


def _is_driver_expected(now: DeviceInfo, best: Best, origin: Provenance) -> bool:
    """True if the result is from another device, or its reasons name a change of the driver."""
    if not best.match.tier.reaches(Tier.NEAREST_SIZE):
        return True
    reported = changes(origin, {"driver": now.driver, "runtime": now.runtime})
    return not set(reported).isdisjoint(best.stale_reasons)
