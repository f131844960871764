"""Engines that other distributions add by entry points."""

import json
import os
import sys

import pytest

PLUGIN = """
class LastFirst:
    def search(self, space, stream, *, seed):
        for row in reversed(range(len(space))):
            stream.submit([space.config(row)])
            stream.collect()
"""


@pytest.fixture
def installed(tmp_path):
    """A folder with a distribution that has one engine, as pip would leave it."""
    site = tmp_path / "site"
    info = site / "mine-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
    points = "last-first = mine:LastFirst", "random = mine:Missing"
    (info / "entry_points.txt").write_text("\n".join(("[autotune.searchers]", *points)))
    (site / "mine.py").write_text(PLUGIN)
    return site


@pytest.fixture
def search(folder, installed):
    """Search the doubling kernel in a process that finds that distribution."""
    path = os.pathsep.join([str(installed), *filter(None, sys.path)])
    words = ("search", "double.yaml", "-d", "fake", "--json", "--engine")
    return lambda *engine: folder.run(*words, *engine, PYTHONPATH=path)


def test_an_engine_of_another_distribution_searches(search):
    found = search("last-first")
    assert found.returncode == 0, found.stderr
    assert json.loads(found.stdout)["engine"] == "last-first"


def test_it_takes_the_place_of_none_that_autotune_has(search):
    assert search("random", "--budget", "2").returncode == 0


def test_an_unknown_name_is_told_with_what_there_is(search):
    done = search("last-frist")
    assert done.returncode == 2 and "did you mean last-first?" in done.stderr
