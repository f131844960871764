"""Groups that a space sets against each other: their bests meet in the last round, and one may win."""

import pytest

CONTRAST = "work: {bytes: 8 * n}\ncontrast: {low: A <= 3, high: A > 3, none: A > 6}\n"


@pytest.fixture
def contrasted(folder):
    folder.edit("work: {bytes: 8 * n}\n", CONTRAST)
    return folder


def test_the_best_of_each_group_is_timed_last_and_the_winner_named(contrasted):
    done = contrasted.run(
        "search", "double.yaml", "--device", "fake", "--engine", "exhaustive", "--budget", "18"
    )
    assert done.returncode == 0, done.stderr
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("groups")]
    # the kernel claims (A - 5)^2 + B + 1 ms
    assert line == (
        "groups  high 1 ms (8 tried), low 5 ms (9 tried), none has no time (0 tried): "
        "high wins, 5.00 times as fast as the next"
    )


def test_scripts_are_told_the_same(contrasted):
    groups = contrasted.search("--engine", "exhaustive", "--budget", "18")["groups"]
    assert groups == [
        {"name": "high", "tried": 8, "time_ms": 1.0},
        {"name": "low", "tried": 9, "time_ms": 5.0},
        {"name": "none", "tried": 0, "time_ms": None},
    ]


def test_groups_that_measure_the_same_have_no_winner(folder):
    folder.edit("work: {bytes: 8 * n}\n", "work: {bytes: 8 * n}\ncontrast: {odd: A % 2 == 1, all: A > 0}\n")
    done = folder.run("search", "double.yaml", "--device", "fake", "--engine", "exhaustive", "--budget", "18")
    assert "no difference beyond the noise" in done.stdout


def test_a_space_without_groups_says_nothing_of_them(folder):
    done = folder.run("search", "double.yaml", "--device", "fake", "--budget", "3")
    assert "groups" not in done.stdout
    assert folder.search("--budget", "3", "--fresh")["groups"] == []


def test_a_condition_reads_known_names_only(folder):
    folder.edit("work: {bytes: 8 * n}\n", "work: {bytes: 8 * n}\ncontrast: {low: C <= 3}\n")
    done = folder.run("space", "double.yaml", "--device", "fake")
    assert done.returncode == 2 and "contrast.low: unknown name 'C'" in done.stderr
