"""Compiled binaries kept on disk between runs, found again by the content of what was compiled.

The folder is a cache in every sense: it is bounded, what was not used for longest goes first, a damaged
file is compiled again, and whatever goes wrong with it costs time and nothing else. Any number of
processes share it without locks: a file is whole from the moment it has its name. A folder or a file that
others may write to is left alone.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import stat
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from autotune.compilers.base import Compiler
from autotune.core.trials import Binary

LIMIT_BYTES = 512 * 2**20
_MAGIC = b"autotune binary\n"
_CHECKSUM_BYTES = 32
# what a file says of its binary, and part of its key: a file that is found says all of it
_FACTS = ("sha256", "log", "compile_ms", "registers", "spill_bytes", "shared_bytes", "cached")
_KEPT_SHARE = 0.9  # of the limit, after a clean-up
_CHECKS = 64  # looks at the folder while as much is written as the limit allows
_READS_FILES = re.compile(r"-I|--?i(nclude|system|quote|macros|dirafter)|--?pre-include|--?options?-file|@")


def default_folder() -> Path | None:
    """The user's cache folder, by the convention of the platform; None for a user without a home."""
    chosen = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        root = chosen if chosen.is_absolute() else Path.home() / ".cache"
    except RuntimeError:
        return None
    return root / "autotune" / "binaries"


class BinaryCache:
    """One folder of binaries; the sum of the files' sizes is kept near `limit_bytes`."""

    def __init__(self, folder: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self._folder = folder
        self._limit_bytes = limit_bytes
        # at random, so that a hundred short runs look no more often than a long one
        self._until_check_bytes = random.randrange(limit_bytes // _CHECKS + 1)

    def get(self, key: str) -> Binary | None:
        """The binary of a key, marked as cached, or None; using it makes it the last one to go."""
        path = self._folder / key
        try:
            content = _own_content(path)
        except OSError:
            return None
        with suppress(OSError):  # a folder that may only be read
            os.utime(path, follow_symlinks=False)
        return _decode(content, key)

    def put(self, key: str, binary: Binary) -> None:
        """Keep a binary if the disk lets it."""
        content = _encode(binary, key)
        with suppress(OSError):
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            _require_own(self._folder.stat())
            with tempfile.NamedTemporaryFile(dir=self._folder, prefix="new-", delete=False) as file:
                try:
                    file.write(content)
                    file.flush()
                    Path(file.name).replace(self._folder / key)
                except OSError:
                    Path(file.name).unlink()
                    raise
            self._until_check_bytes -= len(content)
            if self._until_check_bytes < 0:
                self._until_check_bytes = self._limit_bytes // _CHECKS
                self._clean_up()

    def _clean_up(self) -> None:
        """Remove what was not used for longest while there is too much."""
        with os.scandir(self._folder) as entries:
            found = [(entry.stat(follow_symlinks=False), Path(entry.path)) for entry in entries]
        total = sum(status.st_size for status, _ in found)
        if total <= self._limit_bytes:
            return
        for status, path in sorted(found, key=lambda item: item[0].st_mtime_ns):
            if total <= self._limit_bytes * _KEPT_SHARE:
                return
            with suppress(FileNotFoundError):  # another process is cleaning up, too
                path.unlink()
            total -= status.st_size


class CachedCompiler:
    """A compiler that looks into a cache first."""

    def __init__(self, compiler: Compiler, cache: BinaryCache) -> None:
        self.identity = compiler.identity
        self._compiler = compiler
        self._cache = cache

    def compile(self, source: str, options: Sequence[str], names: Sequence[str] = ()) -> Binary:
        """Find or compile; raises CompileError, and what does not compile is not remembered."""
        if self.identity is None or any(map(_READS_FILES.match, options)):
            return self._compiler.compile(source, options, names)
        key = content_key(self.identity, source, options, names)
        found = self._cache.get(key)
        if found is not None:
            return found
        binary = self._compiler.compile(source, options, names)
        self._cache.put(key, binary)
        return binary


def content_key(identity: str, source: str, options: Sequence[str], names: Sequence[str] = ()) -> str:
    """The name under which the binary of this source, compiler, options and C++ names is kept."""
    looked_up = [list(names)] if names else []
    text = json.dumps([["data", *_FACTS], identity, list(options), source, *looked_up])
    return hashlib.sha256(text.encode()).hexdigest()


def _own_content(path: Path) -> bytes:
    """The bytes of a file that only this user could have written; raises OSError for any other.

    A binary is code that runs: what it was made of is known only as long as nobody else can put one here.
    """
    _require_own(path.parent.stat())
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        _require_own(status)
        if not stat.S_ISREG(status.st_mode):
            raise PermissionError(path)
        return file.read()


def _require_own(status: os.stat_result) -> None:
    """Raise PermissionError for a file or folder of somebody else, or one that others may write to."""
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise PermissionError("not this user's alone")


def _encode(binary: Binary, key: str) -> bytes:
    facts = {name: getattr(binary, name) for name in _FACTS} | {"symbols": dict(binary.symbols), "key": key}
    body = json.dumps(facts).encode() + b"\n" + binary.data
    return _MAGIC + hashlib.sha256(body).digest() + body


def _decode(content: bytes, key: str) -> Binary | None:
    """The binary, or None for a file that is damaged or stands under a wrong name."""
    start = len(_MAGIC) + _CHECKSUM_BYTES
    body = content[start:]
    if content[:start] != _MAGIC + hashlib.sha256(body).digest():
        return None
    head, _, data = body.partition(b"\n")
    facts = json.loads(head)
    if facts.pop("key") != key:
        return None
    return Binary(data, **facts | {"cached": True, "compile_ms": 0.0})
