"""What another order of the compilers' queue would gain: recorded searches on a virtual clock.

    python benchmarks/queue_order.py FILE... [--budget 100] [--seeds 6] [--compile-s 1] [--spread 0.5]
                                     [--run-s 0.02] [--compilers 14 6 2]

FILE: recorded results that `search_efficiency.py` reads. The default search proposes; so many compilers take
configurations from a queue, each for a random time (lognormal, with the median --compile-s and this spread of
its logarithm), and one device runs each for --run-s. Proposals depend on the order in which trials end, so
each order is a search of its own.

    submitted     both the queue and the device take the oldest, as it is
    compiled      the device takes the oldest of those that are compiled
    newest        likewise, and compilers take the newest: it comes from the best informed model
    fastest       both take the truly fastest, which no prediction can beat

    whole s       until the last trial
    to within 1%  time until the best so far is within 1% of the end of the first order's search, over that
                  search's own time until then (of those that get there; their share follows)
    above, end    how much longer the best so far takes than the optimum (mean of the logarithm): over the
                  time of the first order's search, and at the end
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from statistics import geometric_mean, mean

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from replay import Recorded, load

from autotune.core.records import Config
from autotune.core.trials import Trial
from autotune.errors import NoMoreTrials
from autotune.searchers import make_searcher

ORDERS = ("submitted", "compiled", "newest", "fastest")
MODEL_S, PROPOSAL_S = 0.02, 0.006  # that the searcher takes


class Timed:
    """Answers from a recording, on a clock of its own."""

    parallel = 1

    def __init__(self, recorded: Recorded, order: str, compilers: int, options: argparse.Namespace) -> None:
        self.recorded, self.order, self.left = recorded, order, options.budget
        self.ended: list[tuple[float, int]] = []  # when each row ended
        self._now_s = self._device_s = 0.0
        self._run_s, self._free_s = options.run_s, [0.0] * compilers
        spread = np.random.default_rng(len(recorded.trials)).lognormal(
            0.0, options.spread, len(recorded.trials)
        )
        self._compile_s = options.compile_s * spread
        self._submitted: dict[int, float] = {}  # when, of each row
        self._waiting: list[int] = []  # for a compiler
        self._compiled: dict[int, float] = {}  # when, of rows that a compiler has taken
        self._pending: list[int] = []

    def submit(self, configs: Sequence[Config]) -> None:
        """Queue what is new."""
        self._take(self._now_s)
        self._now_s += MODEL_S + PROPOSAL_S * len(configs)
        for config in configs:
            row = self.recorded.space.index(config)
            if row is not None and row not in self._submitted and self.left:
                self.left -= 1
                self._submitted[row] = self._now_s
                self._waiting.append(row)
                self._pending.append(row)
        self._take(self._now_s)

    def collect(self) -> list[Trial]:
        """The next trial."""
        if not self._pending:
            raise NoMoreTrials
        row = self._next()
        self._device_s = max(self._compiled[row], self._device_s) + self._run_s
        self._now_s = max(self._now_s, self._device_s)
        self._take(self._now_s)
        self._pending.remove(row)
        self.ended.append((self._device_s, row))
        return [self.recorded.trials[row]]

    def _next(self) -> int:
        """The row that the device runs next."""
        if self.order == "submitted":
            while self._pending[0] not in self._compiled:
                self._take(min(self._free_s))
            return self._pending[0]
        self._take(max(self._device_s, min(self._free_s)))
        taken = [row for row in self._pending if row in self._compiled]
        ready = [row for row in taken if self._compiled[row] <= self._device_s]
        return min(ready, key=self._rank) if ready else min(taken, key=self._compiled.__getitem__)

    def _take(self, until_s: float) -> None:
        """Let compilers that are free by then take rows."""
        while self._waiting and (free_s := min(self._free_s)) <= until_s:
            row = min(self._waiting, key=self._rank)
            self._waiting.remove(row)
            ends_s = max(free_s, self._submitted[row]) + self._compile_s[row]
            self._free_s[self._free_s.index(free_s)] = self._compiled[row] = ends_s

    def _rank(self, row: int) -> float:
        if self.order == "fastest":
            return float(np.nan_to_num(self.recorded.times_ms[row], nan=np.inf))
        return -self._submitted[row] if self.order == "newest" else self._submitted[row]


def run(recorded: Recorded, order: str, compilers: int, seed: int, options: argparse.Namespace) -> Timed:
    """One search."""
    stream = Timed(recorded, order, compilers, options)
    with suppress(NoMoreTrials):
        make_searcher("surrogate", None).search(recorded.space, stream, seed=seed)
    return stream


def best_at(stream: Timed, time_s: float) -> float:
    """The best time that is known then; the slowest recorded one before any is."""
    times = [stream.recorded.times_ms[row] for ended_s, row in stream.ended if ended_s <= time_s]
    worst = float(np.nanmax(stream.recorded.times_ms))
    return float(np.nanmin([worst, *times]))


def main() -> None:
    """Print a line for each order and number of compilers, over all files and seeds."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("files", metavar="FILE", nargs="+", type=Path)
    parser.add_argument("--budget", type=int, default=100)
    parser.add_argument("--seeds", type=int, default=6)
    parser.add_argument("--compile-s", type=float, default=1.0)
    parser.add_argument("--run-s", type=float, default=0.02)
    parser.add_argument("--spread", type=float, default=0.5)
    parser.add_argument("--compilers", type=int, nargs="+", default=(14, 6, 2))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    records = [load(path) for path in options.files]
    heads = ("whole s", "to within 1%", "reached", "above", "end")
    print(f"{'compilers':<11}{'order':<11}" + "".join(map("{:>14}".format, heads)))
    for compilers in options.compilers:
        usual: list[Timed] = []
        for order in ORDERS:
            runs = [
                run(recorded, order, compilers, seed, options)
                for recorded in records
                for seed in range(options.seeds)
            ]
            usual = usual or runs
            ratios, above, ends = [], [], []
            for found, as_it_is in zip(runs, usual, strict=True):
                goal = 1.01 * best_at(as_it_is, np.inf)
                first, own = (_reached_s(one, goal) for one in (as_it_is, found))
                if own is not None and first is not None:
                    ratios.append(own / first)
                times_s = np.linspace(0, as_it_is.ended[-1][0], 41)[1:]
                optimum = float(np.nanmin(found.recorded.times_ms))
                above.append(mean(float(np.log(best_at(found, at_s) / optimum)) for at_s in times_s))
                ends.append(float(np.log(best_at(found, np.inf) / optimum)))
            whole = mean(one.ended[-1][0] for one in runs)
            print(
                f"{compilers:<11}{order:<11}{whole:>14.1f}{geometric_mean(ratios or [np.nan]):>14.2f}"
                f"{len(ratios) / len(runs):>14.0%}{mean(above):>14.3f}{mean(ends):>14.3f}",
                flush=True,
            )


def _reached_s(stream: Timed, goal_ms: float) -> float | None:
    """When a search first knew a time as good as this; None if it never did."""
    return next((ended_s for ended_s, row in stream.ended if stream.recorded.times_ms[row] <= goal_ms), None)


if __name__ == "__main__":
    main()
