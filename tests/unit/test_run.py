"""What `autotune run` does with one configuration."""

import json

import pytest


@pytest.fixture
def run(folder):
    return lambda *words: folder.run("run", "double.yaml", "--device", "fake", *words)


@pytest.mark.parametrize(
    ("words", "origin", "values"),
    [
        (("--config", "A=5"), "as given", "A=5 B=0"),
        (("--landmark", "second"), "the landmark second", "A=2 B=0"),
        (("--default",), "the default", "A=1 B=0"),
        ((), "the default", "A=1 B=0"),
    ],
)
def test_the_configuration_is_chosen_verified_and_timed(run, words, origin, values):
    done = run(*words)
    assert done.returncode == 0, done.stderr
    first, config, *lines = done.stdout.splitlines()
    assert first == f"double on Fake GPU, n=1,000, int32, {origin}:" and config.strip() == values
    assert lines[0] == "verified   at n=1; n=17; and at the problem's size"
    assert lines[1].startswith("time       ") and "B/s" in lines[1]


def test_the_tuned_best_is_run_where_there_is_one(searched_folder, run):
    (row,) = json.loads(run("--json").stdout)
    assert row["config"] == {"A": 5, "B": 0} and row["status"] == "ok"
    assert "the tuned best" in run().stdout and "the default" in run("--default").stdout


def test_it_runs_again_whatever_a_journal_knows(folder, run):
    assert run().returncode == 0
    folder.write((folder.path / "double.py").read_text().replace("2 * x", "3 * x"))
    done = run()
    assert done.returncode == 1 and "wrong_result" in done.stderr


def test_repeats_are_runs_of_their_own(run):
    rows = json.loads(run("--repeat", "3", "--json").stdout)
    assert [row["time_ms"] for row in rows] == [17.0] * 3
    assert "runs       3, the slowest and the fastest 0.0% apart" in run("--repeat", "3").stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--config", "A=6,B=2"), "A=6 B=2: not valid on Fake GPU: "),
        (("--config", "C=6"), "--config C=6: unknown parameter"),
        (("--landmark", "secnd"), "--landmark secnd: unknown landmark; did you mean second?"),
        (("--landmark", "first", "--default"), "not allowed with argument"),
    ],
)
def test_what_cannot_be_run_is_wrong_input(folder, run, words, message):
    before = folder.files()
    done = run(*words)
    assert done.returncode == 2 and message in done.stderr and done.stderr.count("\n") == 1
    assert folder.files() == before
