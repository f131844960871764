"""Counters of a ladder and of a run: "-" where nothing can count, one warning each, and no other result."""

import json

from autotune.cli.device_use import counters_table, counters_text


def test_a_ladder_on_a_device_without_counters_has_unknown_cells_and_says_why_once(folder):
    done = folder.run("run", "double.yaml", "--landmarks", "--device", "fake", "--counters")
    assert done.returncode == 0, done.stderr
    head, *rows = done.stdout.partition("\n\n")[2].splitlines()
    assert head.split()[:3] == ["step", "active", "threads"]
    assert [row.split() for row in rows] == [["first", *"------"], ["second", *"------"]]
    assert done.stderr.count("instructions were not counted") == 1
    assert done.stderr.count("no hardware counters") == 1


def test_counting_leaves_journals_and_times_alone(folder):
    without = folder.run("run", "double.yaml", "--landmarks", "--device", "fake").stdout
    before = folder.files()
    assert folder.run(
        "run", "double.yaml", "--landmarks", "--device", "fake", "--counters"
    ).stdout.startswith(without)
    assert folder.files() == before


def test_a_run_has_its_counters_in_a_line_and_in_json(folder):
    command = ("run", "double.yaml", "--device", "fake", "--counters")
    assert "\ncounters   active threads -, sectors" in folder.run(*command).stdout
    (row,) = json.loads(folder.run(*command, "--json").stdout)
    assert row["counters"]["active threads"] is None
    (row,) = json.loads(folder.run("run", "double.yaml", "--device", "fake", "--json").stdout)
    assert "counters" not in row


def test_what_was_counted_is_shown_in_the_order_of_the_columns():
    run = {"active threads": 31.5, "bank conflicts": None, "issue slots used, %": 48.04}
    counted = counters_table({"a": run})
    assert counted.columns == ("step", *run)
    assert counted.rows == (("a", "31.5", "-", "48.04"),)
    assert counters_text(run) == "counters   active threads 31.5, bank conflicts -, issue slots used, % 48.04"
