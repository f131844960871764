"""The tuned reduction beside torch.sum and CuPy's CUB sum, in turns, in one process.

    python benchmarks/reduce_bandwidth.py [--cache DIR] [--size N] [--dtype int32|float32]

Needs an NVIDIA GPU, PyTorch and CuPy, and a tuned result in the cache (`autotune search reduce`). Before
every sample a buffer of four times the L2 is read; a sample is the time between two events on one stream
around everything the contender launches, its clearing launch or its second pass included. Contenders take
turns, 40 rounds; medians are printed. Every contender's sum is checked against numpy first.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from statistics import median
from typing import Any

os.environ.setdefault("CUPY_ACCELERATORS", "cub")  # read when CuPy is imported

import cupy
import numpy as np
import torch

from autotune import best_config, include_dir
from autotune.compilers.source_text import packaged

ROUNDS = 40


def tuned(x: cupy.ndarray, cache: str | None, dtype: str) -> tuple[Callable[[], cupy.ndarray], str]:
    """A callable that runs the cached plan, and how well the cache matched."""
    n = x.size
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    best = best_config("reduce", name, dtype=dtype, cache=cache, n=n)
    source = (packaged("kernels") / "reduce.cu").read_text()
    module = cupy.RawModule(code=source, options=("--std=c++17", "-I", include_dir(), *best.flags))
    values: dict[str, np.generic | cupy.ndarray] = {}
    for argument in best.arguments(n=n):
        element = np.dtype(argument.dtype)
        is_input = argument.name in ("x", "work")  # no landmark in place wins, so `work` may be x itself
        if argument.value is not None:
            values[argument.name] = element.type(argument.value)
        else:
            values[argument.name] = x if is_input else cupy.zeros(argument.shape, element)
    kernels = [(module.get_function(step.entry), step) for step in best.launch(n=n)]
    if any("work" in step.arguments for _, step in kernels):
        raise SystemExit("the tuned configuration destroys its input; this benchmark runs one that does not")

    def run() -> cupy.ndarray:
        for kernel, step in kernels:
            kernel(step.grid, step.block, tuple(values[name] for name in step.arguments))
        return values["sum"]

    return run, f"{best.match.tier.value}: {best.config}"


def main() -> None:
    """Check every contender, let them take turns, print medians and ratios."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cache", help="the cache with the tuned result (default: as best_config)")
    parser.add_argument("--size", type=int, default=2**27)
    parser.add_argument("--dtype", choices=["int32", "float32"], default="int32")
    parsed = parser.parse_args()
    host = np.random.default_rng(0).integers(-100, 100, parsed.size, np.int32, endpoint=True)
    x = cupy.asarray(host.astype(parsed.dtype))
    tensor = torch.as_tensor(x, device="cuda")
    run, what = tuned(x, parsed.cache, parsed.dtype)
    # torch adds up int32 in int64 unless told otherwise
    torch_type = torch.int32 if parsed.dtype == "int32" else torch.float32
    contenders: dict[str, Callable[[], Any]] = {
        "autotune": run,
        "torch.sum": lambda: torch.sum(tensor, dtype=torch_type),
        "cupy.sum (CUB)": lambda: x.sum(dtype=x.dtype),
    }
    expected = int(host.sum(dtype=np.int64))
    for name, contender in contenders.items():
        found = contender().item()
        if abs(found - expected) > 1e-4 * abs(expected):
            raise SystemExit(f"{name}: {found}, expected {expected}")
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    flush = cupy.zeros(properties["l2CacheSize"], np.int32)
    times: dict[str, list[float]] = {name: [] for name in contenders}
    stream = cupy.cuda.Stream(non_blocking=True)  # both libraries on the one stream that is timed
    with stream, torch.cuda.stream(torch.cuda.ExternalStream(stream.ptr)):
        for _ in range(ROUNDS):
            for name, contender in contenders.items():
                flush.max()
                start, end = cupy.cuda.Event(), cupy.cuda.Event()
                start.record(stream)
                contender()
                end.record(stream)
                end.synchronize()
                times[name].append(cupy.cuda.get_elapsed_time(start, end))
    print(
        f"{properties['name'].decode()}, n={parsed.size:,}, {parsed.dtype}, {ROUNDS} rounds in turns; {what}"
    )
    for name, samples in times.items():
        rate = 4 * parsed.size / median(samples) * 1e-6
        ratio = median(samples) / median(times["autotune"])
        print(f"{name:16}{median(samples):10.4f} ms{rate:10.0f} GB/s{ratio:8.3f}x the time of autotune")


if __name__ == "__main__":
    main()
