"""A kernel may be named by its name, its space file or a journal, whatever the command."""

import json

import pytest

FAKE = ("--device", "fake", "--json")


@pytest.fixture
def searched(searched_folder):
    (journal,) = (searched_folder.path / "runs").glob("double.*.jsonl")
    return searched_folder, f"runs/{journal.name}"


def answer(folder, *words):
    done = folder.run(*words)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_command_that_runs_takes_each(searched):
    folder, journal = searched
    for name in ("double", "double.yaml", journal):
        (trial,) = answer(folder, "run", name, "--default", *FAKE)
        assert trial["status"] == "ok"
        assert answer(folder, "space", name, *FAKE)["kernel"] == "double"


def test_a_journal_names_its_problem_too_unless_options_do(folder):
    journal = folder.search("--budget", "5", "--size", "n=500")["journal"]
    assert answer(folder, "search", journal, "--budget", "5", *FAKE)["resumed"] == 5
    assert answer(folder, "search", journal, "--budget", "5", "--size", "n=600", *FAKE)["resumed"] == 0


def test_a_command_that_reads_results_takes_each(searched):
    folder, journal = searched
    size = ("--size", "n=1000", "--json")
    answers = [
        answer(folder, "best", name, "-d", "fake-gpu", *size) for name in ("double", "double.yaml", journal)
    ]
    assert answers[0] == answers[1] == answers[2]
    for name in ("double", "double.yaml", journal):
        assert "double" in folder.run("list", name).stdout
        assert "n=1,000" in folder.run("compare", name).stdout
        assert len(answer(folder, "show", name, "--json")) == 17
        assert folder.run("report", name).returncode == 0


def test_an_export_takes_each(searched):
    folder, journal = searched
    for form, suffix in (("c-header", "h"), ("t4", "json")):
        for number, name in enumerate(("double", "double.yaml", journal)):
            done = folder.run("export", name, "--format", form, "-o", f"{number}.{suffix}")
            assert done.returncode == 0, done.stderr
        written = [(folder.path / f"{number}.{suffix}").read_text() for number in range(3)]
        assert written[0] == written[1] == written[2]


def test_a_kernel_is_found_in_a_space_file_of_another_name(searched):
    folder, journal = searched
    (folder.path / "broken.yaml").write_text("[")
    folder.space.rename(folder.path / "other.yaml")
    for name in ("double", journal):
        assert answer(folder, "space", name, *FAKE)["kernel"] == "double"


@pytest.mark.parametrize("command", ["check", "search", "space", "versus"])
def test_a_name_that_no_space_file_has_is_told_how_to_write_one(folder, command):
    done = folder.run(command, "unheard")
    assert done.returncode == 2
    said = "unheard: no such file; expected a space file; write one with: autotune new KERNEL.cu"
    assert done.stderr == f"autotune: {said}\n"


@pytest.mark.parametrize(
    "words", [("run", "x.jsonl"), ("best", "x.jsonl"), ("show", "x.yaml"), ("list", "x.yaml")]
)
def test_what_is_not_there_is_one_line(folder, words):
    done = folder.run(*words)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and words[1] in done.stderr
    (folder.path / words[1]).write_text("[")
    done = folder.run(*words)
    assert done.returncode == 2 and done.stderr.count("\n") == 1 and words[1] in done.stderr
