"""Tune the Triton kernels of this project on a GPU, and time them beside PyTorch and @triton.autotune.

    python benchmarks/triton_kernels.py [--search-s 45] [--limit-s 240] [--only NAME ...] [--output FILE]

1. tuning: the matrix product at 4096 and 8192 for a usual list of 16 configurations, with @triton.autotune
   and with a search, all caches cold: in a program that runs already, and from the start of a program or
   of the command to its end. The command says what took its time.
2. wide: the whole space of that product with a budget of 150, beside the best of the list.
3. Kernels by name: searches each space with cold caches, and times its best in turns with PyTorch's operator.
4. calls: the host time of a call, of `load_kernel`, of a bound kernel, and of Triton's own dispatch.

A part that fails, or for which no time is left, does not stop the others. Device times are medians of
samples; the L2 cache is overwritten before each. Needs an NVIDIA GPU and PyTorch.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from autotune import Space, StaleWarning, load_kernel
from autotune.core.trials import Budget
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.tuner import search as run_search

ROOT = Path(__file__).parents[1]
LIST = ROOT / "benchmarks" / "spaces" / "triton_matmul_list.yaml"
SAMPLES = 40
CALLS = 300  # of one sample of host times
WIDE_BUDGET = 150
STAGE_END = re.compile(r": \d+\.\d s$")  # what `--verbose` says when a stage has ended
MIN_PART_S = 15.0  # a part is not begun with less time left
FLUSH_BYTES = 256 * 2**20
EPSILON = 1e-5
CONFIGURATIONS = (  # BLOCK_M, BLOCK_N, BLOCK_K, stages, warps: those of LIST
    *((128, 256, 64, 3, 8), (64, 256, 32, 4, 4), (128, 128, 32, 4, 4), (128, 64, 32, 4, 4)),
    *((64, 128, 32, 4, 4), (128, 32, 32, 4, 4), (64, 32, 32, 5, 2), (32, 64, 32, 5, 2)),
    *((128, 256, 128, 3, 8), (256, 128, 128, 3, 8), (256, 64, 128, 4, 4), (64, 256, 128, 4, 4)),
    *((128, 128, 128, 4, 4), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4), (128, 32, 64, 4, 4)),
)
TUNED_SIZES = (4096, 8192)
RUNNING, WHOLE = "in a running program", "from start to end"
ASKED = {  # the least of each ratio that is asked for
    **{f"tuning: {size}, {what}": 6 for size in TUNED_SIZES for what in (RUNNING, WHOLE)},
    "wide: best of the list / best of the space": 1.03,
    "matmul: cuBLAS / autotune": 0.9,
    "attention: SDPA / autotune": 0.8,
    "softmax: torch.compile / autotune": 1,
    "layer_norm: torch.compile / autotune": 1,
    "calls: Triton / load_kernel": 2,
}
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


def search(space: Path, cache: Path, limit_s: float, *options: str) -> dict[str, Any]:
    """Search a space with cold caches in a process of its own.

    Returns:
        Its wall time in seconds, the seconds at which each of its stages had ended, and its trials by status.
    """
    journal = cache / f"{space.stem}.{time.monotonic_ns()}.jsonl"
    command = [sys.executable, "-m", "autotune", "search", str(space), "--device", "cuda:0", *options]
    command += ["--no-binary-cache", "--no-sanitizer", "--verbose", "--cache", str(cache)]
    command += ["--journal", str(journal)]
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=ROOT)
    ending = threading.Timer(limit_s, process.kill)
    ending.start()
    lines, stages = [], []
    assert process.stdout is not None
    for line in process.stdout:
        lines.append(line)
        if STAGE_END.search(line):
            stages.append(f"{time.perf_counter() - began:.2f} {line.strip()}")
    code = process.wait()
    wall_s = time.perf_counter() - began
    ending.cancel()
    if code:
        raise RuntimeError(f"{space.stem} after {wall_s:.0f} s: {''.join(lines).strip()[-900:]}")
    return {"wall_s": wall_s, "stages": stages, "trials": statuses(journal)}


def statuses(journal: Path) -> dict[str, int]:
    """How many trials a journal has of each status."""
    found: dict[str, int] = {}
    for line in journal.read_text().splitlines():
        status = json.loads(line).get("trial", {}).get("status")
        if status:
            found[status] = found.get(status, 0) + 1
    return found


def beside_torch(name: str, cache: Path, search_s: float, left_s: float, torch: Any) -> dict[str, Any]:
    """Search one space and time the result."""
    search_s = min(search_s, left_s / 2)
    searched = search(ROOT / "spaces" / f"{name}.yaml", cache, left_s, "--time", f"{search_s:.0f}")
    given, others = torch_calls(name, torch)
    kernel = load_kernel(name, cache=cache)
    times = device_times_ms({"autotune": lambda: kernel(*given), **others}, torch)
    (path,) = cache.glob(f"*/{name}.json")
    result = json.loads(path.read_text())["entries"][0]
    stored = {key: result[key] for key in ("config", "time_ms", "default_time_ms")}
    return searched | stored | {"times_ms": times}


def tuning_times(cache: Path, left_s: float, torch: Any) -> dict[str, Any]:
    """Wall times of tuning for a list, with @triton.autotune and with a search; and the bests at 4096."""
    found: dict[str, Any] = {}
    for size in TUNED_SIZES:
        sizes = [word for name in "mnk" for word in ("--size", f"{name}={size}")]
        searched = search(LIST, cache, left_s / 4, "--budget", str(len(CONFIGURATIONS)), *sizes)
        stages = "\n  ".join(searched["stages"])
        print(f"a search of the list at {size} took {searched['wall_s']:.1f} s:\n  {stages}", flush=True)
        ours, theirs = (program(name, size, left_s / 4) for name in ("autotune", "triton"))
        found[str(size)] = {"command": searched, "programs": {"autotune": ours, "triton": theirs}}
        found[str(size)][RUNNING] = theirs["wall_s"] / ours["wall_s"]
        found[str(size)][WHOLE] = theirs["program_s"] / searched["wall_s"]
    return found | {"times_ms": list_times_ms(cache, torch)}


def program(name: str, size: int, limit_s: float) -> dict[str, Any]:
    """Run this script as a program that tunes with one of the two; its own figures, and its wall time."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
        own = {"TRITON_CACHE_DIR": folder, "XDG_CACHE_HOME": folder, "PYTHONPATH": path}
        command = [sys.executable, __file__, "--program", name, str(size)]
        began = time.perf_counter()
        place: dict[str, Any] = {"env": os.environ | own, "cwd": folder}
        done = subprocess.run(command, **place, capture_output=True, text=True, timeout=limit_s)
        program_s = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(done.stderr[-900:])
    figures: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return figures | {"program_s": program_s}


def list_times_ms(cache: Path, torch: Any, **others: Callable[..., Any]) -> dict[str, float]:
    """Times at 4096, in turns: the best of the list, cuBLAS, and others that compute with the same arrays."""
    kernel = load_kernel("triton_matmul_list", cache=cache, source=ROOT / "kernels" / "triton_matmul.py")
    a, b, c = (torch.randn(4096, 4096, device="cuda", dtype=torch.float16) for _ in range(3))
    times: dict[str, Call] = {"best of the list": lambda: kernel(a, b, c)}
    times["torch.matmul"] = lambda: torch.matmul(a, b, out=c)
    for name, call in others.items():
        times[name] = partial(call, a, b, c)
    return device_times_ms(times, torch)


def wide(cache: Path, left_s: float, torch: Any) -> dict[str, Any]:
    """Search the whole space at 4096; needs the best of the list in the cache."""
    sizes = [word for name in "mnk" for word in ("--size", f"{name}=4096")]
    own = cache / "wide"
    own.mkdir()
    searched = search(
        ROOT / "spaces" / "triton_matmul.yaml", own, left_s, "--budget", str(WIDE_BUDGET), *sizes
    )
    kernel = load_kernel("triton_matmul", cache=own)
    return searched | {"times_ms": list_times_ms(cache, torch, wide=kernel)}


def own_kernel() -> Any:
    """The matrix product as a kernel of Triton's own."""
    sys.path.insert(0, str(ROOT / "kernels"))
    return importlib.import_module("triton_matmul").matmul


def run_program(name: str, size: int) -> None:
    """Tune in a program that has imported all and uses the GPU already; print what that took."""
    import torch
    import triton  # noqa: F401 - a program with such kernels has it

    a, b, c = (torch.randn(size, size, device="cuda", dtype=torch.float16) for _ in range(3))
    torch.matmul(a, b, out=c)
    torch.cuda.synchronize()
    began = time.perf_counter()
    best = autotuned(a, b, c) if name == "triton" else searched(size)
    torch.cuda.synchronize()
    print(json.dumps({"wall_s": time.perf_counter() - began, "best": best}))


def autotuned(a: Any, b: Any, c: Any) -> str:
    """Tune with the first call of @triton.autotune."""
    import triton

    names, fixed = ("BLOCK_M", "BLOCK_N", "BLOCK_K"), {"GROUP_M": 8, "EVEN_K": True}
    configs = [
        triton.Config(dict(zip(names, blocks, strict=True)) | fixed, num_stages=stages, num_warps=warps)
        for *blocks, stages, warps in CONFIGURATIONS
    ]
    tuned = triton.autotune(configs=configs, key=["m", "n", "k"])(own_kernel())
    size = a.shape[0]

    def grid(meta: Mapping[str, int]) -> tuple[int]:
        return (triton.cdiv(size, meta["BLOCK_M"]) * triton.cdiv(size, meta["BLOCK_N"]),)

    tuned[grid](a, b, c, size, size, size)
    return str(tuned.best_config)


def searched(size: int) -> str:
    """Tune with the search that `tune` makes, without the sanitizer, in the present folder."""
    budget = Budget(len(CONFIGURATIONS))
    options = Options(budget=budget, sanitizer=False, binary_cache=False, cache=Path("cache"))
    task = Space.load(LIST).bind("cuda:0", dict.fromkeys("mnk", size))
    return str(run_search(task, options, Observer()).winner.config)


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


def ratios(figures: Mapping[str, Any]) -> dict[str, float]:
    """The ratios of ASKED, as far as they were measured."""
    found: dict[str, float] = {}
    for size, tuned in figures.get("tuning", {}).items():
        found |= {f"tuning: {size}, {what}": tuned[what] for what in (RUNNING, WHOLE) if what in tuned}
    for name, one, other in (
        ("wide: best of the list / best of the space", "best of the list", "wide"),
        ("matmul: cuBLAS / autotune", "torch.matmul", "autotune"),
        ("attention: SDPA / autotune", "scaled_dot_product_attention", "autotune"),
        ("softmax: torch.compile / autotune", "torch.compile softmax", "autotune"),
        ("layer_norm: torch.compile / autotune", "torch.compile layer_norm", "autotune"),
        ("calls: Triton / load_kernel", "Triton", "load_kernel"),
    ):
        measured = figures.get(name.partition(":")[0], {})
        times = measured.get("times_ms", measured)
        if one in times and other in times:
            found[name] = times[one] / times[other]
    return found


def short(figures: Any) -> Any:
    """Figures without the stages of searches."""
    if not isinstance(figures, dict):
        return figures
    return {key: short(value) for key, value in figures.items() if key != "stages"}


def main() -> None:
    """Run all parts, print a table, write the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ["tuning", "matmul", "attention", "wide", "calls", "softmax", "layer_norm", "reduce"]
    parser.add_argument("--search-s", type=float, default=45, help="time of each search (default 45)")
    parser.add_argument("--limit-s", type=float, default=240, help="time of all parts (default 240)")
    parser.add_argument("--only", nargs="+", choices=names, default=names)
    parser.add_argument("--output", type=Path, help="a file for all figures")
    parser.add_argument("--program", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.program:
        name, size = arguments.program
        run_program(name, int(size))
        return
    started = time.perf_counter()
    import torch

    warnings.simplefilter("ignore", StaleWarning)
    figures: dict[str, Any] = {"gpu": torch.cuda.get_device_name(), "torch": torch.__version__}
    with tempfile.TemporaryDirectory() as folder:
        cache = Path(folder) / "cache"
        cache.mkdir()
        for name in arguments.only:
            began = time.perf_counter()
            left_s = arguments.limit_s - (began - started)
            if left_s < MIN_PART_S:
                print(f"{name}: not begun, {left_s:.0f} s are left", flush=True)
                continue
            try:
                if name == "tuning":
                    figures[name] = tuning_times(cache, left_s, torch)
                elif name == "wide":
                    figures[name] = wide(cache, left_s, torch)
                elif name == "calls":
                    figures[name] = host_times_us(cache, torch)
                else:
                    figures[name] = beside_torch(f"triton_{name}", cache, arguments.search_s, left_s, torch)
                took_s = time.perf_counter() - began
                print(f"{name} ({took_s:.0f} s): {json.dumps(short(figures[name]))}", flush=True)
            except Exception:  # noqa: BLE001 - the other parts still count
                print(f"{name} fails: {traceback.format_exc()[-1500:]}", flush=True)
            if arguments.output:
                arguments.output.write_text(json.dumps(figures, indent=2) + "\n")
            torch.cuda.empty_cache()
    for name, ratio in ratios(figures).items():
        print(f"{ratio:7.2f}  (at least {ASKED[name]})  {name}")


if __name__ == "__main__":
    main()
