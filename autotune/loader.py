"""`best_config`: which of the cached configurations to serve, with every fallback declared.

This module owns which files are read, the order of the tiers, and the memo that makes a repeated
look-up cheap. It reads cache files and nothing else: no space file, and of devices only which one is meant.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from operator import index
from typing import Any, Literal, TypeVar, cast

from autotune import cache as files
from autotune.best import Best, size_text
from autotune.cache_format import damaged
from autotune.errors import ExpressionError, InputError, NoConfig
from autotune.model import DeviceInfo, KernelRecord, Sizes, Tier
from autotune.tiers import Question, tuned

_T = TypeVar("_T")
_Stamp = tuple[int, int, int] | None  # of a file as it was before it was read; None: there was none

_VARIABLE, _LOOSEST, _PLAIN = files.VARIABLE, Tier.DEFAULT, (str, DeviceInfo)
_MEMO_LIMIT = 10_000  # a program that asks for ever new sizes must not grow without bound
_answers: dict[tuple[Any, ...], tuple[tuple[tuple[str, _Stamp], ...], Best]] = {}
_contents: dict[str, tuple[_Stamp, Any]] = {}


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
        for path, stamp in known[0]:
            if _stamp(path) != stamp:
                break
        else:
            return known[1]
    question = Question(kernel, asked, dtype, Tier.EXACT if strict else min_match, _whole(kernel, sizes))
    shelf = _Shelf()
    best = _answer(shelf, question, cache, on_miss)
    if len(_answers) >= _MEMO_LIMIT:
        _answers.clear()
    _answers[key] = (tuple(shelf.stamps.items()), best)
    return best


def _identified(device: object) -> str | DeviceInfo | None:
    from autotune.device_objects import identify  # a name or a description needs none of it

    return identify(device)


def newest_record(kernel: str, cache: files.Folder | None = None) -> KernelRecord:
    """What the newest result of any device says of a kernel; raises NoConfig when there is none."""
    shelf, roots = _Shelf(), files.read_roots(cache)
    records = (shelf.record(root, folder, kernel) for root in roots for folder in shelf.holders(root, kernel))
    found = [record for record in records if record is not None]
    if not found:
        raise NoConfig(_no_results(kernel, roots))
    from autotune.foreign import newest

    return max(found, key=newest)


def _answer(
    shelf: _Shelf, question: Question, cache: files.Folder | None, on_miss: Literal["record"] | None
) -> Best:
    if not isinstance(question.least, Tier) or on_miss not in (None, "record"):
        raise InputError('best_config: min_match is a Tier, on_miss is "record" or None')
    try:
        best = _look_up(shelf, question, files.read_roots(cache))
    except NoConfig:
        if on_miss:
            _note(cache, question)
        raise
    if on_miss and best.match.tier is not Tier.EXACT:
        _note(cache, question)
    return best


def _note(cache: files.Folder | None, question: Question) -> None:
    """Add the question to the list of what is wanted; without sizes there is nothing that could be tuned."""
    from autotune.wanted import Wanted, note_wanted  # rarely needed, and costs an import

    if question.sizes:
        note_wanted(cache, Wanted(question.kernel, question.slug, question.dtype, question.sizes))


class _Shelf:
    """Reads cache files through a memo, and notes what every file was like that an answer depends on."""

    def __init__(self) -> None:
        self.stamps: dict[str, _Stamp] = {}

    def record(self, root: str, folder: str, kernel: str) -> KernelRecord | None:
        """A kernel's results on a device, None when there are none."""
        path = files.record_path(root, folder, kernel)
        return self._content(path, self._note(path), files.read_record)

    def device(self, root: str, folder: str) -> DeviceInfo:
        """What the cache says of a device; not noted, for whoever stores it stores a record too."""
        path = files.device_path(root, folder)
        return self._content(path, _stamp(path), files.read_device) or files.read_device(path)

    def holders(self, root: str, kernel: str) -> list[str]:
        """The device folders with results for a kernel, sorted."""
        self._note(root)
        return [
            folder for folder in files.folders(root) if self._note(files.record_path(root, folder, kernel))
        ]

    def _content(self, path: str, stamp: _Stamp, read: Callable[[str], _T]) -> _T | None:
        if stamp is None:
            return None
        known = _contents.get(path)
        if known is None or known[0] != stamp:
            _contents[path] = known = (stamp, read(path))
        return cast(_T, known[1])

    def _note(self, path: str) -> _Stamp:
        self.stamps[path] = stamp = _stamp(path)
        return stamp


def _stamp(path: str) -> _Stamp:
    try:
        found = os.stat(path)  # noqa: PTH116 - a hot look-up is one call of this and little else
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _whole(kernel: str, sizes: Sizes) -> Sizes | None:
    try:
        return {name: index(size) for name, size in sizes.items()} or None
    except TypeError:
        raise InputError(f"{kernel}: sizes are whole numbers; found {size_text(sizes)}") from None


def _look_up(shelf: _Shelf, question: Question, roots: tuple[str, ...]) -> Best:
    """A result of this device in any cache, else one of another device, else the default.

    No more files are read than the answer needs.
    """
    reasons: list[str] = []
    places: list[tuple[str, str | None]] = []
    try:
        for root in roots:
            place = _place(shelf, root, question)
            if place is None:
                continue
            places.append(place)
            best = _serve_tuned(shelf, *place, question, reasons)
            if best is not None:
                return best
        if question.least is not Tier.EXACT and places:
            best = _serve_others(shelf, places, question, reasons)
            if best is not None:
                return best
    except ExpressionError as error:
        raise damaged(f"{' or '.join(roots)}: results of {question.kernel}", error) from None
    raise NoConfig(_why_none(shelf, question, roots, places, reasons))


def _no_results(kernel: str, roots: tuple[str, ...]) -> str:
    known = sorted({name for root in roots for name in files.kernels(root)})
    return (
        f"no results for a kernel {kernel!r} in {' or '.join(roots)}; "
        f"there are: {', '.join(known) or 'none, autotune search makes some'}"
    )


def _why_none(
    shelf: _Shelf,
    question: Question,
    roots: tuple[str, ...],
    places: list[tuple[str, str | None]],
    reasons: list[str],
) -> str:
    if not places:
        return _no_results(question.kernel, roots)
    wanted = [places[0][1] or question.slug, question.dtype]
    wanted.append(size_text(question.sizes) if question.sizes else None)
    what = {
        Tier.EXACT: "nothing tuned for exactly",
        Tier.DEFAULT: "nothing valid for",
    }.get(question.least, f"nothing as close as {question.least.value} for")
    parts = [f"{question.kernel}: {what} {', '.join(filter(None, wanted))}", *dict.fromkeys(reasons)]
    parts += [f"{root} has {_holdings(shelf, root, question.kernel)}" for root, _ in places]
    return "; ".join(parts)


def _place(shelf: _Shelf, root: str, question: Question) -> tuple[str, str | None] | None:
    """A cache that knows the kernel, with the folder of the device in it; None for another cache."""
    folder = question.slug
    if folder is None or shelf.record(root, folder, question.kernel) is None:
        holders = shelf.holders(root, question.kernel)
        return (root, _choose(shelf, root, holders, question)) if holders else None
    return root, folder if _is_it(shelf.device(root, folder), question) else None


def _choose(shelf: _Shelf, root: str, holders: list[str], question: Question) -> str | None:
    """The folder of a device that has none under its own slug: by its full name, or the only one there is."""
    slug = question.slug
    if slug is None:
        return holders[0] if len(holders) == 1 else None
    from autotune.device_names import canonical

    words = {*canonical(slug).split()}
    for folder in holders:  # a folder may say more than the name does, such as cpu-
        if words <= {*canonical(folder).split()} and _is_it(shelf.device(root, folder), question):
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
    from autotune.device_names import is_same  # the same name under the same slug is the rule

    name = given.name if given else question.slug or ""
    return is_same(known.name, name) and (given is None or known.architecture == given.architecture)


def _serve_tuned(
    shelf: _Shelf, root: str, folder: str | None, question: Question, reasons: list[str]
) -> Best | None:
    record = shelf.record(root, folder, question.kernel) if folder else None
    if folder is None or record is None:
        return None
    return tuned(folder, record, question.given or shelf.device(root, folder), question, reasons)


def _serve_others(
    shelf: _Shelf, places: Sequence[tuple[str, str | None]], question: Question, reasons: list[str]
) -> Best | None:
    """An answer from all devices of all caches, the first cache with a device being used for it.

    A record of a later cache with other parameters is of another kernel that has the same name.
    """
    from autotune.foreign import Holder, default, foreign, target_of  # only who has no results imports it

    found: dict[str, Holder] = {}
    for root, _ in places:
        ours = {holder.record.parameter_names for holder in found.values()}
        for folder in shelf.holders(root, question.kernel):
            record = shelf.record(root, folder, question.kernel)
            if folder in found or record is None or (ours and record.parameter_names not in ours):
                continue
            found[folder] = Holder(folder, shelf.device(root, folder), record)
    own = next((found[folder] for _, folder in places if folder), None)
    target = target_of(question, question.given or (own.device if own else None))
    holders = list(found.values())
    return foreign(holders, target, question, reasons) or default(holders, own, target, question, reasons)


def _holdings(shelf: _Shelf, root: str, kernel: str) -> str:
    """What there is of a kernel, as a sentence goes on: `nvidia-h200 (int32 n=1024 or float32 n=1024)`."""
    parts = []
    for folder in shelf.holders(root, kernel):
        record = shelf.record(root, folder, kernel)
        entries = record.entries if record else ()
        parts.append(
            f"{folder} ({' or '.join(f'{entry.dtype} {size_text(entry.sizes)}' for entry in entries)})"
        )
    return ", ".join(parts)
