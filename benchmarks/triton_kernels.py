"""Tune the Triton kernels of this project on a GPU, and time them beside PyTorch and @triton.autotune.

    python benchmarks/triton_kernels.py [--budget 40] [--only NAME ...] [--output FILE]

1. Searches each space with cold caches, and times its best and its default in turns with PyTorch's operator.
2. Tunes the matrix product at 4096 for a usual list of 16 configurations, once with @triton.autotune and once
   with a search, both with cold caches.
3. Measures the host time of a call: of `load_kernel`, of a bound kernel, and of Triton's own dispatch.

Device times are medians of samples; the L2 cache is overwritten before each. Needs an NVIDIA GPU and PyTorch.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from autotune import StaleWarning, load_kernel

ROOT = Path(__file__).parents[1]
LIST = ROOT / "benchmarks" / "spaces" / "triton_matmul_list.yaml"
SAMPLES = 40
CALLS = 300  # of one sample of host times
FLUSH_BYTES = 256 * 2**20
EPSILON = 1e-5
CONFIGURATIONS = (  # BLOCK_M, BLOCK_N, BLOCK_K, stages, warps: those of LIST
    *((128, 256, 64, 3, 8), (64, 256, 32, 4, 4), (128, 128, 32, 4, 4), (128, 64, 32, 4, 4)),
    *((64, 128, 32, 4, 4), (128, 32, 32, 4, 4), (64, 32, 32, 5, 2), (32, 64, 32, 5, 2)),
    *((128, 256, 128, 3, 8), (256, 128, 128, 3, 8), (256, 64, 128, 4, 4), (64, 256, 128, 4, 4)),
    *((128, 128, 128, 4, 4), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4), (128, 32, 64, 4, 4)),
)
Call = Callable[[], Any]


def torch_calls(name: str, torch: Any) -> tuple[tuple[Any, ...], dict[str, Call]]:
    """Inputs and outputs of a kernel at its space's sizes, and what PyTorch has for it."""
    half = {"device": "cuda", "dtype": torch.float16}
    functional = torch.nn.functional
    if name == "triton_reduce":
        x = torch.rand(134_217_728, device="cuda")
        return (x, torch.empty(1, device="cuda")), {"torch.sum": lambda: torch.sum(x)}
    if name == "triton_matmul":
        a, b, c = (torch.randn(8192, 8192, **half) for _ in range(3))
        return (a, b, c), {"torch.matmul": lambda: torch.matmul(a, b, out=c)}
    if name == "triton_attention":
        q, k, v, out = (torch.randn(32, 4096, 128, **half) for _ in range(4))
        heads = [one.view(2, 16, 4096, 128) for one in (q, k, v)]
        return (q, k, v, out), {
            "scaled_dot_product_attention": lambda: functional.scaled_dot_product_attention(*heads)
        }
    x, y = (torch.randn(8192, 8192, **half) for _ in range(2))
    if name == "triton_softmax":
        given: tuple[Any, ...] = (x, y)
        plain: Any = partial(functional.softmax, x, -1)
    else:
        weight, bias = torch.randn(8192, **half), torch.randn(8192, **half)
        means, scales = (torch.empty(8192, device="cuda") for _ in range(2))
        given = (x, weight, bias, y, means, scales)
        plain = partial(functional.layer_norm, x, (8192,), weight, bias, EPSILON)
    compile_: Any = torch.compile
    what = name.removeprefix("triton_")
    return given, {f"torch {what}": plain, f"torch.compile {what}": compile_(lambda: plain())}


def device_times_ms(calls: Mapping[str, Call], torch: Any) -> dict[str, float]:
    """Median device times; all take turns. A call that fails has its reason printed, and no time."""
    flush = torch.empty(FLUSH_BYTES, dtype=torch.int8, device="cuda")
    working = {}
    for name, call in calls.items():
        try:
            call()
            torch.cuda.synchronize()
            working[name] = call
        except Exception as error:  # noqa: BLE001 - another package's operator
            print(f"  {name} fails: {str(error)[:200]}")
    began = time.perf_counter()
    while time.perf_counter() - began < 0.3:  # the clocks of a GPU at work
        for call in working.values():
            call()
        torch.cuda.synchronize()
    events: dict[str, list[Any]] = {name: [] for name in working}
    for _ in range(SAMPLES):
        for name, call in working.items():
            flush.zero_()
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            call()
            end.record()
            events[name].append((start, end))
        torch.cuda.synchronize()
    return {name: median(start.elapsed_time(end) for start, end in pairs) for name, pairs in events.items()}


def search(space: Path, cache: Path, budget: int, limit_s: float) -> float:
    """Search a space with cold caches in a process of its own; return its wall time in seconds."""
    command = [sys.executable, "-m", "autotune", "search", str(space), "--device", "cuda:0"]
    command += ["--budget", str(budget), "--no-binary-cache", "--no-sanitizer", "--quiet"]
    command += ["--cache", str(cache), "--journal", str(cache / f"{space.stem}.jsonl")]
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, timeout=limit_s, cwd=ROOT)
    wall_s = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"{space.stem}: {(done.stderr or done.stdout).strip()[-900:]}")
    return wall_s


def statuses(journal: Path) -> dict[str, int]:
    """How many trials a journal has of each status."""
    found: dict[str, int] = {}
    for line in journal.read_text().splitlines():
        status = json.loads(line).get("trial", {}).get("status")
        if status:
            found[status] = found.get(status, 0) + 1
    return found


def beside_torch(name: str, cache: Path, budget: int, torch: Any) -> dict[str, Any]:
    """Search one space and time the result."""
    wall_s = search(ROOT / "spaces" / f"{name}.yaml", cache, budget, 150)
    given, others = torch_calls(name, torch)
    kernel = load_kernel(name, cache=cache)
    times = device_times_ms({"autotune": lambda: kernel(*given), **others}, torch)
    (path,) = cache.glob(f"*/{name}.json")
    result = json.loads(path.read_text())["entries"][0]
    return {
        "wall_s": wall_s,
        "trials": statuses(cache / f"{name}.jsonl"),
        **{key: result[key] for key in ("config", "time_ms", "default_time_ms")},
        "times_ms": times,
    }


def tuning_times(cache: Path, torch: Any) -> dict[str, Any]:
    """Wall time of tuning for a list, with @triton.autotune and with a search; and the bests at 4096."""
    wall_s = search(LIST, cache, len(CONFIGURATIONS), 120)
    print(f"a search of the list took {wall_s:.1f} s", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        environment = os.environ | {"TRITON_CACHE_DIR": folder, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, __file__, "--as-triton-does"]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)
    if done.returncode:
        raise RuntimeError(done.stderr[-900:])
    theirs = json.loads(done.stdout.splitlines()[-1])
    kernel = load_kernel("triton_matmul_list", cache=cache, source=ROOT / "kernels" / "triton_matmul.py")
    a, b, c = (torch.randn(4096, 4096, device="cuda", dtype=torch.float16) for _ in range(3))
    times = {"best of the list": lambda: kernel(a, b, c), "torch.matmul": lambda: torch.matmul(a, b, out=c)}
    return {
        "triton_autotune": theirs,
        "autotune_wall_s": wall_s,
        "trials": statuses(cache / f"{LIST.stem}.jsonl"),
        "times_ms": device_times_ms(times, torch),
    }


def own_kernel() -> Any:
    """The matrix product as a kernel of Triton's own."""
    sys.path.insert(0, str(ROOT / "kernels"))
    return importlib.import_module("triton_matmul").matmul


def as_triton_does() -> None:
    """Tune with @triton.autotune in a fresh process, and print the time of the first call."""
    import torch
    import triton

    configs = [
        triton.Config(
            {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8, "EVEN_K": True},
            num_stages=stages,
            num_warps=warps,
        )
        for m, n, k, stages, warps in CONFIGURATIONS
    ]
    tuned = triton.autotune(configs=configs, key=["m", "n", "k"])(own_kernel())
    a, b, c = (torch.randn(4096, 4096, device="cuda", dtype=torch.float16) for _ in range(3))
    torch.matmul(a, b, out=c)
    torch.cuda.synchronize()
    began = time.perf_counter()
    tuned[lambda meta: (triton.cdiv(4096, meta["BLOCK_M"]) * triton.cdiv(4096, meta["BLOCK_N"]),)](
        a, b, c, 4096, 4096, 4096
    )
    torch.cuda.synchronize()
    wall_s = time.perf_counter() - began
    print(json.dumps({"wall_s": wall_s, "best": str(tuned.best_config), "triton": triton.__version__}))


def host_times_us(cache: Path, torch: Any) -> dict[str, float]:
    """Median host time of a call with three arrays, all in turns."""
    ours = load_kernel("triton_matmul", cache=cache)
    matmul = own_kernel()
    a, b, c = (torch.randn(64, 64, device="cuda", dtype=torch.float16) for _ in range(3))
    grid = (1,)

    def dispatch() -> None:
        matmul[grid](
            *(a, b, c, 64, 64, 64),
            BLOCK_M=64,
            BLOCK_N=64,
            BLOCK_K=64,
            GROUP_M=8,
            EVEN_K=True,
            num_warps=4,
            num_stages=2,
        )

    bound = ours.bind(a, b, c)
    calls: dict[str, Call] = {
        "Triton": dispatch,
        "load_kernel": lambda: ours(a, b, c),
        "bound": bound,
        "torch.matmul": lambda: torch.matmul(a, b, out=c),
    }
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(SAMPLES):
        for name, call in calls.items():
            torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            samples[name].append(1e6 * (time.perf_counter() - start) / CALLS)
    torch.cuda.synchronize()
    return {name: median(times) for name, times in samples.items()}


def main() -> None:
    """Run all parts, print a table, write the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ["matmul", "calls", "tuning", "softmax", "layer_norm", "attention", "reduce"]
    parser.add_argument("--budget", type=int, default=40, help="configurations of each search")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--output", type=Path, help="a file for all figures")
    parser.add_argument("--as-triton-does", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.as_triton_does:
        as_triton_does()
        return
    import torch

    warnings.simplefilter("ignore", StaleWarning)
    figures: dict[str, Any] = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        cache.mkdir()
        for name in arguments.only:
            began = time.perf_counter()
            try:
                if name == "tuning":
                    figures[name] = tuning_times(cache, torch)
                elif name == "calls":
                    figures[name] = host_times_us(cache, torch)
                else:
                    figures[name] = beside_torch(f"triton_{name}", cache, arguments.budget, torch)
                print(
                    f"{name} ({time.perf_counter() - began:.0f} s): {json.dumps(figures[name])}", flush=True
                )
            except Exception:  # noqa: BLE001 - the other parts still count
                print(f"{name} fails: {traceback.format_exc()[-1500:]}", flush=True)
            if arguments.output:
                arguments.output.write_text(json.dumps(figures, indent=2) + "\n")
            torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
