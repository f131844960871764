"""`best_config`: chooses the cached configuration to serve, and says how closely it matches.

This module owns the choice of files, the order of the tiers, and the memo of repeated look-ups. It reads no
space files.
"""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any, Literal, NamedTuple

from autotune.core.c_types import require_dtype_name
from autotune.core.records import DeviceInfo, Tier
from autotune.core.text import size_text
from autotune.errors import ExpressionError, InputError, NoConfig
from autotune.serving.best import Best, NoMatch, Refusal, with_refusal
from autotune.serving.cache import VARIABLE, Folder, Stamp, read_roots, stamp
from autotune.serving.cache_reader import CacheReader
from autotune.serving.cache_schema import damaged
from autotune.serving.matching import match_own_results
from autotune.serving.query import Query
from autotune.serving.validity import whole_sizes

RECORD = "AUTOTUNE_RECORD"  # the file in which a program under `autotune record` notes its kernels
# A separate name, because reading an attribute of an Enum at every call takes long.
_ANY_TIER = Tier.DEFAULT
_DESCRIPTIONS = (str, DeviceInfo)  # of devices; any other object is asked for its properties
_MEMO_LIMIT = 10_000  # a program with ever new sizes must not grow without bound
# By question: the stamps of the files that were read, and the answer.
_answers: dict[tuple[Any, ...], tuple[tuple[tuple[str, Stamp], ...], Best]] = {}


def best_config(
    kernel: str,
    device: object = None,
    *,
    dtype: str | None = None,
    strict: bool = False,
    min_match: Tier = _ANY_TIER,
    on_miss: Literal["record"] | None = None,
    cache: Folder | None = None,
    data: str | None = None,
    **sizes: int,
) -> Best:
    """Serve the best known configuration of a kernel for a device and a problem; `match` says how it fits.

    Args:
        kernel: The kernel's name.
        device: A name, a slug, the number of a CUDA GPU (1 or "cuda:1"), a DeviceInfo, or a device object of
            cuda.core, pycuda, cupy, torch or pyopencl. None takes the current GPU; without a GPU, this
            machine's CPU if it has results, else the only device in the first cache with results.
        dtype: The element type; None takes the first type that the kernel's space declares.
        strict: Serve EXACT matches only, and no result that was never compared with a reference.
        min_match: The loosest tier to serve; the closest tier with a valid configuration is served.
        on_miss: "record" adds a query without an EXACT match to the cache's list of misses, as every program
            under `autotune record` does.
        cache: The folder of a cache; None reads AUTOTUNE_CACHE, else `./cache` and autotune's own.
        data: The name of the inputs' content, for a kernel that was tuned for several.
        **sizes: The problem's sizes; without any, the device's only result is served.

    Raises:
        NoConfig: Nothing may be served; lists what exists.
        InputError: Wrong sizes, an unknown dtype, or an object that is not a device.
        CacheError: A file is damaged.
    """
    described = device if isinstance(device, _DESCRIPTIONS) else _identified(device)
    tier = None if min_match is _ANY_TIER else min_match  # an Enum takes much longer to hash than None
    environment = os.environ.get(VARIABLE)
    # A size of 64.0, which is refused elsewhere, finds the answer for 64, as types would slow each call.
    key = (kernel, described, dtype, strict, tier, on_miss, cache, environment, data, *sizes.items())
    try:
        best = _remembered(key)
    except TypeError:
        raise _without_hash(sizes) from None
    if best is not None:
        return best
    is_address = isinstance(described, str) and ":" in described
    asked = _identified(described) if is_address else described
    loosest = Tier.EXACT if strict else min_match
    query = Query(kernel, asked, dtype, loosest, whole_sizes(kernel, sizes) or None, data)
    reader = CacheReader(query.select_data)
    best = _looked_up(reader, query, cache, on_miss)
    if len(_answers) >= _MEMO_LIMIT:
        _answers.clear()
    _answers[key] = (tuple(reader.stamps.items()), best)
    return best


def _remembered(key: tuple[Any, ...]) -> Best | None:
    """The earlier answer to the same question, if the files that it was read from have not changed."""
    known = _answers.get(key)
    if known is None:
        return None
    stamps, best = known
    for path, known_stamp in stamps:
        if stamp(path) != known_stamp:
            return None
    return best


def _without_hash(sizes: dict[str, Any]) -> InputError:
    """The error for an argument that has no hash, such as a dictionary of sizes."""
    given = next((value for value in sizes.values() if isinstance(value, dict)), None)
    mend = f"; write {size_text(given)} without a dictionary" if given else ""
    return InputError(f"best_config takes names, devices, a path and whole numbers{mend}")


def _identified(device: object) -> str | DeviceInfo | None:
    from autotune.hardware.identify import identify  # not needed for a name or a description

    return identify(device)


def _looked_up(
    reader: CacheReader, query: Query, cache: Folder | None, on_miss: Literal["record"] | None
) -> Best:
    if not isinstance(query.loosest, Tier) or on_miss not in (None, "record"):
        raise InputError(
            'best_config: expected a Tier as min_match, such as Tier.EXACT, and "record" or None as on_miss; '
            f"found {query.loosest!r} and {on_miss!r}"
        )
    require_dtype_name(query.dtype, "best_config")
    if query.device == "":
        raise InputError(
            "best_config: device: expected a name, a number, an object or None, found an empty string"
        )
    records = on_miss is not None or RECORD in os.environ
    try:
        best = _LookUp(reader, query, read_roots(cache)).best()
    except NoConfig:
        if records:
            _record_miss(cache, query)
        raise
    if records and best.match.tier is not Tier.EXACT:
        _record_miss(cache, query)
    return best


def _record_miss(cache: Folder | None, query: Query) -> None:
    """Add the query to the list of misses, unless it has no sizes: then there is no problem to tune."""
    from autotune.serving.miss_log import CacheMiss, record_miss  # rarely needed

    if query.sizes:
        record_miss(cache, CacheMiss(query.kernel, query.slug, query.dtype, query.sizes, query.data or ""))


class _Place(NamedTuple):
    """A cache with results of the kernel, and its folder of the device; None if it has no such folder."""

    root: str
    folder: str | None


class _LookUp:
    """One look-up: finds the caches with results of the kernel, and the reasons why some are not served."""

    def __init__(self, reader: CacheReader, query: Query, roots: tuple[str, ...]) -> None:
        self._reader, self._query, self._roots = reader, query, roots
        self._places: list[_Place] = []
        self._reasons: list[Refusal] = []

    def best(self) -> Best:
        """The result of this device in any cache, else of another device, else the default.

        Reads only the files that the answer needs.
        """
        try:
            best, closer = self._own_result(), tuple(self._reasons)
            if best is None and not any(place.folder for place in self._places):
                self._warn_of_misspelt()
            if best is None and self._places and self._query.loosest is not Tier.EXACT:
                best = self._result_of_others()
        except ExpressionError as error:
            raise damaged(f"{' or '.join(self._roots)}: results of {self._query.kernel}", error) from None
        if best is None:
            raise NoConfig(self._why_none())
        return with_refusal(best, closer)

    def _own_result(self) -> Best | None:
        """A result of the device itself, from the first cache that has a result which may be served."""
        reader, query = self._reader, self._query
        for root in self._roots:
            place = self._place(root, is_first=not self._places)
            if place is None:
                continue
            self._places.append(place)
            folder = place.folder
            record = reader.record(root, folder, query.kernel) if folder else None
            if folder and record is not None:
                device = query.given or reader.device(root, folder)
                best = self._answer_of(match_own_results(folder, record, device, query))
                if best is not None:
                    return best
        return None

    def _answer_of(self, match: Best | NoMatch) -> Best | None:
        """The answer if there is a match; else None, and the reasons are noted."""
        if isinstance(match, NoMatch):
            self._reasons.extend(match.reasons)
            return None
        return match

    def _place(self, root: str, *, is_first: bool) -> _Place | None:
        """A cache, the first with results of the kernel or a later one; None if it has no such results."""
        reader, kernel, slug = self._reader, self._query.kernel, self._query.slug
        if slug is not None and reader.record(root, slug, kernel) is not None:
            folder = slug if _is_device(reader.device(root, slug), self._query) else None
        elif folders := reader.folders(root, kernel):
            folder = self._folder_by_name(root, folders, is_first=is_first)
        else:
            return None
        if folder is not None and not is_first and not self._is_same_kernel(root, folder):
            folder = None
        return _Place(root, folder)

    def _is_same_kernel(self, root: str, folder: str) -> bool:
        """True if a later cache has results of the kernel that the first one has; else note the reason."""
        from autotune.serving.device_records import is_of_kernel  # only later caches need it

        record = self._reader.record(root, folder, self._query.kernel)
        earlier = self._reader.records(self._places[0].root, self._query.kernel)
        if record is None or is_of_kernel(record, (known for _, known in earlier)):
            return True
        names = ", ".join(sorted(record.parameter_names))
        why = f"has another kernel of this name, with the parameters {names}"
        self._reasons.append(Refusal(f"{root}/{folder}", why))
        return False

    def _folder_by_name(self, root: str, folders: list[str], *, is_first: bool) -> str | None:
        """The folder of a device that the query names by another name than its slug.

        If the query names no device, the folder of this machine's CPU, else the only folder of the first
        cache.
        """
        query = self._query
        if query.slug is None:
            if self._host_cpu is not None:
                return self._host_cpu if self._host_cpu in folders else None
            return folders[0] if len(folders) == 1 and is_first else None
        from autotune.hardware.names import canonical

        words = {*canonical(query.slug).split()}
        for folder in folders:  # a folder may have more words than the name, such as cpu-
            if words <= {*canonical(folder).split()} and _is_device(self._reader.device(root, folder), query):
                return folder
        return None

    @cached_property
    def _host_cpu(self) -> str | None:
        """The folder of this machine's CPU, if any cache has results of the kernel for it.

        A CPU counts as another device with another OpenCL runtime: the folder of Intel's comes first.
        """
        # only without a device and without a GPU
        from autotune.hardware.host_cpu import INTEL_SLUG, is_host_cpu

        for root in self._roots:
            folders = self._reader.folders(root, self._query.kernel)
            own = [folder for folder in folders if is_host_cpu(self._reader.device(root, folder))]
            if own:
                return max(own, key=lambda folder: folder.endswith(INTEL_SLUG))
        return None

    def _result_of_others(self) -> Best | None:
        """An answer from other devices; if several caches have results of a device, the first one counts."""
        from autotune.serving.device_records import first_of_each, walk
        from autotune.serving.foreign_matching import (  # not needed for a tuned device
            match_default,
            match_other_devices,
            target_device,
        )

        query, roots = self._query, [place.root for place in self._places]
        device_records = first_of_each(walk(self._reader, roots, query.kernel))
        by_folder = {device_record.folder: device_record for device_record in device_records}
        own = next((by_folder[place.folder] for place in self._places if place.folder), None)
        target = target_device(query, query.given or (own.device if own else None))
        best = self._answer_of(match_other_devices(device_records, target, query))
        if best is not None:
            return best
        return self._answer_of(match_default(device_records, own, target, query))

    def _warn_of_misspelt(self) -> None:
        """Warn if a word of the query's device is nearly a word in the name of a device with results."""
        query = self._query
        if not self._places or not isinstance(query.device, str):
            return
        from autotune.hardware.names import misspelt  # only for a device that has no results

        known = [
            folder for place in self._places for folder in self._reader.folders(place.root, query.kernel)
        ]
        if meant := misspelt(query.slug or "", known):
            import warnings

            warnings.warn(
                f"{query.kernel}: no results for a device {query.slug}; did you mean {meant}?", stacklevel=5
            )

    def _why_none(self) -> str:
        query = self._query
        if not self._places:
            from autotune.serving.device_records import no_results

            return no_results(query.kernel, self._roots)
        sizes = size_text(query.sizes) if query.sizes else None
        data = f"data {query.data}" if query.data else None
        dtype = query.dtype or self._only_dtype()
        asked = filter(None, [self._places[0].folder or query.slug, dtype, sizes, data])
        missing = {Tier.EXACT: "nothing tuned for exactly", Tier.DEFAULT: "nothing valid for"}.get(
            query.loosest, f"nothing as close as {query.loosest.value} for"
        )
        alike: dict[str, list[str]] = {}  # what is refused, by the reason
        for what, why in self._reasons:
            alike.setdefault(why, []).append(what)
        parts = [f"{query.kernel}: {missing} {', '.join(asked)}"]
        for why, (what, *others) in alike.items():
            more = f" and {len(others) - 1} more" if len(others) > 1 else ""
            parts.append(f"{what}{f' (like {others[-1]}{more})' if others else ''} {why}")
        parts += [f"{place.root} has {self._listed(place.root)}" for place in self._places]
        return "; ".join(parts)

    def _only_dtype(self) -> str:
        """The element type that the kernel's space declares first, if all results agree on it."""
        records = (self._reader.records(place.root, self._query.kernel) for place in self._places)
        dtypes = {record.dtypes[0] for in_place in records for _, record in in_place}
        return dtypes.pop() if len(dtypes) == 1 else ""

    def _listed(self, root: str) -> str:
        """The results of the kernel in a cache: `nvidia-h200 (int32 n=1024 or float32 n=1024)`."""
        parts = []
        for folder, record in self._reader.records(root, self._query.kernel):
            entries = (f"{entry.dtype} {size_text(entry.sizes)}" for entry in record.entries)
            parts.append(f"{folder} ({' or '.join(entries)})")
        return ", ".join(parts)


def _is_device(known: DeviceInfo, query: Query) -> bool:
    """True if a device of the cache is the query's, by slug or full name.

    CPUs of the same name may differ in their number of cores: clouds name many CPUs alike. A CPU under two
    runtimes counts as two devices, with different slugs.
    """
    given = query.given
    if given is None:
        is_named = known.slug == query.slug
    elif known.architecture != given.architecture or _cores(known) != _cores(given):
        return False
    elif given.kind == "cpu":
        return known.slug == given.slug
    else:
        is_named = known.name == given.name
    if is_named:
        return True
    from autotune.hardware.names import is_same  # rarely needed: slugs usually agree

    return is_same(known.name, given.name if given else query.slug or "")


def _cores(device: DeviceInfo) -> int | None:
    return device.compute_units if device.kind == "cpu" else None
