"""Two tuners on one kernel: autotune and Kernel Tuner, each in fresh processes, in turns, on one GPU.

Both get the same source, values, sizes and reference result, and both verify every configuration. The
compiler's and the driver's disk caches are off (CUDA_CACHE_DISABLE=1), and autotune keeps no binaries.
Kernel Tuner runs with its default CUDA back-end and its default 7 iterations. What counts is a tuner's own
time: drawing inputs, references and imports are left out for Kernel Tuner. autotune starts its processes,
as its command line does, before it reads the files and looks for devices, so that they have imported their
modules when the clock starts; all else they do counts, drawing inputs and computing references included. Its
last round has no counterpart in Kernel Tuner and does not count. The whole process, which is printed beside
it, is everything on both sides. Fixed costs weigh more on fewer configurations.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from autotune.cli.progress import SearchProgress
from autotune.core.records import Config
from autotune.core.trials import Budget
from autotune.devices.listing import listing_for
from autotune.errors import AutotuneError
from autotune.evaluation.get_ready import get_ready
from autotune.tuning.options import Options
from autotune.tuning.task import Target, TuningTask, bind_target
from autotune.tuning.tuner import search

Figures = dict[str, float]
Tuner = Callable[[TuningTask, argparse.Namespace], Figures]


def autotune(task: TuningTask, sample: Collection[Config] = ()) -> Figures:
    """Tune with autotune in this process: every valid configuration.

    `sample`: the configurations that the other tuner takes; what they take to compile is figured out, too.
    """
    with tempfile.TemporaryDirectory() as folder, SearchProgress() as progress:
        options = Options(
            engine="exhaustive",
            budget=Budget(trials=len(task.space)),
            journal=Path(folder) / "journal.jsonl",
            cache=Path(folder) / "cache",
            binary_cache=False,
        )
        result = search(task, options, progress)
    compile_ms = {trial.config: trial.compile_ms for trial in result.trials}
    timed = sum(trial.time_ms is not None for trial in result.trials)
    return {
        "seconds": result.search_seconds,
        "first_trial_s": result.trials[0].cost_s,  # waits for the inputs, the worker and the first compiler
        "configurations": timed,
        "failed": len(result.trials) - timed,
        "best_ms": result.final.median_ms,
        "compile_ms": float(np.mean(list(compile_ms.values()))),
        "sample_compile_ms": float(np.mean([compile_ms[config] for config in sample or compile_ms])),
    }


def kernel_tuner(
    task: TuningTask,
    arguments: list[Any],
    answer: list[Any],
    atol: float,
    *,
    problem_size: str | tuple[int, ...],
    grid: Mapping[str, list[str]],
    sample: Collection[Config] = (),
) -> Figures:
    """Tune with Kernel Tuner in this process: every configuration, or those of `sample`.

    They are given by a Python function, so that no constraint has to be parsed.
    """
    from kernel_tuner import tune_kernel

    values = {parameter.name: list(parameter.values) for parameter in task.spec.parameters}
    chosen = {tuple(config[name] for name in values) for config in sample or task.space}

    def is_chosen(config: dict[str, Any]) -> bool:
        return tuple(config[name] for name in values) in chosen

    began = time.perf_counter()
    results, _ = tune_kernel(
        task.spec.kernel,
        task.source.text,
        problem_size,
        arguments,
        values,
        restrictions=[is_chosen] if len(chosen) < task.space.cartesian else None,
        answer=answer,
        atol=atol,
        lang="CUDA",
        quiet=True,
        **grid,
    )
    seconds = time.perf_counter() - began
    timed = [result for result in results if isinstance(result["time"], float)]
    return {
        "seconds": seconds,
        "configurations": len(timed),
        "failed": len(chosen) - len(timed),
        "best_ms": min(result["time"] for result in timed),
        "compile_ms": float(np.mean([result["compile_time"] for result in timed])),
    }


def compete(
    parser: argparse.ArgumentParser,
    space: Path,
    sizes: Callable[[argparse.Namespace], dict[str, int]],
    tuners: Mapping[str, Tuner],
) -> dict[str, Figures]:
    """Run each tuner in fresh processes, in turns, and print the table; the faster run of each counts.

    The script starts itself anew for every run, with `--only` and the options it was given.
    """
    parser.add_argument("--rounds", type=int, default=2, help="runs of each tuner (default %(default)s)")
    parser.add_argument("--only", choices=list(tuners), help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    if parsed.only:
        try:
            listing = listing_for("cuda:0")
            if parsed.only == "autotune":
                get_ready(listing, triton=False)  # as the command line does for CUDA C++
            task = bind_target(Target(space, "cuda:0", sizes(parsed)), listing=listing)
            print(json.dumps(tuners[parsed.only](task, parsed)))
        except AutotuneError as error:
            sys.exit(f"error: {error}")
        sys.exit()
    found: dict[str, Figures] = {}
    for name in list(tuners) * parsed.rounds:
        figures = _fresh_process(name)
        print(name, {key: round(value, 4) for key, value in figures.items()}, flush=True)
        if name not in found or figures["seconds"] < found[name]["seconds"]:
            found[name] = figures
    _print_table(found)
    return found


def _fresh_process(name: str) -> Figures:
    """One tuner's figures, with the wall time of the whole process."""
    began = time.perf_counter()
    done = subprocess.run(
        [sys.executable, *sys.argv, "--only", name],
        env=os.environ | {"CUDA_CACHE_DISABLE": "1"},
        stdout=subprocess.PIPE,
        text=True,
    )
    if done.returncode != 0:
        sys.exit(f"{name} failed, see above\n{done.stdout}")
    figures: Figures = json.loads(done.stdout.splitlines()[-1])
    return figures | {"process_s": time.perf_counter() - began}


def _print_table(found: Mapping[str, Figures]) -> None:
    each = {
        name: item["seconds"] / (item["configurations"] + item["failed"]) * 1e3
        for name, item in found.items()
    }
    heads = f"{'configurations':>15}{'failed':>8}{'ms each':>10}{'best ms':>10}{'whole process s':>17}"
    print(f"\n{'tuner':14}{heads}")
    for name, item in found.items():
        print(
            f"{name:14}{item['configurations']:15.0f}{item['failed']:8.0f}{each[name]:10.1f}"
            f"{item['best_ms']:10.4f}{item['process_s']:17.1f}"
        )
    ratio = each["kernel_tuner"] / each["autotune"]
    print(f"autotune takes 1/{ratio:.1f} of Kernel Tuner's time a configuration")
