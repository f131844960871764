"""Calls from Python that a newcomer gets wrong: no traceback of an inner function, and what to write."""

import contextlib

import numpy as np
import pytest

from autotune import InputError, NoConfig, Space, best_config, tune
from tests.conftest import Folder

ARRAY = {"name": "x", "dtype": "int32", "shape": ["n"], "role": "inout", "fill": {"constant": 0}}
LAUNCH = {"entry": "double", "grid": [1], "block": [1], "arguments": ["x"]}
SPACE = {
    **{"source": "double.py", "dialect": "python", "parameters": {"A": [1], "B": [0]}, "sizes": {"n": 8}},
    **{"arguments": [ARRAY], "launch": LAUNCH, "reference": "reference.py"},
}


@pytest.fixture(scope="module")
def tuned(tmp_path_factory):
    """A folder with a cached result."""
    folder = Folder(tmp_path_factory.mktemp("tuned"))
    folder.search("--budget", "2")
    return folder


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"budget": "10"}, "tune: budget='10': expected a whole number of at least 1"),
        ({"budget": 2.5}, "tune: budget=2.5: expected a whole number of at least 1"),
        ({"budget": -3}, "tune: budget=-3: expected a whole number of at least 1"),
        ({"seed": "1"}, "tune: seed='1': expected a whole number of at least 0"),
        ({"sizes": 1000}, """tune: sizes=1000: expected a dictionary such as {"n": 1000}"""),
        ({"device": 0}, """tune: device=0: expected a text such as "opencl:0" or "cuda:0\""""),
        ({"callback": 1}, "tune: callback=1: expected a function of a trial"),
        ({"objective": 1}, "tune: objective=1: expected a text or a function"),
        ({"space": None}, "tune: space=None: expected a Space, or the path of a space file"),
    ],
)
def test_arguments_of_another_type_are_named_with_what_is_expected(tuned, given, said):
    with contextlib.chdir(tuned.path), pytest.raises(InputError) as error:
        tune(**{"space": "double.yaml", "device": "fake", "budget": 1} | given)
    assert str(error.value) == said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"parameters": {"A": 1}}, "Space: parameters: A: expected a list, found 1; write [1]"),
        ({"parameters": {"A": {1, 2}}}, "A: expected a list, found {1, 2}; write a list of its values"),
        ({"parameters": {"A": []}}, "A: expected a list, found []; write a list of its values"),
        ({"parameters": ["A"]}, """expected a dictionary, such as {"BLOCK_SIZE": [64, 128]}"""),
        ({"sizes": 8}, """Space: sizes=8: expected a dictionary, such as {"n": 1000}"""),
        (
            {"launch": LAUNCH | {"grid": lambda config: 1}},
            "Space: launch[0].grid: <function",
        ),
        ({"launch": LAUNCH | {"grid": lambda config: 1}}, "; write an expression as a text"),
    ],
)
def test_entries_of_a_space_of_another_type_are_named_with_what_is_expected(tuned, given, said):
    with contextlib.chdir(tuned.path), pytest.raises(InputError) as error:
        Space("double", **SPACE | given)
    assert said in str(error.value)


def test_a_parameter_of_a_space_may_have_a_condition(tuned):
    parameters = {"A": [1, 2], "B": {"values": [0, 1], "when": "A > 1"}}
    with contextlib.chdir(tuned.path):
        space = Space("double", **SPACE | {"parameters": parameters})
    assert space.spec.conditions == {"B": "A > 1"}


def test_types_of_numpy_are_their_names_in_a_space(tuned):
    with contextlib.chdir(tuned.path):
        space = Space("double", **SPACE | {"arguments": [ARRAY | {"dtype": np.int32}]})
    assert space.spec.arguments[0].dtype == "int32"


def test_a_misspelt_parameter_of_an_answer_is_told_with_the_one_that_is_meant():
    best = best_config("reduce", "nvidia-h200")
    with pytest.raises(KeyError, match=r"no parameter 'BLOCKSIZE'; did you mean BLOCK_SIZE\?"):
        best["BLOCKSIZE"]
    with pytest.raises(KeyError, match=r"'BLOCK'; did you mean BLOCK_SIZE or BLOCKS_PER_UNIT\?"):
        best["BLOCK"]
    assert "BLOCKSIZE" not in best and best.get("BLOCKSIZE", 7) == 7


def test_an_unknown_dialect_has_no_options():
    with pytest.raises(InputError, match=r"options: unknown dialect 'CUDA'; did you mean cuda\?"):
        best_config("reduce", "nvidia-h200").options("CUDA")


@pytest.mark.parametrize(
    ("name", "meant"), [("faek-gpu", "fake-gpu"), ("Fake GUP", None), ("fake-gpu-2", None)]
)
def test_a_misspelt_device_is_told_with_the_one_that_has_results(tuned, recwarn, name, meant):
    best_config("double", name, n=1000, cache=tuned.path / "cache")
    said = [str(one.message) for one in recwarn if one.category is UserWarning]  # no other test's
    assert said == ([f"double: no results for a device {name}; did you mean {meant}?"] if meant else [])


def test_sizes_in_a_dictionary_and_a_misspelt_kernel_are_told(tuned):
    cache = tuned.path / "cache"
    with pytest.raises(InputError, match="; write n=1000 without a dictionary"):
        best_config("double", "fake-gpu", sizes={"n": 1000}, cache=cache)
    with pytest.raises(NoConfig, match=r"; did you mean double\?"):
        best_config("duble", "fake-gpu", n=1000, cache=cache)


@pytest.mark.parametrize(("name", "option"), [("runs", "--journal"), ("cache", "--cache")])
def test_a_file_in_the_place_of_a_folder_is_named(folder, name, option):
    (folder.path / name).write_text("")
    done = folder.run("search", "double.yaml", "-d", "fake")
    said = done.stderr.splitlines()[-1]
    assert done.returncode == 1 and f"{name} is a file, not a folder: move it away" in said and option in said
