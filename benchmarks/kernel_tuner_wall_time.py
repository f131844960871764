"""Wall time per configuration beside Kernel Tuner: same source, same values, both exhaustive, both verifying.

    python benchmarks/kernel_tuner_wall_time.py [--size N]

Needs an NVIDIA GPU and the `cuda` extra. Each tuner runs in a fresh process with the compiler's and the
driver's disk caches off (CUDA_CACHE_DISABLE=1), Kernel Tuner with its default CUDA back-end, its default
7 iterations and the same reference result. What counts is the tuner's own time: input generation and
imports are left out on both sides; starting the compiler processes and the worker counts for autotune.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent / "peers"
VALUES = {
    "block_size_x": [32, 64, 128, 256, 512, 1024],
    "vector": [1, 2, 4],
    "use_shuffle": [0, 1],
    "num_blocks": [32, 64, 128, 256, 512, 1024],
}
CONFIGURATIONS = 216


def kernel_tuner(size: int) -> dict[str, float]:
    """Tune with Kernel Tuner in this process."""
    from kernel_tuner import tune_kernel

    numbers = np.random.default_rng(0).random(size, np.float32)
    arguments = [np.zeros(1, np.float32), numbers, np.int32(size)]
    answer = [np.array([numbers.sum(dtype=np.float64)], np.float32), None, None]
    began = time.perf_counter()
    results, _ = tune_kernel(
        "sum_floats",
        (HERE / "reduction.cu").read_text(),
        "num_blocks",
        arguments,
        VALUES,
        grid_div_x=[],
        answer=answer,
        atol=1e-4 * float(answer[0][0]),
        lang="CUDA",
        quiet=True,
    )
    seconds = time.perf_counter() - began
    times = [result["time"] for result in results if isinstance(result["time"], float)]
    return {"seconds": seconds, "configurations": len(times), "best_ms": min(times)}


def autotune(size: int) -> dict[str, float]:
    """Tune with autotune in this process."""
    from autotune.progress import SearchProgress
    from autotune.rig import Options
    from autotune.session import search
    from autotune.targets import Target, bind_target
    from autotune.trials import Budget

    bound = bind_target(Target(HERE / "reduction.yaml", "cuda:0", {"n": size}))
    with tempfile.TemporaryDirectory() as folder, SearchProgress() as progress:
        options = Options(
            engine="exhaustive",
            budget=Budget(trials=CONFIGURATIONS),
            journal=Path(folder) / "journal.jsonl",
            cache=Path(folder) / "cache",
            binary_cache=False,
        )
        result = search(bound, options, progress)
    return {
        "seconds": result.search_seconds,
        "first_trial_s": result.trials[0].cost_s,  # waits for the inputs, the worker and the first compiler
        "configurations": sum(trial.time_ms is not None for trial in result.trials),
        "best_ms": result.final.median_ms,
    }


def main() -> None:
    """Run both in fresh processes and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=2**27)
    parser.add_argument("--only", choices=["autotune", "kernel_tuner"], help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if parsed.only:
        print(json.dumps({"autotune": autotune, "kernel_tuner": kernel_tuner}[parsed.only](parsed.size)))
        return
    environment = os.environ | {"CUDA_CACHE_DISABLE": "1"}
    found: dict[str, dict[str, float]] = {}
    for name in ("autotune", "kernel_tuner", "autotune", "kernel_tuner"):
        command = [sys.executable, __file__, "--only", name, "--size", str(parsed.size)]
        began = time.perf_counter()
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        result = json.loads(done.stdout.splitlines()[-1]) | {"process_s": time.perf_counter() - began}
        if name not in found or result["seconds"] < found[name]["seconds"]:
            found[name] = result
        print(name, result, flush=True)
    each = {name: item["seconds"] / item["configurations"] * 1e3 for name, item in found.items()}
    print(f"\n{'tuner':14}{'ms/configuration':>18}{'best ms':>10}{'whole process s':>18}")
    for name, item in found.items():
        print(f"{name:14}{each[name]:18.1f}{item['best_ms']:10.4f}{item['process_s']:18.1f}")
    ratio = each["kernel_tuner"] / each["autotune"]
    print(f"autotune takes 1/{ratio:.1f} of Kernel Tuner's time a configuration")


if __name__ == "__main__":
    main()
