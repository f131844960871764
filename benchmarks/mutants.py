"""How many wrong versions of the shipped kernels verification catches, by kind of mistake.

    python benchmarks/mutants.py [--device opencl] [--only KERNEL] [--sample] [--jobs N] [--seconds S]
        [--results FILE] [--mutants FILE]

mutants.yaml lists the mistakes. Each is put into its kernel, whose landmarks and pairwise array are
verified as in a search, up to the first failure: at the sizes to verify ("results"), at the size that a
search times ("size"), on other data ("data"), with other schedules ("schedules"), in many runs ("runs"),
as C++ on the CPU under the sanitizers of g++ ("host") and on a CUDA device under compute-sanitizer
("sanitizer"). Configurations that the mistake does not touch are left out. Exits
with 1 if a mutant of the sample is missed, or more than 1 in 20.

With `--results`, each mutant's line is added to FILE when it is done, and mutants that FILE has are not tried
again: a long run can be stopped at any time and goes on with the same command. The table shows all of FILE,
so use one for each device and choice of options. `--seconds 0` only prints the table.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from threading import Lock

from mutant_verifier import ROOT, UNREACHED, WAYS, Mutant, Verifier, read_mutants

from autotune.checks.device_sanitizer import find_sanitizer
from autotune.checks.host_sanitizer import find_host_sanitizer
from autotune.core.records import DeviceInfo
from autotune.devices import BACKENDS, choose, list_devices
from autotune.space import load_space

MAX_MUTANTS = 8  # for one process on the device
MAX_MISSED = 0.05
SAMPLE = ("sine",)


class Results:
    """Which way catches each mutant that was tried, also by earlier runs if there is a file."""

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._lock = Lock()
        rows = path.read_text().splitlines() if path is not None and path.exists() else []
        self._ways = {tuple(row["mutant"]): str(row["way"]) for row in map(json.loads, rows)}

    def way(self, mutant: Mutant) -> str | None:
        """The way that catches a mutant, empty if none does; None if it was not tried."""
        return self._ways.get(mutant.key)

    def add(self, mutant: Mutant, way: str, words: str, seconds: float) -> None:
        """Print and keep the result of a mutant."""
        row = {"mutant": mutant.key, "way": way, "detail": words, "seconds": round(seconds, 1)}
        with self._lock:
            print(f"{mutant}\n    {way or 'MISSED'}: {words} ({seconds:.1f} s)", flush=True)
            self._ways[mutant.key] = way
            if self._path is not None:
                with self._path.open("a") as file:
                    file.write(json.dumps(row) + "\n")


def table(found: Sequence[tuple[Mutant, str]], ways: Sequence[str]) -> str:
    """Caught and missed by kind of mistake, as Markdown."""
    by_kind: dict[str, list[str]] = defaultdict(list)
    for mutant, way in found:
        by_kind[mutant.kind].append(way)
    total = [way for _, way in found]
    rows = [
        (kind, len(caught), *(caught.count(way) for way in ways), caught.count(""))
        for kind, caught in (*sorted(by_kind.items()), ("all", total))
    ]
    lines = [f"| mistake | mutants | {' | '.join(ways)} | missed |", "|---" * (len(ways) + 3) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(map(str, row))} |" for row in rows)])


def arguments() -> argparse.Namespace:
    """The options of the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="opencl", help="cuda:0 or opencl (default %(default)s)")
    parser.add_argument("--only", metavar="KERNEL", help="only the mutants of one kernel")
    parser.add_argument("--kind", help="only mistakes of this kind")
    parser.add_argument("--sample", action="store_true", help="a few mutants, all of which must be caught")
    parser.add_argument(
        "--ways", nargs="+", choices=WAYS, default=WAYS, help="look for mistakes in these ways only"
    )
    parser.add_argument(
        "--jobs", metavar="N", type=int, default=1, help="mutants at the same time (default %(default)s)"
    )
    parser.add_argument("--seconds", metavar="S", type=float, help="begin no mutant after so long")
    parser.add_argument(
        "--pairwise",
        metavar="N",
        type=int,
        default=60,
        help="configurations of the array that are tried, landmarks apart (default %(default)s)",
    )
    parser.add_argument(
        "--results", metavar="FILE", type=Path, help="keep results there, and go on with them"
    )
    parser.add_argument(
        "--mutants",
        metavar="FILE",
        type=Path,
        default=Path(__file__).with_name("mutants.yaml"),
        help="other mistakes than those of mutants.yaml",
    )
    return parser.parse_args()


@cache
def dialect_of(kernel: str) -> str:
    """The dialect of a shipped kernel."""
    return load_space(ROOT / "spaces" / f"{kernel}.yaml").dialect


def chosen(asked: argparse.Namespace, device: DeviceInfo, accepted: Sequence[str]) -> list[Mutant]:
    """The mutants that were asked for and that the device can run."""
    return [
        mutant
        for mutant in read_mutants(asked.mutants)
        if asked.only in (None, mutant.kernel)
        and asked.kind in (None, mutant.kind)
        and (not asked.sample or mutant.kernel in SAMPLE)
        and (device.has_shuffle or not mutant.warps)
        and dialect_of(mutant.kernel) in accepted
    ]


def grouped(mutants: Sequence[Mutant]) -> list[list[Mutant]]:
    """Groups of mutants of one kernel each, the kernels in turn."""
    of_kernel: dict[str, list[Mutant]] = defaultdict(list)
    for mutant in mutants:
        of_kernel[mutant.kernel].append(mutant)
    longest = max(map(len, of_kernel.values()), default=0)
    starts = range(0, longest, MAX_MUTANTS)
    return [
        part for start in starts for of in of_kernel.values() if (part := of[start : start + MAX_MUTANTS])
    ]


def main() -> None:
    """Try each mutant, and print which way catches it."""
    began = time.monotonic()
    asked = arguments()
    address, device = choose(asked.device, list_devices((asked.device.partition(":")[0],)))
    sanitizer = find_sanitizer(address) if "sanitizer" in asked.ways else None
    host = find_host_sanitizer() if "host" in asked.ways else None
    mutants = chosen(asked, device, BACKENDS[address.backend].accepts)
    results = Results(asked.results)
    end = began + (math.inf if asked.seconds is None else asked.seconds)
    opened = partial(
        Verifier,
        address=address,
        device=device,
        sanitizer=sanitizer,
        compilers=max(1, len(os.sched_getaffinity(0)) // asked.jobs),
        pairwise=asked.pairwise,
        host=host,
        ways=asked.ways,
    )

    def try_group(group: Sequence[Mutant]) -> None:
        if time.monotonic() >= end:
            return
        with closing(opened(group[0].kernel)) as verifier:
            for mutant in group:
                start = time.monotonic()
                if start < end:
                    way, words = verifier.caught(mutant)
                    results.add(mutant, way, words, time.monotonic() - start)

    with ThreadPoolExecutor(asked.jobs) as threads:
        list(threads.map(try_group, grouped([one for one in mutants if results.way(one) is None])))
    missing = {name for name, tool in (("host", host), ("sanitizer", sanitizer)) if tool is None}
    tried = [(mutant, way) for mutant in mutants if (way := results.way(mutant)) is not None]
    ways = [way for way in WAYS if (way in asked.ways and way not in missing) or way in dict(tried).values()]
    sys.exit(conclude(tried, ways, len(mutants) - len(tried), 0 if asked.sample else MAX_MISSED))


def conclude(tried: Sequence[tuple[Mutant, str]], ways: Sequence[str], left: int, max_missed: float) -> bool:
    """Print the table and what was missed; return whether that is too much."""
    reached = [(mutant, way) for mutant, way in tried if way != UNREACHED]
    wrong = [(mutant, way) for mutant, way in reached if not mutant.equivalent]
    alarms = [mutant for mutant, way in reached if mutant.equivalent and way]
    missed = [mutant for mutant, way in wrong if not way]
    by_runs = sum(way not in ("", "host", "sanitizer") for _, way in wrong)
    print(f"\n{table(wrong, ways)}\n")
    print(f"caught: {len(wrong) - len(missed)} of {len(wrong)}; without sanitizers: {by_runs}")
    print(f"not reached by any configuration: {len(tried) - len(reached)}; not tried: {left}")
    print(*(f"missed {mutant}" for mutant in missed), sep="\n")
    print(*(f"equivalent, but caught: {mutant}" for mutant in alarms), sep="\n")
    return bool(alarms) or len(missed) > max_missed * len(wrong)


if __name__ == "__main__":
    main()
