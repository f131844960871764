"""Tune kernels in half precision and bfloat16, and show the best beside the default and cuBLAS.

    python benchmarks/half_precision.py [--budget TRIALS] [--size N] [--only NAME ...] [--compile]

The kernels are in examples/half_precision: a matrix product on tensor cores and a dot product, each in both
types. Needs an NVIDIA GPU. With PyTorch, its product and dot (cuBLAS) are timed after all searches: after a
second of the same work, and each run after a read of 256 MiB. With --compile, default and landmarks are
compiled for sm_90 instead, which needs no GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from autotune.compilers.nvrtc import CudaCompiler
from autotune.compilers.source_text import read_source, render
from autotune.hardware.architectures import architecture
from autotune.space import bind, load_space, problem_of

FOLDER = Path(__file__).parents[1] / "examples" / "half_precision"
SAMPLES = 20
WARM_UP_S = 1.0  # a GPU at its power limit has lower clocks, as in a search
LADDER = "matmul_bf16"  # the search whose landmarks are timed first
HASTY = "--Ofast-compile=max"  # shows what does not compile, in less time


@dataclass(frozen=True)
class Task:
    """One search: a space, its element type, and what cuBLAS computes in its place."""

    space: str
    dtype: str
    library: Callable[[Any, Any], Any]


def _product(one: Any, other: Any) -> Any:
    return one @ other


def _dot(one: Any, other: Any) -> Any:
    return one.dot(other)


TASKS = {
    "matmul_bf16": Task("tensor_matmul", "bfloat16", _product),
    "matmul_f16": Task("tensor_matmul", "float16", _product),
    "dot_f16": Task("dot", "float16", _dot),
    "dot_bf16": Task("dot", "bfloat16", _dot),
}


def main() -> None:
    """Tune every kernel, and print a line for each; or compile."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--budget", type=int, default=48, help="configurations per search")
    parser.add_argument("--size", type=int, default=8192, help="rows and columns of the matrices")
    parser.add_argument("--only", nargs="+", choices=TASKS, default=list(TASKS))
    parser.add_argument("--compile", action="store_true", help="compile for sm_90 only; needs no GPU")
    options = parser.parse_args()
    if options.compile:
        for name in options.only:
            compile_landmarks(TASKS[name])
        return
    best_ms = {name: tuned_ms(name, TASKS[name], options.budget, options.size) for name in options.only}
    for name, time_ms in best_ms.items():
        compare(name, time_ms, options.size)


def compile_landmarks(task: Task) -> None:
    """Compile the default and every landmark for sm_90, and print what each uses."""
    spec = load_space(FOLDER / f"{task.space}.yaml")
    device = architecture("sm_90").device
    space = bind(spec, device, problem_of(spec, device, dtype=task.dtype))
    source = read_source(spec.source)
    for landmark in spec.landmarks:
        if landmark.config not in space:
            raise SystemExit(f"{landmark.name}: {'; '.join(space.why_invalid(landmark.config))}")
        flags = (*space.options(landmark.config, "cuda"), HASTY)
        binary = CudaCompiler("sm_90").compile(render(source, space.macros(landmark.config)), flags)
        used = f"{binary.registers} registers, {binary.spill_bytes} bytes spilt"
        print(f"{task.space} {task.dtype} {landmark.name}: {used}")


def tuned_ms(name: str, task: Task, budget: int, size: int) -> float:
    """Tune one kernel, and print its best beside its default; return the best's time in ms."""
    sizes = [f"--size={axis}={size}" for axis in "mnk"] if task.space == "tensor_matmul" else []
    command = (
        "search",
        str(FOLDER / f"{task.space}.yaml"),
        "--device",
        "cuda",
        "--dtype",
        task.dtype,
        *sizes,
    )
    how = ("--budget", str(budget), "--no-sanitizer", "--fresh", "--json", "--cache", "half_precision_cache")
    journal = ("--journal", f"half_precision_runs/{name}.jsonl")
    program = [sys.executable, "-m", "autotune"]
    if name == LADDER:
        subprocess.run([*program, "run", *command[1:], "--landmarks", "--fresh"], check=True)
    done = subprocess.run([*program, *command, *how, *journal], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(done.returncode)
    result = json.loads(done.stdout)
    best_ms, default_ms = float(result["time_ms"]), result["default_time_ms"]
    print(f"{name}: {' '.join(f'{key}={value}' for key, value in result['config'].items())}")
    print(f"{name}: best {best_ms:.4f} ms, default {default_ms:.4f} ms ({default_ms / best_ms:.2f} times)")
    print(f"{name}: {result['counts']} in {result['seconds']:.0f} s", flush=True)
    return best_ms


def compare(name: str, best_ms: float, size: int) -> None:
    """Print a tuned kernel beside cuBLAS."""
    task = TASKS[name]
    is_product = task.space == "tensor_matmul"
    library_ms = timed_library(task, size if is_product else None)
    if library_ms is None:
        return
    rates = (f"{2 * size**3 / ms * 1e-9:.0f} TFLOP/s" for ms in (best_ms, library_ms) if is_product)
    share = f"the best has {library_ms / best_ms:.2f} of its speed"
    print(f"{name}: cuBLAS {library_ms:.4f} ms; {share} {' and '.join(rates)}", flush=True)


def timed_library(task: Task, size: int | None) -> float | None:
    """Median time in ms of what PyTorch calls cuBLAS for; None without PyTorch."""
    try:
        torch = import_module("torch")
    except ImportError:
        return None
    shape = (size, size) if size else (134_217_728,)
    dtype = getattr(torch, task.dtype)
    one, other = (torch.rand(shape, device="cuda", dtype=torch.float32).mul(2).sub(1).to(dtype) for _ in "ab")
    flush = torch.zeros(2**28, dtype=torch.uint8, device="cuda")
    began = perf_counter()
    while perf_counter() - began < WARM_UP_S:
        task.library(one, other)
        torch.cuda.synchronize()
    samples = []
    for _ in range(SAMPLES):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        flush.sum()
        start.record()
        task.library(one, other)
        end.record()
        end.synchronize()
        samples.append(float(start.elapsed_time(end)))
    return median(samples)


if __name__ == "__main__":
    main()
