"""Times are taken under the conditions of a kernel's calls, and results say which these were."""

import json

import pytest

from autotune import best_config


def test_what_was_measured_is_in_the_journal_the_result_and_the_answer(folder):
    usual = folder.search("--budget", "2")
    folder.edit("work: {bytes: 8 * n}", "work: {bytes: 8 * n}\nmeasure: {cache: warm}")
    warm = folder.search("--budget", "3")
    assert usual["measure"] == {"cache": "", "launch": ""} and warm["measure"]["cache"] == "warm"
    assert warm["journal"] != usual["journal"] and warm["resumed"] == 0
    header = json.loads((folder.path / warm["journal"]).read_text().splitlines()[0])
    assert header["measure"] == "warm cache" and "measure" not in json.loads(
        (folder.path / usual["journal"]).read_text().splitlines()[0]
    )
    best = best_config("double", "fake-gpu", n=1000, cache=folder.path / "cache")
    assert (best.provenance.cache_state, best.provenance.launch_mode) == ("warm", "")
    assert best.provenance.protocol.endswith("; warm cache")
    assert best.match.detail == "tuned with a warm cache on fake-gpu for n=1000"


def test_a_device_without_graphs_launches_eagerly_as_ever(folder):
    usual = folder.search("--budget", "3")
    asked = folder.search("--budget", "3", "--measure", "eager")
    assert asked["journal"] == usual["journal"] and asked["resumed"] == 3


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("graph", "measure: launch: graph: device fake:0 has no CUDA graphs"),
        ("warm,cold", "expected cold or warm, graph or eager"),
        ("tepid", "expected cold or warm"),
    ],
)
def test_other_conditions_are_refused(folder, words, reason):
    done = folder.run("search", "double.yaml", "--device", "fake", "--measure", words)
    assert done.returncode == 2 and reason in done.stderr
