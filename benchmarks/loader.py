"""What the loader costs: import, first look-up in a new process, repeated look-ups.

    python benchmarks/loader.py [--runs 20] [--kernels 200] [--gpus 50]

Works on a generated cache of 200 kernels on 50 GPUs in a temporary folder, each result with 32 measured
configurations beside the best. Times of new processes are medians of runs that take turns with a bare
Python, from which they are subtracted. Kernel Tuner's loader of stored results is asked the same in turn,
of a file that its own `store_results` wrote for one kernel on the same GPUs.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from installed import installed_environment

from autotune.core.records import (
    ArgumentSpec,
    Config,
    DeviceInfo,
    Entry,
    KernelRecord,
    LaunchSpec,
    Parameter,
    Provenance,
    Value,
)
from autotune.serving import cache
from autotune.serving import cache_schema as cache_format
from autotune.serving.lookup import best_config

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


def others(gpu: int) -> list[Config]:
    """The configurations that a search on a GPU measured; some of them were measured on others too."""
    varied = itertools.product(
        (64, 128, 256, 512), (1, 2, 4, 8, 16), (1, 2, 4), (1, 2, 4), (64, 128, 256, 512)
    )
    valid = [values for values in varied if values[1] % values[2] == 0 and values[1] % values[3] == 0]
    names = ("BLOCK_SIZE", "WORK", "UNROLL", "VECTOR", "BLOCKS")
    fixed: dict[str, Value] = {"ALGORITHM": "tree", "FINISH": "last", "USE_SHUFFLE": False}
    chosen = random.Random(gpu).sample(valid, 32)
    return [Config(fixed | dict(zip(names, values, strict=True))) for values in chosen]


def record(kernel: str, gpu: int) -> KernelRecord:
    """A record of the usual weight: 8 parameters, 8 constraints, a plan of two launches, 3 sizes."""
    numbers = {"BLOCK_SIZE": 256, "WORK": 4, "UNROLL": 1, "VECTOR": 2, "BLOCKS": 256}
    default = Config({"ALGORITHM": "shuffle", "FINISH": "second", "USE_SHUFFLE": True, **numbers})
    entries = [
        Entry(
            {"n": size},
            "int32",
            default,
            size / 1e9,
            (size / 2e9, size / 1e9),
            size / 5e8,
            (),
            PROVENANCE,
            tuple((config, size / 1e9 * (1 + place / 50)) for place, config in enumerate(others(gpu))),
        )
        for size in SIZES
    ]
    return KernelRecord(
        kernel=kernel,
        dtypes=("int32",),
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
        arguments=(
            ArgumentSpec("x", "float32", "in", ("n",)),
            ArgumentSpec("partial", "float32", "scratch", ("BLOCKS",)),
            ArgumentSpec("out", "float32", "out", ("1",)),
            ArgumentSpec("n", "int32", "scalar", value="n"),
        ),
        default=default,
        entries=tuple(entries),
    )


def generate(root: Path, kernels: int, gpus: int) -> None:
    """Fill a cache; the files are written plainly, for a store of each would wait for the disk each time."""
    texts = [cache_format.record_text(record("kernel_x", number)) for number in range(gpus)]
    for number in range(gpus):
        device = replace(DEVICE, name=f"Vendor GPU {number}", slug=f"vendor-gpu-{number}")
        (root / device.slug).mkdir(parents=True)
        Path(cache.device_path(str(root), device.slug)).write_text(cache_format.device_text(device))
        for kernel in (f"kernel_{index}" for index in range(kernels)):
            Path(cache.record_path(str(root), device.slug, kernel)).write_text(
                texts[number].replace("kernel_x", kernel)
            )


def store_for_kernel_tuner(file: Path, gpus: int) -> None:
    """Write results of one kernel on the same GPUs and sizes as Kernel Tuner's own function stores them."""
    from kernel_tuner.integration import store_results

    parameters = {item.name: list(item.values) for item in record("kernel_0", 0).parameters}
    for number in range(gpus):
        for entry in record("kernel_0", number).entries:
            results = [dict(config) | {"time": time_ms} for config, time_ms in entry.measured]
            environment = {"device_name": f"Vendor GPU {number}"}
            store_results(
                str(file),
                "kernel_0",
                "",
                parameters,
                entry.sizes["n"],
                results,
                environment,
                objective="time",
            )


def hot_kernel_tuner(file: Path, calls: int) -> dict[str, float]:
    """Kernel Tuner's look-ups in a file that it has read, in microseconds."""
    from kernel_tuner.integration import TuneResults

    results = TuneResults(str(file))
    return {
        "Kernel Tuner hot, exact": hot_us(lambda: results.get_best_config("Vendor GPU 1", 2**24), calls),
        "Kernel Tuner hot, absent GPU": hot_us(lambda: results.get_best_config("Other GPU", 2**24), calls),
    }


def fresh_processes(programs: dict[str, str], root: Path, runs: int) -> dict[str, float]:
    """Median wall time in ms of each program beyond that of the one called `bare`."""
    environment = installed_environment() | {"AUTOTUNE_CACHE": str(root)}
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


def hot_us(call: Callable[[], object], calls: int) -> float:
    """Median time of one call in microseconds, over 11 rounds."""
    rounds = []
    for _ in range(11):
        start = time.perf_counter()
        for _ in range(calls // 11):
            call()
        rounds.append(1e6 * (time.perf_counter() - start) / (calls // 11))
    return statistics.median(rounds)


def new_sizes_us(calls: int = 51) -> float:
    """Median time in microseconds of look-ups for an absent GPU, each for sizes that were never asked for."""
    times = []
    for number in range(calls):
        start = time.perf_counter()
        best_config("kernel_0", "Other GPU", n=2**24 + number)
        times.append(1e6 * (time.perf_counter() - start))
    return statistics.median(times)


def programs() -> dict[str, str]:
    """What new processes run, by what it shows."""
    look_up = "from autotune import best_config; best = best_config('kernel_0', {device!r}, n={size})"
    return {
        "bare": "pass",
        "import autotune": "import autotune",
        "import of best_config": "from autotune import best_config",
        "cold, exact": look_up.format(device="Vendor GPU 1", size=SIZES[1]),
        "cold, exact, defines and launch": look_up.format(device="Vendor GPU 1", size=SIZES[1])
        + f"; best.defines; best.launch(n={SIZES[1]})",
        "cold, nearest size": look_up.format(device="Vendor GPU 1", size=5_000_000),
        "cold, absent GPU": look_up.format(device="Other GPU", size=SIZES[1]),
        "cold, absent GPU, expected slowdown": look_up.format(device="Other GPU", size=SIZES[1])
        + "; best.expected_slowdown",
    }


def kernel_tuner_programs(file: Path) -> dict[str, str]:
    """The same questions to Kernel Tuner."""
    look_up = "from kernel_tuner.integration import TuneResults; TuneResults({!r}).get_best_config({!r}, {})"
    gpus = {"exact": "Vendor GPU 1", "absent GPU": "Other GPU"}
    return {
        f"Kernel Tuner cold, {name}": look_up.format(str(file), gpu, SIZES[1]) for name, gpu in gpus.items()
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--runs", type=int, default=20, help="new processes of each kind, and thousands of look-ups"
    )
    parser.add_argument("--kernels", type=int, default=200)
    parser.add_argument("--gpus", type=int, default=50, help="at least 2")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root, file = Path(folder) / "cache", Path(folder) / "kernel_0.json"
        generate(root, arguments.kernels, arguments.gpus)
        store_for_kernel_tuner(file, arguments.gpus)
        cold = fresh_processes(programs() | kernel_tuner_programs(file), root, arguments.runs)
        os.environ["AUTOTUNE_CACHE"] = str(root)
        best = best_config("kernel_0", "Vendor GPU 1", n=SIZES[1])
        calls = 1000 * arguments.runs
        hot = {
            "hot, exact": hot_us(lambda: best_config("kernel_0", "Vendor GPU 1", n=2**24), calls),
            "hot, exact, by DeviceInfo": hot_us(lambda: best_config("kernel_0", DEVICE, n=2**24), calls),
            "hot, nearest size": hot_us(lambda: best_config("kernel_0", "Vendor GPU 1", n=5_000_000), calls),
            "hot, absent GPU": hot_us(lambda: best_config("kernel_0", "Other GPU", n=2**24), calls),
            "hot, absent GPU, new sizes": new_sizes_us(),
            "launch(n=...)": hot_us(lambda: best.launch(n=2**24), calls),
        } | hot_kernel_tuner(file, calls // 10)
    if arguments.json:
        print(json.dumps({"cold_ms": cold, "hot_us": hot}, indent=2))
        return
    print(
        f"{arguments.kernels} kernels on {arguments.gpus} GPUs; "
        f"new processes: median of {arguments.runs}, bare Python subtracted"
    )
    for name, value in cold.items():
        print(f"  {name:37}{value:8.1f} ms")
    for name, value in hot.items():
        print(f"  {name:37}{value:8.1f} us")


if __name__ == "__main__":
    main()
