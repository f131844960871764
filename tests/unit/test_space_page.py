"""`autotune space --report`: the funnel of constraints, ties between parameters, and the sample."""

from collections import Counter

import pytest

from autotune.report import space_page
from autotune.report.space_page import Left, funnel, space_json
from autotune.space import bind, constraint_report, lint, load_space, problem_of
from tests.space_example import GPU, SOURCE, YAML, write_space
from tests.unit.test_search_page import data_of


@pytest.fixture
def space(tmp_path):
    spec = load_space(write_space(tmp_path, YAML, SOURCE))
    return bind(spec, GPU, problem_of(spec, GPU))


def page(space):
    constraints = constraint_report(space)
    return space_json(space, constraints, lint(space, SOURCE, constraints).mistakes)


def test_the_funnel_counts_what_each_constraint_leaves(space):
    assert funnel(space) == (Left(16, True), Left(16, True), Left(10, True))


def test_a_funnel_that_takes_too_long_is_estimated(space, monkeypatch):
    monkeypatch.setattr(space_page, "_LIMITS", space_page.RowLimits(rows=1))
    found = funnel(space)
    assert not any(left.is_exact for left in found)
    assert [left.count for left in found] == [pytest.approx(count, rel=0.05) for count in (16, 16, 10)]


def test_counts_and_ties_are_those_of_the_valid_configurations(space):
    data = page(space)
    configs = list(space)
    assert (data["valid"], data["combinations"]) == (10, 24)
    for parameter, counts in zip(space.parameters, data["counts"], strict=True):
        found = Counter(config[parameter.name] for config in configs)
        assert counts == [found[value] for value in parameter.values]
    ties = {(tie["one"], tie["other"]): tie for tie in data["ties"]}
    assert ties[0, 1]["share"] == ties[0, 2]["share"] == 0  # either algorithm with everything
    assert ties[1, 2]["share"] > 0 and ties[1, 2]["lines"] == [21]  # by way of a derived name


def test_a_parameter_that_decides_another_is_tied_to_it_in_full(tmp_path):
    text = YAML.replace("PER_BLOCK <= 64 and (not UNROLL or VECTOR == 1)", "UNROLL == (VECTOR == 2)")
    text = text.replace("BLOCK_SIZE: 64, VECTOR: 1", "BLOCK_SIZE: 32, VECTOR: 1")
    spec = load_space(write_space(tmp_path, text, SOURCE))
    data = page(bind(spec, GPU, problem_of(spec, GPU)))
    assert {(tie["one"], tie["other"]): tie["share"] for tie in data["ties"]}[2, 3] == 1


def test_the_sample_is_of_valid_configurations_that_can_be_run(space):
    sample = page(space)["sample"]
    assert sample["isSpace"] and len(sample["columns"]["status"]) == len(space)
    assert sample["runCommand"].startswith("autotune run ") and "time_ms" not in sample["columns"]


def test_the_command_writes_the_page(folder):
    done = folder.run("space", "double.yaml", "--device", "fake", "--report", "-o", "here.html")
    assert done.returncode == 0 and done.stdout == "wrote here.html: 17 valid configurations\n"
    assert data_of((folder.path / "here.html").read_text())["valid"] == 17
    again = folder.run("space", "double.yaml", "--device", "fake", "--report", "-o", "here.html")
    assert again.stdout.startswith("replaced here.html")
    refused = folder.run("space", "double.yaml", "--device", "fake", "--report", "-o", "double.yaml")
    assert refused.returncode == 2 and "is not a report" in refused.stderr
