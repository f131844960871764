"""CUDA C++ to an exact binary (cubin) with NVRTC: needs no GPU and no driver."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from typing import Any

from cuda.bindings import nvrtc

from autotune.devices.base import CompileError
from autotune.trials import Binary

_OK = nvrtc.nvrtcResult.NVRTC_SUCCESS


class CudaCompiler:
    """Compiles for one architecture, such as "sm_90"; options are NVRTC's own, such as --maxrregcount=32."""

    def __init__(self, architecture: str) -> None:
        self._options = (f"--gpu-architecture={architecture}", "--std=c++17", "--no-cache")

    def compile(self, source: str, options: Sequence[str]) -> Binary:
        """Compile one source; raises CompileError with NVRTC's log."""
        began = time.perf_counter()
        result, program = nvrtc.nvrtcCreateProgram(source.encode(), b"kernel.cu", 0, None, None)
        if result != _OK:
            raise CompileError(f"NVRTC does not take the source: {result.name}")
        try:
            flags = [option.encode() for option in (*self._options, *options)]
            (result,) = nvrtc.nvrtcCompileProgram(program, len(flags), flags)
            log = _text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program).decode(
                errors="replace"
            )
            if result != _OK:
                raise CompileError(log.strip("\0\n") or result.name)
            data = _text(nvrtc.nvrtcGetCUBINSize, nvrtc.nvrtcGetCUBIN, program)
        finally:
            nvrtc.nvrtcDestroyProgram(program)
        elapsed_ms = (time.perf_counter() - began) * 1e3
        return Binary(data, hashlib.sha256(data).hexdigest(), log.strip("\0\n"), elapsed_ms)


def _text(
    size_of: Callable[[Any], tuple[Any, int]], read: Callable[[Any, bytearray], Any], program: Any
) -> bytes:
    _, size = size_of(program)
    content = bytearray(size)
    read(program, content)
    return bytes(content)
