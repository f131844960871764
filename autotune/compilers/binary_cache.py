"""A cache of compiled binaries on disk, keyed by source, compiler and options.

Its size is bounded, the least recently used files are removed first, and any problem with a file only means
compiling again. Processes share it without locks, because a file is complete before it gets its name.
Folders and files that other users may write to are ignored.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from autotune.compilers.base import Compiler
from autotune.core.launch_plan import reads_files
from autotune.core.trials import Binary
from autotune.processes.files import remove_oldest, user_folder
from autotune.processes.own_files import read_own, write_own

LIMIT_BYTES = 512 * 2**20
_MAGIC = b"autotune binary\n"
_CHECKSUM_BYTES = 32
# Fields stored with each binary. A cached one's key has their names, because they may be other ones later.
_FACTS = ("sha256", "log", "compile_ms", "registers", "spill_bytes", "shared_bytes", "cached")
_CHECKS = 64  # size checks while writing as many bytes as the limit


def default_folder() -> Path:
    """The binaries' folder in the user's cache folder."""
    return user_folder("binaries")


class BinaryCache:
    """A folder of binaries whose total size is kept near `limit_bytes`."""

    def __init__(self, folder: Path, limit_bytes: int = LIMIT_BYTES) -> None:
        self._folder, self._limit_bytes = folder, limit_bytes

    def get(self, key: str) -> Binary | None:
        """The binary of a key, marked as cached, or None; it becomes the most recently used."""
        path = self._folder / key
        try:
            content = read_own(path)
        except OSError:
            return None
        with suppress(OSError):  # a read-only folder
            os.utime(path, follow_symlinks=False)
        return decode(content, key)

    def put(self, key: str, binary: Binary) -> None:
        """Store a binary; errors of the disk are ignored."""
        content = encode(binary, key)
        with suppress(OSError):
            write_own(self._folder / key, lambda file: file.write(content))
            # by chance: many short runs check as often as one long run
            if random.randrange(self._limit_bytes) < _CHECKS * len(content):
                remove_oldest(self._folder, self._limit_bytes)


class CachedCompiler:
    """A compiler that looks for a binary in a cache before it compiles.

    Binaries of a cache that is not kept for later runs do not count as cached.
    """

    def __init__(self, compiler: Compiler, cache: BinaryCache, *, is_kept: bool = True) -> None:
        self.identity = compiler.identity
        self._compiler = compiler
        self._cache = cache
        self._is_kept = is_kept

    def compile(self, source: str, options: Sequence[str], names: Sequence[str] = ()) -> Binary:
        """Look up or compile; raises CompileError. Failures are not cached."""
        if self.identity is None or any(map(reads_files, options)):
            return self._compiler.compile(source, options, names)
        key = content_key(self.identity, source, options, names)
        found = self._cache.get(key)
        if found is not None:
            return replace(found, cached=self._is_kept)
        binary = self._compiler.compile(source, options, names)
        self._cache.put(key, binary)
        return binary


def content_key(identity: str, source: str, options: Sequence[str], names: Sequence[str] = ()) -> str:
    """The name under which the binary of this source, compiler, options and C++ names is kept."""
    symbols = [list(names)] if names else []
    text = json.dumps([["data", *_FACTS], identity, list(options), source, *symbols])
    return hashlib.sha256(text.encode()).hexdigest()


def encode(binary: Binary, key: str) -> bytes:
    """The content of a binary's file, with a checksum."""
    facts = {name: getattr(binary, name) for name in _FACTS} | {"symbols": dict(binary.symbols), "key": key}
    body = json.dumps(facts).encode() + b"\n" + binary.data
    return _MAGIC + hashlib.sha256(body).digest() + body


def decode(content: bytes, key: str) -> Binary | None:
    """The binary; None if the file is damaged, its key is another one, or an older autotune stored less."""
    start = len(_MAGIC) + _CHECKSUM_BYTES
    body = content[start:]
    if content[:start] != _MAGIC + hashlib.sha256(body).digest():
        return None
    head, _, data = body.partition(b"\n")
    facts = json.loads(head)
    if facts["key"] != key or not facts.keys() >= {*_FACTS}:
        return None
    known = {name: facts[name] for name in _FACTS} | {"cached": True, "compile_ms": 0.0}
    return Binary(data, **known, symbols=facts.get("symbols", {}))
