"""A sweep over sizes: what it costs, what its variants lose in between, and the sums of other libraries.

    python benchmarks/size_sweep.py [reduce] [--device cuda:0] [--budget 100] [--left-out 19]

Runs `autotune search --sweep` for both element types and, with the same budget, `autotune search` of the
space's own size for each: all from empty caches, from the start of the command to its end. A short search
goes first, so that no command has to read libraries from the disk. Then it takes odd sizes in between that
were never tuned, of the types in turn. At each of these a search of its own runs, and the served variant
takes part in its last round.

With PyTorch and CuPy on an NVIDIA GPU, the kernel that `load_kernel` serves is timed at every swept size,
beside torch.sum and CuPy's CUB sum: each in a CUDA graph of many calls, in turns. That is how the sweep
measures, too: `--measure warm,graph`.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import chdir, contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from autotune import best_config, load_kernel
from autotune.cli.options import call_mode
from autotune.cli.progress import SearchProgress, Verbosity
from autotune.cli.sizes import parse_sweep
from autotune.core.records import Sizes
from autotune.core.text import size_text
from autotune.core.trials import USUAL, Budget
from autotune.plans.sweep import bind_sweep
from autotune.processes.machine_load import cpu_times
from autotune.searchers.surrogate import SurrogateSearch
from autotune.serving.best import Best
from autotune.tuning.context import POLICY, open_context
from autotune.tuning.finalists import fastest_trials
from autotune.tuning.finish_search import finish_search
from autotune.tuning.journaled_task import with_journal
from autotune.tuning.last_round import LastRoundSetting
from autotune.tuning.limits import usual_last_round
from autotune.tuning.options import Options
from autotune.tuning.shared_processes import Processes, open_processes
from autotune.tuning.task import Target, TuningTask
from autotune.tuning.tuner import explore
from autotune.tuning.winner_checks import WinnerChecks

ROUNDS = 20
LOSS = 1.05  # times the best of a size's own search, which a served variant should not exceed
SLOWER = 1.02  # times a library's time that still count as not slower
MEAN = 1.4  # times as fast as torch.sum, which the sums should be on average
SWEEP = 3  # times searches of one size for the same element types, which a sweep should not exceed
SHARE = 17 / 19  # of the sizes left out, at which what is served should hold
GRAPH_MS = 0.5  # of calls in a graph
MAX_CALLS = 100


@contextmanager
def empty_caches(folder: Path) -> Iterator[None]:
    """No binaries or references of earlier runs, and journals of its own."""
    folder.mkdir(parents=True, exist_ok=True)
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(folder / "home")
    try:
        with chdir(folder):
            yield
    finally:
        del os.environ["XDG_CACHE_HOME"]
        if before is not None:
            os.environ["XDG_CACHE_HOME"] = before


def say(began_s: float, text: str) -> None:
    """Print a line with the time since the start."""
    print(f"[{time.perf_counter() - began_s:6.1f} s] {text}", flush=True)


def run_command(parsed: argparse.Namespace, space: Path, folder: Path, *options: str) -> tuple[Any, float]:
    """Run `autotune search` with empty caches; return the JSON that it prints, and its seconds."""
    command = [sys.executable, "-m", "autotune", "search", str(space), "--device", parsed.device, "--json"]
    command += ["--budget", str(parsed.budget), "--seed", str(parsed.seed), "--cache", "cache", *options]
    command += ["--measure", parsed.measure] if parsed.measure else []
    command += ["--no-sanitizer"] if parsed.no_sanitizer else []
    with empty_caches(folder):
        began_s = time.perf_counter()
        done = subprocess.run(command, capture_output=True, text=True)
        seconds = time.perf_counter() - began_s
    if done.returncode:
        raise SystemExit(done.stderr)
    return json.loads(done.stdout), seconds


def run_sweep(parsed: argparse.Namespace, space: Path, folder: Path) -> tuple[Any, float]:
    """The sweep of all element types, and its seconds."""
    options = (
        "--sweep",
        parsed.range,
        "--dtype",
        ",".join(parsed.dtypes),
        "--variants",
        str(parsed.variants),
    )
    return run_command(parsed, space, folder, *options)


def run_one(parsed: argparse.Namespace, space: Path, dtype: str, folder: Path) -> tuple[Sizes, float]:
    """One search of an element type with the same budget: its sizes, and seconds."""
    found, seconds = run_command(parsed, space, folder, "--dtype", dtype, "--no-transfer")
    return found["sizes"], seconds


def between(swept: Sequence[int], count: int) -> list[int]:
    """Odd sizes spread evenly in log space between the swept ones, not close to their ends."""
    ratio = swept[-1] / swept[0]
    return [round(swept[0] * ratio ** ((place + 0.5) / (count + 0.5))) | 1 for place in range(count)]


def left_out(
    target: Target,
    name: str,
    sizes: Sequence[int],
    parsed: argparse.Namespace,
    folder: Path,
    deadline_s: float,
) -> list[dict[str, Any]]:
    """For each size: what is served there, and its time over that of the best of a search of its own.

    No search begins after `deadline_s` on the clock of `time.perf_counter`.
    """
    count = len(parsed.dtypes)
    rows = []
    with empty_caches(folder), SearchProgress(Verbosity.QUIET) as progress:
        tasks = [
            task
            for place, dtype in enumerate(parsed.dtypes)
            if sizes[place::count]
            for task in bind_sweep(target, [{name: size} for size in sizes[place::count]], [dtype], progress)
        ]
        options = Options(budget=Budget(trials=parsed.own_budget), cache=folder / "own")
        with open_processes(tasks[0], options, progress) as processes:
            for task in tasks:
                if time.perf_counter() > deadline_s:
                    break
                row = search_own(task, options, progress, processes, folder)
                expected = "unknown" if row["expected"] is None else f"{row['expected']:.3f}"
                print(
                    f"  {size_text(row['sizes'])} {row['dtype']}: {row['tier']}, {row['loss']:.3f} times the "
                    f"own best of {row['own_ms'] * 1e3:.2f} us, expected {expected}",
                    flush=True,
                )
                rows.append(row)
    return rows


def search_own(
    task: TuningTask, options: Options, progress: SearchProgress, processes: Processes, folder: Path
) -> dict[str, Any]:
    """Search one size, with the configuration that the sweep serves there in the last round."""
    problem = task.space.problem
    served: Callable[..., Best] = partial(best_config, dtype=problem.dtype, cache=folder / "cache")
    best = served(task.spec.kernel, task.device, **problem.sizes)
    with open_context(with_journal(task, options), options, progress, POLICY, processes) as context:
        explore(context, SurrogateSearch(), options, "", cpu_times(), warns=False)
        best_few = [trial.config for trial in fastest_trials(context.ledger.trials.values())]
        context.evaluator.evaluate_beside_budget(best.config)
        # nothing is kept, so races are not looked for
        checks = WinnerChecks({config: {} for config in context.ledger.trials})
        root = folder / "own"
        named = tuple(dict.fromkeys([*best_few, best.config]))
        seconds = context.ledger.spent_s
        time_left = usual_last_round(seconds)
        setting = LastRoundSetting(root, "own", options.seed, seconds, cpu_times(), time_left, named=named)
        finish_search(context, setting, checks)
    entry = task.cached_entry(root)
    if entry is None:
        raise SystemExit(f"no result for {dict(problem.sizes)}")
    return {
        "sizes": dict(problem.sizes),
        "dtype": problem.dtype,
        "tier": best.match.tier.value,
        "own_ms": entry.time_ms,
        "loss": entry.relative_times[best.config],
        "expected": best.expected_slowdown,
        "at_most": best.slowdown_at_most,
    }


def libraries(
    name: str, sizes: Sequence[int], dtypes: Sequence[str], cache: Path
) -> Iterator[dict[str, Any]]:
    """Times of the served kernel and of the libraries in CUDA graphs, in microseconds per call."""
    os.environ.setdefault("CUPY_ACCELERATORS", "cub")  # read when CuPy is imported
    torch, cupy = importlib.import_module("torch"), importlib.import_module("cupy")
    kernel = load_kernel("reduce", cache=cache)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream), cupy.cuda.ExternalStream(stream.cuda_stream):
        for size in sizes:
            host = torch.randint(-100, 101, (size,), dtype=torch.int32, device="cuda")
            expected = int(host.sum())
            for dtype in dtypes:
                x = host.to(getattr(torch, dtype))
                out, same = torch.empty_like(x[0]), cupy.asarray(x)
                same_out = cupy.asarray(out)
                calls: dict[str, Callable[[], Any]] = {
                    "autotune": kernel.bind(x),
                    "torch": partial(torch.sum, x, 0, dtype=x.dtype, out=out),
                    "cub": partial(same.sum, dtype=same.dtype, out=same_out),
                }
                for library, call in calls.items():
                    total = call()
                    if int(total if library == "autotune" else out) != expected:
                        raise SystemExit(f"{library}: wrong sum of {size} elements, expected {expected}")
                row = {"sizes": {name: size}, "dtype": dtype}
                yield row | {"us": graphs_in_turns(torch, stream, calls)}


def graphs_in_turns(torch: Any, stream: Any, calls: Mapping[str, Callable[[], Any]]) -> dict[str, float]:
    """Median time of a call in microseconds, replayed in a graph of many."""

    def timed_ms(run: Callable[[], Any]) -> float:
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        run()  # the GPU is busy while the second one is queued
        start.record(stream)
        run()
        end.record(stream)
        end.synchronize()
        return float(start.elapsed_time(end))

    once_ms = min(timed_ms(call) for call in calls.values() for _ in range(3))
    count = max(1, min(MAX_CALLS, int(GRAPH_MS / once_ms)))
    graphs = {}
    gc.collect()  # an earlier graph that is collected during a capture would end it
    for name, call in calls.items():
        graphs[name] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[name], stream=stream):
            for _ in range(count):
                call()
    times: dict[str, list[float]] = {name: [] for name in graphs}
    names = list(graphs)
    for turn in range(ROUNDS + 1):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            times[name].append(timed_ms(graphs[name].replay) / count * 1e3)
    return {name: statistics.median(found[1:]) for name, found in times.items()}


def main() -> None:
    """Run the parts one after the other, and print each at once."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("space", nargs="?", type=Path, default=Path("reduce"))
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--range", default="n=2**10:2**30:x4", help="as --sweep of autotune search")
    parser.add_argument("--dtypes", nargs="+", default=["float32", "int32"])
    parser.add_argument("--budget", type=int, default=100, help="of the sweep, and of one search")
    parser.add_argument("--seed", type=int, default=0, help="of the sweep, and of one search")
    parser.add_argument("--own-budget", type=int, default=60, help="of a search at a size left out")
    parser.add_argument("--left-out", type=int, default=19, help="sizes in between")
    parser.add_argument("--variants", type=int, default=8)
    parser.add_argument("--measure", help="default: warm,graph with CUDA")
    parser.add_argument("--no-sanitizer", action="store_true", help="as of autotune search")
    parser.add_argument("--skip-one", action="store_true", help="do not time searches of one size")
    parser.add_argument(
        "--until",
        type=float,
        default=math.inf,
        help="seconds after which no search at a size left out begins",
    )
    parser.add_argument("--folder", type=Path, help="where to keep caches and journals")
    parser.add_argument("-o", "--output", type=Path, help="write everything as JSON")
    parsed = parser.parse_args()
    began_s = time.perf_counter()
    with tempfile.TemporaryDirectory() as temporary:
        measure(parsed, (parsed.folder or Path(temporary)).resolve(), began_s)


def measure(parsed: argparse.Namespace, folder: Path, began_s: float) -> None:
    """Measure all parts, and print each."""
    is_cuda = parsed.device.startswith("cuda")
    if is_cuda and not parsed.measure:
        parsed.measure = "warm,graph"
    space = parsed.space.resolve() if parsed.space.is_file() else parsed.space
    points = parse_sweep([parsed.range])
    (name,) = points[0]
    sizes = [point[name] for point in points]
    run_command(parsed, space, folder / "first", "--budget", "2")
    swept, sweep_s = run_sweep(parsed, space, folder)
    found: dict[str, Any] = {"sweep_s": sweep_s} | swept
    for one in swept["results"]:
        print(f"  {size_text(one['sizes'])} {one['dtype']}: {one['time_ms'] * 1e3:.2f} us", flush=True)
    trials = sum(one["trials"] for one in swept["results"])
    say(began_s, f"the sweep took {sweep_s:.1f} s for {len(swept['results'])} problems, {trials} trials")
    if is_cuda and space == Path("reduce") and find_spec("torch") and find_spec("cupy"):
        found["libraries"] = []
        for row in libraries(name, sizes, parsed.dtypes, folder / "cache"):
            found["libraries"].append(row)
            times = ", ".join(f"{library} {us:.2f} us" for library, us in row["us"].items())
            print(f"  {size_text(row['sizes'])} {row['dtype']}: {times}", flush=True)
        say(began_s, beside_libraries(found["libraries"]))
        save(parsed, found)
    if not parsed.skip_one:
        ones = [run_one(parsed, space, dtype, folder / "one" / dtype) for dtype in parsed.dtypes]
        found["mean_one_s"] = statistics.mean(seconds for _, seconds in ones)
        each = ", ".join(f"{seconds:.1f} s" for _, seconds in ones)
        ratio = sweep_s / found["mean_one_s"]
        say(
            began_s,
            f"searches of one size ({size_text(ones[0][0])}) took {each}: the sweep took {ratio:.2f} times "
            f"as long on average, {ratio / len(parsed.dtypes):.2f} for each element type",
        )
        save(parsed, found)
    if parsed.left_out:
        deadline_s = began_s + parsed.until
        target = Target(space, parsed.device, measure=call_mode(parsed.measure) if parsed.measure else USUAL)
        found["left_out"] = left_out(
            target, name, between(sizes, parsed.left_out), parsed, folder, deadline_s
        )
        say(began_s, in_between(found["left_out"]))
        save(parsed, found)
    say(began_s, "at the end:")
    for what, asked, is_met in requirements(found, parsed):
        print(f"  {what:64}{asked:24}{'holds' if is_met else 'DOES NOT HOLD'}")


def save(parsed: argparse.Namespace, found: Mapping[str, Any]) -> None:
    """Write what there is so far."""
    if parsed.output:
        parsed.output.write_text(json.dumps(found, indent=1), encoding="utf-8")


def requirements(found: Mapping[str, Any], parsed: argparse.Namespace) -> Iterator[tuple[str, str, bool]]:
    """What was found of each requirement that was measured, what is asked, and whether it holds."""
    if times := [row["us"] for row in found.get("libraries", ())]:
        held, mean = not_slower(times), geometric_mean(times, "torch")
        yield f"not slower than torch.sum and CUB: {held} of {len(times)}", "all", held == len(times)
        yield f"geometric mean: {mean:.2f} times as fast as torch.sum", f"{MEAN}", mean >= MEAN
    if "mean_one_s" in found:
        ratio = found["sweep_s"] / found["mean_one_s"] / len(parsed.dtypes)
        what = f"sweep: {ratio:.2f} times searches of one size for the same types"
        yield what, f"at most {SWEEP}", ratio <= SWEEP
    if rows := found.get("left_out"):
        needed = math.ceil(SHARE * parsed.left_out)
        close, covered, asked = within_loss(rows), within_bound(rows), f"{needed} of {parsed.left_out}"
        yield f"served within 5% of a search of their own: {close} of {len(rows)}", asked, close >= needed
        yield f"within the foretold bound: {covered} of {len(rows)}", asked, covered >= needed


def beside_libraries(rows: Sequence[Mapping[str, Any]]) -> str:
    """At how many sizes nothing is faster, and the mean speed-up."""
    times = [row["us"] for row in rows]
    return (
        f"not slower than torch.sum and CuPy's CUB sum in {not_slower(times)} of {len(times)} cases; "
        f"geometric mean {geometric_mean(times, 'torch'):.2f} times as fast as torch, "
        f"{geometric_mean(times, 'cub'):.2f} as CUB"
    )


def not_slower(times: Sequence[Mapping[str, float]]) -> int:
    """The number of cases in which no library is faster."""
    return sum(one["autotune"] <= SLOWER * min(one["torch"], one["cub"]) for one in times)


def geometric_mean(times: Sequence[Mapping[str, float]], library: str) -> float:
    """How many times as fast as a library the served kernel is."""
    return statistics.geometric_mean(one[library] / one["autotune"] for one in times)


def in_between(rows: Sequence[Mapping[str, Any]]) -> str:
    """How many sizes left out are served well, and how often the foretold bound holds."""
    if not rows:
        return "no time was left for sizes in between"
    return (
        f"{len(rows)} sizes left out: the served variant within 5% of their own search at "
        f"{within_loss(rows)}, the foretold bound covers {within_bound(rows)}, "
        f"the worst loss is {max(row['loss'] for row in rows):.3f}"
    )


def within_loss(rows: Sequence[Mapping[str, Any]]) -> int:
    """The number of sizes at which the served variant is nearly as fast as the best of their own search."""
    return sum(row["loss"] <= LOSS for row in rows)


def within_bound(rows: Sequence[Mapping[str, Any]]) -> int:
    """The number of sizes at which it is at most as slow as foretold."""
    return sum(row["at_most"] is not None and row["loss"] <= row["at_most"] for row in rows)


if __name__ == "__main__":
    main()
