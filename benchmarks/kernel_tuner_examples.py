"""Kernel Tuner's scripts beside themselves with the import line changed: what each finds, in what time.

    python benchmarks/kernel_tuner_examples.py FOLDER [--scripts A.py B.py] [--configurations N]
        [--left-out A.py B.py] [--calls N] [--limit-s S] [--total-s S] [--results FILE]
        [--replace OLD NEW]

FOLDER holds the scripts, such as `examples/cuda` of a checkout of Kernel Tuner. Each script runs twice in
fresh processes: as it is, and with `from kernel_tuner` and `import kernel_tuner` replaced; nothing else of it
is changed. Brute force over millions of configurations ends in neither tool, so parameters lose every second
value, the longest list first, until no call has more than N combinations: the same ones in both.

The clocks of the two tools count differently, and the least of many noisy times flatters its configuration,
so the two choices of the first two calls are timed again: the script runs once more under Kernel Tuner with
these configurations alone, in turns, and "choice" is the median of all runs of autotune's over that of Kernel
Tuner's own. The wall time of a tool is that of all its calls in the script, with compiling, verifying and
autotune's last round. CUDA_CACHE_DISABLE=1 is set for both, and autotune's cache of binaries is empty. Calls
of a script after its first two get few configurations; with `--calls` a script ends after so many calls. The
table has a line for each script; what does not run has its reason.
`--replace` changes a text in all scripts and kernels, for both tools: a problem size too large for a CPU.
Results are added to FILE, so a long list can be run in parts: scripts that FILE has are left out unless they
are named. The table shows all of them.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import runpy
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from numbers import Real
from pathlib import Path
from statistics import median
from typing import Any

TUNERS = ("kernel_tuner", "autotune")
ROOT = Path(__file__).parents[1]
CALLS, PICKS = "calls.jsonl", "picks.json"
ROUNDS, SAMPLES = 4, 32  # in which two choices are timed again, and runs of each in a round
# options that search, verify or observe, which have no part in timing two choices
_NOT_TIMED = (
    *("strategy", "strategy_options", "cache", "answer", "verify", "observers", "metrics"),
    *("objective", "objective_higher_is_better"),
)
FULL_CALLS, FURTHER = 2, 8  # calls of a script that get all configurations, and how many further ones get
Call = dict[str, Any]
_IMPORTS = (
    (r"^(\s*)from kernel_tuner import", r"\1from autotune.kernel_tuner import"),
    (r"^(\s*)import kernel_tuner\s*$", r"\1import autotune.kernel_tuner as kernel_tuner"),
)


def changed(script: str) -> str:
    """A script with its import lines changed."""
    for pattern, replacement in _IMPORTS:
        script = re.sub(pattern, replacement, script, flags=re.MULTILINE)
    return script


def thinned(params: Mapping[str, Any], most: int) -> dict[str, Any]:
    """Parameters that have at most so many combinations: the longest list loses every second value."""
    kept = {name: list(values) for name, values in params.items()}
    while math.prod(map(len, kept.values())) > most:
        longest = max(kept, key=lambda name: len(kept[name]))
        kept[longest] = kept[longest][::2]
    return kept


def recording(tune_kernel: Callable[..., Any], most: int, max_calls: float) -> Callable[..., Any]:
    """`tune_kernel` that gets thinned parameters, writes what it found to CALLS and ends its script."""
    calls = 0

    def recorded(
        kernel_name: str, source: Any, size: Any, arguments: Any, tune_params: Any, *rest: Any, **options: Any
    ) -> Any:
        nonlocal calls
        calls += 1
        params = thinned(tune_params, most if calls <= FULL_CALLS else FURTHER)
        began = time.perf_counter()
        found = tune_kernel(kernel_name, source, size, arguments, params, *rest, **options)
        seconds = time.perf_counter() - began
        rows = [[{name: row[name] for name in params}, _time_ms(row)] for row in found[0]]
        best = {name: found[1]["best_config"][name] for name in params}
        line = {"kernel": kernel_name, "seconds": seconds, "rows": rows, "best": best}
        with Path(CALLS).open("a") as file:
            file.write(json.dumps(line, default=float) + "\n")
        if calls >= max_calls:
            sys.exit()
        return found

    return recorded


def deciding(tune_kernel: Callable[..., Any], picks: list[list[dict[str, Any]]]) -> Callable[..., Any]:
    """`tune_kernel` that times the picks of each call in turns and writes the medians to CALLS."""
    left = iter(picks)

    def decided(
        kernel_name: str, source: Any, size: Any, arguments: Any, tune_params: Any, *rest: Any, **options: Any
    ) -> Any:
        pair = next(left, None)
        if pair is None:  # the further calls are not decided
            sys.exit()
        times: list[list[float]] = [[] for _ in pair]
        options = {name: value for name, value in options.items() if name not in _NOT_TIMED}
        options |= {"iterations": SAMPLES, "quiet": True}
        for number in range(ROUNDS if len(pair) > 1 else 1):
            order = list(zip(pair, times, strict=True))
            for config, column in order if number % 2 else reversed(order):
                params = {name: [config[name]] for name in tune_params}
                found = tune_kernel(kernel_name, source, size, arguments, params, *rest, **options)
                column.extend(map(float, found[0][0]["times"]))
        with Path(CALLS).open("a") as file:
            file.write(json.dumps({"medians": [median(column) for column in times]}) + "\n")
        return found

    return decided


def _time_ms(row: Mapping[str, Any]) -> float | None:
    """The time of a configuration; None for one that failed: older versions have an error in its place."""
    time_ms = row.get("time")
    return float(time_ms) if isinstance(time_ms, Real) and "__error__" not in row else None


def run_script(tuner: str, script: Path, most: int, max_calls: float) -> None:
    """Run a script in this process, in its folder, as one of the tuners runs it."""
    package: Any = import_module("autotune.kernel_tuner" if tuner == "autotune" else "kernel_tuner")
    if Path(PICKS).exists():
        package.tune_kernel = deciding(package.tune_kernel, json.loads(Path(PICKS).read_text()))
    else:
        package.tune_kernel = recording(package.tune_kernel, most, max_calls)
    if tuner == "autotune":
        script.write_text(changed(script.read_text()))
    if script.name.startswith("test_"):
        import pytest

        code = pytest.main(["-q", "-p", "no:cacheprovider", str(script)])
        sys.exit(int(code))
    sys.argv = [str(script)]
    sys.path.insert(0, str(script.parent))
    runpy.run_path(str(script), run_name="__main__")


def fresh_process(
    tuner: str, script: Path, parsed: argparse.Namespace, picks: list[list[Any]] | None = None
) -> dict[str, Any]:
    """Run a script in a copy of its folder; what its calls found, and why it ended if it failed.

    With `picks` its calls time these configurations only.
    """
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home) / "scripts"
        shutil.copytree(script.parent, folder)
        for path in (path for path in folder.iterdir() if path.suffix in (".py", ".cl", ".cu")):
            text = path.read_text()
            for old, new in parsed.replace:
                text = text.replace(old, new)
            path.write_text(text)
        if picks is not None:
            (folder / PICKS).write_text(json.dumps(picks))
        environment = os.environ | {"CUDA_CACHE_DISABLE": "1", "XDG_CACHE_HOME": home, "MPLBACKEND": "Agg"}
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        own = [sys.executable, str(Path(__file__).absolute()), str(script.parent)]
        options = ["--only", tuner, "--scripts", script.name, "--configurations", str(parsed.configurations)]
        options += ["--calls", str(parsed.calls)]
        with (Path(home) / "log").open("w+") as log:
            child = subprocess.Popen(
                [*own, *options],
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            try:
                code, reason = child.wait(parsed.limit_s), ""
            except subprocess.TimeoutExpired:
                code, reason = None, f"stopped after {parsed.limit_s:g} s"
            finally:
                if child.poll() is None:
                    os.killpg(child.pid, signal.SIGKILL)
                    child.wait()
            log.seek(0)
            said = [line.strip() for line in log.read().splitlines() if line.strip()]
        if code:
            reason = next(
                (line for line in reversed(said) if _tells(line)), said[-1] if said else f"exit {code}"
            )
        calls = folder / CALLS
        found = [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []
    return {"calls": found, "reason": re.sub(r"^autotune\.errors\.\w+: ", "", reason)[:160]}


def _tells(line: str) -> bool:
    """Whether a line is that of an exception or of a skipped test."""
    return (
        re.match(r"(E\s+)?[\w.]*(Error|Exception|Interrupt)\b|SKIPPED|\d+ (passed|skipped|failed)", line)
        is not None
    )


def decisions(found: Mapping[str, Any]) -> list[float]:
    """The time of autotune's choice over that of Kernel Tuner's, for each call that was decided."""
    return [call["medians"][0] / call["medians"][-1] for call in found["decided"]["calls"]]


def picks_of(found: Mapping[str, Any]) -> list[list[Any]]:
    """The choices of both tools for the first calls that both made: one where they agree."""
    pairs = zip(*(found[tuner]["calls"][:FULL_CALLS] for tuner in ("autotune", "kernel_tuner")), strict=False)
    return [
        [mine["best"]] if mine["best"] == theirs["best"] else [mine["best"], theirs["best"]]
        for mine, theirs in pairs
    ]


def table_line(script: str, found: Mapping[str, Any]) -> str:
    """One line of the table in Markdown."""
    mine, theirs = found["autotune"], found["kernel_tuner"]
    pairs = list(zip(mine["calls"], theirs["calls"], strict=False))
    configurations = [sum(len(call["rows"]) for call in side["calls"]) for side in (mine, theirs)]
    seconds = [sum(call["seconds"] for call in side) for side in zip(*pairs, strict=True)] if pairs else []
    ratios = decisions(found) if "decided" in found else []
    notes = [
        f"{name}: {side['reason']}"
        for name, side in (("Kernel Tuner", theirs), ("autotune", mine))
        if side["reason"]
    ]
    cells = [
        f"`{script}`",
        str(len(pairs)),
        " / ".join(map(str, configurations)) if pairs else "",
        ", ".join(_best_ms(mine_) for mine_, _ in pairs[:2]) + (", ..." if len(pairs) > 2 else ""),
        ", ".join(_best_ms(theirs_) for _, theirs_ in pairs[:2]) + (", ..." if len(pairs) > 2 else ""),
        f"{max(ratios):.3f}" if ratios else "",
        f"{seconds[0]:.1f} / {seconds[1]:.1f} s" if seconds else "",
        "; ".join(notes),
    ]
    return f"| {' | '.join(cells)} |"


def _best_ms(call: Call) -> str:
    times = {json.dumps(config, sort_keys=True): time_ms for config, time_ms in call["rows"]}
    time_ms = times.get(json.dumps(call["best"], sort_keys=True))
    return f"{time_ms:.4g}" if time_ms else "?"


def main() -> None:
    """Run the scripts that are asked for and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path, help="with the scripts and the kernels that they read")
    parser.add_argument("--scripts", nargs="+", metavar="NAME", help="which (default: all, short ones first)")
    parser.add_argument("--left-out", nargs="+", metavar="NAME", default=[], help="which not")
    parser.add_argument(
        "--configurations", type=int, default=150, help="at most, per call (default %(default)s)"
    )
    parser.add_argument("--calls", type=float, default=math.inf, help="a script ends after so many")
    parser.add_argument(
        "--limit-s", type=float, default=60, help="for a script in a tool (default %(default)s)"
    )
    parser.add_argument(
        "--total-s", type=float, default=400, help="no script begins later (default %(default)s)"
    )
    parser.add_argument(
        "--replace",
        nargs=2,
        action="append",
        default=[],
        metavar=("OLD", "NEW"),
        help="a text of scripts and kernels, for both tools",
    )
    parser.add_argument("--results", type=Path, help="a JSON file that results are added to")
    parser.add_argument("--only", choices=TUNERS, help=argparse.SUPPRESS)
    parsed = parser.parse_args()
    by_length = sorted(parsed.folder.glob("*.py"), key=lambda path: (path.stat().st_size, path.name))
    scripts = parsed.scripts or [path.name for path in by_length if path.name not in parsed.left_out]
    if parsed.only:
        run_script(parsed.only, Path.cwd() / scripts[0], parsed.configurations, parsed.calls)
        return
    known = json.loads(parsed.results.read_text()) if parsed.results and parsed.results.exists() else {}
    began = time.perf_counter()
    for name in scripts if parsed.scripts else [name for name in scripts if name not in known]:
        if time.perf_counter() - began > parsed.total_s:
            print(f"{name}: not begun after {parsed.total_s:g} s", flush=True)
            continue
        path = parsed.folder.absolute() / name
        known[name] = {tuner: fresh_process(tuner, path, parsed) for tuner in TUNERS}
        if parsed.results:  # also if there is no time left for the decision
            parsed.results.write_text(json.dumps(known))
        if picks := picks_of(known[name]):
            known[name]["decided"] = fresh_process("kernel_tuner", path, parsed, picks)
        print(table_line(name, known[name]), flush=True)
        if parsed.results:
            parsed.results.write_text(json.dumps(known))
    print(
        "\n| script | calls | configurations | autotune ms | Kernel Tuner ms | choice | wall time | notes |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name, found in sorted(known.items()):
        print(table_line(name, found))


if __name__ == "__main__":
    main()
