"""Binaries stored with a cache, for machines without a compiler.

`autotune build` writes them and `load_kernel` reads them:

    ROOT/binaries.cuda/KERNEL.json   the source and the compilers that they were built with
    ROOT/binaries.cuda/<key>         one binary with its resources, named by what it was built from

Nobody checks what a binary does, so binaries are loaded only from a cache that the program trusts.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from autotune.compilers.binary_cache import decode, encode
from autotune.compilers.source_text import SourceText
from autotune.core.json_values import load_object, mapping_of, text
from autotune.core.records import Value
from autotune.core.trials import Binary
from autotune.processes.files import replace_file
from autotune.runtime.trust import Trust
from autotune.serving.cache import Folder, read_roots, read_text
from autotune.serving.cache_schema import damaged

FOLDER = "binaries.cuda"  # the dot sets it apart from the folders of devices
_SCHEMA = 1


class BinaryKey(NamedTuple):
    """The inputs of a binary's build."""

    source_sha256: str
    architecture: str
    kind: str  # nvcc, or empty for NVRTC
    defines: tuple[tuple[str, Value], ...]
    options: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name of the binary's file."""
        return hashlib.sha256(json.dumps([_SCHEMA, *self]).encode()).hexdigest()


def binary_key(
    source: SourceText, architecture: str, kind: str, defines: Mapping[str, Value], options: Sequence[str]
) -> BinaryKey:
    """The key of a configuration's binary."""
    return BinaryKey(source.sha256, architecture, kind, tuple(sorted(defines.items())), tuple(options))


class Manifest(NamedTuple):
    """The build settings of a kernel's binaries in one folder."""

    source: str  # the name of the source's file
    source_sha256: str
    compilers: Mapping[str, str]  # architecture to name and version


class ShippedBinaries:
    """The binaries of one kernel in all caches that are read and trusted."""

    def __init__(self, kernel: str, cache: Folder | None, trust: Trust) -> None:
        """Read the manifests; raises CacheError if one is damaged."""
        folders = [Path(root, FOLDER) for root in read_roots(cache)]
        read = [(folder, read_manifest(folder, kernel)) for folder in folders if trust.covers(folder)]
        self._manifests = [(folder, manifest) for folder, manifest in read if manifest is not None]
        self.untrusted = tuple(
            folder for folder in folders if not trust.covers(folder) and (folder / f"{kernel}.json").exists()
        )

    @property
    def source(self) -> SourceText | None:
        """The name and hash of the source, for a machine that does not have the text."""
        for _, manifest in self._manifests:
            return SourceText(Path(manifest.source), "", manifest.source_sha256)
        return None

    def find(self, key: BinaryKey) -> tuple[Binary, str] | None:
        """A binary and the name of its compiler; None if no complete binary is found."""
        for folder, manifest in self._manifests:
            with suppress(OSError):
                if binary := decode((folder / key.name).read_bytes(), key.name):
                    return binary, manifest.compilers.get(key.architecture, "")
        return None


def read_manifest(folder: Path, kernel: str) -> Manifest | None:
    """The manifest of a kernel's binaries; None if there are none. Raises CacheError."""
    path = folder / f"{kernel}.json"
    if not path.is_file():
        return None
    try:
        stored = load_object(read_text(str(path)), _SCHEMA)
        return Manifest(
            text(stored.get("source"), "source"),
            text(stored.get("source_sha256"), "source_sha256"),
            mapping_of(text, text)(stored.get("compilers"), "compilers"),
        )
    except ValueError as error:
        raise damaged(str(path), error) from None


def write_binary(folder: Path, key: BinaryKey, binary: Binary) -> int:
    """Write a binary; return the size of its file in bytes. Raises OSError."""
    content = encode(binary, key.name)
    replace_file(folder / key.name, content)  # programs may be reading the folder
    return len(content)


def manifest_text(manifest: Manifest) -> str:
    """The text of a manifest's file."""
    return json.dumps({**manifest._asdict(), "schema": _SCHEMA}, indent=2, sort_keys=True) + "\n"
