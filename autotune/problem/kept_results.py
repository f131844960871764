"""Results of slow references, kept on disk by content: a reference runs once for the same inputs.

If a file is damaged, missing or another user's, the reference just runs again.
"""

from __future__ import annotations

import hashlib
import os
import zipfile
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from autotune.core.own_modules import own_modules
from autotune.core.syntax import retried
from autotune.processes.files import remove_oldest
from autotune.processes.own_files import open_own, write_own

KEPT_FROM_S = 0.2  # faster references just run again
LIMIT_BYTES = 4 * 2**30  # size of the folder; a problem needs results for three seeds
_VERSION = 2  # raised whenever a seed draws different inputs

Results = dict[str, NDArray[Any]]


@dataclass(frozen=True)
class KeptResults:
    """A folder of results; `run` is part of their keys, and empty to share results between searches."""

    folder: Path
    run: str = ""
    kept_from_s: float = KEPT_FROM_S

    def of(self, reference: Path, data_key: str, compute: Callable[[], Results]) -> Results:
        """Look up the results of a reference, or compute and keep them; what `compute` raises passes through.

        Args:
            reference: The reference file; the key covers its content and the user's modules that it imports.
                If these cannot be known, nothing is kept.
            data_key: Identifies the problem and its inputs.
            compute: Runs the reference.
        """
        text = reference.read_text(errors="replace")
        modules = own_modules(text, reference)
        if modules.hidden:
            return compute()
        parts = [str(_VERSION), np.__version__, self.run, text + modules.digest, data_key]
        path = self.folder / f"{hashlib.sha256(repr(parts).encode()).hexdigest()}.npz"
        with suppress(OSError), os.fdopen(open_own(path), "rb") as file:
            found = read_results(file)
            if found is not None:
                return found
        began = perf_counter()
        results = compute()
        if perf_counter() - began >= self.kept_from_s:
            self._store(path, results)
        return results

    def _store(self, path: Path, results: Mapping[str, NDArray[Any]]) -> None:
        """Write a whole file or none; errors of the disk are ignored."""
        with suppress(OSError):
            write_own(path, lambda file: save_results(file, results))
            remove_oldest(self.folder, LIMIT_BYTES)


def save_results(file: IO[bytes], results: Mapping[str, NDArray[Any]]) -> None:
    """Write results by name, for `load_results`."""
    np.savez(file, np.array(list(results), str), *results.values())


def load_results(path: Path) -> Results | None:
    """The arrays of a file of this run; None if it is missing or damaged."""
    try:
        with path.open("rb") as file:
            return read_results(file)
    except OSError:
        return None


def read_results(file: IO[bytes]) -> Results | None:
    """The arrays of a file, which counts as used now; None if it is damaged."""
    try:
        found = retried(lambda: _read(file))
        os.utime(file.fileno())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return found


def _read(file: IO[bytes]) -> Results:
    file.seek(0)
    with np.load(file, allow_pickle=False) as arrays:
        return {str(name): arrays[f"arr_{number}"] for number, name in enumerate(arrays["arr_0"], 1)}
