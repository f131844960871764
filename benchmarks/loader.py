"""What the loader costs: import, first look-up in a new process, repeated look-ups.

    python benchmarks/loader.py [--runs 20]

Works on a generated cache of 200 kernels on 50 GPUs in a temporary folder. Times of new processes are
medians of runs that take turns with a bare Python, from which they are subtracted.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from autotune import cache
from autotune.loader import best_config
from autotune.model import Config, DeviceInfo, Entry, KernelRecord, LaunchSpec, Parameter, Provenance

KERNELS = 200
GPUS = 50
SIZES = (2**20, 2**24, 2**27)

DEVICE = DeviceInfo(
    backend="fake",
    name="Vendor GPU 0",
    slug="vendor-gpu-0",
    kind="gpu",
    vendor="Vendor",
    architecture="arch-0",
    compute_units=64,
    warp_size=32,
    max_threads_per_block=1024,
    shared_bytes_per_block=49_152,
    registers_per_block=65_536,
    memory_bytes=2**34,
    memory_bandwidth_bytes_per_s=1e12,
    cache_bytes=2**22,
    has_shuffle=True,
    driver="1.0",
    runtime="1.0",
)
PROVENANCE = Provenance(
    tuned_at="2025-01-01T00:00:00+00:00",
    autotune="0.1.0",
    host="Linux x86_64",
    driver="1.0",
    runtime="1.0",
    source_sha256="0" * 64,
    space_sha256="1" * 64,
    engine="random",
    seed=0,
    trials=100,
    valid_configurations=1500,
    protocol="benchmark",
)


def record(kernel: str) -> KernelRecord:
    """A record of the usual weight: 8 parameters, 8 constraints, a plan of two launches, 3 sizes."""
    default = Config(
        {"ALGORITHM": "shuffle", "BLOCK_SIZE": 256, "WORK": 4, "UNROLL": 1, "VECTOR": 2, "FINISH": "second"}
        | {"USE_SHUFFLE": True, "BLOCKS": 256}
    )
    entries = [
        Entry({"n": size}, "int32", default, size / 1e9, (size / 2e9, size / 1e9), size / 5e8, (), PROVENANCE)
        for size in SIZES
    ]
    return KernelRecord(
        kernel=kernel,
        dtypes=("float32",),
        parameters=(
            Parameter("ALGORITHM", ("atomic", "tree", "shuffle")),
            Parameter("BLOCK_SIZE", (32, 64, 128, 256, 512, 1024)),
            Parameter("WORK", (1, 2, 4, 8, 16)),
            Parameter("UNROLL", (1, 2, 4)),
            Parameter("VECTOR", (1, 2, 4)),
            Parameter("FINISH", ("atomic", "second", "last")),
            Parameter("USE_SHUFFLE", (False, True)),
            Parameter("BLOCKS", (64, 128, 256, 512)),
        ),
        constraints=(
            "BLOCK_SIZE <= device.max_threads_per_block",
            'ALGORITHM != "shuffle" or device.has_shuffle',
            "not USE_SHUFFLE or device.has_shuffle",
            "BLOCK_SIZE * 8 <= device.shared_bytes_per_block",
            "WORK % UNROLL == 0",
            "WORK % VECTOR == 0",
            'FINISH != "second" or BLOCKS <= 1024',
            "TILE <= 65536",
        ),
        derived={"TILE": "BLOCK_SIZE * WORK"},
        launch=(
            LaunchSpec("main", ("min(BLOCKS, ceil_div(n, TILE))",), ("BLOCK_SIZE",), ("x", "partial", "n")),
            LaunchSpec("last", ("1",), ("BLOCK_SIZE",), ("partial", "out"), when='FINISH == "second"'),
        ),
        compiler_options={},
        arguments=(),
        default=default,
        entries=tuple(entries),
    )


def generate(root: Path) -> None:
    """Fill a cache; the files are written plainly, for a store of each would wait for the disk each time."""
    for number in range(GPUS):
        device = replace(DEVICE, name=f"Vendor GPU {number}", slug=f"vendor-gpu-{number}")
        (root / device.slug).mkdir(parents=True)
        Path(cache.device_path(str(root), device.slug)).write_text(cache.device_text(device))
        for kernel in (f"kernel_{index}" for index in range(KERNELS)):
            Path(cache.record_path(str(root), device.slug, kernel)).write_text(
                cache.record_text(record(kernel))
            )


def fresh_processes(programs: dict[str, str], root: Path, runs: int) -> dict[str, float]:
    """Median wall time in ms of each program beyond that of the one called `bare`."""
    environment = os.environ | {"AUTOTUNE_CACHE": str(root)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled
    samples: dict[str, list[float]] = {name: [] for name in programs}
    for _ in range(runs + 1):
        for name, program in programs.items():
            start = time.perf_counter()
            subprocess.run([sys.executable, "-c", program], env=environment, check=True)
            samples[name].append(1e3 * (time.perf_counter() - start))
    medians = {
        name: statistics.median(times[1:]) for name, times in samples.items()
    }  # the first one compiles
    return {name: medians[name] - (0.0 if name == "bare" else medians["bare"]) for name in medians}


def hot_us(call: Callable[[], object], calls: int = 20_000) -> float:
    """Median time of one call in microseconds, over 11 rounds."""
    rounds = []
    for _ in range(11):
        start = time.perf_counter()
        for _ in range(calls // 11):
            call()
        rounds.append(1e6 * (time.perf_counter() - start) / (calls // 11))
    return statistics.median(rounds)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=20, help="new processes of each kind")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    look_up = "from autotune import best_config; best = best_config('kernel_7', {device!r}, n={size})"
    programs = {
        "bare": "pass",
        "import autotune": "import autotune",
        "import of best_config": "from autotune import best_config",
        "cold, exact": look_up.format(device="Vendor GPU 33", size=SIZES[1]),
        "cold, exact, defines and launch": look_up.format(device="Vendor GPU 33", size=SIZES[1])
        + f"; best.defines; best.launch(n={SIZES[1]})",
        "cold, nearest size": look_up.format(device="Vendor GPU 33", size=5_000_000),
        "cold, absent GPU": look_up.format(device="Other GPU", size=SIZES[1]),
    }
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        generate(root)
        cold = fresh_processes(programs, root, arguments.runs)
        os.environ["AUTOTUNE_CACHE"] = str(root)
        best = best_config("kernel_7", "Vendor GPU 33", n=SIZES[1])
        hot = {
            "hot, exact": hot_us(lambda: best_config("kernel_7", "Vendor GPU 33", n=2**24)),
            "hot, exact, by DeviceInfo": hot_us(lambda: best_config("kernel_7", DEVICE, n=2**24)),
            "hot, nearest size": hot_us(lambda: best_config("kernel_7", "Vendor GPU 33", n=5_000_000)),
            "hot, absent GPU": hot_us(lambda: best_config("kernel_7", "Other GPU", n=2**24)),
            "launch(n=...)": hot_us(lambda: best.launch(n=2**24)),
        }
    if arguments.json:
        print(json.dumps({"cold_ms": cold, "hot_us": hot}, indent=2))
        return
    print(
        f"{KERNELS} kernels on {GPUS} GPUs; new processes: median of {arguments.runs}, bare Python subtracted"
    )
    for name, value in cold.items():
        print(f"  {name:34}{value:8.1f} ms")
    for name, value in hot.items():
        print(f"  {name:34}{value:8.1f} us")


if __name__ == "__main__":
    main()
