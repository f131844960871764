"""References of the last round run next to the search, each of them once."""

import json
import time
from dataclasses import replace

import pytest

from autotune.evaluation.preparation import Preparation
from autotune.evaluation.references import References
from autotune.problem.data_sets import other_data
from autotune.problem.reference_cache import ReferenceCache
from autotune.problem.workload import Array
from tests.unit.test_device_sanitizer import PROBLEM

SLOW = """\
import os, time
def reference(inputs, sizes):
    with open({calls!r}, "a") as file:
        file.write(f"{{os.getpid()}} {{sizes['n']}}\\n")
    time.sleep(0.3 * (sizes["n"] == 1000))
    return {{"y": 2 * inputs["x"]}}
"""


def spans(folder, *options):
    """What each process of a search did, by its name."""
    events = timeline(folder, *options)
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    return [(names[event["pid"]], event["name"]) for event in events if event["ph"] == "X"]


def timed_spans(folder):
    """What a search did, by the time when it began."""
    return [(event["ts"], event["name"]) for event in timeline(folder) if event["ph"] == "X"]


def timeline(folder, *options):
    folder.search("--timeline", "t.json", *options)
    return json.loads((folder.path / "t.json").read_text())["traceEvents"]


def test_a_slow_reference_runs_once_a_seed_and_those_of_the_last_round_elsewhere(folder):
    calls = folder.path / "calls"
    (folder.path / "reference.py").write_text(SLOW.format(calls=str(calls)))
    folder.edit("{integers: [-100, 100]}", "{sequence: [1, 1]}")  # without sets of other data
    assert ("references", "keep") in spans(folder)
    processes = [line.split()[0] for line in calls.read_text().splitlines() if line.endswith(" 1000")]
    assert len(processes) == 3 and len(set(processes)) > 1


def test_those_of_the_last_round_begin_once_the_first_trial_needs_none_any_more(folder):
    names = [name for _, name in sorted(timed_spans(folder))]
    assert names.index("verify and time") < names.index("keep")


def test_a_reference_that_may_use_the_device_runs_in_its_process_alone(folder):
    text = (folder.path / "reference.py").read_text()
    (folder.path / "reference.py").write_text("try:\n    import cupy\nexcept ImportError:\n    pass\n" + text)
    assert not any(process == "references" for process, _ in spans(folder))


def test_one_that_fails_or_is_not_begun_stands_in_nobodys_way(tmp_path):
    path = tmp_path / "reference.py"
    path.write_text("def reference(inputs, sizes):\n    raise RuntimeError\n")
    references = References(path, ReferenceCache(tmp_path / "kept"))
    references.settle([PROBLEM])
    references.begin([PROBLEM], [])
    references.settle([PROBLEM])
    references.close()
    references.close()


def test_results_on_other_data_are_kept_for_the_run_however_fast_they_were(tmp_path):
    calls, path = tmp_path / "calls", tmp_path / "r.py"
    path.write_text(SLOW.format(calls=str(calls)))
    arrays = (Array("x", "float32", (4,), "in", ("uniform", -1, 1)), Array("y", "float32", (4,), "out", None))
    other = other_data(replace(PROBLEM, arrays=arrays), "close")
    cache = ReferenceCache(tmp_path / "kept", of_run=tmp_path / "run")
    references = References(path, cache)
    references.begin([], [other])
    while not calls.exists():
        time.sleep(0.01)
    references.settle([other])
    references.close()
    known = calls.read_text()
    assert Preparation(path, (other,), cache).data_of(other).expected["y"].size
    assert calls.read_text() == known and not (tmp_path / "kept").exists()


def test_small_results_of_a_fast_reference_are_computed_once_for_both_processes_of_a_run(tmp_path):
    calls, path = tmp_path / "calls", tmp_path / "r.py"
    path.write_text(SLOW.format(calls=str(calls)))
    arrays = (Array("x", "float32", (9,), "in", ("uniform", -1, 1)), Array("y", "float32", (9,), "out", None))
    slow = replace(PROBLEM.problem, sizes={"n": 1000})
    problem = replace(PROBLEM, problem=slow, arrays=arrays)
    cache = ReferenceCache(tmp_path / "kept", kept_from_s=60.0, of_run=tmp_path / "run")
    for _ in range(2):
        assert Preparation(path, (problem,), cache).data_of(problem).expected["y"].size
    assert len(calls.read_text().splitlines()) == 1 and not (tmp_path / "kept").exists()


def test_the_time_of_a_reference_is_told_by_its_work_at_the_largest_problem_kept_or_not(tmp_path):
    (tmp_path / "r.py").write_text("def reference(inputs, sizes):\n    return {'x': inputs['x'] * 2}\n")
    cache = ReferenceCache(tmp_path / "kept", kept_from_s=0.0)

    def predicted_s(n, *problems):
        return Preparation(tmp_path / "r.py", problems, cache).reference_s(sized(n))

    def sized(n):
        return replace(PROBLEM, problem=replace(PROBLEM.problem, sizes={"n": n}))

    first_s = predicted_s(1000, sized(10), sized(1000), PROBLEM)
    assert first_s > 0 and predicted_s(3000, sized(10), sized(1000), PROBLEM) == pytest.approx(3 * first_s)
    assert predicted_s(1000) == 0.0, "nothing is known"
