"""Whole processes beside Kernel Tuner's: the same 100 configurations of six shipped kernels, caches cold.

    python benchmarks/whole_processes.py FOLDER [--only SPACE ...] [--device cuda:0] [--lang CUDA]
                                         [--budget 100] [--seed 0] [--rounds 1] [--limit-s SECONDS]

A round of a space is two processes, one after the other. `autotune search --engine random` draws the
configurations, and does all that it does by default: it verifies them at several sizes, times the best again
in a last round, and checks them on fresh inputs and under sanitizers. Kernel Tuner then gets the
configurations of the journal, the same inputs, and the same reference as its `answer`. It has its defaults,
so 7 iterations each. Its process draws the inputs and runs the reference itself, as every script of it has
to; the table says how long that took. All caches of compilers and drivers are empty folders.

What Kernel Tuner cannot do is left out for both, and what it need not do is done for it beforehand:

- One call of it launches one kernel, with the same compiler options for all configurations. SPACES has a rule
  for each space that leaves these configurations. A kernel that clears the outputs is not counted: autotune
  launches it, and Kernel Tuner uploads zeros before it verifies.
- A wrong configuration ends its run, and so does dynamic shared memory beyond 48 KiB. The rules exclude both.
- The sources are rendered, so its space is a list of numbers, which takes it no time to enumerate.
- transpose and matmul are smaller than usual: numpy, in which it compares, takes seconds for larger outputs.
- An output may be off by what numpy's `allclose` allows besides the space's tolerance.

Landmarks are left out, and where a rule excludes the space's default, it has another one. Results are added
to FOLDER/results.jsonl, and only rounds that are not there, or failed, are measured. `--device opencl:0`
rehearses on a CPU, at the sizes that each space has for CPUs.
"""

from __future__ import annotations

import argparse
import json
import pickle
import shutil
import sys
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import yaml
from start_to_end import ROOT, run_cold, run_search

from autotune.core.trials import Status
from autotune.devices import Address
from autotune.devices.listing import find_device
from autotune.errors import AutotuneError, InputError
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.evaluation.journal import read_journal
from autotune.tuning.task import Target, TuningTask, read_task


class Part(NamedTuple):
    """The part of a space that both tuners can run, a default in it, and sizes for GPUs."""

    rule: str
    default: Mapping[str, str] = {}
    sizes: Mapping[str, int] = {}


SPACES = {  # those that Kernel Tuner takes longest for come last
    "leak": Part(
        'LAUNCHES == 1 and BOUNDS_CHECK != "kernel" and MAX_REGISTERS == 0 and not FLUSH_TO_ZERO and '
        "PRECISE_DIVISION and PRECISE_SQRT"
    ),
    "reduce": Part(
        'TREE_MEMORY == "shared" and FINISH in ("atomic", "last_block") and ACCESS != "overlapping"',
        default={"FINISH": "atomic"},
    ),
    "transpose": Part("True", sizes={"rows": 4096, "columns": 4096}),
    "bicgk": Part('FUSED and FINISH == "atomic"'),
    "convolution": Part("SHARED_BYTES <= 49152"),
    "matmul": Part("SHARED_BYTES <= 49152", sizes={"m": 4096, "n": 4096, "k": 4096}),
}
CLEAR = "clear"  # the kernel that empties the outputs, in every source that has one
TUNING = Path(__file__).parent / "peers" / "one_tuning.py"


def write_space(name: str, path: Path) -> None:
    """Write the part of a shipped space that both tuners can run."""
    source = ROOT / "spaces" / f"{name}.yaml"
    space = yaml.safe_load(source.read_text())
    part = SPACES[name]
    space |= {file: str((source.parent / space[file]).resolve()) for file in ("source", "reference")}
    space["constraints"].append(part.rule)
    space["default"] |= part.default
    space["sizes"]["default"] |= part.sizes
    del space["landmarks"]
    path.write_text(yaml.safe_dump(space, sort_keys=False))


def write_plan(space: Path, journal: Path, parsed: argparse.Namespace, path: Path) -> dict[str, Any]:
    """Write what Kernel Tuner needs for the configurations of a journal; returns the figures of the search.

    Raises InputError if one call of Kernel Tuner cannot run all of them.
    """
    address, device = find_device(parsed.device)
    task = read_task(Target(space, parsed.device), found_devices=[(address, device)])
    trials = read_journal(journal).trials
    maker = InstanceMaker(task.space, task.source, task.dialect, {})
    made = [maker.make(trial.config) for trial in trials]
    steps = [_step(instance) for instance in made]
    entry = {step["entry"] for step in steps}
    options = {instance.options for instance in made}
    if len(entry) != 1 or len(options) != 1:
        raise InputError(f"{space}: expected one kernel with the same options, found {entry}, {options}")
    by_size = sorted((array for one in made for array in one.workload.arrays), key=lambda array: array.count)
    plan = {
        "steps": steps,
        "entry": entry.pop(),
        "arrays": {array.name: (array.dtype, array.shape) for array in by_size},  # the largest of each
        "problem": made[0].workload,
        "reference": task.spec.reference,
        "options": _options(task, address, options.pop(), parsed.lang),
    }
    path.write_bytes(pickle.dumps(plan))
    timed = [trial.time_ms for trial in trials if trial.status is Status.OK and trial.time_ms is not None]
    return {
        "device": device.name,
        "configurations": len(trials),
        "autotune_right": len(timed),
        "autotune_best_ms": min(timed),
    }


def _step(instance: KernelInstance) -> dict[str, Any]:
    """The source and the only launch of a configuration, with names of arrays and values of scalars."""
    launch, *others = (launch for launch in instance.workload.launches if launch.entry != CLEAR)
    if others:
        raise InputError(f"{instance.config}: expected one launch, found also {others}")
    scalars = {scalar.name: (scalar.dtype, scalar.value) for scalar in instance.workload.scalars}
    return {
        "source": instance.source,
        "entry": launch.entry,
        "grid": launch.grid,
        "block": launch.block,
        "shared_bytes": launch.shared_bytes,
        "arguments": [scalars.get(name, name) for name in launch.arguments],
    }


def _options(task: TuningTask, address: Address, options: tuple[str, ...], lang: str) -> dict[str, Any]:
    """The device, and the compiler's options as autotune has them, as options of `tune_kernel`."""
    if task.dialect == "opencl":
        from autotune.devices.opencl_platforms import opencl_devices

        chosen = opencl_devices()[address.index]
        platforms = [*dict.fromkeys(device.platform for device in opencl_devices())]
        return {
            "lang": "OpenCL",
            "platform": platforms.index(chosen.platform),
            "device": chosen.platform.get_devices().index(chosen),
            "compiler_options": ["-cl-std=CL1.2", *options],
        }
    return {"lang": lang, "device": address.index, "compiler_options": ["--std=c++17", *options]}


def measured(name: str, folder: Path, parsed: argparse.Namespace) -> dict[str, Any]:
    """Run both processes on a space; the figures, or a `failure`."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    space = folder / f"{name}.yaml"
    write_space(name, space)
    draw = ("--engine", "random", "--seed", str(parsed.seed), "--budget", str(parsed.budget))
    ours, failure = run_search(space, folder / "autotune", "--device", parsed.device, *draw)
    if failure:
        return {"failure": f"autotune {failure}"}
    plan, result = folder / "plan", folder / "result.json"
    try:
        figures = write_plan(space, folder / "autotune" / "journal.jsonl", parsed, plan)
    except AutotuneError as error:
        return {"failure": str(error)}
    theirs, failure = run_cold(folder / "kernel_tuner", str(TUNING), str(plan), str(result))
    figures |= {"autotune_s": ours, "kernel_tuner_s": theirs}
    if failure:
        return figures | {"failure": f"Kernel Tuner {failure}"}
    found = json.loads(result.read_text())
    return figures | {f"kernel_tuner_{key}": value for key, value in found.items()}


def table(rows: Collection[dict[str, Any]]) -> list[str]:
    """The lines of the table: for each space the medians of its rounds."""
    lines = [
        "| space | configurations | right | autotune s | Kernel Tuner s | its inputs s | ratio |",
        "|---|---|---|---|---|---|---|",
    ]
    ratios = []
    for name in dict.fromkeys(row["space"] for row in rows):
        own = [row for row in rows if row["space"] == name]
        if failures := [row["failure"] for row in own if "failure" in row]:
            lines.append(f"| {name} | {failures[0]} | | | | | |")
            continue
        keys = ("autotune_s", "kernel_tuner_s", "kernel_tuner_inputs_s")
        ours, theirs, inputs = (median(row[key] for row in own) for key in keys)
        ratios.append(ours / theirs)
        right = f"{own[0]['autotune_right']} / {own[0]['kernel_tuner_right']}"
        cells = (name, own[0]["configurations"], right, *(f"{item:.1f}" for item in (ours, theirs, inputs)))
        lines.append(f"| {' | '.join(map(str, cells))} | {ratios[-1]:.2f} |")
    if ratios:
        lines.append(f"\nautotune over Kernel Tuner: {geometric_mean(ratios):.2f} in the geometric mean")
    return lines


def main() -> None:
    """Measure what the results lack, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="results and files of one device, budget and seed")
    parser.add_argument("--only", nargs="+", choices=SPACES, default=[*SPACES], metavar="SPACE", help="which")
    parser.add_argument("--device", default="cuda:0", help="which device (default %(default)s)")
    parser.add_argument(
        "--lang", default="CUDA", help="Kernel Tuner's back end, such as CUPY (its own choice)"
    )
    parser.add_argument("--budget", type=int, default=100, help="configurations (default %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="decides which ones (default %(default)s)")
    parser.add_argument("--rounds", type=int, default=1, help="runs of each tuner (default %(default)s)")
    parser.add_argument("--limit-s", type=float, default=1e9, help="begin no round after this time")
    parsed = parser.parse_args()
    folder = parsed.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    results = folder / "results.jsonl"
    lines = map(json.loads, results.read_text().splitlines() if results.exists() else ())
    rows = {(row["space"], row["round"]): row for row in lines}
    began = time.perf_counter()
    for number in range(parsed.rounds):
        for name in parsed.only:
            known = "failure" not in rows.get((name, number), {"failure": "not measured"})
            if known or time.perf_counter() - began > parsed.limit_s:
                continue
            row = {"space": name, "round": number} | measured(name, folder / f"{name}_{number}", parsed)
            rows[name, number] = row
            with results.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)
    print("\n".join(table(rows.values())))
    sys.exit(any("failure" in row for row in rows.values()))


if __name__ == "__main__":
    main()
