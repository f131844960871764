"""The timeline of a search: every process, spans that nest, and a sum that explains the wall time."""

import json
import time
from collections import defaultdict

import pytest

from autotune.core import timeline
from autotune.errors import ChildTimeout
from autotune.evaluation.journal import read_journal
from autotune.processes.child import Child
from autotune.report.timeline import timeline_json
from tests.conftest import ROOT, run_in_process
from tests.devices_here import devices_here

ROUNDING_US = 0.01
START = "start Python and read the options"
BOUND = "import autotune, and find the device and its configurations"
STAGE = "starting the search"


@pytest.fixture
def recording():
    timeline.begin("test")
    yield
    timeline.end()


def events_of(path):
    """The spans by track, each as its begin, its end and its name; and the names of processes."""
    events = json.loads(path.read_text())["traceEvents"]
    tracks, names = defaultdict(list), {}
    for event in events:
        if event["ph"] == "X":
            ended = event["ts"] + event["dur"]
            tracks[event["pid"], event["tid"]].append((event["ts"], ended, event["name"]))
        if event["name"] == "process_name":
            names[event["pid"]] = event["args"]["name"]
    return tracks, names, [event for event in events if event["ph"] in "sf"]


def require_nested(spans):
    opened = []
    for began, ended, name in sorted(spans, key=lambda span: (span[0], -span[1])):
        while opened and opened[-1] <= began + ROUNDING_US:
            opened.pop()
        assert not opened or ended <= opened[-1] + ROUNDING_US, name
        opened.append(ended)


def named(tracks, name):
    return next(span for spans in tracks.values() for span in spans if span[2] == name)


def require_explained(path, journal):
    """Every track nests, and the stages, which the journal has as well, make up the whole search."""
    tracks, names, arrows = events_of(path)
    for spans in tracks.values():
        require_nested(spans)
    assert {"autotune search", "device process", "compiler pool", "fork server"} <= set(names.values())
    assert arrows and len(arrows) % 2 == 0
    (stages,) = [spans for spans in tracks.values() if STAGE in {name for _, _, name in spans}]
    stages_s = sum(ended - began for began, ended, _ in stages) / 1e6
    assert stages_s == pytest.approx(sum(read_journal(journal).ending.stages.values()), abs=0.1)
    began, ended, _ = named(tracks, "search")
    total = max(end for spans in tracks.values() for _, end, _ in spans)
    assert stages_s > 0.9 * (ended - began) / 1e6
    main = [named(tracks, name) for name in (START, BOUND, "search")]
    assert sum(end - begin for begin, end, _ in main) > 0.9 * total


def test_a_search_on_the_fake_device_explains_its_time(folder):
    done = folder.start(
        "search", "double.yaml", "--device", "fake", "--timeline", "t.json", "--journal", "j.jsonl"
    )
    assert done.wait() == 0, done.stderr.read()
    require_explained(folder.path / "t.json", folder.path / "j.jsonl")


def test_a_search_begins_the_process_of_its_last_round_before_its_last_trial_ends(folder):
    done = folder.start("search", "double.yaml", "-d", "fake", "--budget", "5", "--timeline", "t.json")
    assert done.wait() == 0, done.stderr.read()
    tracks, _, _ = events_of(folder.path / "t.json")
    assert named(tracks, "open device")


def test_a_search_on_the_cpu_explains_its_time(tmp_path):
    devices_here("opencl")
    options = ("-d", "opencl:0", "--size", "n=4096", "--budget", "3", "--no-sanitizer", "--cache", tmp_path)
    files = ("--timeline", tmp_path / "t.json", "--journal", tmp_path / "j.jsonl")
    done = run_in_process(tmp_path, "search", ROOT / "spaces/reduce.yaml", *options, *files)
    assert done.returncode == 0, done.stderr
    tracks, _, _ = events_of(tmp_path / "t.json")
    names = {name for spans in tracks.values() for _, _, name in spans}
    assert {"compile", "verify and time", "reference at n=4096", "take samples", "launch"} <= names
    assert "wait: compilers" in names and "wait: verify and time" in names


def test_a_timeline_that_cannot_be_written_stops_the_command_at_once(folder):
    done = folder.run("search", "double.yaml", "--device", "fake", "--timeline", "double.py/t.json")
    assert done.returncode == 1 and "double.py" in done.stderr
    assert not (folder.path / "runs").exists()


def test_a_search_that_fails_writes_its_timeline(folder):
    folder.write("this is no Python (")
    done = folder.run("search", "double.yaml", "--device", "fake", "--timeline", "t.json")
    assert done.returncode == 1
    assert named(events_of(folder.path / "t.json")[0], "compile")


def step(state):
    with timeline.span("a part of it"):
        return state


def test_a_child_sends_what_it_did_and_an_arrow_leads_to_the_wait(recording):
    child = Child(int, 40)
    assert child.call(step, timeout_s=60) == 40
    child.kill()
    spans = timeline.taken()
    calls = {one.name: one.call for one in spans}
    assert calls["step"] == calls["wait: step"] == f"{child.pid}.1"
    assert {one.process for one in spans if one.name == "a part of it"} == {child.pid}
    events = json.loads(timeline.chrome_trace(spans))["traceEvents"]
    assert [event["ph"] for event in events if event["name"] == "answer"] == ["s", "f"]


def test_the_chart_has_who_works_and_on_what(tmp_path):
    def span(name, at, process, track="MainThread", process_name="device process"):
        return timeline.Span(name, at, at + 1.0, process, process_name, track)

    file = tmp_path / "t.json"
    spans = [
        span("search", 0.0, 1, process_name="autotune search"),
        span("wait: verify and time", 0.5, 1, process_name="autotune search"),
        span("verify and time", 1.0, 2),
        span("take samples", 1.5, 2),
        span("reference at n=1", 2.0, 2, "preparation_0"),
        span("g++ for races", 2.5, 1, "sanitizer_0", process_name="autotune search"),
        span("wait: compile", 2.5, 1, "compiler_0", process_name="autotune search"),
        span("verifying", 2.5, 1, timeline.STAGES, process_name="autotune search"),
    ]
    file.write_text(timeline.chrome_trace(spans))
    chart = timeline_json(file)
    found = {
        (row["process"], row["thread"]): [chart["kinds"][kind] for _, _, kind, _ in row["spans"]]
        for row in chart["rows"]
    }
    assert list(found.items()) == [
        (("autotune search", "MainThread"), ["other work", "waiting"]),
        (("autotune search", "sanitizer_0"), ["sanitizers"]),
        (("device process", "MainThread"), ["verifying", "timing"]),
        (("device process", "preparation_0"), ["reference"]),
    ]


def test_another_file_is_no_timeline(searched_folder):
    done = searched_folder.run("report", "double", "--timeline", "double.yaml")
    assert done.returncode == 2 and "double.yaml: not a timeline" in done.stderr


def hang(state):
    time.sleep(600)


def test_the_wait_for_a_killed_child_is_shown(recording):
    child = Child(int, 40)
    with pytest.raises(ChildTimeout):
        child.call(hang, timeout_s=0.1)
    assert "wait: hang" in {one.name for one in timeline.taken()}


def test_nothing_is_recorded_unless_it_is_asked_for():
    with timeline.span("something"):
        pass
    child = Child(int, 40)
    assert child.call(step, timeout_s=60) == 40
    child.kill()
    assert timeline.taken() == []


def test_a_span_that_ends_by_an_error_is_recorded(recording):
    with pytest.raises(ValueError, match="no"), timeline.span("outer"), timeline.span("inner"):
        raise ValueError("no")
    assert [one.name for one in timeline.taken()] == ["inner", "outer"]
