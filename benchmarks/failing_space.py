"""A recorded space with failures: a third of its configurations, by a rule that no searcher can see, fail.

    python benchmarks/failing_space.py RECORDED --rule limit -o failing/A100_limit_T4.json
    python benchmarks/search_efficiency.py failing/*_T4.json --searchers surrogate optuna:tpe

Reads any recording that `search_efficiency.py` takes and writes T4 results. `limit`: the product of the
numbers is too large, as where shared memory or registers run out. `pairs`: some values of two parameters do
not go together. `weights`: a random sum over all parameters is too large. A failure costs its compilation,
and no time of runs. Exits with the reason where RECORDED cannot be read.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from replay import Floats

from autotune.core.trials import Status, Trial
from autotune.errors import InputError
from autotune.interop import Recording, imported_trial, read_recording, t4

Rule = Callable[[Recording, np.random.Generator], Floats]


def limit(recording: Recording, _: np.random.Generator) -> Floats:
    """The log of the product of the numbers."""
    return np.array(
        [
            sum(math.log(1 + abs(value)) for value in trial.config.values() if not isinstance(value, str))
            for trial in recording.trials
        ]
    )


def pairs(recording: Recording, rng: np.random.Generator) -> Floats:
    """A random number for each pair of values of the two parameters with most of them."""
    first, second = sorted(recording.parameters, key=lambda p: -len(p.values))[:2]
    of_pair = rng.random((len(first.values), len(second.values)))
    return np.array(
        [
            of_pair[first.values.index(r.config[first.name]), second.values.index(r.config[second.name])]
            for r in recording.trials
        ]
    )


def weights(recording: Recording, rng: np.random.Generator) -> Floats:
    """A random number for each value of each parameter, summed."""
    total = np.zeros(len(recording.trials))
    for parameter in recording.parameters:
        of_value = dict(zip(parameter.values, rng.standard_normal(len(parameter.values)), strict=True))
        total += [of_value[trial.config[parameter.name]] for trial in recording.trials]
    return total


RULES: dict[str, Rule] = {"limit": limit, "pairs": pairs, "weights": weights}


def with_failures(recording: Recording, rule: str, share: float, seed: int) -> Recording:
    """The recording in which those with the highest figure by the rule fail, about `share` of all."""
    figures = RULES[rule](recording, np.random.default_rng(seed))
    allowed = np.quantile(figures, 1 - share)
    trials = [
        failed(trial) if figure > allowed else trial
        for trial, figure in zip(recording.trials, figures, strict=True)
    ]
    return replace(recording, trials=tuple(trials))


def failed(trial: Trial) -> Trial:
    """The trial as if the device had refused the launch."""
    costs = {"compile_ms": trial.compile_ms, "cost_s": trial.compile_ms / 1e3}
    return imported_trial(trial.config, Status.LAUNCH_ERROR, detail="refused", **costs)


def main() -> None:
    """Write the file and say what is in it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("recorded", type=Path)
    parser.add_argument("--rule", choices=RULES, default="limit")
    parser.add_argument("--share", type=float, default=1 / 3, help="of the configurations, that fails")
    parser.add_argument("--seed", type=int, default=0, help="of the rule's random numbers")
    parser.add_argument("-o", "--output", type=Path, required=True)
    asked = parser.parse_args()
    try:
        recording = with_failures(read_recording(asked.recorded), asked.rule, asked.share, asked.seed)
    except InputError as error:
        sys.exit(f"error: {error}")
    recording = replace(recording, device=f"{recording.device}, {asked.rule}")
    asked.output.parent.mkdir(parents=True, exist_ok=True)
    asked.output.write_text(t4.write(recording))
    failing = sum(trial.time_ms is None for trial in recording.trials)
    print(f"{asked.output}: {failing:,} of {len(recording.trials):,} configurations fail")


if __name__ == "__main__":
    main()
