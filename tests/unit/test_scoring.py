"""Metrics, objectives and requirements of users' own, on the fake device."""

import json

import pytest

from autotune import InputError, tune
from autotune.errors import SetupError

DEARER = "time_ms * (1 if A < 3 else 20)"  # the fastest has A=5; this makes A=2 the cheapest


def rows(folder):
    journal = next(folder.path.glob("runs/*.jsonl"))
    return [row["trial"] for row in map(json.loads, journal.read_text().splitlines()) if "trial" in row]


@pytest.mark.parametrize("engine", [("--engine", "surrogate"), ("--engine", "kernel_tuner")])
def test_an_expression_is_minimised_and_kept_apart_from_times(folder, engine):
    found = folder.search("--objective", DEARER, "--seed", "1", "--budget", "15", *engine)
    assert found["config"] == {"A": 2, "B": 0}
    assert found["objective"] == DEARER and "objective.own-" in found["cache_file"]
    record = json.loads((folder.path / found["cache_file"]).read_text())
    assert record["entries"][0]["provenance"]["objective"] == DEARER
    assert folder.search("--budget", "15")["config"] == {"A": 5, "B": 0}
    listed = folder.run("list").stdout
    assert "1 if A < 3" in listed.replace("\n", " ")


def test_the_space_s_objective_counts_unless_another_is_asked_for(folder):
    folder.edit("work:", 'metrics: {price: "1 if A < 3 else 20"}\nobjective: time_ms * price\nwork:')
    found = folder.search()
    assert found["config"] == {"A": 2, "B": 0}
    assert found["metrics"] == {"price": 1.0}
    again = folder.search()
    assert again["resumed"] == again["trials"] and again["config"] == found["config"]
    assert folder.search("--objective", "time")["config"] == {"A": 5, "B": 0}
    said = folder.run("search", "double.yaml", "--device", "fake").stdout
    assert "time_ms * price = 10, price 1" in said
    assert "the best takes 59% of the default's time_ms * price" in said


def test_a_result_that_misses_a_requirement_does_not_count(folder):
    folder.edit("work:", "require: [A + time_ms != 6]\nwork:")
    found = folder.search()
    assert found["time_ms"] == 2 and found["counts"]["misses_requirement"] == 2
    assert all(row["status"] == "ok" for row in rows(folder))
    said = folder.run("run", "double.yaml", "--device", "fake", "--config", "A=5,B=0")
    assert "misses_requirement: require: A + time_ms != 6 does not hold: A=5, time_ms=1.0" in said.stderr


def test_an_energy_is_measured_where_an_expression_reads_it(folder, short_energy):
    folder.edit("work:", "metrics: {watts: energy_j / time_ms * 1000}\nwork:")
    assert folder.search("--budget", "3")["metrics"]["watts"] == pytest.approx(1, rel=0.05)


def test_a_function_is_an_objective_of_the_python_interface(folder, monkeypatch):
    monkeypatch.chdir(folder.path)

    def price(values):
        return values["time_ms"] * (1 if values["A"] < 3 else 20)

    result = tune("double.yaml", device="fake", objective=price)
    assert result.best == {"A": 2, "B": 0}
    table = result.trials.to_pandas()
    assert table.sort_values("objective").A.iloc[0] == 2
    assert "price = 10" in repr(result)


@pytest.mark.parametrize(
    ("objective", "message"),
    [
        ("time_ms * registrs", "objective: unknown name 'registrs'; did you mean registers?"),
        ("time_ms *", "objective: 'time_ms \\*' is not an expression"),
    ],
)
def test_an_expression_that_cannot_be_read_is_refused(folder, monkeypatch, objective, message):
    monkeypatch.chdir(folder.path)
    with pytest.raises(InputError, match=message):
        tune("double.yaml", device="fake", objective=objective)


def test_a_function_that_reads_an_unknown_name_is_told_the_nearest(folder, monkeypatch):
    monkeypatch.chdir(folder.path)
    with pytest.raises(SetupError, match=r"KeyError: 'time'; did you mean time_ms\?"):
        tune("double.yaml", device="fake", objective=lambda values: values["time"])


def test_a_value_that_cannot_be_computed_fails_its_trial(folder):
    done = folder.run("search", "double.yaml", "--device", "fake", "--objective", "registers")
    assert "measurement_error: objective: 'registers': no value for 'registers'" in done.stderr
    done = folder.run("search", "double.yaml", "--device", "fake", "--objective", "0 - time_ms")
    assert "0 - time_ms gives -17, expected more than 0" in done.stderr
