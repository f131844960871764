"""The choice of a CUDA compiler, and what is known without loading it: its identity, for keys of binaries.

To load NVRTC and to ask for its version takes longer than to load a kernel. The answer is kept in the user's
cache folder, with the state of the files that it comes from, and counts as long as these are unchanged.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from autotune.compilers.binary_cache import BinaryCache, CachedCompiler, content_key, default_folder
from autotune.compilers.hidden_reads import HEADER_FOLDERS
from autotune.core.extras import naming_extra
from autotune.core.launch_plan import TRITON
from autotune.core.trials import Binary
from autotune.processes.files import user_folder
from autotune.processes.own_files import read_own, write_own

if TYPE_CHECKING:
    from autotune.compilers.nvcc import NvccCompiler
    from autotune.compilers.nvrtc import CudaCompiler
    from autotune.compilers.triton_compiler import TritonCompiler

# Variables that decide which compiler is found.
_VARIABLES = (
    *("PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"),
    *("NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", *HEADER_FOLDERS),
)


def cuda_compiler(architecture: str, kind: str = "nvrtc") -> CudaCompiler | NvccCompiler | TritonCompiler:
    """Open a compiler for an architecture, `nvrtc`, `nvcc` or `triton`; needs no GPU.

    Only Triton compiles for AMD's.

    Raises MissingExtra without NVRTC or Triton, and SetupError without nvcc.
    """
    with naming_extra():
        if kind == TRITON:
            from autotune.compilers.triton_compiler import TritonCompiler

            return TritonCompiler(architecture)
        from autotune.compilers.nvcc import NvccCompiler
        from autotune.compilers.nvrtc import CudaCompiler
    return NvccCompiler(architecture) if kind == "nvcc" else CudaCompiler(architecture)


class KnownCompiler(NamedTuple):
    """A compiler that some process has opened; `identity` is part of the keys of its binaries."""

    identity: str
    name: str  # with the version, as in results


class LazyCompiler:
    """A CUDA compiler that is opened for the first source whose binary the cache does not have."""

    def __init__(self, architecture: str, kind: str) -> None:
        self._architecture, self._kind = architecture, kind
        self._binaries = BinaryCache(default_folder())
        self._known = _recall(architecture, kind)

    @property
    def name(self) -> str:
        """Name and version in stored results."""
        return self._known.name if self._known else self._compiler.name

    def compile(self, source: str, options: Sequence[str], names: Sequence[str] = ()) -> Binary:
        """Look up or compile; raises CompileError, MissingExtra and SetupError as the compilers do."""
        if self._known:
            binary = self._binaries.get(content_key(self._known.identity, source, options, names))
            if binary is not None:
                return binary
        return CachedCompiler(self._compiler, self._binaries).compile(source, options, names)

    @cached_property
    def _compiler(self) -> CudaCompiler | NvccCompiler | TritonCompiler:
        compiler = cuda_compiler(self._architecture, self._kind)
        if compiler.identity is not None and compiler.files:
            known = KnownCompiler(compiler.identity, compiler.name)
            _remember(self._architecture, self._kind, known, compiler.files)
        return compiler


@cache
def lazy_compiler(architecture: str, kind: str) -> LazyCompiler:
    """The compiler of this process for an NVIDIA architecture, `nvcc` or NVRTC for any other kind."""
    return LazyCompiler(architecture, kind)


def _recall(architecture: str, kind: str) -> KnownCompiler | None:
    """The remembered value, unless a file has changed since."""
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError):
        known = json.loads(read_own(_path(architecture, kind)))
        if all(_state(path) == state for path, state in known["files"].items()):
            return KnownCompiler(str(known["identity"]), str(known["name"]))
    return None


def _remember(architecture: str, kind: str, known: KnownCompiler, files: Iterable[Path]) -> None:
    """Keep what is known of a compiler, with the files it depends on; errors of the disk are ignored."""
    own = Path(__file__).parent  # another version of autotune may choose other options or headers
    modules = ("nvrtc", "nvcc", "cuda_headers", "triton_compiler", "triton_constants", "triton_options")
    listed = [*map(str, files), *(str(own / f"{name}.py") for name in modules)]
    with suppress(OSError):
        path = _path(architecture, kind)
        states = {path: _state(path) for path in listed}
        text = json.dumps({**known._asdict(), "files": states})
        write_own(path, lambda file: file.write(text.encode()))


def _path(architecture: str, kind: str) -> Path:
    environment = [sys.prefix, *(os.environ.get(name, "") for name in _VARIABLES)]
    key = hashlib.sha256(json.dumps(environment).encode()).hexdigest()[:16]
    return user_folder("compilers") / f"{kind or 'nvrtc'}-{architecture}-{key}.json"


def _state(path: str) -> list[int]:
    status = Path(path).stat()
    return [status.st_size, status.st_mtime_ns]
