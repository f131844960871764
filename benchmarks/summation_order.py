"""The error of a sum of float32 by the order of its additions, as the steps of the reduction have them.

Runs without a GPU: numpy adds in the same orders, in float32.

    python benchmarks/summation_order.py [N]
"""

import math
import sys
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Vector = NDArray[np.float32]
THREADS = 65_536


def one_after_another(x: Vector) -> float:
    """As atomics do it, and a loop on a CPU."""
    return float(np.add.accumulate(x)[-1])


def neighbours(x: Vector) -> float:
    """A tree of pairs, one level after the other."""
    while len(x) > 1:
        x = np.append(x, np.zeros(len(x) % 2, np.float32))
        x = x[::2] + x[1::2]
    return float(x[0])


def halves(x: Vector) -> float:
    """The tree whose distance halves."""
    while len(x) > 1:
        x = np.append(x, np.zeros(len(x) % 2, np.float32))
        x = x[: len(x) // 2] + x[len(x) // 2 :]
    return float(x[0])


def cascade(x: Vector) -> float:
    """A grid that sweeps over the elements, then a tree of its threads' sums."""
    columns = np.append(x, np.zeros(-len(x) % THREADS, np.float32)).reshape(-1, THREADS)
    return halves(np.add.accumulate(columns, axis=0)[-1])


def compensated(x: Vector) -> float:
    """The same sweep, where every thread keeps what rounding took from its sum (Kahan)."""
    columns = np.append(x, np.zeros(-len(x) % THREADS, np.float32)).reshape(-1, THREADS)
    total, lost = np.zeros(THREADS, np.float32), np.zeros(THREADS, np.float32)
    for row in columns:
        term = row - lost
        larger = total + term
        lost, total = (larger - total) - term, larger
    return halves(total)


ORDERS: dict[str, Callable[[Vector], float]] = {
    "one after the other (R0)": one_after_another,
    "a tree of neighbours (R2)": neighbours,
    "an interleaved tree (R4)": halves,
    f"{THREADS:,} threads, then a tree (R9)": cascade,
    "the same, compensated": compensated,
}


def main(n: int) -> None:
    """Print a table with a row for each order."""
    print(f"{n:,} uniform numbers in [0, 1)\n\n| order | relative error |\n|---|---|")
    x = np.random.default_rng(0).random(n, np.float32)
    exact = math.fsum(x)
    for name, order in ORDERS.items():
        print(f"| {name} | {abs(order(x) - exact) / exact:.1e} |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 2**24)
