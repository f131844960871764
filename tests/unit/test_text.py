"""Messages that once sent a newcomer to the source: each says what to do."""

import numpy as np
import pytest

from autotune.core.text import MAX_SAID, count_text, hint, per_second, ratio_text, shortened
from autotune.errors import InputError
from autotune.runtime.packages import package_of


def test_best_elsewhere_names_its_folders_in_full_and_those_that_are_missing(folder):
    elsewhere = folder.run("best", "double", "-d", "fake")
    assert (
        f"{folder.path / 'cache'} (no such folder)" in elsewhere.stderr and "--cache DIR" in elsewhere.stderr
    )
    folder.search("--budget", "1")
    mistyped = folder.run("best", "double", "-d", "fake", "--cache", "cahce")
    assert mistyped.returncode != 0 and f"{folder.path / 'cahce'}, which --cache" in mistyped.stderr
    assert "did you mean cache?" in mistyped.stderr
    unknown = folder.run("best", "doubel", "-d", "fake")
    assert f"{folder.path / 'cache'} or " in unknown.stderr


@pytest.mark.parametrize(
    "command",
    [
        ("best",),
        ("compare",),
        ("build", "-o", "built"),
        ("report",),
        ("report", "--figure", "progress", "-o", "a.svg"),
        ("export", "--format", "c-header", "-o", "a.h"),
    ],
    ids=lambda command: command[0],
)
def test_a_misspelt_kernel_is_not_to_be_tuned_but_written_as_its_neighbour(searched_folder, command):
    before = searched_folder.files()
    done = searched_folder.run(*command, "doubel")
    assert done.returncode != 0 and searched_folder.files() == before
    assert "no results for a kernel 'doubel' in " in done.stderr
    assert done.stderr.endswith("; did you mean double?\n") and "autotune search" not in done.stderr


def test_a_strategy_names_its_engine(folder):
    search = ("search", "double.yaml", "-d", "fake", "--strategy")
    assert "add --engine kernel_tuner\n" in folder.run(*search, "genetic_algorithm").stderr
    assert "add --engine optuna\n" in folder.run(*search, "tpe").stderr
    unknown = folder.run(*search, "genetic_algoritm").stderr
    assert "no engine has it; did you mean genetic_algorithm?" in unknown


@pytest.mark.parametrize(
    ("rate", "text"),
    [
        (4.48e12, "4.48 TB/s"),
        (82.92e9, "82.92 GB/s"),
        (8e6, "8 MB/s"),
        (1234, "1.234 KB/s"),
        (5, "0.005 KB/s"),
    ],
)
def test_rates_have_the_unit_that_suits_them(rate, text):
    assert per_second(rate, "B/s") == text


@pytest.mark.parametrize(
    ("ratio", "text"), [(1.254, "1.25 x"), (999.4, "999 x"), (999.6, "1,000 x"), (1234.0, "1,234 x")]
)
def test_ratios_have_three_digits_or_all_before_the_point(ratio, text):
    assert ratio_text(ratio) == text


def test_one_thing_is_not_said_in_the_plural():
    assert [count_text(count, "record") for count in (0, 1, 2000)] == [
        "0 records",
        "1 record",
        "2,000 records",
    ]


def test_a_space_of_one_configuration_is_searched_and_told_in_the_singular(folder):
    folder.edit("A: [1, 2, 3, 4, 5, 6]\n  B: [0, 1, 2]", "A: [1, 2]\n  B: [0]")
    folder.edit("A + B <= 7", "A == 1")
    done = folder.run("search", "double.yaml", "-d", "fake", "-q")
    assert done.returncode == 0 and "\nexplored the only valid configuration\n" in done.stdout


def test_numpy_arrays_are_told_where_they_have_to_be():
    with pytest.raises(InputError, match=r"numpy arrays run on the CPU in a plain call.*to_device"):
        package_of(np.zeros(3))


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("step10", "; did you mean step10_vectors?"),
        ("STEP2", "; expected one of: step2_shared, step2_shuffle_and_more"),
        ("nothing", "; expected one of: step10_vectors, step2_shared, step2_shuffle_and_more"),
        ("", "; expected one of: step10_vectors, step2_shared, step2_shuffle_and_more"),
        ("step2_shard", "; did you mean step2_shared?"),
    ],
)
def test_the_beginning_of_a_name_is_told_the_names_that_begin_so(name, said):
    assert hint(name, ["step2_shared", "step10_vectors", "step2_shuffle_and_more"]) == said
    assert hint(name, []) == "; there are none"


@pytest.mark.parametrize("length", [0, 1, MAX_SAID - 10, MAX_SAID + 1, 10**6])
def test_a_long_text_keeps_its_beginning_and_end_and_says_how_much_is_left_out(length):
    text = "".join(chr(97 + place % 23) for place in range(length))
    found = shortened(text)
    assert len(found) <= MAX_SAID and shortened(f"in run 2: {found}") == f"in run 2: {found}"
    if length < MAX_SAID:
        assert found == text
        return
    begins, note, ends = found.split("\n")
    assert text.startswith(begins) and text.endswith(ends) and len(begins) > len(ends) > 2000
    assert note == f"[... {length - len(begins) - len(ends):,} letters are left out ...]"
