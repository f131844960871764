"""Finds NVIDIA's programs: nvcc, the disassembler, the sanitizer, the profilers."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

_USUAL_PLACES = (
    *("usr/local/cuda/bin", "opt/cuda/bin"),
    *("opt/nvidia/nsight-compute/*", "opt/nvidia/nsight-systems/*/bin"),
)


def find_tool(name: str) -> str | None:
    """The path of a program: on the PATH, in a package, under CUDA_HOME or in a usual place; else None."""
    return shutil.which(name) or _in_package(name) or shutil.which(name, path=os.pathsep.join(_places()))


def _in_package(name: str) -> str | None:
    try:
        from cuda.pathfinder import find_nvidia_binary_utility
    except ImportError:
        return None
    path: str | None = find_nvidia_binary_utility(name)
    return path


def _places() -> Iterator[str]:
    """The usual folders, those of the latest versions first, and the folder of Triton's copies."""
    for pattern in _USUAL_PLACES:
        yield from sorted(map(str, Path("/").glob(pattern)), reverse=True)
    triton = find_spec("triton")
    for folder in triton.submodule_search_locations or () if triton else ():
        yield f"{folder}/backends/nvidia/bin"
