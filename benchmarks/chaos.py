"""Searches of a space in which a fifth of the configurations fail, each in one of seventeen ways.

    python benchmarks/chaos.py [--searches 40] [--budget 300] [--rate 0.2] [--at-once 1] [--limit-s 2]
        [--seed 0] [--seconds S]

The device is the fake one, whose kernels are Python functions, so compilers and device processes really hang
and crash. One of the faults is a right kernel that throttles the device. Honest times are noisy: one run in
twenty takes half as long again, and in one of 400 the clock jumps by an hour, on or back. Which configuration
fails and how depends on the seed alone, so it is known what each trial should have ended as, and which valid
configuration is the fastest. A fifth of the searches also meet a full disk, and a fifth a cache that is read-
only: each must end in one line that says so, and goes on when it is started again. A search mostly waits for
trials and compilations that hang until their limit, and on a busy machine, which may be to blame, for each
twice: a short limit saves most of the time. The exit code is 1 if a search fails or if a fault ended
otherwise than it should. How many searches named the fastest configuration or a tie with it depends on the
budget.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import math
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from autotune.core.records import Config
from autotune.core.trials import Trial
from autotune.evaluation.journal import read_trials

SPACE = """\
schema: 1
kernel: chaos
dialect: python
source: chaos.py
reference: reference.py
sizes: {{default: {{n: 1000}}}}
verify_sizes: [{{n: 1}}, {{n: 17}}]
dtypes: [int32]
parameters:
  A: range(0, 40)
  B: range(0, 12)
default: {{A: {a}, B: {b}}}
arguments:
  - {{name: x, dtype: int32, shape: [n], role: in, fill: {{integers: [-100, 100]}}}}
  - {{name: y, dtype: int32, shape: [n], role: out}}
  - {{name: n, dtype: int32, value: n}}
launch:
  - {{entry: chaos, grid: [1], block: [1], arguments: [x, y, n]}}
verify: {{rtol: 0, atol: 0}}
"""
REFERENCE = """\
def reference(inputs, sizes):
    return {"y": 2 * inputs["x"]}
"""
# What a fault does, and how its trial, or the search, has to end.
FAULTS = {
    "compile_error": {"compile_error"},
    "compile_hang": {"compile_timeout"},
    "compile_crash": {"compile_error"},
    "compile_bomb": {"compile_error"},
    "sticky_error": {"crashed"},
    "hang": {"timeout"},
    "crash": {"crashed"},
    "memory_bomb": {"crashed"},
    "write_nothing": {"wrong_result"},
    "wrong_element": {"wrong_result"},
    "sometimes_wrong": {"wrong_result"},
    "out_of_bounds": {"out_of_bounds"},
    "zero_time": {"measurement_error"},
    "infinite_time": {"measurement_error"},
    "no_number": {"measurement_error"},
    "launch_failure": {"launch_error"},
    "throttling": {"throttled"},
}
MACHINE_FAULTS = {"full_disk": {"cannot be written"}, "read_only_cache": {"cannot be written"}}
SELECTION = '''\
import hashlib

def share_of(*parts):
    """A number from 0 to 1 that looks random and is the same in every run."""
    return int(hashlib.sha256(repr(parts).encode()).hexdigest()[:8], 16) / 2**32

def fault_of(seed, rate, a, b):
    if share_of(seed, "fails", a, b) >= rate:
        return None
    return FAULTS[int(share_of(seed, "how", a, b) * len(FAULTS))]

def honest_ms(a, b):
    return 1.0 + 0.02 * (a - 23) ** 2 + 0.15 * (b - 7) ** 2
'''
RULES = f"FAULTS = {list(FAULTS)!r}\n{SELECTION}"
KERNEL = """\
import os, random, signal, time

def compiling():
    fault = fault_of(SEED, RATE, A, B)
    if fault == "compile_error":
        raise_compile_error()
    if fault == "compile_hang":
        time.sleep(600)
    if fault == "compile_crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if fault == "compile_bomb":
        bytearray(2**60)

def raise_compile_error():
    from autotune.errors import CompileError
    raise CompileError("line 1: this configuration does not compile")

def raise_launch_error():
    from autotune.errors import LaunchError
    raise LaunchError("too many resources requested for launch")

def throttled_runs():
    return 6 if fault_of(SEED, RATE, A, B) == "throttling" else 0

TIMES = {"zero_time": 0.0, "infinite_time": float("inf"), "no_number": float("nan")}

def chaos(grid, block, x, y, n):
    fault = fault_of(SEED, RATE, A, B)
    target = y.view("int32")
    if fault == "sticky_error":
        os.environ["CHAOS_BROKEN"] = "of this process"
    if "CHAOS_BROKEN" in os.environ:
        raise RuntimeError("an error that sticks")
    if fault == "hang":
        time.sleep(600)
    if fault == "crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if fault == "memory_bomb":
        bytearray(2**60)
    if fault != "write_nothing":
        target[:n] = 2 * x.view("int32")[:n]
    if fault == "wrong_element" or (fault == "sometimes_wrong" and random.random() < OFTEN):
        target[n // 2] += 1
    if fault == "out_of_bounds":
        y.base[-8:] = 7
    if fault == "launch_failure":
        raise_launch_error()
    if fault in TIMES:
        return TIMES[fault]
    noise = random.gauss(1, 0.004)
    if fault == "throttling":
        return 0.8 * noise  # it would be the fastest
    jump_ms = random.choice([-HOUR_MS, HOUR_MS]) if random.random() < 1 / 400 else 0.0
    slow = 1.5 if random.random() < 0.05 else 1.0
    return honest_ms(A, B) * slow * noise + jump_ms

HOUR_MS = 3.6e6
OFTEN = 0.9  # a kernel that is wrong less often may be right in all runs of a trial, and then no fault is met
"""
ALL = [(a, b) for a in range(40) for b in range(12)]


def main() -> int:
    """Run the searches and print what was found of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--searches", type=int, default=40, help="default %(default)s")
    parser.add_argument("--budget", type=int, default=300, help="default %(default)s")
    parser.add_argument("--rate", type=float, default=0.2, help="of faults (default %(default)s)")
    parser.add_argument("--at-once", type=int, default=1, help="searches at a time (default %(default)s)")
    parser.add_argument(
        "--limit-s", type=float, default=2.0, help="of a trial and of a compilation (default %(default)s)"
    )
    parser.add_argument("--seed", type=int, default=0, help="of the first search (default %(default)s)")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begin no search after so long")
    asked = parser.parse_args()
    end = time.monotonic() + asked.seconds
    ended, named, wrong, injected = 0, 0, 0, Counter[str]()
    with ThreadPoolExecutor(asked.at_once) as threads:
        seeds = range(asked.seed, asked.seed + asked.searches)
        searches = {threads.submit(searched, seed, asked, end): seed for seed in seeds}
        for search in as_completed(searches):
            seed, outcome = searches[search], search.result()
            if outcome is None:
                continue
            ended += 1
            result, faults, seconds = outcome
            injected.update(fault for fault, _ in faults)
            surprises = [
                f"{fault} ended as {status}"
                for fault, status in faults
                if status not in (FAULTS | MACHINE_FAULTS)[fault]
            ]
            found = fastest(seed, asked.rate, result)
            named += found
            wrong += len(surprises)
            verdict = "the fastest or a tie" if found else f"NOT the fastest: {result['config']}"
            took = f"{len(faults)} faults, {seconds:.0f} s"
            print(f"search {seed}: {verdict}; {took}", *surprises, sep="\n  ", flush=True)
    print(f"named the fastest or a tie: {named} of {ended}")
    print(f"faults that ended otherwise than they should: {wrong} of {injected.total()}")
    print("injected:", ", ".join(f"{count} {fault}" for fault, count in injected.most_common()))
    return 1 if wrong else 0


def searched(
    seed: int, asked: argparse.Namespace, end: float
) -> tuple[dict[str, Any], list[tuple[str, str]], float] | None:
    """The result of one search, how each injected fault that it met ended, and the seconds it took.

    None where it would begin after the end.
    """
    if time.monotonic() >= end:
        return None
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        found = searched_in(Path(folder), seed, asked)
        return *found, time.monotonic() - began


def searched_in(
    folder: Path, seed: int, asked: argparse.Namespace
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """The result of a search in this folder, and how its faults ended."""
    chosen = rules()
    rate = asked.rate
    a, b = next(pair for pair in ALL if chosen["fault_of"](seed, rate, *pair) is None)
    (folder / "chaos.yaml").write_text(SPACE.format(a=a, b=b))
    (folder / "reference.py").write_text(REFERENCE)
    (folder / "chaos.py").write_text(f"{RULES}\nSEED, RATE = {seed}, {rate}\n{KERNEL}")
    limit = str(asked.limit_s)
    limits = ["--timeout", limit, "--compile-timeout", limit, "--budget", str(asked.budget)]
    compilers = max(2, len(os.sched_getaffinity(0)) // asked.at_once)
    command = ["search", "chaos.yaml", "--device", "fake", "--json", "--journal", "j.jsonl"]
    command += ["--compilers", str(compilers)]
    whole = [*command, *limits, "--seed", str(seed), "--cache", "cache"]
    (folder / "cache").mkdir()
    ended: list[tuple[str, str]] = []
    for fault, start in machine_faults(folder, seed, asked):
        refused = run(whole, folder, start)
        complaint = refused.stderr.rstrip().rpartition("\n")[2]
        ended.append((fault, "cannot be written" if "cannot be written" in complaint else complaint))
    done = run(whole, folder)
    if done.returncode != 0:
        raise SystemExit(f"search {seed} ended with {done.returncode}: {done.stderr}")
    for trial in read_trials(folder / "j.jsonl"):
        fault = chosen["fault_of"](seed, rate, trial.config["A"], trial.config["B"])
        if fault is not None:
            ended.append((fault, end_of(trial)))
    return json.loads(done.stdout), ended


def run(
    command: list[str], folder: Path, start: Callable[[], object] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run autotune in a folder; its process begins with `start`."""
    command = [sys.executable, "-m", "autotune", *command]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, preexec_fn=start)


def machine_faults(
    folder: Path, seed: int, asked: argparse.Namespace
) -> Iterator[tuple[str, Callable[[], object]]]:
    """The faults of the machine that a search meets, each with what makes its process meet it."""
    share_of = rules()["share_of"]
    if share_of(seed, "full disk") < asked.rate:
        size = 2**12 + int(share_of(seed, "free") * 200 * asked.budget)  # a trial takes twice as much
        yield "full_disk", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
    if share_of(seed, "read-only cache") < asked.rate:
        (folder / "cache").chmod(0o500)
        yield "read_only_cache", obey_permissions
        (folder / "cache").chmod(0o700)


def obey_permissions() -> None:
    """Take from root what lets it write to read-only folders."""
    drop_from_bounding_set, cap_dac_override = 24, 1
    ctypes.CDLL(None).prctl(drop_from_bounding_set, cap_dac_override, 0, 0, 0)


def end_of(trial: Trial) -> str:
    """The status of a trial, or that the device was throttled."""
    measurement = trial.measurement
    return "throttled" if measurement and "throttled" in measurement.conditions else trial.status.value


def rules() -> dict[str, Any]:
    """The functions that say which configuration fails and how fast one is, from the kernel's own text."""
    names: dict[str, Any] = {}
    exec(RULES, names)
    return names


def fastest(seed: int, rate: float, result: dict[str, Any]) -> bool:
    """Whether a search named the fastest configuration that works, or a tie with it."""
    chosen = rules()
    working = [pair for pair in ALL if chosen["fault_of"](seed, rate, *pair) is None]
    a, b = min(working, key=lambda pair: chosen["honest_ms"](*pair))
    best = Config({"A": a, "B": b})
    return best in (Config(result["config"]), *map(Config, result["ties"]))


if __name__ == "__main__":
    sys.exit(main())
