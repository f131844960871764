"""`show` finds a kernel's journal, takes several, and exports CSV."""

import csv
import os


def rows(text):
    return [line for line in text.splitlines()[1:] if line]


def test_a_kernels_name_means_its_newest_search(folder):
    folder.search("--budget", "3")
    folder.search("--budget", "4", "--size", "n=500")
    folder.run("ladder", "double.yaml", "-d", "fake")
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
    assert "double: no such file, and no journals in runs/; run autotune search" in done.stderr
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


def test_the_csv_has_a_row_for_each_selected_trial(folder):
    result = folder.search("--engine", "exhaustive", "--journal", "j.jsonl")
    done = folder.run("show", "j.jsonl", "--where", "A <= 2", "--csv", "out.csv")
    assert done.returncode == 0 and done.stdout == "" and "6 of 17 trials in out.csv" in done.stderr
    with (folder.path / "out.csv").open() as file:
        found = list(csv.DictReader(file))
    assert {(row["A"], row["B"]) for row in found} == {(a, b) for a in "12" for b in "012"}
    assert all(float(row["time_ms"]) > 0 and row["status"] == "ok" for row in found)
    assert {row["journal"] for row in found} == {result["journal"]}
    assert folder.run("show", "j.jsonl", "--csv", "out.csv").returncode == 0


def test_a_csv_never_replaces_a_file_of_another_kind(folder):
    folder.search("--budget", "2", "--journal", "j.jsonl")
    before = folder.files()
    done = folder.run("show", "j.jsonl", "--csv", "j.jsonl")
    assert done.returncode == 2 and folder.files() == before
    assert "j.jsonl: exists and is not a CSV file (.csv); choose another file with --csv" in done.stderr


def test_a_misspelt_order_or_status_is_told_its_neighbour(folder):
    folder.search("--budget", "2", "--journal", "j.jsonl")
    done = folder.run("show", "j.jsonl", "--sort", "a")
    assert done.returncode == 2 and "or the name of a parameter; did you mean A?" in done.stderr
    done = folder.run("show", "j.jsonl", "--status", "timeot")
    assert done.returncode == 2 and "; did you mean timeout? (see " in done.stderr
