"""A search writes through no link that lies in its cache or in the place of `runs`."""

import pytest


def linked(folder, place, tmp_path_factory):
    """Put a link in the place of a folder that a search has made; return where it leads."""
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "it"
    (folder.path / place).rename(elsewhere)
    (folder.path / place).symlink_to(elsewhere)
    return elsewhere


def contents(path):
    return {file.name: file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize(
    ("place", "mend"), [("cache/fake-gpu", "with --cache"), ("runs", "choose a file with --journal")]
)
def test_a_search_is_refused_before_it_starts(searched_folder, place, mend, tmp_path_factory):
    elsewhere = linked(searched_folder, place, tmp_path_factory)
    before = contents(elsewhere)
    done = searched_folder.run("search", "double.yaml", "--device", "fake", "--budget", "4")
    assert done.returncode == 1 and "is a link, through which nothing is written" in done.stderr, done.stderr
    assert mend in done.stderr and contents(elsewhere) == before
    assert done.stderr.splitlines()[-1].startswith("autotune: ")


def test_a_cache_or_a_journal_that_the_user_names_may_be_behind_a_link(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (folder.path / "linked").symlink_to(elsewhere)
    folder.search("--budget", "2", "--cache", "linked", "--journal", "linked/mine.jsonl")
    assert {"double.json", "device.json", "mine.jsonl"} <= contents(elsewhere).keys()


def test_an_import_is_refused_too(searched_folder, tmp_path_factory):
    (journal,) = searched_folder.path.glob("runs/*.jsonl")
    exported = searched_folder.run("export", journal, "--format", "t4", "-o", "t4.json")
    assert exported.returncode == 0, exported.stderr
    elsewhere = linked(searched_folder, "runs", tmp_path_factory)
    before = contents(elsewhere)
    done = searched_folder.run("import", "t4.json")
    assert done.returncode == 1 and "runs is a link" in done.stderr and contents(elsewhere) == before
