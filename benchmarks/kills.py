"""Random kill -9 of compilers, the device's process and the search itself: what is lost, and who wins.

A search on the fake device is run once undisturbed. Then searches of the same space are disturbed: at random
moments one of their processes is killed. A search that is killed itself is started again by the same command,
and so is one that gave up because the same step of its preparation was killed twice, which is counted.
Each has to end with the winner and the trials of the undisturbed one; of the journal's rows none may vanish,
and only the trial in flight may be run again. The exit code is 1 if one does not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

SPACE = """\
schema: 1
kernel: double
dialect: python
source: double.py
reference: reference.py
sizes: {default: {n: 1000}}
verify_sizes: [{n: 1}, {n: 17}]
dtypes: [int32]
parameters:
  A: [1, 2, 3, 4, 5, 6]
  B: [0, 1, 2]
default: {A: 1, B: 0}
arguments:
  - {name: x, dtype: int32, shape: [n], role: in, fill: {integers: [-100, 100]}}
  - {name: y, dtype: int32, shape: [n], role: out}
  - {name: n, dtype: int32, value: n}
launch:
  - {entry: double, grid: [1], block: [1], arguments: [x, y, n]}
verify: {rtol: 0, atol: 0}
"""
# Processes say what they are, for the report: from outside all children look alike.
KERNEL = """\
import os, pathlib, time

def compiling():
    pathlib.Path(f"is-compiler-{os.getpid()}").touch()
    time.sleep(0.1)

def double(grid, block, x, y, n):
    pathlib.Path(f"is-device-{os.getpid()}").touch()
    time.sleep(0.001)
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return (A - 5) ** 2 + B + 1.0
"""
REFERENCE = """\
import time

def reference(inputs, sizes):
    time.sleep(0.05)
    return {"y": 2 * inputs["x"]}
"""
COMMAND = [sys.executable, "-m", "autotune", "search", "double.yaml", "--device", "fake", "--json"]
OPTIONS = ["--engine", "random", "--budget", "18", "--seed", "3", "--journal", "j.jsonl", "--cache", "cache"]


def main() -> None:
    """Kill until there were enough, and say what came of it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=30, help="how many processes to kill in all")
    parser.add_argument(
        "--every", type=float, help="mean seconds between two kills; half a search if left out"
    )
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    killed: Counter[str] = Counter()
    wrong: list[str] = []
    searches = given_up = 0
    with tempfile.TemporaryDirectory() as name:
        began = time.monotonic()
        undisturbed = Disturbed(Path(name) / "whole", draw, 0.0, Counter(), 0).run()
        every_s = given.every or (time.monotonic() - began) / 2
        while sum(killed.values()) < given.kills:
            searches += 1
            folder = Path(name) / str(searches)
            disturbed = Disturbed(folder, draw, every_s, killed, given.kills)
            wrong += [f"search {searches}: {text}" for text in disturbed.compared(undisturbed)]
            given_up += disturbed.given_up
    kinds = ", ".join(f"{count} of {kind}" for kind, count in killed.most_common())
    print(f"{sum(killed.values())} kills ({kinds}) in {searches} searches, one every {every_s:.1f} s")
    print(f"{given_up} preparations given up, {len(wrong)} deviations")
    print("\n".join(wrong))
    sys.exit(bool(wrong))


class Disturbed:
    """A search in a folder of its own, some of whose processes are killed."""

    def __init__(
        self, folder: Path, draw: random.Random, every_s: float, killed: Counter[str], kills: int
    ) -> None:
        self._folder = folder
        self._draw = draw
        self._every_s = every_s
        self._killed = killed
        self._kills = kills
        self.vanished = self.given_up = 0
        folder.mkdir()
        for name, text in (("double.yaml", SPACE), ("double.py", KERNEL), ("reference.py", REFERENCE)):
            (folder / name).write_text(text)

    def compared(self, undisturbed: dict[str, Any]) -> Iterator[str]:
        """Run it; in what it deviates from the undisturbed search."""
        result = self.run()
        for name in ("config", "time_ms", "trials", "counts"):
            if result.get(name) != undisturbed[name]:
                yield f"{name} is {result.get(name)}, not {undisturbed[name]}; {result.get('stderr', '')}"
        trials = [json.loads(row)["trial"] for row in self._rows() if '{"trial"' in row]
        yield from (
            f"{trial['config']} ended as {trial['status']}: {trial.get('detail')}"
            for trial in trials
            if trial["status"] != "ok"
        )
        if self.vanished:
            yield f"{self.vanished} rows of the journal vanished"
        keys = [trial["key"] for trial in trials]
        if len(keys) != len(set(keys)):
            yield "a trial that was recorded was run again"

    def run(self) -> dict[str, Any]:
        """Its result, however often it has to be started."""
        while True:
            before = self._rows()
            search = subprocess.Popen(
                [*COMMAND, *OPTIONS],
                cwd=self._folder,
                text=True,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            self._disturb(search)
            out, err = search.communicate()
            self.vanished += sum(row not in self._rows() for row in before)
            if search.returncode == 0:
                result: dict[str, Any] = json.loads(out)
                return result
            if "(killed by SIGKILL)" in err:
                self.given_up += 1
            elif search.returncode != -signal.SIGKILL:
                return {"stderr": err.strip()}

    def _disturb(self, search: subprocess.Popen[str]) -> None:
        while search.poll() is None and sum(self._killed.values()) < self._kills:
            with suppress(subprocess.TimeoutExpired):
                search.wait(self._draw.uniform(0, 2 * self._every_s))
            with suppress(OSError):  # it has ended meanwhile
                servers = _children(search.pid)
                others = [*servers, *(child for server in servers for child in _children(server))]
                if self._draw.random() < 0.2:
                    victim = search.pid
                elif others:
                    victim = self._draw.choice(others)
                else:
                    continue
                os.kill(victim, signal.SIGKILL)
                self._killed[self._kind(victim, search.pid)] += 1
                time.sleep(0.05)

    def _kind(self, pid: int, search: int) -> str:
        if pid == search:
            return "the search"
        marks = list(self._folder.glob(f"is-*-{pid}"))
        return {"device": "the device's process", "compiler": "a compiler"}.get(
            marks[0].name.split("-")[1] if marks else "", "a process that has just started"
        )

    def _rows(self) -> list[str]:
        """The whole lines of the journal."""
        path = self._folder / "j.jsonl"
        return path.read_text().split("\n")[:-1] if path.exists() else []


def _children(pid: int) -> list[int]:
    return list(map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split()))


if __name__ == "__main__":
    main()
