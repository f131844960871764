"""`best_config`: which of the cached configurations to serve, with every fallback declared.

This module owns which of the caches' files are asked, the order of the tiers, and the memo that makes a
repeated look-up cheap. No space file is read, and of devices only which one is meant.
"""

from __future__ import annotations

import os
from typing import Any, Literal

from autotune.core.records import DeviceInfo, Tier, size_text
from autotune.errors import ExpressionError, InputError, NoConfig
from autotune.serving import cache as files
from autotune.serving.best import Best, whole_sizes
from autotune.serving.cache_reader import CacheReader, Stamp, stamp
from autotune.serving.cache_schema import damaged
from autotune.serving.matching import Question, tuned

_Place = tuple[str, str | None]  # a cache that knows the kernel, and the folder of the device in it

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
    **sizes: int,
) -> Best:
    """Serve the best known configuration of a kernel for a device and a problem; `match` says how it fits.

    `device` is a name, a slug, the number of a CUDA GPU, a DeviceInfo, or a device object of cuda.core,
    pycuda, cupy, torch or pyopencl; None takes the current GPU, or on a machine without one the only device
    with results. `dtype` None takes the first one that the kernel's space declares. Without sizes the
    device's only result is served. The closest tier that has something valid for the device and the sizes
    is served, `min_match` being the loosest that may be; `strict` allows EXACT only. With `on_miss`
    "record" a question without an EXACT answer is added to the cache's list of what is wanted.

    Raises NoConfig, which lists what exists, when nothing may be served, InputError for wrong sizes, an
    unknown dtype or an object that is no device, and CacheError for a damaged file.
    """
    asked = device if isinstance(device, _PLAIN) else _identified(device)
    least = None if min_match is _LOOSEST else min_match  # to hash None is much cheaper
    key = (kernel, asked, dtype, strict, least, on_miss, cache, os.environ.get(_VARIABLE), *sizes.items())
    try:
        known = _answers.get(key)
    except TypeError:
        raise InputError("best_config takes names, devices, a path and whole numbers") from None
    if known is not None:
        for path, known_stamp in known[0]:
            if stamp(path) != known_stamp:
                break
        else:
            return known[1]
    question = Question(
        kernel, asked, dtype, Tier.EXACT if strict else min_match, whole_sizes(kernel, sizes) or None
    )
    reader = CacheReader()
    best = _answer(reader, question, cache, on_miss)
    if len(_answers) >= _MEMO_LIMIT:
        _answers.clear()
    _answers[key] = (tuple(reader.stamps.items()), best)
    return best


def _identified(device: object) -> str | DeviceInfo | None:
    from autotune.hardware.identify import identify  # a name or a description needs none of it

    return identify(device)


def _answer(
    reader: CacheReader, question: Question, cache: files.Folder | None, on_miss: Literal["record"] | None
) -> Best:
    if not isinstance(question.least, Tier) or on_miss not in (None, "record"):
        raise InputError('best_config: min_match is a Tier, on_miss is "record" or None')
    try:
        best = _look_up(reader, question, files.read_roots(cache))
    except NoConfig:
        if on_miss:
            _note(cache, question)
        raise
    if on_miss and best.match.tier is not Tier.EXACT:
        _note(cache, question)
    return best


def _note(cache: files.Folder | None, question: Question) -> None:
    """Add the question to the list of what is wanted; without sizes there is nothing that could be tuned."""
    from autotune.serving.miss_log import CacheMiss, record_miss  # rarely needed, and costs an import

    if question.sizes:
        record_miss(cache, CacheMiss(question.kernel, question.slug, question.dtype, question.sizes))


def _look_up(reader: CacheReader, question: Question, roots: tuple[str, ...]) -> Best:
    """A result of this device in any cache, else one of another device, else the default.

    No more files are read than the answer needs.
    """
    reasons: list[str] = []
    places: list[_Place] = []
    try:
        for root in roots:
            place = _place(reader, root, question, places, reasons)
            if place is None:
                continue
            places.append(place)
            best = _serve_tuned(reader, *place, question, reasons)
            if best is not None:
                return best
        if question.least is not Tier.EXACT and places:
            best = _serve_others(reader, places, question, reasons)
            if best is not None:
                return best
    except ExpressionError as error:
        raise damaged(f"{' or '.join(roots)}: results of {question.kernel}", error) from None
    raise NoConfig(_why_none(reader, question, roots, places, reasons))


def _why_none(
    reader: CacheReader, question: Question, roots: tuple[str, ...], places: list[_Place], reasons: list[str]
) -> str:
    if not places:
        from autotune.serving.device_records import no_results

        return no_results(question.kernel, roots)
    wanted = [places[0][1] or question.slug, question.dtype]
    wanted.append(size_text(question.sizes) if question.sizes else None)
    what = {
        Tier.EXACT: "nothing tuned for exactly",
        Tier.DEFAULT: "nothing valid for",
    }.get(question.least, f"nothing as close as {question.least.value} for")
    parts = [f"{question.kernel}: {what} {', '.join(filter(None, wanted))}", *dict.fromkeys(reasons)]
    parts += [f"{root} has {_listed(reader, root, question.kernel)}" for root, _ in places]
    return "; ".join(parts)


def _listed(reader: CacheReader, root: str, kernel: str) -> str:
    """What there is of a kernel, as a sentence goes on: `nvidia-h200 (int32 n=1024 or float32 n=1024)`."""
    parts = []
    for folder, record in reader.records(root, kernel):
        entries = (f"{entry.dtype} {size_text(entry.sizes)}" for entry in record.entries)
        parts.append(f"{folder} ({' or '.join(entries)})")
    return ", ".join(parts)


def _place(
    reader: CacheReader, root: str, question: Question, earlier: list[_Place], reasons: list[str]
) -> _Place | None:
    """A cache that knows the kernel, with the folder of the device in it; None for another cache.

    Adds to `reasons` why results of the device may not be served.
    """
    kernel, slug = question.kernel, question.slug
    if slug is not None and reader.record(root, slug, kernel) is not None:
        folder = slug if _is_it(reader.device(root, slug), question) else None
    elif folders := reader.folders(root, kernel):
        folder = _choose(reader, root, folders, question, is_first=not earlier)
    else:
        return None
    if folder is None or not earlier:
        return root, folder
    from autotune.serving.device_records import is_of_kernel  # only a later cache can have another kernel

    record = reader.record(root, folder, kernel)
    if record is None or is_of_kernel(record, (one for _, one in reader.records(earlier[0][0], kernel))):
        return root, folder
    names = ", ".join(sorted(record.parameter_names))
    reasons.append(f"{root}/{folder} has another kernel of that name, with the parameters {names}")
    return root, None


def _choose(
    reader: CacheReader, root: str, folders: list[str], question: Question, *, is_first: bool
) -> str | None:
    """The folder of a device that has none under its own slug: by its full name, or the only one there is."""
    slug = question.slug
    if slug is None:
        return folders[0] if len(folders) == 1 and is_first else None
    from autotune.hardware.names import canonical

    words = {*canonical(slug).split()}
    for folder in folders:  # a folder may say more than the name does, such as cpu-
        if words <= {*canonical(folder).split()} and _is_it(reader.device(root, folder), question):
            return folder
    return None


def _is_it(known: DeviceInfo, question: Question) -> bool:
    """Whether a device of the cache is the one that is asked for, by its slug or its full name."""
    given = question.given
    if (
        (known.name, known.architecture) == (given.name, given.architecture)
        if given
        else known.slug == question.slug
    ):
        return True
    from autotune.hardware.names import is_same  # the same name under the same slug is the rule

    name = given.name if given else question.slug or ""
    return is_same(known.name, name) and (given is None or known.architecture == given.architecture)


def _serve_tuned(
    reader: CacheReader, root: str, folder: str | None, question: Question, reasons: list[str]
) -> Best | None:
    record = reader.record(root, folder, question.kernel) if folder else None
    if folder is None or record is None:
        return None
    return tuned(folder, record, question.given or reader.device(root, folder), question, reasons)


def _serve_others(
    reader: CacheReader, places: list[_Place], question: Question, reasons: list[str]
) -> Best | None:
    """An answer from all devices of all caches, the first cache with a device being used for it."""
    from autotune.serving.device_records import first_of_each, walk
    from autotune.serving.foreign_matching import (  # only who has no results imports these
        default,
        foreign,
        target_device,
    )

    device_records = first_of_each(walk(reader, [root for root, _ in places], question.kernel))
    held = {device_record.folder: device_record for device_record in device_records}
    own = next((held[folder] for _, folder in places if folder), None)
    target = target_device(question, question.given or (own.device if own else None))
    return foreign(device_records, target, question, reasons) or default(
        device_records, own, target, question, reasons
    )
