"""An engine of a search: `autotune search SPACE --engine neighbours`."""

import random

from autotune.searchers.base import evaluate


class NeighbourSearch:
    """Tries next what differs least from the best configuration so far."""

    def search(self, space, stream, *, seed):
        left = [space.config(row) for row in range(len(space))]
        random.Random(seed).shuffle(left)
        best, best_ms = left[0], float("inf")
        while left:
            config = min(left, key=lambda other: sum(best[name] != other[name] for name in best))
            left.remove(config)
            (trial,) = evaluate(stream, [config])
            if trial.score is not None and trial.score < best_ms:
                best, best_ms = config, trial.score
