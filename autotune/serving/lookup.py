"""`best_config`: which of the cached configurations to serve, and how closely it matches.

This module owns which files are read, the order of the tiers, and the memo of repeated look-ups. It reads no
space files.
"""

from __future__ import annotations

import os

from autotune.core.light_typing import Any
from autotune.core.records import DeviceInfo, Tier
from autotune.core.text import size_text
from autotune.errors import ExpressionError, InputError, NoConfig
from autotune.serving import cache as files
from autotune.serving.best import Best, whole_sizes
from autotune.serving.cache_reader import CacheReader, Stamp, stamp
from autotune.serving.cache_schema import damaged
from autotune.serving.matching import Query, match_own_results

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

_Place = tuple[str, str | None]  # a cache with results of the kernel, and the folder of the device in it

_VARIABLE, _LOOSEST, _PLAIN = files.VARIABLE, Tier.DEFAULT, (str, DeviceInfo)
_MEMO_LIMIT = 10_000  # a program that asks for ever new sizes must not grow without bound
_answers: dict[tuple[Any, ...], tuple[tuple[tuple[str, Stamp], ...], Best]] = {}


def best_config(
    kernel: str,
    device: object = None,
    *,
    dtype: str | None = None,
    strict: bool = False,
    min_match: Tier = _LOOSEST,
    on_miss: Literal["record"] | None = None,
    cache: files.Folder | None = None,
    data: str | None = None,
    **sizes: int,
) -> Best:
    """Serve the best known configuration of a kernel for a device and a problem; `match` says how it fits.

    Args:
        kernel: The kernel's name.
        device: A name, a slug, the number of a CUDA GPU (1 or "cuda:1"), a DeviceInfo, or a device object of
            cuda.core, pycuda, cupy, torch or pyopencl. None takes the current GPU, or without a GPU the only
            device with results.
        dtype: The element type; None takes the first one that the kernel's space declares.
        strict: Serve EXACT matches only, and no result that was never compared with a reference.
        min_match: The loosest tier to serve; the closest one with a valid configuration is served.
        on_miss: "record" adds a query without an EXACT match to the cache's list of misses.
        cache: The folder of a cache; None reads AUTOTUNE_CACHE, else `./cache` and autotune's own.
        data: The name of the inputs' content, for a kernel that was tuned for several.
        **sizes: Of the problem; without sizes, the device's only result is served.

    Raises:
        NoConfig: Nothing may be served; lists what exists.
        InputError: Wrong sizes, an unknown dtype, or an object that is not a device.
        CacheError: A file is damaged.
    """
    asked = device if isinstance(device, _PLAIN) else _identified(device)
    least = None if min_match is _LOOSEST else min_match  # None is much cheaper to hash
    environment = os.environ.get(_VARIABLE)
    key = (kernel, asked, dtype, strict, least, on_miss, cache, environment, data, *sizes.items())
    try:
        known = _answers.get(key)
    except TypeError:
        given: Any = next((value for value in sizes.values() if isinstance(value, dict)), None)
        mend = f"; write {size_text(given)} without a dictionary" if given else ""
        raise InputError(f"best_config takes names, devices, a path and whole numbers{mend}") from None
    if known is not None:
        for path, known_stamp in known[0]:
            if stamp(path) != known_stamp:
                break
        else:
            return known[1]
    if isinstance(asked, str) and ":" in asked:
        asked = _identified(asked)
    query = Query(
        kernel, asked, dtype, Tier.EXACT if strict else min_match, whole_sizes(kernel, sizes) or None, data
    )
    reader = CacheReader(query.select_data)
    best = _answer(reader, query, cache, on_miss)
    if len(_answers) >= _MEMO_LIMIT:
        _answers.clear()
    _answers[key] = (tuple(reader.stamps.items()), best)
    return best


def _identified(device: object) -> str | DeviceInfo | None:
    from autotune.hardware.identify import identify  # not needed for a name or a description

    return identify(device)


def _answer(
    reader: CacheReader, query: Query, cache: files.Folder | None, on_miss: Literal["record"] | None
) -> Best:
    if not isinstance(query.least, Tier) or on_miss not in (None, "record"):
        raise InputError('best_config: min_match is a Tier, such as Tier.EXACT, on_miss is "record" or None')
    try:
        best = _look_up(reader, query, files.read_roots(cache))
    except NoConfig:
        if on_miss:
            _record_miss(cache, query)
        raise
    if on_miss and best.match.tier is not Tier.EXACT:
        _record_miss(cache, query)
    return best


def _record_miss(cache: files.Folder | None, query: Query) -> None:
    """Add the query to the list of misses; without sizes there is no problem to tune."""
    from autotune.serving.miss_log import CacheMiss, record_miss  # rarely needed

    if query.sizes:
        record_miss(cache, CacheMiss(query.kernel, query.slug, query.dtype, query.sizes, query.data or ""))


def _look_up(reader: CacheReader, query: Query, roots: tuple[str, ...]) -> Best:
    """A result of this device in any cache, else of another device, else the default.

    Reads only the files that the answer needs.
    """
    reasons: list[str] = []
    places: list[_Place] = []
    try:
        for root in roots:
            place = _place(reader, root, query, places, reasons)
            if place is None:
                continue
            places.append(place)
            best = _serve_tuned(reader, *place, query, reasons)
            if best is not None:
                return best
        if isinstance(query.slug, str) and places and not any(folder for _, folder in places):
            _warn_of_misspelt(reader, places, query)
        if query.least is not Tier.EXACT and places:
            best = _serve_others(reader, places, query, reasons)
            if best is not None:
                return best
    except ExpressionError as error:
        raise damaged(f"{' or '.join(roots)}: results of {query.kernel}", error) from None
    raise NoConfig(_why_none(reader, query, roots, places, reasons))


def _warn_of_misspelt(reader: CacheReader, places: list[_Place], query: Query) -> None:
    """Warn where one word of the given device's name is nearly that of a device with results."""
    from autotune.hardware.names import misspelt  # only for a device that has no results

    known = [folder for root, _ in places for folder in reader.folders(root, query.kernel)]
    if query.given is None and (meant := misspelt(query.slug or "", known)):
        import warnings

        warnings.warn(
            f"{query.kernel}: no results for a device {query.slug}; did you mean {meant}?", stacklevel=5
        )


def _why_none(
    reader: CacheReader, query: Query, roots: tuple[str, ...], places: list[_Place], reasons: list[str]
) -> str:
    if not places:
        from autotune.serving.device_records import no_results

        return no_results(query.kernel, roots)
    sizes = size_text(query.sizes) if query.sizes else None
    data = f"data {query.data}" if query.data else None
    asked = filter(None, [places[0][1] or query.slug, query.dtype, sizes, data])
    what = {
        Tier.EXACT: "nothing tuned for exactly",
        Tier.DEFAULT: "nothing valid for",
    }.get(query.least, f"nothing as close as {query.least.value} for")
    parts = [f"{query.kernel}: {what} {', '.join(asked)}", *dict.fromkeys(reasons)]
    parts += [f"{root} has {_listed(reader, root, query.kernel)}" for root, _ in places]
    return "; ".join(parts)


def _listed(reader: CacheReader, root: str, kernel: str) -> str:
    """The results of a kernel in a cache: `nvidia-h200 (int32 n=1024 or float32 n=1024)`."""
    parts = []
    for folder, record in reader.records(root, kernel):
        entries = (f"{entry.dtype} {size_text(entry.sizes)}" for entry in record.entries)
        parts.append(f"{folder} ({' or '.join(entries)})")
    return ", ".join(parts)


def _place(
    reader: CacheReader, root: str, query: Query, earlier: list[_Place], reasons: list[str]
) -> _Place | None:
    """A cache and the folder of the device in it; None if the cache has no results of the kernel.

    Adds to `reasons` why results of the device may not be served.
    """
    kernel, slug = query.kernel, query.slug
    if slug is not None and reader.record(root, slug, kernel) is not None:
        folder = slug if _is_device(reader.device(root, slug), query) else None
    elif folders := reader.folders(root, kernel):
        folder = _folder_by_name(reader, root, folders, query, is_first=not earlier)
    else:
        return None
    if folder is None or not earlier:
        return root, folder
    from autotune.serving.device_records import is_of_kernel  # only later caches need it

    record = reader.record(root, folder, kernel)
    if record is None or is_of_kernel(record, (one for _, one in reader.records(earlier[0][0], kernel))):
        return root, folder
    names = ", ".join(sorted(record.parameter_names))
    reasons.append(f"{root}/{folder} has another kernel of that name, with the parameters {names}")
    return root, None


def _folder_by_name(
    reader: CacheReader, root: str, folders: list[str], query: Query, *, is_first: bool
) -> str | None:
    """The folder of a device that no folder's slug equals: by its full name, or the only folder there is."""
    slug = query.slug
    if slug is None:
        return folders[0] if len(folders) == 1 and is_first else None
    from autotune.hardware.names import canonical

    words = {*canonical(slug).split()}
    for folder in folders:  # a folder may have more words than the name, such as cpu-
        if words <= {*canonical(folder).split()} and _is_device(reader.device(root, folder), query):
            return folder
    return None


def _is_device(known: DeviceInfo, query: Query) -> bool:
    """Whether a device of the cache is that of the query, by slug or full name.

    Two CPUs of one name may differ in their number of cores: a cloud gives one name to many.
    """
    given = query.given
    if given is None:
        is_named = known.slug == query.slug
    elif known.architecture != given.architecture or _cores(known) != _cores(given):
        return False
    else:
        is_named = known.name == given.name
    if is_named:
        return True
    from autotune.hardware.names import is_same  # rarely needed: slugs usually agree

    return is_same(known.name, given.name if given else query.slug or "")


def _cores(device: DeviceInfo) -> int | None:
    return device.compute_units if device.kind == "cpu" else None


def _serve_tuned(
    reader: CacheReader, root: str, folder: str | None, query: Query, reasons: list[str]
) -> Best | None:
    record = reader.record(root, folder, query.kernel) if folder else None
    if folder is None or record is None:
        return None
    return match_own_results(folder, record, query.given or reader.device(root, folder), query, reasons)


def _serve_others(reader: CacheReader, places: list[_Place], query: Query, reasons: list[str]) -> Best | None:
    """An answer from all devices of all caches; of each device the first cache counts."""
    from autotune.serving.device_records import first_of_each, walk
    from autotune.serving.foreign_matching import (  # not needed for a tuned device
        match_default,
        match_other_devices,
        target_device,
    )

    device_records = first_of_each(walk(reader, [root for root, _ in places], query.kernel))
    by_folder = {device_record.folder: device_record for device_record in device_records}
    own = next((by_folder[folder] for _, folder in places if folder), None)
    target = target_device(query, query.given or (own.device if own else None))
    best = match_other_devices(device_records, target, query, reasons)
    return best or match_default(device_records, own, target, query, reasons)
