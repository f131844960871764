"""Compile what the cache serves for NVIDIA GPUs, for machines without a compiler; needs no GPU."""

from __future__ import annotations

import argparse
from pathlib import Path

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.core.text import count_text
from autotune.errors import InputError

EXAMPLE = "autotune build reduce matmul --output tuned --architectures sm_80,sm_90"


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "kernels",
        metavar="KERNEL",
        nargs="+",
        type=opt.kernel,
        help="name of a kernel in the cache, its space file or a journal",
    )
    folder = "folder to write; load_kernel(..., cache=DIR) then needs only the GPU's driver"
    opt.add_output(parser, folder, metavar="DIR", required=True)
    parser.add_argument(
        "-d",
        "--device",
        "--architectures",
        metavar="A,B",
        dest="architectures",
        default="",
        help="NVIDIA GPUs or architectures, separated by commas (default: those of the GPUs with results)",
    )
    parser.add_argument(
        "--source", metavar="FILE", type=Path, help="source of a single KERNEL (default: as for load_kernel)"
    )
    parser.add_argument(
        "--trusted",
        metavar="DIR",
        type=Path,
        help="trust this folder's sources, and the compiler options of its caches (see docs/cache-format.md)",
    )
    opt.add_cache(parser, "where to look for results")
    opt.add_json(parser)


def run(parsed: argparse.Namespace) -> None:
    from autotune.hardware.names import gpu_architectures
    from autotune.runtime.build import build
    from autotune.runtime.loaded_kernel import find_source
    from autotune.runtime.trust import Trust

    if parsed.source is not None and len(parsed.kernels) > 1:
        raise InputError("--source is for one kernel; build the kernels one by one")
    architectures = gpu_architectures(parsed.architectures)
    if amd := next((architecture.name for architecture in architectures if architecture.is_amd), None):
        raise InputError(
            f"{amd}: expected NVIDIA GPUs, as for load_kernel; for AMD's, run autotune space --compile"
        )
    names = [architecture.name for architecture in architectures]
    trust = Trust(parsed.trusted)
    sources = [find_source(kernel, parsed.source, parsed.cache, trust) for kernel in parsed.kernels]
    built = [
        file
        for kernel, source in zip(parsed.kernels, sources, strict=True)
        for file in build(kernel, source, parsed.output, list(dict.fromkeys(names)), parsed.cache, trust)
    ]
    if parsed.json:
        emit([file._asdict() for file in built])
        return
    for file in built:
        count = count_text(file.configurations, "configuration")
        size = f"{file.size_bytes / 1e3:.1f} kB in {parsed.output}"
        emit(f"{file.kernel}  {file.architecture}  {count}, {size}")
