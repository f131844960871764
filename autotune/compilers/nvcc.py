"""Compile CUDA C++ to a cubin with nvcc: relocatable device code, linked with the device runtime.

Needed for kernels that launch kernels. nvcc takes seconds, and runs in the caller's process group: a timeout
that ends the group ends nvcc, too.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path

from autotune.compilers.cuda_headers import missing_header
from autotune.compilers.hidden_reads import variables_text
from autotune.compilers.nvidia_tools import find_tool
from autotune.compilers.nvrtc import cubin_binary, name_expression, version_in
from autotune.compilers.resource_usage import read_pointers
from autotune.core.trials import Binary
from autotune.errors import CompileError, SetupError
from autotune.processes.scratch_folder import scratch_folder

_POINTER = "autotune_name_"


class NvccCompiler:
    """Compiles for one architecture, such as "sm_90"; options are nvcc's own, such as --maxrregcount=32."""

    def __init__(self, architecture: str) -> None:
        self._nvcc = find_nvcc()
        self.files = (Path(self._nvcc),)
        self._options = (f"--gpu-architecture={architecture}", "--std=c++17", "-rdc=true", "-dlink", "-cubin")
        version = self._run("--version", folder=Path.cwd()).strip()
        self.name = f"nvcc {version_in(version)}"  # in stored results
        self.identity: str | None = " ".join((version, *self._options, variables_text("nvcc"))).rstrip()

    def compile(self, source: str, options: Sequence[str], names: Sequence[str] = ()) -> Binary:
        """Compile and link one source; raises CompileError with the log of nvcc and its host compiler."""
        began = time.perf_counter()
        with scratch_folder() as name:
            folder = Path(name)
            (folder / "kernel.cu").write_text(source + _pointers(names))
            output = ("-o", "kernel.cubin", "kernel.cu", "-lcudadevrt")
            log = self._run(*self._options, *options, *output, folder=folder)
            data = (folder / "kernel.cubin").read_bytes()
        pointed = read_pointers(data) if names else {}
        symbols = {name: pointed[f"{_POINTER}{number}"] for number, name in enumerate(names)}
        return cubin_binary(data, log.strip(), (time.perf_counter() - began) * 1e3, symbols)

    def _run(self, *arguments: str, folder: Path) -> str:
        """Run nvcc in a folder, which also gets its temporary files, and return its output."""
        done = subprocess.run(
            [self._nvcc, *arguments],
            cwd=folder,
            env=os.environ | {"TMPDIR": str(folder)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )
        if done.returncode != 0:
            why = missing_header(done.stdout) or done.stdout.strip()
            raise CompileError(why or f"nvcc ended with exit code {done.returncode}")
        return done.stdout


def _pointers(names: Sequence[str]) -> str:
    """Declare a pointer to each name: the relocation of the pointer's variable names the symbol."""
    lines = []
    for number, name in enumerate(names):
        variable, value = f"{_POINTER}{number}", name_expression(name)
        lines.append(f'\nextern "C" __device__ const void *{variable} = (const void *){value};')
    return "".join(lines)


def find_nvcc() -> str:
    """The path of nvcc; raises SetupError without one."""
    path = find_tool("nvcc")
    if path is None:
        raise SetupError(
            "nvcc was not found, and this space needs it (compiler: nvcc); install the CUDA toolkit "
            "and put its bin folder on the PATH"
        )
    return path
