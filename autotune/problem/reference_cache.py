"""Results of slow references, kept on disk by content: a reference runs once for the same inputs.

If a file is damaged, missing or another user's, the reference just runs again.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache, reduce
from io import BytesIO
from pathlib import Path
from time import perf_counter
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.own_modules import own_modules
from autotune.core.retried import retried
from autotune.processes.files import remove_oldest
from autotune.processes.own_files import open_own, write_own

KEPT_FROM_S = 0.2  # faster references just run again
BYTES_PER_S = 2**30  # so do those that compute more bytes per second: to write them would take longer
OF_RUN_FROM_S = 0.02  # slower ones are kept while a run lasts, whose two device processes need them
OF_RUN_BYTES = 2**22  # larger results are not kept for a run
LIMIT_BYTES = 4 * 2**30  # size of the folder; a problem needs results for three seeds
_ALIGNED_BYTES = 64
_VERSION = 2  # raised whenever a seed draws different inputs

Results = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class ReferenceCache:
    """A folder of results."""

    folder: Path
    run: str = ""  # a part of their keys; empty to share results between searches
    kept_from_s: float = KEPT_FROM_S  # faster references just run again
    of_run: Path | None = None  # for small results of faster references, while a search runs

    def all_of_run(self) -> ReferenceCache:
        """Keep results of any speed, in the folder of the run."""
        return self if self.of_run is None else replace(self, folder=self.of_run, kept_from_s=0.0)

    def result(self, reference: Path, data_key: str, compute: Callable[[], Results]) -> Results:
        """Look up the results of a reference, or compute and keep them; what `compute` raises passes through.

        The key covers the content of the reference file and of the user's modules that it imports, and
        `data_key`, which identifies the problem and its inputs. If these modules cannot be known, nothing is
        kept.
        """
        text = reference.read_text(errors="replace")
        imported = _imported(text, reference)
        if imported is None:
            return compute()
        parts = [str(_VERSION), np.__version__, self.run, text + imported, data_key]
        name = f"{hashlib.sha256(repr(parts).encode()).hexdigest()}.results"
        for folder in filter(None, (self.folder, self.of_run)):
            with suppress(OSError), os.fdopen(open_own(folder / name), "rb") as file:
                results = read_results(file)
                if results is not None:
                    return results
        began = perf_counter()
        results = compute()
        took_s, size = perf_counter() - began, sum(one.nbytes for one in results.values())
        if took_s >= self.kept_from_s + size / BYTES_PER_S:
            _store(self.folder, name, results)
        elif self.of_run is not None and took_s >= OF_RUN_FROM_S and size <= OF_RUN_BYTES:
            _store(self.of_run, name, results)  # the process of the last round needs them, too
        return results


def _store(folder: Path, name: str, results: Mapping[str, NDArray[Any]]) -> None:
    """Write a whole file or none; errors of the disk are ignored."""
    with suppress(OSError):
        write_own(folder / name, lambda file: save_results(file, results))
        remove_oldest(folder, LIMIT_BYTES)


@cache
def _imported(text: str, reference: Path) -> str | None:
    """A hash of the user's modules that a reference imports, found once; None if they cannot be known."""
    modules = own_modules(text, reference)
    return None if modules.hidden else modules.digest


def save_results(file: IO[bytes], results: Mapping[str, NDArray[Any]]) -> None:
    """Write results by name, for `load_results`: a checksum, then names and arrays as numpy writes them."""
    pieces = [piece for one in (np.array(list(results), str), *results.values()) for piece in _pieces(one)]
    checksum = reduce(lambda so_far, piece: zlib.crc32(piece, so_far), pieces, 0)
    file.writelines([checksum.to_bytes(_ALIGNED_BYTES), *pieces])


def _pieces(values: NDArray[Any]) -> Iterator[Any]:
    """The parts of numpy's file of an array, which ends where another one may start."""
    header, content = BytesIO(), np.ascontiguousarray(values).reshape(-1).view(np.uint8)
    np.lib.format.write_array_header_1_0(header, np.lib.format.header_data_from_array_1_0(values))
    yield from (header.getvalue(), content, bytes(-content.size % _ALIGNED_BYTES))


def load_results(path: Path) -> Results | None:
    """The arrays of a file of this run; None if it is missing or damaged."""
    try:
        with path.open("rb") as file:
            return read_results(file)
    except OSError:
        return None


def read_results(file: IO[bytes]) -> Results | None:
    """The arrays of a file, which counts as used now, mapped into memory; None if it is damaged."""
    try:
        # numpy parses the header as Python, which other threads disturb
        results = retried(lambda: _read(file), SystemError)
        os.utime(file.fileno())
    except (OSError, ValueError):
        return None
    return results


def _read(file: IO[bytes]) -> Results:
    checksum, content = np.split(np.memmap(file, np.uint8, "r"), [_ALIGNED_BYTES])
    if zlib.crc32(content.data).to_bytes(_ALIGNED_BYTES) != checksum.tobytes():
        raise ValueError("damaged")
    file.seek(_ALIGNED_BYTES)
    return {str(name): _mapped(file) for name in _mapped(file)}


def _mapped(file: IO[bytes]) -> NDArray[Any]:
    """The array at the file's position, which moves to the next one."""
    np.lib.format.read_magic(file)
    shape, _, dtype = np.lib.format.read_array_header_1_0(file)
    start = file.tell()
    values = np.memmap(file, dtype, "r", start, shape)
    file.seek(start + values.nbytes + -values.nbytes % _ALIGNED_BYTES)
    return np.asarray(values)
