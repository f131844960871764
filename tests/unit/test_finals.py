"""The last round: who takes turns with whom, and what counts as a difference."""

import json
from itertools import pairwise

import numpy as np
import pytest

from autotune.bench import energy
from autotune.finals import MOST_FINALISTS, ROUNDS, SAMPLES_PER_TURN, indistinguishable, play
from autotune.jobs import Protocol
from autotune.model import Config
from autotune.progress import SearchProgress
from autotune.rig import Options, open_rig
from autotune.targets import Target, bind_target
from autotune.trials import Measurement, Objective, Status, Trial


def entry(*samples_ms, **conditions):
    return Measurement(samples_ms, "finals", conditions=conditions)


@pytest.mark.parametrize(("noise", "tied"), [(None, False), (0.0099, False), (0.0101, True)])
def test_a_difference_below_the_noise_is_a_tie(noise, tied):
    conditions = {} if noise is None else {"noise": noise}
    winner, other = entry(*[1.0] * ROUNDS, **conditions), entry(*[1.01] * ROUNDS)
    assert indistinguishable(winner, other, Objective.TIME) is tied


def test_the_interval_of_the_turns_covers_the_median_and_equals_are_seldom_told_apart():
    """Turns that have something in common within them, as those of a GPU do; the seed is fixed."""
    random = np.random.default_rng(0)
    noise = random.normal(0, 0.002, (300, 9, ROUNDS, 1))
    noise = noise + random.normal(0, 0.002, (300, 9, ROUNDS, SAMPLES_PER_TURN))
    fields = [[entry(*turns) for turns in field] for field in 1 + noise.mean(axis=-1)]
    covered = [low <= 1 <= high for field in fields for low, high in (found.interval_ms for found in field)]
    assert np.mean(covered) > 0.95
    told_apart = 0
    for field in fields:
        winner = min(field, key=lambda found: found.median_ms)
        told_apart += not all(indistinguishable(winner, other, Objective.TIME) for other in field)
    assert told_apart / len(fields) < 0.09


def test_every_round_has_another_order_and_every_turn_one_value(folder):
    folder.write("""\
def double(grid, block, x, y, n):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    with open("order", "a") as file:
        file.write(f"{A}{B} ")
    return 1.0 + 0.001 * (A + B)
""")
    result = folder.search("--engine", "exhaustive")
    runs = (folder.path / "order").read_text().split()
    (row,) = [
        row["finals"]
        for row in map(json.loads, (folder.path / result["journal"]).read_text().splitlines())
        if "finals" in row
    ]
    assert {len(found["samples_ms"]) for found in row.values()} == {ROUNDS}
    runs_of_a_turn = 1 + SAMPLES_PER_TURN
    turns = runs[-ROUNDS * (MOST_FINALISTS + 1) * runs_of_a_turn :: runs_of_a_turn]
    neighbours = [pair for pair in pairwise(turns) if pair[0] == "10"]
    assert len({follower for _, follower in neighbours}) >= MOST_FINALISTS // 2


def test_energies_are_measured_once_nobody_is_struck(folder, monkeypatch):
    """A round with a rejected finalist is repeated, so energies measured in it would be for nothing."""
    kernel = (folder.path / "double.py").read_text()
    folder.write(kernel.replace("2 * x", "(2 + (A == 2)) * x"))
    monkeypatch.chdir(folder.path)
    asked = []
    with open_rig(bind_target(Target(folder.space, "fake")), Options(), SearchProgress()) as rig:
        run = rig.worker.run

        def noted(function, *arguments, **options):
            asked.append(function)
            return run(function, *arguments, **options)

        monkeypatch.setattr(rig.worker, "run", noted)
        trials = [
            Trial(config, rig.maker.make(config).key, Status.OK, measurement=entry(1.0))
            for config in (Config({"A": number, "B": 0}) for number in (1, 2, 3))
        ]
        struck, whole = (
            play(chosen, rig.maker, rig.pool, rig.worker, 30.0, Protocol(energy_s=0.01))
            for chosen in (trials, trials[::2])
        )
    assert list(struck.rejected) == [trials[1].key] and not whole.rejected
    assert all(found.energy_j for found in whole.measurements.values())
    assert asked.count(energy) == len(whole.measurements) == 2
