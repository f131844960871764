"""Whatever is wrong with the input: one line that names the place, exit code 2, nothing written."""

import os
import shutil

import pytest

SEARCH = ("search", "double.yaml", "--device", "fake")


def _edit(old, new):
    return lambda folder: folder.edit(old, new)


CASES = {
    "missing file": (None, ("search", "nowhere.yaml"), ["nowhere.yaml"]),
    "a folder for a file": (None, ("search", "."), ["."]),
    "bad YAML": (_edit("schema: 1", "schema: ["), SEARCH, ["double.yaml:"]),
    "unknown key": (
        _edit("kernel: double", "kernel: double\ncolour: red"),
        SEARCH,
        ["double.yaml:3", "colour"],
    ),
    "wrong type": (_edit("A: [1, 2, 3, 4, 5, 6]", "A: 7"), SEARCH, ["double.yaml:11", "A"]),
    "unknown name": (_edit("A + B <= 7", "A + BB <= 7"), SEARCH, ["double.yaml:14", "BB"]),
    "a call": (_edit("A + B <= 7", "open('x') == A"), SEARCH, ["double.yaml:14", "called"]),
    "an import": (_edit("A + B <= 7", "__import__('os').system('touch x') == A"), SEARCH, ["double.yaml:14"]),
    "an attribute": (_edit("A + B <= 7", "A.real <= 7"), SEARCH, ["double.yaml:14", "device"]),
    "an empty space": (_edit("A + B <= 7", "A > 100"), SEARCH, ["double.yaml", "no "]),
    "an invalid default": (_edit("A + B <= 7", "A + B >= 5"), SEARCH, ["default", "A + B >= 5"]),
    "a missing source": (_edit("source: double.py", "source: gone.py"), SEARCH, ["double.yaml:4", "gone.py"]),
    "unknown device": (None, ("search", "double.yaml", "--device", "warp:9"), ["warp:9", "opencl:0"]),
    "a device of another dialect": (
        _edit("dialect: python", "dialect: cuda"),
        SEARCH,
        ["double.yaml", "cuda"],
    ),
    "unknown engine": (None, (*SEARCH, "--engine", "magic"), ["magic", "optuna"]),
    "unknown strategy": (None, (*SEARCH, "--engine", "optuna", "--strategy", "magic"), ["magic", "tpe"]),
    "a strategy without engine": (None, (*SEARCH, "--strategy", "tpe"), ["--engine"]),
    "zero budget": (None, (*SEARCH, "--budget", "0"), ["--budget", "'0'", "at least 1"]),
    "a budget in words": (None, (*SEARCH, "--budget", "many"), ["--budget", "many"]),
    "negative time": (None, (*SEARCH, "--time", "-1"), ["--time", "positive"]),
    "a negative seed": (None, (*SEARCH, "--seed", "-1"), ["--seed", "at least 0"]),
    "an endless timeout": (None, (*SEARCH, "--timeout", "1e300"), ["--timeout", "seconds"]),
    "a tolerance that is a text": (_edit("rtol: 0", "rtol: DTYPE"), SEARCH, ["double.yaml", "finite number"]),
    "a negative tolerance": (_edit("rtol: 0", "rtol: -1"), SEARCH, ["double.yaml", "at least 0"]),
    "a scalar that does not fit": (
        *(_edit("value: n", "value: n + 2 ** 40"), SEARCH, ["which int32 cannot hold; write dtype: int64"]),
    ),
    "a size named as an argument": (_edit("{n: 1000}", "{cache: 1000}"), SEARCH, ["cache", "reserved"]),
    "a journal that is none": (None, (*SEARCH, "--journal", "double.py"), ["double.py:1", "not a journal"]),
    "the same, afresh": (None, (*SEARCH, "--journal", "double.py", "--fresh"), ["not a journal"]),
    "a device for a journal": (None, (*SEARCH, "--journal", "/dev/null"), ["/dev/null: expected a file"]),
    "a name that no file could have": (None, ("search", "x" * 300), ["File name too long"]),
    "a seed that is too large": (None, (*SEARCH, "--seed", str(2**32)), ["--seed", "at most 4294967295"]),
    "a plot of an unknown format": (
        None,
        ("report", "--figure", "progress", "x.jsonl", "-o", "x.bmp"),
        ["x.bmp", "ends with .svg"],
    ),
    "a kernel source that is a folder": (None, ("new", "."), ["Is a directory; expected a kernel source"]),
    "show of something else": (None, ("show", "double.py"), ["double.py:1", "not a journal"]),
    "a size in strange digits": (None, (*SEARCH, "--size", "n=²"), ["NAME=NUMBER"]),
    "unknown size": (None, (*SEARCH, "--size", "m=4"), ["m", "n"]),
    "a size in words": (None, (*SEARCH, "--size", "n=big"), ["n=big", "NAME=NUMBER"]),
    "unknown dtype": (None, (*SEARCH, "--dtype", "float8"), ["float8", "int32"]),
    "unknown command": (None, ("serch",), ["serch", "search"]),
    "unknown option": (None, (*SEARCH, "--bugdet", "4"), ["--bugdet"]),
    "unknown configuration name": (None, ("show", "nowhere.jsonl"), ["nowhere.jsonl"]),
}


@pytest.mark.parametrize("case", CASES)
def test_one_line_exit_2_nothing_written(folder, case):
    prepare, command, words = CASES[case]
    if prepare is not None:
        prepare(folder)
    before = folder.files()
    done = folder.run(*command)
    assert done.returncode == 2, done.stdout + done.stderr
    lines = done.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith("autotune: "), done.stderr
    assert all(word in lines[0] for word in words), lines[0]
    assert done.stdout == ""
    assert folder.files() == before


LADDER = ("run", "double.yaml", "--landmarks", "--device", "fake")
UNWRITABLE = {
    "journal": (*SEARCH, "--journal", "double.py/j.jsonl"),
    "journal in a folder of too long a name": (*SEARCH, "--journal", f"{'a' * 300}/j.jsonl"),
    "journal of a ladder": (*LADDER, "--journal", "double.py/j.jsonl"),
    "cache": (*SEARCH, "--cache", "double.py/cache"),
    "plot": ("report", "--figure", "progress", "x.jsonl", "-o", "double.py/x.svg"),
    "plot that is a folder": ("report", "--figure", "progress", "x.jsonl", "-o", "folder.svg"),
    "import": ("import", "t4.json", "--journal", "double.py/j.jsonl"),
    "export": ("export", "t4.json", "--format", "t4", "-o", "double.py/t4.json"),
    "study": ("export", "t4.json", "--format", "optuna", "-o", "double.py/study.log"),
    "merge": ("merge", "runs", "--into", "double.py/all"),
}


@pytest.mark.parametrize("case", UNWRITABLE)
def test_what_cannot_be_written_is_one_line_and_exit_1(folder, root, case):
    shutil.copy(root / "tests/golden/recorded/convolution/A100_T4.json", folder.path / "t4.json")
    (folder.path / "folder.svg").mkdir()
    (folder.path / "runs").mkdir()
    shutil.copy(root / "tests/golden/identity-1/double.jsonl", folder.path / "runs")
    before = folder.files()
    done = folder.run(*UNWRITABLE[case])
    assert done.returncode == 1, done.stdout + done.stderr
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("autotune: ") and "cannot be written" in last, done.stderr
    assert "Traceback" not in done.stderr and done.stdout == ""
    assert folder.files() == before


@pytest.mark.skipif(os.getuid() == 0, reason="root may write anywhere")
@pytest.mark.parametrize(("place", "option"), [("cache", ()), ("runs", ("--journal", "runs/j.jsonl"))])
def test_a_folder_without_permission_is_exit_1(folder, place, option):
    (folder.path / place).mkdir(mode=0o500)
    assert folder.run(*SEARCH, *option).returncode == 1
