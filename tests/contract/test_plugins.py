"""Devices and engines that other distributions add by entry points, the example's first of all."""

import json
import os
import sys
import tomllib
from pathlib import Path

import pytest

from autotune.testing import DeviceContract, SearcherContract
from tests.contract.test_devices import BROKEN, SOURCES

EXAMPLE = Path(__file__).parents[2] / "examples/plugin"
FUNCTIONS = "def list_devices(): return []\ndef open_device(index): ...\ndef open_compiler(index): ...\n"


@pytest.fixture(scope="module", autouse=True)
def importable():
    sys.path.insert(0, str(EXAMPLE))
    yield
    sys.path.remove(str(EXAMPLE))


class TestTheDevice(DeviceContract):
    @pytest.fixture(scope="module")
    @classmethod
    def backend(cls):
        import plain_device

        return plain_device

    @pytest.fixture(scope="module")
    @classmethod
    def source(cls):
        return SOURCES["fake"]

    @pytest.fixture(scope="module")
    @classmethod
    def broken(cls):
        return BROKEN["fake"]


class TestTheSearcher(SearcherContract):
    @pytest.fixture
    def searcher(self):
        from neighbour_search import NeighbourSearch

        return NeighbourSearch()


@pytest.fixture
def install(folder, tmp_path_factory):
    """Leave a distribution in a folder as pip does; returns a function that runs a command which finds it."""
    site = tmp_path_factory.mktemp("site")

    def installed(groups: dict[str, dict[str, str]], **modules: str):
        info = site / f"mine{len(list(site.glob('*.dist-info')))}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {info.name[:5]}\nVersion: 1.0\n")
        lines = [
            line
            for group, points in groups.items()
            for line in (f"[{group}]", *(f"{name} = {value}" for name, value in points.items()))
        ]
        (info / "entry_points.txt").write_text("\n".join(lines))
        for name, code in modules.items():
            (site / f"{name}.py").write_text(code)
        path = os.pathsep.join([str(site), *filter(None, sys.path)])
        return lambda *words: folder.run(*words, PYTHONPATH=path)

    return installed


@pytest.fixture
def example(install):
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())
    modules = {
        name: (EXAMPLE / f"{name}.py").read_text() for name in project["tool"]["setuptools"]["py-modules"]
    }
    return install(project["project"]["entry-points"], **modules)


def test_the_examples_device_and_engine_search_together(example):
    found = example("search", "double.yaml", "-d", "plain", "--engine", "neighbours", "--json")
    assert found.returncode == 0, found.stderr
    result = json.loads(found.stdout)
    assert (result["device"]["name"], result["engine"]) == ("Plain Python", "neighbours")


def test_the_examples_device_is_listed_and_passes_the_doctor(example):
    listed = example("devices", "--json")
    assert "plain:0" in [one["device"] for one in json.loads(listed.stdout)]
    found = json.loads(example("doctor", "--json").stdout)
    assert [one["state"] for one in found if one["subject"] == "plain:0"] == ["good"]


BROKEN_DEVICES = {
    "absent": ("import no_such_package", "ModuleNotFoundError: No module named 'no_such_package'"),
    "raises": ("raise RuntimeError('two\\nlines')", "RuntimeError: two lines"),
    "short": (
        "DIALECTS = ('python',)\ndef list_devices(): ...",
        "no function open_device and no open_compiler",
    ),
    "silent": (FUNCTIONS, "DIALECTS is None; expected some of ['cuda', 'opencl'"),
    "basic": (FUNCTIONS + "DIALECTS = ('basic',)", "DIALECTS is ('basic',)"),
    "listing": (
        FUNCTIONS + "DIALECTS = ('python',)\ndef list_devices(): return 1 // 0",
        "ZeroDivisionError",
    ),
    "number": (
        FUNCTIONS + "DIALECTS = ('python',)\ndef list_devices(): return [1]",
        "expected DeviceInfo",
    ),
}


def test_each_broken_device_costs_one_line_and_nothing_else(install):
    run = install(
        {"autotune.devices": {name: name for name in BROKEN_DEVICES}},
        **{name: code for name, (code, _) in BROKEN_DEVICES.items()},
    )
    listed = run("devices")
    assert listed.returncode == 0 and "fake:0" in listed.stdout and "Traceback" not in listed.stderr
    for name, (_, message) in BROKEN_DEVICES.items():
        place = f"entry point {name} in autotune.devices of mine0"
        (line,) = [line for line in listed.stderr.splitlines() if place in line]
        assert message in line


@pytest.mark.parametrize("name", ["absent", "short", "number"])
def test_a_search_on_a_broken_device_is_refused_in_one_line(install, name):
    code, message = BROKEN_DEVICES[name]
    run = install({"autotune.devices": {"mine": "mine"}}, mine=code)
    asked = run("search", "double.yaml", "-d", "mine")
    assert asked.returncode == 2 and "Traceback" not in asked.stderr
    place = "entry point mine in autotune.devices of mine0"
    (line,) = [line for line in asked.stderr.splitlines() if place in line]
    assert message in line


def test_a_device_whose_methods_are_missing_stops_the_search_in_one_line(install):
    code = (EXAMPLE / "plain_device.py").read_text()
    run = install(
        {"autotune.devices": {"plain": "plain_device"}},
        plain_device=code.replace("class PlainDevice(Device)", "class PlainDevice").replace(
            "def read(", "def raed("
        ),
    )
    found = run("search", "double.yaml", "-d", "plain")
    assert found.returncode == 1 and "Traceback" not in found.stderr
    assert "'PlainDevice' object has no attribute 'clocks'" in found.stderr.splitlines()[-1]


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("class Mine: ...", "no function search"),
        ("class Other: ...", "AttributeError"),
        ("class Mine:\n  def __init__(self, x): ...\n  def search(self): ...", "TypeError"),
    ],
    ids=["no search", "no class", "arguments"],
)
def test_a_broken_engine_is_refused_in_one_line(install, code, message):
    run = install({"autotune.searchers": {"mine": "mine:Mine"}}, mine=code)
    found = run("search", "double.yaml", "-d", "fake", "--engine", "mine")
    assert found.returncode == 2 and "Traceback" not in found.stderr
    (line,) = [
        line
        for line in found.stderr.splitlines()
        if "entry point mine in autotune.searchers of mine0" in line
    ]
    assert message in line


def test_a_name_that_is_taken_stays_with_its_owner(install):
    install({"autotune.devices": {"mine": "one"}}, one=FUNCTIONS + "DIALECTS = ('python',)")
    run = install(
        {"autotune.devices": {"fake": "gone", "mine": "gone"}, "autotune.searchers": {"random": "gone:Gone"}}
    )
    searched = run("search", "double.yaml", "-d", "fake", "--engine", "random", "--budget", "2")
    assert searched.returncode == 0, searched.stderr
    said = run("devices").stderr
    assert said.count("fake in autotune.devices of mine1: not used, because the name is taken") == 1
    assert said.count("not used, because the name is taken") == 2


def test_an_unknown_engine_is_told_with_what_there_is(example):
    done = example("search", "double.yaml", "-d", "fake", "--engine", "neihbours")
    assert done.returncode == 2 and "did you mean neighbours?" in done.stderr
