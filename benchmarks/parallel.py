"""What a trial costs the searching process when many devices measure: fake devices, no GPU.

    python benchmarks/parallel.py [--devices 32] [--processes 8] [--trials 2000] [--trial-ms 50]

Scheduler and Dask workers are processes of their own, as with `--cluster tcp://...`; a worker process holds
several devices. With `--processes 0` there is no Dask: the searching process has a process for each device,
as with `--devices`, and the time of a trial includes that for which the device waited.

A kernel that only waits makes trials of about the given length. "busy" is the share of the time during which
the devices had a trial; the linear rate would be 100%. It needs a core for every few devices. CPU times do
not: those of the searching process are without compilers, and are given with its memory at each quarter.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import chdir, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from waiting_kernel import write_waiting_kernel

if TYPE_CHECKING:
    from autotune.cluster.connection import Cluster

RUNS_PER_TRIAL = 12  # of the kernel: three for each of two sizes to verify, six with warm-up and samples


def main() -> None:
    """Search once and print the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--devices", type=int, default=32)
    parser.add_argument("--processes", type=int, default=8, help="of Dask workers; 0: as with --devices")
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--trial-ms", type=float, default=50.0)
    parser.add_argument("--engine", default="random")
    parser.add_argument("--worker", help=argparse.SUPPRESS)  # be a process of Dask workers
    parsed = parser.parse_args()
    if parsed.worker:
        asyncio.run(work(parsed.worker, parsed.devices))
        return
    os.environ["AUTOTUNE_FAKE_DEVICES"] = str(parsed.devices)
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        pause_s = round(parsed.trial_ms / RUNS_PER_TRIAL / 1e3, 6)
        warm = 4 * parsed.devices
        values = range(math.isqrt(parsed.trials + warm - 1) + 1)
        write_waiting_kernel(Path(), {"A": values, "B": values}, pause_s, "1.0 + A * 1e-4 + B * 1e-6")
        search(parsed, warm)


async def work(scheduler: str, count: int) -> None:
    """Run so many Dask workers in this process until the scheduler is gone."""
    import distributed

    workers = [await distributed.Worker(scheduler, nthreads=1) for _ in range(count)]
    await asyncio.gather(*(worker.finished() for worker in workers))


@contextmanager
def cluster_of(devices: int, processes: int) -> Iterator[tuple[Cluster | None, list[int]]]:
    """A cluster with so many fake devices, and the ids of its processes: first the scheduler's.

    Without processes there is none.
    """
    if not processes:
        yield None, []
        return
    from autotune.cluster.connection import SETTINGS, open_each_model
    from autotune.core.stages import unobserved

    command = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--host", "127.0.0.1", "--port", "0"]
    # as autotune starts its own workers
    names = {key: "DASK_" + key.upper().replace(".", "__").replace("-", "_") for key in SETTINGS}
    variables = os.environ | {names[key]: repr(value) for key, value in SETTINGS.items()}
    command.append("--no-dashboard")
    log = Path("scheduler.log")  # not a pipe: once that is full, the scheduler waits for a reader
    with log.open("w") as file:
        scheduler = subprocess.Popen(command, stderr=file, env=variables)
    started = [scheduler]
    try:
        while (found := re.search(r"Scheduler at: +(tcp://\S+)\n", log.read_text())) is None:
            assert scheduler.poll() is None, log.read_text()
            time.sleep(0.1)
        address = found[1]
        each = [devices // processes + (number < devices % processes) for number in range(processes)]
        own = [sys.executable, __file__, "--worker", address]
        for count in each:
            one = [*own, "--devices", str(count)]
            started.append(subprocess.Popen(one, stderr=subprocess.DEVNULL, env=variables))
        with open_each_model(address, "fake", unobserved, print) as (cluster,):
            cluster.client.wait_for_workers(devices, timeout=120)
            yield cluster, [process.pid for process in started]
    finally:
        for process in started:
            process.kill()
            process.wait()


def search(parsed: argparse.Namespace, warm: int) -> None:
    """Try so many configurations with so many devices."""
    from autotune.core.trials import Budget
    from autotune.errors import NoMoreTrials
    from autotune.searchers import make_searcher
    from autotune.searchers.base import evaluate
    from autotune.tuning.context import FULL_POLICY, open_context
    from autotune.tuning.journaled_task import with_journal
    from autotune.tuning.observer import Observer
    from autotune.tuning.options import Options
    from autotune.tuning.task import Target, read_task

    class Quarters(Observer):
        """Notes and prints CPU time and memory after each quarter of the trials."""

        def __init__(self) -> None:
            self.count = 0
            self.notes: list[tuple[float, int]] = []

        def tried(self, trial: Any) -> None:
            self.count += 1
            done = self.count - warm
            if done >= 0 and done * 4 // parsed.trials == len(self.notes):
                self.notes.append((time.process_time(), _memory_bytes()))
                tell_quarter(self.notes, parsed.trials, time.perf_counter() - began)

    quarters, began = Quarters(), time.perf_counter()
    with cluster_of(parsed.devices, parsed.processes) as (cluster, others):
        if cluster is None:
            devices = ",".join(f"fake:{number}" for number in range(parsed.devices))
            task = read_task(Target(Path("wait.yaml"), devices=devices))
        else:
            print(f"{parsed.devices} Dask workers after {time.perf_counter() - began:.0f} s", flush=True)
            task = read_task(Target(Path("wait.yaml")), found_devices=[(cluster.address, cluster.info)])
        options = Options(budget=Budget(trials=warm + parsed.trials), binary_cache=False)
        journaled = with_journal(task, options)
        with open_context(journaled, options, quarters, FULL_POLICY, cluster=cluster) as context:
            evaluate(context.evaluator, list(task.space)[:warm])  # every device process has started
            began, theirs_s = time.perf_counter(), _cpu_s(others)
            with suppress(NoMoreTrials):
                make_searcher(parsed.engine).search(task.space, context.evaluator, seed=0)
            seconds = time.perf_counter() - began
            theirs_s = [after - before for after, before in zip(_cpu_s(others), theirs_s, strict=True)]
            trials = list(context.ledger.trials.values())[warm:]
    tell(parsed, trials, seconds, quarters.notes, theirs_s)


def tell_quarter(notes: list[tuple[float, int]], trials: int, seconds: float) -> None:
    """Print a row for the latest quarter."""
    if len(notes) == 1:
        print(f"all devices have run after {seconds:.0f} s\n", flush=True)
        print("| trials | after | CPU per trial | memory |\n|---|---|---|---|", flush=True)
        return
    (before_s, _), (after_s, memory_bytes) = notes[-2:]
    cpu_ms = (after_s - before_s) / (trials / 4) * 1e3
    share = 25 * (len(notes) - 1)
    print(f"| {share}% | {seconds:.0f} s | {cpu_ms:.2f} ms | {memory_bytes / 1e6:.1f} MB |", flush=True)


def tell(
    parsed: argparse.Namespace,
    trials: list[Any],
    seconds: float,
    notes: list[tuple[float, int]],
    theirs_s: list[float],
) -> None:
    """Print the figures of the whole search."""
    cost_s = sum(trial.cost_s for trial in trials)
    devices, count = len({trial.device for trial in trials}), len(trials)
    processes = f"{parsed.processes or devices} processes"
    print(f"\n{devices} devices in {processes}, engine {parsed.engine}: {count} trials in {seconds:.0f} s")
    (first_s, first_bytes), (last_s, last_bytes) = notes[0], notes[-1]
    print(f"searching process: {(last_s - first_s) / count * 1e3:.2f} ms of CPU time and ", end="")
    print(f"{(last_bytes - first_bytes) / count:.0f} bytes per trial")
    print(f"busy {cost_s / (seconds * devices):.1%}, mean trial {cost_s / count * 1e3:.1f} ms")
    if theirs_s:
        scheduler_s, *workers_s = theirs_s
        print(f"CPU per trial: scheduler {scheduler_s / count * 1e3:.2f} ms, ", end="")
        print(f"Dask workers {sum(workers_s) / count * 1e3:.2f} ms")
    print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}")


def _cpu_s(processes: list[int]) -> list[float]:
    """CPU time of each so far, without that of child processes."""
    stats = [Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split() for one in processes]
    return [sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK") for fields in stats]


def _memory_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
