"""Searches on a Dask cluster whose workers and scheduler are killed, stopped and started again at random.

    python benchmarks/cluster_chaos.py [--runs 50] [--every 15] [--seed 0]

Scheduler, workers and fake devices run on this machine; no GPU is needed. Disturbances come after a random
number of further trials, so a slow machine sees as many as a fast one. A search that ends because the
scheduler or all workers are gone is started again by the same command. Each search has to end with the best
configuration, and with every configuration in its journal once. The exit code is 1 if one does not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from waiting_kernel import write_waiting_kernel

PARAMETERS = {"A": range(10), "B": range(8)}
CONFIGURATIONS, BEST = 80, {"A": 5, "B": 0}
WORKERS = 3
MAX_STARTS = 20  # of one search
MAX_SEARCH_S = 900.0
MAX_IDLE_S = 30.0


class Cluster:
    """A scheduler and workers in processes of their own, which can be disturbed and mended."""

    def __init__(self, folder: Path, chance: random.Random) -> None:
        """Start nothing yet."""
        with closing(socket.socket()) as found:
            found.bind(("127.0.0.1", 0))
            self._port = found.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self._port}"
        self._folder = folder
        self._chance = chance
        self._scheduler: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []
        self._stopped: list[subprocess.Popen[bytes]] = []

    def mend(self) -> None:
        """Start what is missing, and let stopped workers go on."""
        if self._scheduler is None or self._scheduler.poll() is not None:
            self._scheduler = self._start("scheduler", "--host", "127.0.0.1", "--port", str(self._port))
        self._go_on()
        self._workers = [one for one in self._workers if one.poll() is None]
        while len(self._workers) < WORKERS:
            self._workers.append(self._start("worker", self.address, "--nthreads", "1", "--no-nanny"))

    def disturb(self) -> str:
        """Do one thing at random; return what."""
        what = self._chance.choice(["kill a worker", "stop a worker", "go on", "restart the scheduler"])
        if what == "restart the scheduler":
            assert self._scheduler is not None
            for process in (self._scheduler, *self._workers):
                _end(process)
        elif what == "go on":
            self._go_on()
        else:
            worker = self._chance.choice(self._workers)
            if what == "kill a worker":
                _end(worker)
            elif worker not in self._stopped:
                worker.send_signal(signal.SIGSTOP)
                self._stopped.append(worker)
        if what != "stop a worker":
            self.mend()
        return what

    def close(self) -> None:
        """End all processes."""
        for process in (*self._workers, *filter(None, [self._scheduler])):
            _end(process)

    def _go_on(self) -> None:
        for worker in self._stopped:
            if worker.poll() is None:
                worker.send_signal(signal.SIGCONT)
        self._stopped.clear()

    def _start(self, kind: str, *arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{kind}", *arguments, "--no-dashboard"],
            cwd=self._folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def main() -> None:
    """Run the searches and print what came of each."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--every", type=float, default=15.0, help="mean trials between two disturbances")
    parser.add_argument("--seed", type=int, default=0)
    parsed = parser.parse_args()
    chance = random.Random(parsed.seed)
    os.environ["AUTOTUNE_FAKE_DEVICES"] = str(WORKERS)
    os.environ["DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL"] = "20 s"
    wrong = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_waiting_kernel(folder, PARAMETERS, 0.02, "(A - 5) ** 2 + B + 1.0")
        cluster = Cluster(folder, chance)
        try:
            for run in range(parsed.runs):
                problem, starts, done = search(cluster, folder, f"{run}.jsonl", parsed.every, chance)
                wrong += bool(problem)
                told = ", ".join(f"{what} {count}x" for what, count in sorted(done.items()))
                print(f"run {run}: {problem or 'ok'}; started {starts}x; {told or 'undisturbed'}", flush=True)
        finally:
            cluster.close()
    print(f"{parsed.runs - wrong} of {parsed.runs} searches ended as they should")
    sys.exit(1 if wrong else 0)


def search(
    cluster: Cluster, folder: Path, journal: str, every: float, chance: random.Random
) -> tuple[str, int, Counter[str]]:
    """Search until the command succeeds; return what is wrong, the number of starts, and the disturbances."""
    command = [sys.executable, "-m", "autotune", "search", "wait.yaml", "--device", "fake", "--json"]
    options = ["--cluster", cluster.address, "--journal", journal, "--engine", "exhaustive"]
    done: Counter[str] = Counter()
    deadline = time.monotonic() + MAX_SEARCH_S
    due, seen, seen_s = chance.expovariate(1 / every), 0, time.monotonic()
    for starts in range(1, MAX_STARTS + 1):
        cluster.mend()
        process = subprocess.Popen(
            [*command, *options], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        while process.poll() is None:
            time.sleep(0.05)
            rows = _rows(folder / journal)
            if rows >= due:
                done[cluster.disturb()] += 1
                due = rows + chance.expovariate(1 / every)
            if rows > seen:
                seen, seen_s = rows, time.monotonic()
            elif time.monotonic() - seen_s > MAX_IDLE_S:  # too few workers are left
                cluster.mend()
                seen_s = time.monotonic()
            if time.monotonic() > deadline:
                process.kill()
                return f"did not end within {MAX_SEARCH_S:g} s", starts, done
        out, err = process.communicate()
        if process.returncode == 0:
            return _problem(json.loads(out)["config"], folder / journal), starts, done
        if "Traceback" in err:
            return err.strip().splitlines()[-1], starts, done
    return f"did not end: {err.strip()}", starts, done


def _rows(journal: Path) -> int:
    """The trials in a journal so far."""
    return journal.read_text().count('{"trial"') if journal.exists() else 0


def _problem(found: dict[str, int], journal: Path) -> str:
    """What is wrong with a search that ended; empty if nothing is."""
    rows = [json.loads(line) for line in journal.read_text().splitlines()]
    count = Counter(row["trial"]["key"] for row in rows if "trial" in row)
    failed = Counter(row["trial"]["status"] for row in rows if "trial" in row)
    twice = sum(number > 1 for number in count.values())
    problems = [
        f"the winner is {found}" if found != BEST else "",
        f"{len(count)} of {CONFIGURATIONS} trials are in the journal" if len(count) != CONFIGURATIONS else "",
        f"{twice} trials are in the journal twice" if twice else "",
        f"statuses {dict(failed)}" if set(failed) != {"ok"} else "",
    ]
    return "; ".join(filter(None, problems))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()


if __name__ == "__main__":
    main()
