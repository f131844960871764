"""CLBlast's Xgemm: searches against the random sample that CLBlast's own tuner takes, on one OpenCL device.

    CLBLAST_ROOT=... python benchmarks/clblast.py [--size 128] [--seeds 5] [--device opencl:0] [--work DIR]

CLBlast's tuner tries one of 512 valid configurations at random. For each seed the same is done here, and a
search has a quarter of these evaluations. Then the best of all, with the default, are timed again together in
turns, by events of OpenCL, in programs that this script compiles. Searches resume from `--work`. Prints the
table of docs/measured-times.md, and exits with 1 if the median ratio is above 1.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from statistics import median

import numpy as np
import pyopencl as cl

from autotune.compilers.source_text import render
from autotune.core.records import Config
from autotune.devices.opencl_platforms import opencl_devices
from autotune.tuning.task import Target, TuningTask, read_task

SPACE = Path(__file__).parents[1] / "examples" / "clblast" / "xgemm_2.yaml"
FRACTION = 512  # of CLBlast's tuner, for V = 2
ROUNDS = 60


def main() -> int:
    """Search, time again, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=128, help="M, N and K (default %(default)s)")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--device", default="opencl:0")
    parser.add_argument("--work", type=Path, default=None, help="where journals are kept (default: nowhere)")
    parsed = parser.parse_args()
    if parsed.size % 128:
        parser.error("--size: a multiple of 128, the largest tile")
    task = read_task(Target(SPACE, parsed.device, dict.fromkeys("MNK", parsed.size)))
    sample = len(task.space) // FRACTION
    found: dict[tuple[int, str], Config] = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(parsed.seeds):
            for engine, budget in (("random", sample), ("surrogate", sample // 4)):
                work = (parsed.work or Path(folder)).absolute() / f"{engine}-{seed}"
                found[seed, engine] = search(parsed, work, engine, budget, seed)
    times_ms = timed_again(task, {task.spec.default, *found.values()})
    print(f"{task.device.name}, M = N = K = {parsed.size}, default {times_ms[task.spec.default]:.4f} ms\n")
    print(f"| seed | {sample} at random, ms | {sample // 4} of a search, ms | ratio |\n|---|---|---|---|")
    ratios = []
    for seed in range(parsed.seeds):
        theirs, ours = (times_ms[found[seed, engine]] for engine in ("random", "surrogate"))
        ratios.append(ours / theirs)
        print(f"| {seed} | {theirs:.4f} | {ours:.4f} | {ratios[-1]:.3f} |")
    print(f"| median | | | {median(ratios):.3f} |")
    return int(median(ratios) > 1)


def search(parsed: argparse.Namespace, work: Path, engine: str, budget: int, seed: int) -> Config:
    """The best of one search, in a process and a folder of its own."""
    work.mkdir(parents=True, exist_ok=True)
    sizes = [word for name in "MNK" for word in ("--size", f"{name}={parsed.size}")]
    limits = ["--engine", engine, "--budget", str(budget), "--seed", str(seed)]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "autotune", "search", str(SPACE), "--device", parsed.device),
            *(*sizes, *limits, "--no-transfer", "--no-sanitizer", "--json"),
        ],
        cwd=work,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    result = json.loads(done.stdout)
    print(f"{work.name}: {result['time_ms']:.4f} ms after {result['trials']} trials", file=sys.stderr)
    return Config(result["config"])


def timed_again(task: TuningTask, configs: Iterable[Config]) -> dict[Config, float]:
    """Median time of each configuration; all take turns, in an order that changes with each round."""
    context = cl.Context([opencl_devices()[task.address.index]])
    queue = cl.CommandQueue(context, properties=cl.command_queue_properties.PROFILING_ENABLE)
    size = task.space.problem.sizes["M"]
    random = np.random.default_rng(0)
    a, b, c = (random.uniform(-2, 2, (size, size)).astype(np.float32) for _ in range(3))
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    arrays = [cl.Buffer(context, flags, hostbuf=one) for one in (a, b, c)]
    numbers = [np.int32(size)] * 3 + [np.float32(2)] * 2
    launches = {}
    for config in configs:
        kernel = cl.Program(context, render(task.source, config)).build().Xgemm
        kernel.set_args(*numbers, *arrays, np.int32(0), np.int32(0))
        (step,) = task.space.launches(config)
        whole = tuple(blocks * items for blocks, items in zip(step.grid, step.block, strict=True))
        launches[config] = kernel, whole, step.block
    samples_ms: dict[Config, list[float]] = {config: [] for config in launches}
    for _ in range(ROUNDS):
        for place in random.permutation(len(launches)):
            config = [*launches][place]
            kernel, whole, block = launches[config]
            cl.enqueue_copy(queue, arrays[2], c)  # what the kernel adds to must not grow
            for _ in range(2):  # the first warms the caches
                event = cl.enqueue_nd_range_kernel(queue, kernel, whole, block)
            event.wait()
            samples_ms[config].append((event.profile.end - event.profile.start) / 1e6)
    return {config: median(samples) for config, samples in samples_ms.items()}


if __name__ == "__main__":
    sys.exit(main())
