"""`best_config`: which of the cached configurations to serve, with every fallback declared.

This module owns which files are read, the order of the tiers, and the memo that makes a repeated
look-up cheap. It reads cache files and nothing else: no space file, no device.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from operator import index
from typing import Any, TypeVar, cast

from autotune import cache as files
from autotune.best import Best, size_text
from autotune.cache_format import damaged
from autotune.errors import ExpressionError, InputError, NoConfig
from autotune.model import DeviceInfo, KernelRecord, Sizes
from autotune.tiers import Question, default, tuned

_T = TypeVar("_T")
_Stamp = tuple[int, int, int] | None  # of a file as it was before it was read; None: there was none

_MEMO_LIMIT = 10_000  # a program that asks for ever new sizes must not grow without bound
_answers: dict[tuple[Any, ...], tuple[tuple[tuple[str, _Stamp], ...], Best]] = {}
_contents: dict[str, tuple[_Stamp, Any]] = {}


def best_config(
    kernel: str,
    device: str | DeviceInfo | None = None,
    *,
    dtype: str | None = None,
    strict: bool = False,
    cache: files.Folder | None = None,
    **sizes: int,
) -> Best:
    """Serve the best known configuration of a kernel for a device and a problem; `match` says how it fits.

    `device` is a name, a slug or a DeviceInfo; None takes the only one with results for this kernel. `dtype`
    None takes the first one that the kernel's space declares. Without sizes the device's only result is
    served. The tiers are EXACT (this device, these sizes), NEAREST_SIZE (this device, nearest sizes in log2
    space, each dimension counting) and DEFAULT (the kernel's untuned default). Whatever is served is valid
    for the device and the sizes that were asked for. `strict` serves EXACT only.

    Raises NoConfig, which lists what exists, when nothing may be served, InputError for wrong sizes or an
    unknown dtype, and CacheError for a damaged file.
    """
    key = (kernel, device, dtype, strict, cache, os.environ.get(files.VARIABLE), *sizes.items())
    try:
        known = _answers.get(key)
    except TypeError:
        raise InputError("best_config takes names, a DeviceInfo, a path and whole numbers") from None
    if known is not None:
        for path, stamp in known[0]:
            if _stamp(path) != stamp:
                break
        else:
            return known[1]
    shelf = _Shelf()
    best = _look_up(
        shelf, Question(kernel, device, dtype, strict, _whole(kernel, sizes)), files.read_roots(cache)
    )
    if len(_answers) >= _MEMO_LIMIT:
        _answers.clear()
    _answers[key] = (tuple(shelf.stamps.items()), best)
    return best


class _Shelf:
    """Reads cache files through a memo, and notes what every file was like that an answer depends on."""

    def __init__(self) -> None:
        self.stamps: dict[str, _Stamp] = {}

    def record(self, root: str, folder: str, kernel: str) -> KernelRecord | None:
        """A kernel's results on a device, None when there are none."""
        return self._content(files.record_path(root, folder, kernel), files.read_record)

    def device(self, root: str, folder: str) -> DeviceInfo:
        """What the cache says of a device."""
        path = files.device_path(root, folder)
        return self._content(path, files.read_device) or files.read_device(path)

    def holders(self, root: str, kernel: str) -> list[str]:
        """The device folders with results for a kernel, sorted."""
        self._note(root)
        return [
            folder for folder in files.folders(root) if self._note(files.record_path(root, folder, kernel))
        ]

    def _content(self, path: str, read: Callable[[str], _T]) -> _T | None:
        stamp = self._note(path)
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
    """A tuned result of any cache before the default of one; no more is read than the answer needs."""
    reasons: list[str] = []
    places: list[tuple[str, str | None]] = []
    for serve in (_serve_tuned,) if question.strict else (_serve_tuned, _serve_default):
        for root in roots:
            place = _place(shelf, root, question)
            if place is None:
                continue
            places.append(place)
            try:
                best = serve(shelf, *place, question, reasons)
            except ExpressionError as error:
                raise damaged(f"{root}: results of {question.kernel}", error) from None
            if best is not None:
                return best
    raise NoConfig(_why_none(shelf, question, roots, list(dict.fromkeys(places)), reasons))


def _why_none(
    shelf: _Shelf,
    question: Question,
    roots: tuple[str, ...],
    places: list[tuple[str, str | None]],
    reasons: list[str],
) -> str:
    if not places:
        known = sorted({name for root in roots for name in files.kernels(root)})
        return (
            f"no results for a kernel {question.kernel!r} in {' or '.join(roots)}; "
            f"there are: {', '.join(known) or 'none, autotune search makes some'}"
        )
    wanted = [places[0][1] or question.slug, question.dtype]
    wanted.append(size_text(question.sizes) if question.sizes else None)
    what = "nothing tuned for exactly" if question.strict else "nothing valid for"
    parts = [f"{question.kernel}: {what} {', '.join(filter(None, wanted))}", *dict.fromkeys(reasons)]
    parts += [f"{root} has {_holdings(shelf, root, question.kernel)}" for root, _ in places]
    return "; ".join(parts)


def _place(shelf: _Shelf, root: str, question: Question) -> tuple[str, str | None] | None:
    """A cache that knows the kernel, with the folder of the device in it; None for another cache."""
    folder = question.slug
    if folder is None or shelf.record(root, folder, question.kernel) is None:
        holders = shelf.holders(root, question.kernel)
        return (root, _choose(shelf, root, holders, question)) if holders else None
    if question.given and not files.same_device(shelf.device(root, folder), question.given):
        return root, None  # another model that happens to have the same slug
    return root, folder


def _choose(shelf: _Shelf, root: str, holders: list[str], question: Question) -> str | None:
    """The folder of a device that has none under its own slug: by its full name, or the only one there is."""
    if question.device is None:
        if len(holders) > 1:
            raise NoConfig(f"{question.kernel}: which device? {root} has results for: {', '.join(holders)}")
        return holders[0]
    slug = question.slug or ""
    for folder in holders:  # a folder may say more than the name does, such as cpu-
        if slug in folder and files.slug(shelf.device(root, folder).name) == slug:
            return folder
    return None


def _serve_tuned(
    shelf: _Shelf, root: str, folder: str | None, question: Question, reasons: list[str]
) -> Best | None:
    record = shelf.record(root, folder, question.kernel) if folder else None
    if folder is None or record is None:
        return None
    return tuned(folder, record, question.given or shelf.device(root, folder), question, reasons)


def _serve_default(
    shelf: _Shelf, root: str, folder: str | None, question: Question, reasons: list[str]
) -> Best | None:
    own = shelf.record(root, folder, question.kernel) if folder else None
    device = question.given or (shelf.device(root, folder) if folder else None)
    records = [own] if own else _records(shelf, root, question.kernel)
    return default(records, device, folder or question.slug or "this device", question, reasons)


def _records(shelf: _Shelf, root: str, kernel: str) -> Iterator[KernelRecord]:
    for folder in shelf.holders(root, kernel):
        record = shelf.record(root, folder, kernel)
        if record is not None:
            yield record


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
