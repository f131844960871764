"""How many held-out mistakes a search finds, and whether it stores one.

    python benchmarks/held_out.py FOLDER [KERNEL ...] [--device opencl] [--time 200]

held_out/ has twelve kernels that the project does not ship. They were written from the README and the
documentation alone, and frozen before any of them ran; only `bits` then got a second fence. The parameter
VARIANT is 0 where a kernel is right. Each other value plants one mistake, which held_out.yaml describes.

Each kernel is searched. Then the fastest configuration of each variant that the search called right is
checked by name. A mistake is found in the search if all its configurations fail, and by name if that one
does. Exits with 1 if a right variant fails.

Journals are kept in FOLDER, and kernels with outcomes there are not tried again. The table shows all of
FOLDER, so use one for each device.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).parents[1]
SET = Path(__file__).with_suffix("")
NOTHING = "nothing"  # shows a variant that is right all the same
SEARCH, NAME, STORED, MISSED, UNTRIED = "found in a search", "found by name", "stored", "missed", "not tried"
RIGHT, ALARM = "right", "FALSE ALARM"  # of a right variant
OUTCOMES = (SEARCH, NAME, STORED, MISSED, UNTRIED)


@dataclass(frozen=True)
class Mistake:
    """What is wrong in a variant; it has no effect in configurations with values that are `harmless`."""

    shows: str
    what: str
    harmless: Mapping[str, int]

    def is_in(self, config: Mapping[str, int]) -> bool:
        """True if a configuration of the variant has the mistake."""
        return not (self.harmless and self.harmless.items() <= config.items())


@dataclass(frozen=True)
class Outcome:
    """What became of a variant, with words about it."""

    kind: str
    words: str = ""


@dataclass(frozen=True)
class Trial:
    """A configuration that a search tried: the time is that of one that it called right."""

    config: dict[str, int]
    failure: str
    time_ms: float
    note: str  # of the checks before it is stored

    @property
    def name(self) -> str:
        """The configuration as `--config` takes it."""
        return ",".join(f"{name}={value}" for name, value in self.config.items())


def read_mistakes() -> dict[str, dict[int, Mistake]]:
    """The variants of each kernel, the right one included."""
    every: dict[str, list[dict[str, Any]]] = yaml.safe_load(SET.with_suffix(".yaml").read_text())
    return {
        kernel: {0: Mistake(NOTHING, "no mistake", {})}
        | {
            number: Mistake(one["shows"], one["what"], one.get("harmless", {}))
            for number, one in enumerate(mistakes, 1)
        }
        for kernel, mistakes in every.items()
    }


def run(folder: Path, verb: str, kernel: str, words: Iterable[str]) -> Any:
    """The JSON that a command of autotune prints; None without any."""
    command = [sys.executable, "-m", "autotune", verb, str(SET / f"{kernel}.yaml"), *words]
    command += ["--cache", "cache", "--journal", f"{verb}.jsonl", "--timeout", "10", "--json"]
    environment = {"PYTHONPATH": str(ROOT), **os.environ}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    (folder / f"{verb}.errors.txt").write_text(done.stderr)
    return json.loads(done.stdout) if done.stdout else None


def trials_of(journal: Path) -> list[Trial]:
    """The configurations of a journal with their last results."""
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    checks: dict[str, dict[str, dict[str, str]]] = {}
    for row in rows:
        checks |= row.get("checks", {})
    found: dict[str, Trial] = {}
    for row in (row["trial"] for row in rows if "trial" in row):
        failure = "" if row["status"] == "ok" else f"{row['status']}: {row.get('detail', '')}"
        samples = sorted((row.get("measurement") or {}).get("samples_ms") or [0.0])
        made = checks.get(row["key"], {})
        note = "; ".join([*made.get("late", {}).values(), *made.get("could not run", {}).values()])
        before = found.get(row["key"])
        if before is None or not before.failure:
            found[row["key"]] = Trial(row["config"], failure, samples[len(samples) // 2], note)
    return [*found.values()]


def outcomes_of(
    folder: Path, kernel: str, mistakes: Mapping[int, Mistake], device: str, seconds: float
) -> dict[int, Outcome]:
    """Search a kernel, check by name what passed, and return what became of each variant."""
    options = ("-d", device)
    limits = ("--engine", "exhaustive", "--budget", "1000", "--time", str(seconds))
    result = run(folder, "search", kernel, (*options, *limits)) or {}
    stored = [result["config"], *result["ties"]] if "config" in result else []
    tried: dict[int, list[Trial]] = {number: [] for number in mistakes}
    for trial in trials_of(folder / "search.jsonl"):
        number = trial.config["VARIANT"]
        if mistakes[number].is_in(trial.config):
            tried[number].append(trial)
    passed = {number: [one for one in trials if not one.failure] for number, trials in tried.items()}
    fastest = [min(trials, key=lambda one: one.time_ms) for trials in passed.values() if trials]
    named = [word for trial in fastest for word in ("--config", trial.name)]
    checked = run(folder, "check", kernel, (*options, *named)) if named else []
    by_name = {
        one["config"]["VARIANT"]: "" if one["status"] == "ok" else f"{one['status']}: {one['detail']}"
        for one in checked or ()
    }
    failures = [one.failure for one in tried[0] if one.failure] + [by_name.get(0, "")]
    right = Outcome(ALARM, failures[0]) if failures[0] else Outcome(RIGHT)
    return {0: right} | {
        number: _outcome(tried[number], passed[number], stored, by_name.get(number))
        for number in mistakes
        if number
    }


def _outcome(
    tried: Sequence[Trial], passed: Sequence[Trial], stored: Sequence[dict[str, int]], by_name: str | None
) -> Outcome:
    if kept := [one for one in passed if one.config in stored]:
        return Outcome(STORED, f"{kept[0].note or 'nothing is said'}; by name: {by_name or 'nothing'}")
    if tried and not passed:
        return Outcome(SEARCH, tried[0].failure)
    if by_name is None:
        return Outcome(UNTRIED, "by name" if tried else "")
    return Outcome(NAME, by_name) if by_name else Outcome(MISSED)


def table(found: Iterable[tuple[Mistake, Outcome]]) -> str:
    """Markdown: the outcomes by what shows a mistake."""
    counts: dict[str, Counter[str]] = {}
    for mistake, outcome in found:
        if mistake.shows != NOTHING:
            counts.setdefault(mistake.shows, Counter())[outcome.kind] += 1
    every = sum(counts.values(), Counter[str]())
    rows = [*sorted(counts.items()), ("all", every)]
    lines = [
        f"| {kind} | {count.total()} | {' | '.join(str(count[one]) for one in OUTCOMES)} |"
        for kind, count in rows
    ]
    head = f"| what shows it | mistakes | {' | '.join(OUTCOMES)} |"
    return "\n".join([head, "|---" * (len(OUTCOMES) + 2) + "|", *lines])


def main() -> None:
    """Try the kernels, and print what was not found and the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("kernels", nargs="*", help="names of kernels (default all)")
    parser.add_argument("--device", default="opencl", help="as of autotune search (default %(default)s)")
    parser.add_argument("--time", type=float, default=200, metavar="S", help="of each search (default 200)")
    asked = parser.parse_args()
    every = read_mistakes()
    found: list[tuple[Mistake, Outcome]] = []
    for kernel, mistakes in every.items():
        file = asked.folder.resolve() / kernel / "outcomes.json"
        if not file.exists() and kernel in (asked.kernels or every):
            file.parent.mkdir(parents=True, exist_ok=True)
            outcomes = outcomes_of(file.parent, kernel, mistakes, asked.device, asked.time)
            file.write_text(json.dumps({number: vars(one) for number, one in outcomes.items()}, indent=1))
        if not file.exists():
            continue
        for number, one in json.loads(file.read_text()).items():
            mistake, outcome = mistakes[int(number)], Outcome(**one)
            found.append((mistake, outcome))
            if outcome.kind == ALARM or (mistake.shows != NOTHING and outcome.kind not in (SEARCH, NAME)):
                print(f"{kernel} {number}, {mistake.what}: {outcome.kind}: {outcome.words}", flush=True)
    print(f"\n{table(found)}")
    sys.exit(any(outcome.kind == ALARM for _, outcome in found))


if __name__ == "__main__":
    main()
