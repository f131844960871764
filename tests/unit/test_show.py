"""`show` finds a kernel's journal, takes several, exports CSV, and agrees with the result."""

import csv
import json
import os
from dataclasses import replace
from pathlib import Path

from autotune.cli.show import TrialRow, trials_table
from autotune.core.records import Config
from autotune.core.trials import Failure, Measurement, Rule, Status, Trial

TIMED = Trial(Config({"A": 1}), "a", measurement=Measurement((0.5,), Rule.STEADY))
JOURNAL = "runs/double.fake-gpu.n1000.int32.jsonl"
FAILED = Trial(Config({"A": 2}), "b", Failure(Status.COMPILE_ERROR, "line 1\nline 2"))


def rows(text):
    return [line for line in text.splitlines()[1:] if line]


def test_a_kernels_name_means_its_newest_search(folder):
    folder.search("--budget", "3")
    folder.search("--budget", "4", "--size", "n=500")
    folder.run("run", "double.yaml", "--landmarks", "-d", "fake")
    done = folder.run("show", "double")
    assert (
        len(rows(done.stdout)) == 4
        and "4 of 4 trials of runs/double.fake-gpu.n500.int32.jsonl" in done.stderr
    )
    os.utime(folder.path / "runs/double.fake-gpu.n1000.int32.jsonl")
    assert "3 of 3 trials of runs/double.fake-gpu.n1000" in folder.run("show", "double").stderr


def test_a_name_without_a_journal_gets_the_nearest(folder):
    done = folder.run("show", "double")
    assert done.returncode == 2
    assert (
        f"double: no such file, and no journal of that kernel in runs/ of {folder.path}, nor of any other "
        "kernel; " in done.stderr
    )
    assert 'tune_kernel(cache="DIR/NAME.json") writes DIR/NAME.*.jsonl' in done.stderr
    folder.search("--budget", "1")
    assert "did you mean double?" in folder.run("show", "doubel").stderr
    assert "runs/doubel.jsonl: cannot be read" in folder.run("show", "runs/doubel.jsonl").stderr


def test_several_journals_are_shown_together_by_time(folder):
    for number, name in enumerate(("a.jsonl", "b.jsonl"), 2):
        folder.search("--budget", str(number), "--journal", name)
    done = folder.run("show", "a.jsonl", "b.jsonl", "--where", "B == 0")
    shown = rows(done.stdout)
    assert " of 5 trials" in done.stderr and any("a.jsonl" in row for row in shown)
    assert [float(row.split()[0]) for row in shown] == sorted(float(row.split()[0]) for row in shown)
    refused = folder.run("show", "a.jsonl", "b.jsonl", "--importance")
    assert refused.returncode == 2 and "name one journal" in refused.stderr


def test_the_csv_has_a_row_for_each_selected_trial(searched_folder):
    done = searched_folder.run("show", JOURNAL, "--where", "A <= 2", "--csv", "out.csv")
    assert done.returncode == 0 and done.stdout == "" and "6 of 17 trials in out.csv" in done.stderr
    with (searched_folder.path / "out.csv").open() as file:
        found = list(csv.DictReader(file))
    assert {(row["A"], row["B"]) for row in found} == {(a, b) for a in "12" for b in "012"}
    assert all(float(row["time_ms"]) > 0 and row["status"] == "ok" for row in found)
    assert {row["journal"] for row in found} == {JOURNAL}
    assert searched_folder.run("show", JOURNAL, "--csv", "out.csv").returncode == 0


def test_a_csv_never_replaces_a_file_of_another_kind(searched_folder):
    before = searched_folder.files()
    done = searched_folder.run("show", JOURNAL, "--csv", JOURNAL)
    assert done.returncode == 2 and searched_folder.files() == before
    assert f"{JOURNAL}: exists and is not a CSV file (.csv); choose another file with --csv" in done.stderr


def test_a_misspelt_order_or_status_is_told_its_neighbour(searched_folder):
    done = searched_folder.run("show", JOURNAL, "--sort", "a")
    assert done.returncode == 2 and "or the name of a parameter; did you mean A?" in done.stderr
    done = searched_folder.run("show", JOURNAL, "--status", "timeot")
    assert done.returncode == 2 and "; did you mean timeout? (see " in done.stderr


def test_where_no_trial_is_selected_only_that_is_printed(searched_folder):
    done = searched_folder.run("show", JOURNAL, "--status", "timeout")
    assert (done.stdout, done.stderr) == ("", "0 of 17 trials\n")


def test_the_last_round_counts_and_its_fastest_comes_before_faster_times_of_the_search(
    folder, whole_last_round
):
    folder.write("""\
import os
def double(grid, block, x, y, n):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    with open("runs.txt", "a") as file:
        file.write("x")
    is_late = os.path.getsize("runs.txt") > 300
    return 2.0 - A / 10 if not is_late else 5.0 + A / 10
""")
    result = folder.search("--engine", "exhaustive")
    shown = folder.run("show", result["journal"], "--limit", "2", "--json")
    first, second = json.loads(shown.stdout)
    assert first["config"] == result["config"] and first["detail"] == "the fastest of the last round"
    assert sorted(first["measurement"]["samples_ms"])[6] == result["time_ms"]
    assert max(second["measurement"]["samples_ms"]) < result["time_ms"]


def columns(trials):
    drawn = trials_table([TrialRow(Path("j.jsonl"), trial) for trial in trials])
    return dict(zip(drawn.columns, map(list, zip(*drawn.rows, strict=True)), strict=True))


def test_registers_and_spills_are_shown_where_the_compiler_says_them():
    known = replace(TIMED, registers=40, spill_bytes=0)
    assert columns([known, FAILED]) == {
        "ms": ["0.5", "-"],
        "status": ["ok", "compile_error"],
        "A": ["1", "2"],
        "registers": ["40", "-"],
        "spill": ["0", "-"],
        "detail": ["", "line 1"],
    }
    assert list(columns([TIMED, FAILED])) == ["ms", "status", "A", "detail"]
