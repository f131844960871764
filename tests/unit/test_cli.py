"""The commands as a user runs them, on a kernel in a folder of its own."""

import json
import re

import pytest

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")


@pytest.fixture
def tuned(folder):
    """A folder in which a search has run."""
    return folder, folder.search()


def test_search_ends_with_winner_gain_lesson_and_files(folder):
    done = folder.run("search", "double.yaml", "--device", "fake")
    assert done.returncode == 0, done.stderr
    assert "A=5; the rest as in the default" in done.stdout and "17 times as fast" in done.stdout
    assert "cache/fake-gpu/double.json" in done.stdout and "runs/" in done.stdout
    assert not CONTROL.search(done.stdout + done.stderr)


def test_best_serves_what_search_kept(tuned):
    folder, result = tuned
    done = folder.run("best", "double", "--device", "Fake GPU", "--size", "n=1000", "--json")
    assert done.returncode == 0, done.stderr
    best = json.loads(done.stdout)
    assert best["config"] == result["config"] and best["match"]["tier"] == "exact"


def test_best_without_a_result_fails_with_1_and_lists_what_exists(tuned):
    folder, _ = tuned
    done = folder.run("best", "triple")
    assert done.returncode == 1 and "double" in done.stderr and "Traceback" not in done.stderr


def test_a_winner_that_is_not_twice_the_default_says_why(folder):
    folder.edit("default: {A: 1, B: 0}", "default: {A: 5, B: 0}")
    done = folder.run("search", "double.yaml", "--device", "fake")
    assert "no other configuration tried is faster" in done.stdout


def test_space_explains_an_invalid_configuration(folder):
    done = folder.run("space", "double.yaml", "--device", "fake", "--config", "A=6,B=2")
    assert done.returncode == 1 and "A + B <= 7" in done.stdout
    valid = folder.run("space", "double.yaml", "--device", "fake", "--config", "A=5")
    assert valid.stdout.startswith("valid")


def test_a_boolean_may_be_given_as_a_number(folder):
    folder.edit("B: [0, 1, 2]", "B: [false, true]")
    folder.edit("default: {A: 1, B: 0}", "default: {A: 1, B: false}")
    done = folder.run("run", "double.yaml", "--device", "fake", "--config", "A=4,B=1", "--json")
    assert done.returncode == 0, done.stderr
    assert '"B": true' in done.stdout


def test_space_counts_and_lints(folder):
    folder.edit("A + B <= 7", "A + B <= 7\n  - A <= 100")
    done = folder.run("space", "double.yaml", "--device", "fake")
    assert "17 valid of 18" in done.stdout and "A <= 100" in done.stdout
    assert "idle_constraint" in done.stdout


def test_ladder_times_the_landmarks_beside_the_tuned_best(tuned):
    folder, _ = tuned
    done = folder.run("run", "double.yaml", "--landmarks", "--device", "fake")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert any("first" in line and "where it starts" in line for line in lines)
    assert any("second" in line and "1.7 x" in line for line in lines)
    assert any("tuned best" in line and "17 x" in line for line in lines)


def test_ladder_has_the_sources_figures_in_columns_beside_its_own(folder):
    folder.edit("note: where it starts", 'note: "slow; 0.04 to 0.06 ms, 3 GB/s (Old GPU)"')
    folder.edit("second: {A: 2}", "second: {A: 2, note: 0.02 ms (Old GPU)}")
    done = folder.run("run", "double.yaml", "--landmarks", "--device", "fake")
    assert done.returncode == 0, done.stderr
    head, *rows = [line.split("  ") for line in done.stdout.partition("\n\n")[2].splitlines()]
    assert [cell.strip() for cell in head if cell] == [
        *("step", "Old GPU, ms", "factor", "Old GPU, GB/s", "factor"),
        *("here, ms", "factor", "here, GB/s", "factor"),
    ]
    first, second = ([cell.strip() for cell in row if cell] for row in rows)
    assert first[:5] == ["first", "0.05", "-", "3", "-"]
    assert second[:5] == ["second", "0.02", "2.50", "-", "-"]
    assert float(second[6]) == pytest.approx(float(first[5]) / float(second[5]), rel=0.05)
    found = json.loads(folder.run("run", "double.yaml", "--landmarks", "--device", "fake", "--json").stdout)
    assert found[1]["sources"] == [{"value": 0.02, "unit": "ms", "device": "Old GPU"}]


def test_a_ladder_none_of_whose_landmarks_is_valid_is_told(folder):
    folder.edit("  first: {A: 1, note: where it starts}\n  second: {A: 2}", "  first: {A: 6, B: 2}")
    done = folder.run("run", "double.yaml", "--landmarks", "--device", "fake")
    assert done.returncode == 0 and "A + B <= 7" in done.stdout


def test_a_damaged_cache_is_told_before_the_ladder_runs(tuned):
    folder, _ = tuned
    (folder.path / "cache/fake-gpu/double.json").write_text("{")
    before = folder.files()
    done = folder.run("run", "double.yaml", "--landmarks", "--device", "fake")
    assert done.returncode == 1 and "cache/fake-gpu/double.json" in done.stderr
    assert folder.files() == before


@pytest.mark.parametrize("old", ["n", "A"])
def test_a_result_from_before_a_name_was_changed_is_no_tuned_best_of_the_ladder(tuned, old):
    folder, _ = tuned
    cached = folder.path / "cache/fake-gpu/double.json"
    renamed = re.sub(rf"\b{old}\b", "earlier", cached.read_text())
    assert renamed != cached.read_text()
    cached.write_text(renamed)
    done = folder.run("run", "double.yaml", "--landmarks", "--device", "fake")
    assert done.returncode == 0, done.stderr
    assert "second" in done.stdout and "tuned best" not in done.stdout


def test_show_filters_sorts_and_limits(tuned):
    folder, result = tuned
    done = folder.run("show", result["journal"], "--where", "A >= 5 and B == 1", "--json")
    assert [row["config"] for row in json.loads(done.stdout)] == [{"A": 5, "B": 1}, {"A": 6, "B": 1}]
    table = folder.run("show", result["journal"], "--limit", "3", "--sort", "B")
    assert len(table.stdout.splitlines()) == 4
    mistakes = {"A >": "expected one such as", "AA > 1": "did you mean A?", "A = 1": "write == to compare"}
    for condition, words in mistakes.items():
        wrong = folder.run("show", result["journal"], "--where", condition)
        assert wrong.returncode == 2 and "--where" in wrong.stderr and words in wrong.stderr


def test_devices_lists_what_device_accepts(folder):
    found = json.loads(folder.run("devices", "--json").stdout)
    assert {"opencl:0", "fake:0"} <= {item["device"] for item in found}


@pytest.mark.parametrize("verb", ["search", "best", "devices", "space", "run", "show"])
def test_every_command_has_help_with_an_example(folder, verb):
    done = folder.run(verb, "--help")
    assert done.returncode == 0 and f"Example: autotune {verb}" in done.stdout


def test_a_time_limit_ends_a_search(folder):
    folder.write(
        "import time\n"
        + (folder.path / "double.py").read_text().replace("    y.view", "    time.sleep(0.02)\n    y.view")
    )
    result = folder.search("--time", "0.5", "--engine", "random")
    assert 1 <= result["trials"] < 17


def test_the_same_binary_is_timed_once(folder):
    folder.write(
        'def double(grid, block, x, y, n):\n    y.view("int32")[:n] = 2 * x.view("int32")[:n]\n'
        "    return float(A)\n"
    )
    result = folder.search()
    shown = json.loads(folder.run("show", result["journal"], "--json").stdout)
    assert sum("same binary" in row.get("detail", "") for row in shown) == 17 - 6


def test_a_space_of_the_package_is_found_by_its_name_from_anywhere(folder):
    done = folder.run("space", "reduce", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["kernel"] == "reduce"


def test_brackets_in_a_detail_are_shown_as_they_are(folder):
    folder.write("def double(grid, block, x, y, n):\n    raise ValueError('no [bold] y[n] here')\n")
    folder.run("search", "double.yaml", "--device", "fake", "--journal", "j.jsonl")
    assert "[bold] y[n]" in folder.run("show", "j.jsonl").stdout
