"""A program with three kernels under @triton.autotune, before and after `autotune` has written its cache.

    python benchmarks/triton_programs.py [--lists 8 16] [--search-s 60] [--runs 5] [--work DIR]

1. Records the program, tunes what it asked for, and exports the results, with the commands of
   docs/triton-programs.md.
2. Runs the program in new processes, in turns: with an empty cache, and with one that has the exported files
   only, so that both compile. Times are from the first kernel's call to synchronisation.

The results of every run are compared with PyTorch's. Prints the medians for each length of the kernels' lists
of configurations. Needs an NVIDIA GPU, PyTorch, and Triton 3.6 or 3.9.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
SPACES = {
    "triton_softmax": ROOT / "spaces" / "triton_softmax.yaml",
    "triton_layer_norm": ROOT / "spaces" / "triton_layer_norm.yaml",
    "triton_matmul_list": ROOT / "benchmarks" / "spaces" / "triton_matmul_list.yaml",
}
SIZE = 4096
ROWS = (  # ROWS, BLOCK, warps
    *((1, 1024, 4), (1, 2048, 4), (1, 4096, 4), (1, 4096, 8)),
    *((1, 4096, 16), (2, 2048, 8), (2, 4096, 16), (4, 1024, 8)),
    *((1, 1024, 8), (1, 2048, 8), (2, 1024, 4), (2, 1024, 8)),
    *((2, 2048, 4), (2, 4096, 8), (4, 2048, 8), (4, 4096, 16)),
)
TILES = (  # BLOCK_M, BLOCK_N, BLOCK_K, stages, warps, as in Triton's tutorial
    *((128, 256, 64, 3, 8), (64, 256, 32, 4, 4), (128, 128, 32, 4, 4), (128, 64, 32, 4, 4)),
    *((64, 128, 32, 4, 4), (128, 32, 32, 4, 4), (64, 32, 32, 5, 2), (32, 64, 32, 5, 2)),
    *((128, 256, 128, 3, 8), (256, 128, 128, 3, 8), (256, 64, 128, 4, 4), (64, 256, 128, 4, 4)),
    *((128, 128, 128, 4, 4), (128, 64, 64, 4, 4), (64, 128, 64, 4, 4), (128, 32, 64, 4, 4)),
)


def main() -> int:
    """Record, tune, export, and time the program with and without what was exported."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--program", type=int, help="be the program with lists so long: print its time")
    parser.add_argument("--lists", type=int, nargs="+", default=[8, len(TILES)])
    parser.add_argument("--search-s", type=float, default=60)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--work", type=Path, help="where results are kept (default: nowhere)")
    parsed = parser.parse_args()
    if parsed.program:
        print(json.dumps(program(parsed.program)))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        for length in parsed.lists:
            work = (parsed.work or Path(folder)).absolute() / str(length)
            compare(work, length, parsed.search_s, parsed.runs)
    return 0


def compare(work: Path, length: int, search_s: float, runs: int) -> None:
    """Make the cache, then run the program with it and without it in turns."""
    work.mkdir(parents=True, exist_ok=True)
    seed = work / "seed"
    own = [sys.executable, str(Path(__file__).absolute()), "--program", str(length)]
    command(work, "record", "--", *own)
    recorded = ["--recorded", "recorded.json"]
    command(work, "search", *map(str, SPACES.values()), *recorded, "--time", str(search_s))
    for kernel in SPACES:
        command(work, "export", kernel, "--format", "triton-cache", *recorded, "-o", str(seed))
    times_s: dict[str, list[float]] = {"empty": [], "seeded": []}
    for _ in range(runs):
        for name, found_s in times_s.items():
            with tempfile.TemporaryDirectory() as cache:
                if name == "seeded":
                    shutil.copytree(seed, cache, dirs_exist_ok=True)
                environment = {"TRITON_CACHE_DIR": cache, "TRITON_CACHE_AUTOTUNING": "1"}
                done = subprocess.run(
                    own, env=os.environ | environment, stdout=subprocess.PIPE, text=True, check=True
                )
                found_s.append(json.loads(done.stdout)["seconds"])
    empty_s, seeded_s = (median(found_s) for found_s in times_s.values())
    print(
        f"lists of {length}: empty cache {empty_s:.2f} s, seeded {seeded_s:.2f} s, "
        f"{seeded_s / empty_s:.2f} of it; {times_s}"
    )


def command(work: Path, *words: str) -> None:
    """Run a command of autotune in the folder; one that fails ends the benchmark."""
    environment = os.environ | {"TRITON_CACHE_DIR": str(work / "recording")}
    subprocess.run([sys.executable, "-m", "autotune", *words], cwd=work, env=environment, check=True)


def kernel(name: str, function: str) -> Any:
    """A function of one of the project's kernel files."""
    spec = importlib.util.spec_from_file_location(name, ROOT / "kernels" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return getattr(module, function)


def program(length: int) -> dict[str, float]:
    """Call three kernels under @triton.autotune, and compare their results with PyTorch's."""
    import torch
    import triton

    def by_rows(function: Any) -> Any:
        """A kernel that goes through rows."""
        lists = [
            triton.Config({"ROWS": r, "BLOCK": b}, num_warps=w, num_stages=1) for r, b, w in ROWS[:length]
        ]
        one_step = triton.heuristics({"ONE_STEP": lambda given: given["BLOCK"] >= given["n"]})
        return triton.autotune(configs=lists, key=["m", "n"])(one_step(function))

    softmax = by_rows(kernel("triton_softmax", "softmax"))
    layer_norm = by_rows(kernel("triton_layer_norm", "layer_norm"))
    tiles = [
        triton.Config(
            {"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k, "GROUP_M": 8}, num_stages=stages, num_warps=warps
        )
        for m, n, k, stages, warps in TILES[:length]
    ]
    even = triton.heuristics({"EVEN_K": lambda given: given["k"] % given["BLOCK_K"] == 0})
    matmul = triton.autotune(configs=tiles, key=["m", "n", "k"])(even(kernel("triton_matmul", "matmul")))

    def random(*shape: int) -> Any:
        return torch.randn(*shape, device="cuda", dtype=torch.float16)

    x, weight, bias = random(SIZE, SIZE), random(SIZE), random(SIZE)
    means, scales = (torch.empty(SIZE, device="cuda") for _ in range(2))
    y, normed, product = (torch.empty_like(x) for _ in range(3))
    torch.cuda.synchronize()
    began_s = time.perf_counter()
    softmax[lambda meta: (triton.cdiv(SIZE, meta["ROWS"]),)](x, y, SIZE, SIZE)
    layer_norm[lambda meta: (triton.cdiv(SIZE, meta["ROWS"]),)](
        x, weight, bias, normed, means, scales, SIZE, SIZE, 1e-5
    )
    matmul[lambda meta: (triton.cdiv(SIZE, meta["BLOCK_M"]) * triton.cdiv(SIZE, meta["BLOCK_N"]),)](
        x, y, product, SIZE, SIZE, SIZE
    )
    torch.cuda.synchronize()
    seconds = time.perf_counter() - began_s
    expected = {
        "softmax": (y, torch.softmax(x, 1)),
        "layer_norm": (normed, torch.nn.functional.layer_norm(x, (SIZE,), weight, bias, 1e-5)),
        "matmul": (product, x @ y),
    }
    for name, (found, wanted) in expected.items():
        torch.testing.assert_close(
            found, wanted, rtol=0.01, atol=0.01, msg=lambda text, name=name: f"{name}: {text}"
        )
    return {"seconds": seconds}


if __name__ == "__main__":
    sys.exit(main())
