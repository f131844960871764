"""`load_kernel`: the best cached configuration, compiled, as a callable for a program's arrays."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, Literal

import numpy as np

from autotune.compilers.source_text import SourceText, packaged, read_source
from autotune.core.c_types import require_dtype_name
from autotune.core.launch_plan import TRITON
from autotune.core.records import KernelRecord, Tier
from autotune.errors import DeviceError, InputError
from autotune.runtime.call_maker import CallMaker, LoadRequest
from autotune.runtime.call_plan import CallArguments
from autotune.runtime.call_signature import Call, CallSignature
from autotune.runtime.packages import (
    LOW_BITS,
    UNUSUAL,
    Reader,
    Recogniser,
    package_of,
    read_arrays,
    stream_handle,
)
from autotune.runtime.prepared import LEGACY, PER_THREAD, BoundCall, View
from autotune.runtime.shipped import ShippedBinaries
from autotune.runtime.trust import Trust
from autotune.serving.best import Best
from autotune.serving.cache import Folder
from autotune.serving.device_records import newest
from autotune.serving.validity import whole_sizes

_MAX_CALLS = 10_000  # a program that passes ever new shapes must not grow without bound
_SUFFIXES = (".cu", ".cl")
_NO_SIZES: tuple[tuple[str, Any], ...] = ()
_NO_NUMBERS: Mapping[str, Any] = {}

_Ready = tuple[Call, tuple[Any, ...], list[Any], Mapping[str, Any]]
"""A prepared call, with the arrays in order, their handles, and scalars by name."""


class LoadedKernel:
    """A tuned kernel to call with arrays on a GPU.

    Arrays are passed in the order of the space's arguments, without scratch arrays and scalars, or by name.
    If the space says what a caller gives (`call`), those inputs are enough: outputs are returned.

    The first call with given shapes, types, device and stream looks up and compiles the configuration and
    packs the launches. Later calls with the same only fill in the addresses of their arrays. They find the
    prepared call by its key (`packages.call_key`), in the first of these steps that can:

    1. `__call__`, if all arguments are tensors of PyTorch in order: a recogniser compares them with those of
       an earlier call and knows that call's key. Only addresses are read.
    2. `_run_read`: the reader of the first array's package reads all arrays; the key is made of what it
       reads.
    3. `_checked`: each array is checked, and read by its own package. The key is the reader's, if there is
       only one package. A call that has no prepared call under this key gets one.

    A prepared call counts for a second; then `_is_current` asks the cache, and step 3 follows if it has
    another answer.

    An unusual address (see `packages.call_key`) takes step 2, in which it becomes part of the key.
    """

    def __init__(self, request: LoadRequest, shipped: ShippedBinaries) -> None:
        self.kernel = request.kernel
        self.source = request.source
        self._cache = request.cache
        self._maker = CallMaker(request, shipped)
        self._signature = self._newest_signature()
        self._readers: dict[type, Reader] = {}  # by the type of arrays
        self._recognisers: dict[int, Recogniser] = {}  # by the number of arrays; the readers add to it

    def __repr__(self) -> str:
        return f"LoadedKernel({self.kernel}, {self.source.path})"

    @property
    def record(self) -> KernelRecord:
        """The newest record of the kernel: what callers pass and get."""
        return self._signature.record

    def __call__(self, *arrays: Any, stream: Any = None, **named: Any) -> Any:
        """Enqueue the kernel's launches without waiting.

        Args:
            arrays: In the order of the space's arguments; or the inputs of the space's `call`, in its order.
            stream: A stream, or a command queue of pyopencl. None takes the arrays' own: torch's or cupy's
                current stream, or the queue of a pyopencl array.
            named: Arrays by name, sizes that no shape determines, and scalars that differ from the tuned
                values.

        If all arrays are of numpy, the kernel runs on the CPU, the call waits, and outputs change in place.

        Returns:
            The outputs of the space's `call` that were not passed. Otherwise pyopencl's event, None for CUDA
            and numpy.

        Raises:
            InputError: Arrays, shapes, types or sizes do not fit.
            NoConfig: The cache has no result that may be served.
            SetupError: The kernel does not compile or launch.
        """
        recogniser = self._recognisers.get(len(arrays))
        if recogniser is not None and not named and recogniser.is_alike(*arrays):
            # Written out here, because each function on the way would take a tenth of a microsecond.
            handles = []
            for array in arrays:
                handle = array.data_ptr()
                if handle & LOW_BITS or not handle:  # an unusual address
                    return self._run_read(arrays, stream, named)
                handles.append(handle)
            own = (recogniser.current_stream() or LEGACY) if stream is None else stream_handle(stream)
            call = self._signature.calls.get((own, recogniser.signature))
            if call is not None and monotonic() <= call.until:
                return self._run(call, arrays, handles, _NO_NUMBERS)
        return self._run_read(arrays, stream, named)

    def bind(self, *arrays: Any, stream: Any = None, **named: Any) -> Callable[[], Any]:
        """Return a function without arguments that runs the kernel on these arrays: the cheapest call.

        The function keeps the present addresses of the arrays and, on each stream, the configuration of its
        first run there. Like a CUDA graph, it must not be called after an array was resized or freed.

        Arguments and errors are as for a call. Without `stream`, each run takes the arrays' stream then.
        """
        signature = self._signature
        call, given, handles, numbers = self._checked(signature, arrays, stream, named)
        outputs, extra = _additions(call, given, numbers)
        handles = [*handles, *extra]
        current = _stream_of(given, call.like, stream)
        launches = {now: call.bind(handles)} if (now := current()) != PER_THREAD else {}

        def prepared(now: Any) -> BoundCall:
            bound = self._checked(signature, arrays, stream, named)[0].bind(handles)
            if now != PER_THREAD:  # a different stream in each thread
                launches[now] = bound
            return bound

        def run() -> Any:
            now = current()
            try:
                enqueue, finish = launches[now] if now in launches else prepared(now)
                status = enqueue()
                if not status and not outputs:  # the usual case
                    return None
                event = finish(status) if status else None
            except DeviceError as error:
                raise self._maker.refused(call.best, error) from None
            return _result(outputs, event)

        return run

    def best(self, *arrays: Any, stream: Any = None, **named: Any) -> Best:
        """Return the configuration that a call with these arguments runs, and how well it fits.

        Arguments and errors are as for a call.
        """
        signature = self._signature
        given, _, _ = signature.in_order(arrays, named)
        if stream is None and (hosts := _all_of_numpy(signature, given)):
            from autotune.runtime.opencl import on_cpu

            arrays, named = (), {**named, **on_cpu(self.kernel, hosts, signature.written)}
        return self._current(arrays, stream, named)[0].best

    def close(self) -> None:
        """Free the scratch memory; the next call allocates it again.

        Bound kernels keep theirs, and CUDA graphs have their own.
        """
        self._signature.calls.clear()
        self._maker.close()

    def _run_read(self, arrays: tuple[Any, ...], stream: Any, named: Mapping[str, Any]) -> Any:
        """A call that no recogniser knows: read its arrays, and run what is prepared for them."""
        signature = self._signature
        given, sizes, numbers = arrays, _NO_SIZES, _NO_NUMBERS
        if named:
            given, sizes, numbers = signature.in_order(arrays, named)
        try:
            key, handles = self._readers[type(given[0])](given, stream)
            if sizes or numbers:
                key = (key, sizes, *numbers)
            call = signature.calls[key]
        except UNUSUAL:
            call = None
        # After the handler, because an error below is not a consequence of the error above.
        if call is None and stream is None and (hosts := _all_of_numpy(signature, given)):
            from autotune.runtime.opencl import back_on_host, on_cpu

            there = on_cpu(self.kernel, hosts, signature.written)
            # No variable holds the result of the call on the CPU: its memory goes back to the pool.
            return back_on_host(self._run_read((), None, {**named, **there}), there, hosts, signature.written)
        if call is None or (monotonic() > call.until and not self._is_current(signature, call)):
            call, given, handles, numbers = self._current(arrays, stream, named)
        return self._run(call, given, handles, numbers)

    def _current(self, arrays: tuple[Any, ...], stream: Any, named: Mapping[str, Any]) -> _Ready:
        """The prepared call for the cache's present answer."""
        while True:
            signature = self._signature
            ready = self._checked(signature, arrays, stream, named)
            if monotonic() <= ready[0].until or self._is_current(signature, ready[0]):
                return ready

    def _run(
        self, call: Call, given: Sequence[Any], handles: Sequence[Any], numbers: Mapping[str, Any]
    ) -> Any:
        """Enqueue a prepared call, with outputs that it returns and numbers from the caller, if any."""
        try:
            if not call.results and not numbers:
                return call.run(handles)
            outputs, extra = _additions(call, given, numbers)
            return _result(outputs, call.run([*handles, *extra]))
        except DeviceError as error:
            raise self._maker.refused(call.best, error) from None

    def _newest_signature(self) -> CallSignature:
        return CallSignature(self.kernel, newest(self.kernel, self._cache).record)

    def _is_current(self, signature: CallSignature, call: Call) -> bool:
        """True if the cache still has the answer of a call; if not, all calls are prepared anew."""
        with suppress(InputError):  # a size may have another name now
            if call.is_current():
                return True
        if self._signature is signature:  # no other thread was here before
            self._signature = self._newest_signature()
            signature.calls.clear()
        return False

    def _checked(
        self, signature: CallSignature, arrays: tuple[Any, ...], stream: Any, named: Mapping[str, Any]
    ) -> _Ready:
        """The prepared call for these arguments, which is made if there is none."""
        arrays, sizes, numbers = signature.in_order(arrays, named)
        names = signature.names_of(arrays)[: len(arrays)]
        given = {name: array for name, array in zip(names, arrays, strict=True) if array is not None}
        if signature.array_names and not given:
            expected = ", ".join(signature.inputs or signature.array_names)
            raise InputError(f"{self.kernel}: takes the arrays {expected}; none were given")
        views = self._views(given)
        whole = dict(whole_sizes(self.kernel, dict(sizes)))
        key, handles = read_arrays(arrays, stream)
        if sizes or numbers:
            key = (key, tuple(whole.items()), *numbers)
        call = signature.calls.get(key)
        if call is None:
            call = self._maker.make(CallArguments(signature, names, given, views, stream, whole, numbers))
            self._require_alignment(call, zip(names, handles, strict=True))
            if len(signature.calls) >= _MAX_CALLS:
                signature.calls.clear()
                self._maker.close()  # also frees scratch memory of streams that are no longer used
            signature.calls[key] = call
            for array in given.values():
                if type(array) not in self._readers:
                    self._readers[type(array)] = package_of(array).reader_for_kernel(self._recognisers)
        return call, arrays, handles, numbers

    def _require_alignment(self, call: Call, handles: Iterable[tuple[str, Any]]) -> None:
        """Raise InputError for an array that begins where the widest access of a configuration cannot."""
        for name, handle in handles:
            if isinstance(handle, int) and handle & LOW_BITS:
                needed = call.needed_alignment_bytes()
                if handle % needed:
                    raise InputError(
                        f"{self.kernel}: {name}: begins at an address that is no multiple of {needed} "
                        f"bytes, which {call.best.config} may need; pass a copy of it"
                    )

    def _views(self, given: Mapping[str, Any]) -> dict[str, View]:
        """Check every array by itself, and that all are on one device."""
        arrays = list(given.values())
        if all(isinstance(array, np.ndarray) for array in arrays):
            package_of(arrays[0] if arrays else None)  # raises
        # Arrays of numpy last: an error about an object that is no array says more about the call.
        names = sorted(given, key=lambda name: isinstance(given[name], np.ndarray))
        views = {name: self._view(name, given[name]) for name in names}
        reference = next(iter(given))
        for name, view in views.items():
            if view.device != views[reference].device:
                where = "on different devices or in different contexts"
                raise InputError(f"{self.kernel}: {name} and {reference} are {where}")
        return views

    def _view(self, name: str, array: Any) -> View:
        if isinstance(array, np.ndarray):
            raise InputError(
                f"{self.kernel}: {name}: a numpy array is not on the device; copy it there first, with "
                "pyopencl.array.to_device (a CPU device, too), cupy.asarray or torch.as_tensor"
            )
        try:
            return package_of(array).view(array)
        except (InputError, *UNUSUAL) as error:
            raise InputError(f"{self.kernel}: {name}: {error}") from None


def _all_of_numpy(signature: CallSignature, arrays: Sequence[Any]) -> dict[str, Any]:
    """The arrays by name if all are in the host's memory; otherwise none."""
    listed = zip(signature.names_of(arrays), arrays, strict=False)
    given = {name: array for name, array in listed if array is not None}
    is_all = all(isinstance(array, np.ndarray) for array in given.values())
    return given if is_all and signature.record.compiler != TRITON else {}


def _stream_of(arrays: Sequence[Any], like: int, stream: Any) -> Callable[[], Any]:
    """A function that returns a call's stream: the given stream, else the array's stream at that time."""
    if stream is None:
        return package_of(arrays[like]).current_stream(arrays[like])
    (own, *_), _ = read_arrays(arrays, stream)
    return lambda: own


def _additions(call: Call, given: Sequence[Any], numbers: Mapping[str, Any]) -> tuple[list[Any], list[Any]]:
    """The arrays that a call returns, and the handles of allocated outputs and of the caller's numbers."""
    made = [make(given[call.like]) for make in call.makers]
    extra = [handle for _, handle in made]
    extra += [call.number(name, value) for name, value in numbers.items()]
    arrays = [*given, *(output for output, _ in made)]
    return [arrays[place] for place in call.results], extra


def _result(outputs: Sequence[Any], event: Any) -> Any:
    """The result of a call: its outputs, else the event."""
    if not outputs:
        return event
    if event is not None:  # a command queue may be out of order
        for output in outputs:
            if hasattr(output, "add_event"):  # a caller's buffer has no events
                output.add_event(event)
    return outputs[0] if len(outputs) == 1 else tuple(outputs)


def load_kernel(
    kernel: str,
    device: object = None,
    *,
    dtype: str | None = None,
    min_match: Tier = Tier.DEFAULT,
    cache: Folder | None = None,
    source: str | os.PathLike[str] | None = None,
    trusted: Folder | None = None,
    data: str | None = None,
    include_dirs: Sequence[str | os.PathLike[str]] = (),
    on_miss: Literal["tune"] | None = None,
    budget_s: float = 60.0,
    space: str | os.PathLike[str] | None = None,
) -> LoadedKernel:
    """Make a kernel callable in the configuration that `best_config` serves for the sizes of each call.

    Args:
        kernel: Its name in the cache.
        device: As in `best_config`; None is the device of each call's arrays.
        dtype: The element type; None takes the type of the arrays.
        min_match: The loosest tier that may be served.
        cache: The folder of results; None for the usual ones.
        source: The kernel's source; None is the source that was tuned, else `kernels/<kernel>.cu` or `.cl`
            (for Triton `.py`) in the current folder, else autotune's own.
        trusted: A folder whose files may run: sources in it, even if the result that names them belongs to
            another project; binaries in caches in it; any compiler option of these caches.
        data: As in `best_config`.
        include_dirs: The folders of headers that the space file names.
        on_miss: "tune" searches, in a process of its own, problems of calls for which the cache has no EXACT
            or INTERPOLATED result. No call waits: the best fit is served until the search is done.
        budget_s: Time for each of these searches, a day at most.
        space: The space file for them; None is `spaces/<kernel>.yaml` in the current folder, else autotune's
            own.

    Raises:
        NoConfig: The kernel has no results.
        Untrusted: The source that was tuned is outside the cache's project.
        InputError: The kernel has no source, or an argument is wrong.
    """
    if on_miss not in (None, "tune"):
        raise InputError(f'load_kernel: on_miss: expected "tune" or None, found {on_miss!r}')
    if not isinstance(min_match, Tier):
        raise InputError(f"load_kernel: min_match: expected a Tier, such as Tier.EXACT, found {min_match!r}")
    require_dtype_name(dtype, "load_kernel")
    tuning = None
    if on_miss:
        from autotune.runtime.background_tuning import BackgroundTuning  # not needed otherwise

        tuning = BackgroundTuning(kernel, space, budget_s, cache)
    trust = Trust(trusted)
    shipped = ShippedBinaries(kernel, cache, trust)
    for folder in shipped.untrusted:
        warnings.warn(
            f"{folder}: these binaries are not loaded, because binaries are code; "
            f"if they are yours, pass trusted={os.fspath(folder.parent)!r}",
            stacklevel=2,
        )
    source_text = find_source(kernel, source, cache, trust, include_dirs, shipped.source)
    request = LoadRequest(kernel, device, dtype, min_match, cache, source_text, data, trust, tuning)
    return LoadedKernel(request, shipped)


def find_source(
    kernel: str,
    source: str | os.PathLike[str] | None,
    cache: Folder | None,
    trust: Trust,
    include_dirs: Sequence[str | os.PathLike[str]] = (),
    without: SourceText | None = None,
) -> SourceText:
    """The source as `load_kernel` finds it, else `without`; raises InputError if that is None."""
    folders = [Path(folder) for folder in include_dirs]
    if source is not None:
        return read_source(Path(source), folders)
    _, _, record, root = newest(kernel, cache)
    if record.source and (tuned := trust.source(root, record.source)) is not None:
        return read_source(tuned, folders)
    suffixes = (".py",) if record.compiler == TRITON else _SUFFIXES
    places = (Path("kernels"), packaged("kernels"))
    usual = [folder / f"{kernel}{suffix}" for folder in places for suffix in suffixes]
    for path in usual:
        if path.is_file():
            return read_source(path, folders)
    if without is not None:
        return without
    named = [Path(os.path.normpath(Path(root, record.source)))] if record.source else []
    raise InputError(f"{kernel}: no source at {' or '.join(map(str, named + usual))}; pass it as source=")
