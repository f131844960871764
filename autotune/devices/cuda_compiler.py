"""CUDA C++ to an exact binary (cubin) with NVRTC: needs no GPU and no driver."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence

from cuda.core import Program, ProgramOptions

from autotune.devices.base import CompileError
from autotune.model import Binary


class CudaCompiler:
    """Compiles for one architecture, such as "sm_90"."""

    def __init__(self, architecture: str) -> None:
        self._architecture = architecture

    def compile(self, source: str, options: Sequence[str]) -> Binary:
        """Compile with NVRTC; raises CompileError with its log."""
        began = time.perf_counter()
        try:
            program = Program(source, "c++", ProgramOptions(arch=self._architecture, std="c++17"))
            data = bytes(program.compile("cubin").code)
        except RuntimeError as error:
            raise CompileError(str(error)) from None
        elapsed_ms = (time.perf_counter() - began) * 1e3
        return Binary(data, hashlib.sha256(data).hexdigest(), "", elapsed_ms)
