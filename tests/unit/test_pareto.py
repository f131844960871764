"""Searches for less energy: on the fake device, whose kernels say what they use."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.cli import main
from autotune.core.records import Config
from autotune.core.trials import Measurement, Objective, Rule, Trial, pareto_front

SPACE = """\
schema: 1
kernel: trade
dialect: python
source: kernel.py
reference: reference.py
sizes: {default: {n: 4}}
parameters: {SPEED: [1, 2, 3, 4]}
default: {SPEED: 1}
arguments:
  - {name: y, dtype: int32, shape: [n], role: out}
launch:
  - {entry: trade, grid: [1], block: [1], arguments: [y]}
"""
# Energy grows with the root of the speed, energy times delay falls; speed 4 is no faster than 3.
KERNEL = """
def trade(grid, block, y):
    y.view("int32")[:] = 7
    return 12 / min(SPEED, 3)
def power_w():
    return SPEED**1.5
"""
REFERENCE = (
    "import numpy as np\n\n\ndef reference(inputs, sizes):\n    return {'y': np.full(sizes['n'], 7)}\n"
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    for name, text in (("trade.yaml", SPACE), ("kernel.py", KERNEL), ("reference.py", REFERENCE)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_search_for_both_keeps_the_front_and_shows_it(folder, capsys, short_energy):
    command = ["search", "trade.yaml", "--device", "fake", "--objective", "pareto", "--json"]
    assert main(command) == 0
    found = json.loads(capsys.readouterr().out)
    assert [config["SPEED"] for config, _, _ in found["front"]] == [3, 2, 1]
    assert [energy_j for _, _, energy_j in found["front"]] == pytest.approx([0.0208, 0.0170, 0.012], rel=0.01)
    assert found["config"] == {"SPEED": 3} and found["energy_j"] == pytest.approx(0.0208, rel=0.01)
    file = folder / "cache" / "objective.pareto" / "fake-gpu" / "trade.json"
    assert [row[0]["SPEED"] for row in json.loads(file.read_text())["entries"][0]["front"]] == [3, 2, 1]
    assert main(["show", found["journal"], "--pareto", "--json"]) == 0
    assert {trial["config"]["SPEED"] for trial in json.loads(capsys.readouterr().out)} == {1, 2, 3}
    assert main(["best", "trade", "--device", "fake-gpu", "--cache", "cache/objective.pareto"]) == 0


def test_the_time_limit_of_a_configuration_leaves_room_for_its_energy(folder, capsys):
    command = ["search", "trade.yaml", "--device", "fake", "--objective", "energy", "--json"]
    assert main([*command, "--timeout", "0.9", "--budget", "1"]) == 0  # s; the energy alone takes 1
    assert json.loads(capsys.readouterr().out)["counts"] == {"ok": 1}


def test_a_journal_without_energies_has_no_front(folder, capsys):
    assert main(["search", "trade.yaml", "--device", "fake", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["config"] == {"SPEED": 3} and found["front"] == []
    assert main(["show", found["journal"], "--pareto"]) == 2
    assert "no energies" in capsys.readouterr().err


def _trial(number, time_ms, energy_j):
    measurement = Measurement((time_ms,), Rule.STEADY, energy_j=energy_j)
    return Trial(Config({"A": number}), str(number), measurement=measurement)


@given(st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1, max_size=30))
def test_the_front_is_what_nothing_beats(points):
    front = pareto_front(_trial(number, *point) for number, point in enumerate(points))
    kept = {(time_ms, energy_j) for _, time_ms, energy_j in front}
    beaten = {
        point for point in points if any(o != point and o[0] <= point[0] and o[1] <= point[1] for o in points)
    }
    assert kept == set(points) - beaten


def test_scores_are_in_the_objectives_unit():
    trial = _trial(0, 500.0, 3.0)
    scores = {objective: replace(trial, objective=objective).score for objective in Objective}
    assert scores == {
        Objective.TIME: 500.0,
        Objective.ENERGY: 3.0,
        Objective.EDP: 1.5,
        Objective.PARETO: 1.5,
        Objective.OWN: None,  # computed elsewhere, and kept in the measurement
    }
    assert (
        replace(trial, measurement=Measurement((1.0,), Rule.STEADY), objective=Objective.ENERGY).score is None
    )
