"""The journals and caches of a folder, as `autotune report --live` shows them; nothing outside it is read."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from autotune.analysis.inventory import journal_summary
from autotune.core.text import problem_text
from autotune.errors import AutotuneError, InputError
from autotune.evaluation.journal import FollowedJournal, JournalContent
from autotune.evaluation.search_state import search_state
from autotune.interop.journals import is_journal
from autotune.report.gather import gather_sources
from autotune.report.page import cut
from autotune.report.search_page import report_json
from autotune.serving.cache import DEVICE_FILE, kernels
from autotune.space.spaces_by_kernel import spaces_by_kernel

_MAX_DEPTH = 4  # of folders below the one that is shown
_BEGIN = 20  # letters of a file that show whether it is a journal
_ENDS = (".jsonl", ".yaml", DEVICE_FILE)


@dataclass(frozen=True)
class JournalSource:
    """A journal or the results of a kernel in a cache."""

    name: str  # as pages ask for it: the journal's path in the folder, or `CACHE:KERNEL`
    path: Path  # of the journal, or of the cache
    kernel: str | None  # None for a journal
    stamp: str  # changes when a file of it changes
    written_at: float = 0.0  # the latest result of the kernel, in seconds since the epoch


class ExploredFolder:
    """A folder shown as pages; each request reads it again and shows new files."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise InputError(f"{root}: no such folder; name one with journals or caches")
        self.root = root.resolve()
        self._reports = lru_cache(maxsize=8)(self._report)
        self._followed = lru_cache(maxsize=8)(FollowedJournal)  # those that grow
        self._summaries = lru_cache(maxsize=4096)(self._summary)

    def sources(self) -> dict[str, JournalSource]:
        """Everything that can be shown, by name."""
        return self._sources(self._files())

    def index(self) -> tuple[str, dict[str, Any]]:
        """A stamp and the data of the page that lists the folder."""
        sources = sorted(self.sources().values(), key=lambda one: -one.written_at)  # one's own come first
        listed = {
            "kind": "folder",
            "folder": str(self.root),
            "journals": [
                self._summaries(item.name, item.path, item.stamp) for item in sources if not item.kernel
            ],
            "cached": [
                {"name": source.name, "kernel": source.kernel, "cache": source.name.rpartition(":")[0]}
                for source in sources
                if source.kernel
            ],
        }
        return _digest(f"{source.name} {source.stamp}" for source in sources), cut(listed)

    def report(self, names: Sequence[str]) -> tuple[str, dict[str, Any]]:
        """A stamp and the data of the report of some sources; messages say what cannot be shown.

        Raises InputError for a name that the folder does not have.
        """
        files = self._files()
        known = self._sources(files)
        for name in names:
            if name not in known:
                raise InputError(f"{name!r} is no journal and no kernel of a cache in this folder")
        chosen = tuple(known[name] for name in dict.fromkeys(names))
        caches = {source.path: source for source in known.values() if source.kernel}
        spaces = tuple(path for path in files if path.suffix == ".yaml")
        used = (*chosen, *caches.values())
        stamp = _digest([*(f"{source.name} {source.stamp}" for source in used), _stamp(spaces)])
        return stamp, self._reports(chosen, tuple(caches), spaces, stamp)

    def states(self, names: Sequence[str]) -> list[str]:
        """The state of each journal's search in a sentence, behind its name where there are several."""
        known = self.sources()
        journals = [known[name] for name in dict.fromkeys(names) if name in known and not known[name].kernel]
        said = [search_state(journal.path, is_concluded=self._is_concluded(journal)) for journal in journals]
        if len(said) == 1:
            return said
        return [f"{journal.name}: {state}" for journal, state in zip(journals, said, strict=True)]

    def _is_concluded(self, journal: JournalSource) -> bool:
        return bool(self._summaries(journal.name, journal.path, journal.stamp).get("is_concluded"))

    def _report(
        self,
        chosen: tuple[JournalSource, ...],
        caches: tuple[Path, ...],
        spaces: tuple[Path, ...],
        stamp: str,
    ) -> dict[str, Any]:
        """The data of a report; `stamp` is there for the least-recently-used cache only."""
        named = {source.path for source in chosen if source.kernel}
        if len(named) > 1:
            return _message("Choose kernels of one cache; those of several caches cannot be shown together.")
        no_cache = self.root / ".none"  # not that of the current folder, nor the package's
        cache = next(iter((*named, *caches)), no_cache)
        sources = [source.kernel or source.path for source in chosen]
        try:
            journals = {source.path: self._read(source.path) for source in chosen if not source.kernel}
            return report_json(gather_sources(sources, cache, spaces_by_kernel(spaces), journals=journals))
        except AutotuneError as error:  # such as a search that has no trial yet
            return _message(str(error))

    def _read(self, path: Path) -> JournalContent:
        return self._followed(path).read()

    def _summary(self, name: str, path: Path, stamp: str) -> Mapping[str, Any]:
        """A journal's summary in the list; `stamp` is only a key of the least-recently-used cache."""
        try:
            summary = journal_summary(path, self._read)
        except AutotuneError as error:
            return {"name": name, "unreadable": str(error)}
        return {
            **{key: value for key, value in vars(summary).items() if key not in ("path", "sizes", "dtype")},
            "name": name,
            "problem": problem_text(summary.sizes, summary.dtype),
        }

    def _sources(self, files: Sequence[Path]) -> dict[str, JournalSource]:
        sources = [*self._journals(files), *self._cached(files)]
        return {source.name: source for source in sources}

    def _journals(self, files: Iterable[Path]) -> Iterator[JournalSource]:
        for path in files:
            if path.suffix != ".jsonl":
                continue
            with suppress(OSError):
                with path.open(encoding="utf-8", errors="replace") as file:
                    begin = file.read(_BEGIN)
                if is_journal(begin):
                    yield JournalSource(self._name(path), path, None, _stamp([path]))

    def _cached(self, files: Iterable[Path]) -> Iterator[JournalSource]:
        """The kernels of every cache; one with a link out of the folder is left out."""
        roots = {
            path.parent.parent for path in files if path.name == DEVICE_FILE and path.parent != self.root
        }
        for cache in sorted(roots):
            results = sorted(cache.glob("*/*.json"))
            if not all(self._is_inside(path) for path in results):
                continue
            stamp = _stamp(results)
            for kernel in kernels(str(cache)):
                latest = max((one.stat().st_mtime for one in results if one.stem == kernel), default=0.0)
                yield JournalSource(f"{self._name(cache)}:{kernel}", cache, kernel, stamp, latest)

    def _files(self) -> list[Path]:
        """Files that may be shown: no hidden folders, and no links out of the folder."""
        paths = []
        for folder, below, files in os.walk(self.root):
            depth = len(Path(folder).relative_to(self.root).parts)
            below[:] = sorted(name for name in below if not name.startswith(".") and depth < _MAX_DEPTH)
            paths += [Path(folder) / name for name in sorted(files) if name.endswith(_ENDS)]
        return [path for path in paths if self._is_inside(path)]

    def _is_inside(self, path: Path) -> bool:
        return path.is_file() and path.resolve().is_relative_to(self.root)

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def _message(text: str) -> dict[str, Any]:
    return cut({"kind": "message", "message": text})


def _stamp(files: Iterable[Path]) -> str:
    stats = (path.stat() for path in files)
    return _digest(f"{stat.st_ino} {stat.st_size} {stat.st_mtime_ns}" for stat in stats)


def _digest(texts: Iterable[str]) -> str:
    return sha256("\n".join(texts).encode(errors="surrogateescape")).hexdigest()[:16]
