"""Measure ceilings of a GPU, and show each beside the best known other way to reach it.

    python benchmarks/ceilings.py [--only FIGURE ...] [--turns N] [--output FILE]

Needs an NVIDIA GPU and PyTorch. The other ways are PyTorch's copies, and cuBLAS through PyTorch's product of
square matrices at its best of four sizes: of ones, as the ceilings' operands do not change, and of random
numbers, which take more power. Each time is the median of 20 runs; of copies from and to the host it is the
best median of seven in five rounds over three sizes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from itertools import chain
from operator import itemgetter
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import torch

FIGURES = (
    "multiply-add",
    "memory copy",
    "copy to",
    "copy from",
)  # words of `autotune devices --measure --only`
SIZES = (4096, 6144, 8192, 12288)
COPIED_BYTES = (2**28, 2**29, 2**30)
HOST_BYTES = (2**24, 2**26, 2**28) * 5
Rates = dict[str, float]  # per second, by how it was reached


def main() -> None:
    """Print a line for each figure that has another way."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=FIGURES, default=FIGURES)
    parser.add_argument("--output", type=Path, help="also write the ceilings as JSON")
    parser.add_argument(
        "--turns", type=int, default=1, help="measure each way so often, in turns; its best counts"
    )
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}, CUDA {torch.version.cuda}")
    best: dict[str, dict[str, Any]] = {}
    others: dict[str, Rates] = {}
    for _ in range(options.turns):
        for one in chain.from_iterable(map(ceilings, options.only)):
            name = one["name"]
            best[name] = max(one, best.get(name, one), key=itemgetter("value"))
            for way, rate in (WAYS[name]() if name in WAYS else {}).items():
                rates = others.setdefault(name, {})
                rates[way] = max(rate, rates.get(way, rate))
    if options.output:
        options.output.write_text(json.dumps(list(best.values()), indent=1))
    for name, one in best.items():
        rate = one["value"]
        nominal = f", {rate / one['nominal']:.3f} of nominal" if one["nominal"] else ""
        print(f"{name}: {rate * 1e-12:.4g} T/s{nominal}; {one['config']}")
        for way, other in others.get(name, {}).items():
            print(f"    {way}: {other * 1e-12:.4g} T/s; the ceiling is {rate / other:.3f} of it")


def ceilings(word: str) -> list[dict[str, Any]]:
    """The rates among the figures with this word that `autotune devices --measure` measures."""
    with TemporaryDirectory() as cache:
        command = ("devices", "--measure", "--device", "cuda:0", "--only", word, "--cache", cache, "--json")
        done = subprocess.run([sys.executable, "-m", "autotune", *command], stdout=subprocess.PIPE, text=True)
    if done.returncode:
        raise SystemExit(done.returncode)
    return [one for one in json.loads(done.stdout) if one["unit"] != "s"]


def products(dtype: torch.dtype) -> Rates:
    """Operations per second of cuBLAS."""
    return {
        "cuBLAS, ones": max(product(dtype, size, torch.ones) for size in SIZES),
        "cuBLAS, random numbers": max(product(dtype, size, torch.randn) for size in SIZES),
    }


def product(dtype: torch.dtype, size: int, make: Callable[..., torch.Tensor]) -> float:
    """Operations per second at one size."""
    one, other = (make(size, size, device="cuda").to(dtype) for _ in "ab")
    result = torch.empty_like(one)
    return 2 * size**3 / seconds(lambda: torch.matmul(one, other, out=result))


def copies() -> Rates:
    """Bytes per second of a copy in the device's memory, read and written."""

    def rate(size: int) -> float:
        source = torch.ones(size // 4, device="cuda")
        target = torch.empty_like(source)
        return 2 * size / seconds(lambda: target.copy_(source))

    return {"PyTorch": max(map(rate, COPIED_BYTES))}


def host_copies(*, pinned: bool, is_back: bool) -> Rates:
    """Bytes per second of a copy from or to the host."""

    def rate(size: int) -> float:
        host = torch.ones(size, dtype=torch.uint8, pin_memory=pinned)
        device = torch.ones(size, dtype=torch.uint8, device="cuda")
        target, source = (host, device) if is_back else (device, host)
        return size / seconds(lambda: target.copy_(source), runs=7)

    return {"PyTorch": max(map(rate, HOST_BYTES))}


def seconds(run: Callable[[], object], runs: int = 20) -> float:
    """The median time of a run, by events on the stream."""
    run()
    times = []
    for _ in range(runs):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        start.record()
        run()
        end.record()
        end.synchronize()
        times.append(float(start.elapsed_time(end)) * 1e-3)
    return median(times)


WAYS: dict[str, Callable[[], Rates]] = {
    "memory copy": copies,
    "bfloat16 tensor multiply-add": partial(products, torch.bfloat16),
    "float32 multiply-add": partial(products, torch.float32),
    **{
        f"copy {way} the device, {memory} memory": partial(
            host_copies, pinned=memory == "pinned", is_back=way == "from"
        )
        for memory in ("pinned", "pageable")
        for way in ("to", "from")
    },
}

if __name__ == "__main__":
    main()
