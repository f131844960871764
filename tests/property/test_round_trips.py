"""Whatever is recorded, every format gives it back: once through a format, nothing changes any more."""

import json
import math
import tempfile
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from replay import prepare

from autotune.core.records import Config
from autotune.core.trials import Status
from autotune.interop import WRITERS, Recording, imported_trial, read_recording
from autotune.interop.recording import domains

SCHEMA = json.loads(files("kernel_tuner").joinpath("schema/T4/1.0.0/results-schema.json").read_text())
NAMES = st.from_regex("[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("time", "times", "timestamp") and not name.endswith("_time")
)
VALUES = st.one_of(
    st.integers(-(2**40), 2**40),
    st.booleans(),
    st.floats(-1e6, 1e6),
    st.text("abc_1", min_size=1, max_size=4),
)
TIMES = st.floats(1e-6, 1e9)


@st.composite
def recordings(draw):
    names = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    rows = draw(st.lists(st.tuples(*[VALUES for _ in names]), min_size=1, max_size=6, unique=True))
    trials = []
    for row in rows:
        status = draw(st.sampled_from(Status))
        compile_ms = draw(TIMES)
        trials.append(
            imported_trial(
                config=Config(dict(zip(names, row, strict=True))),
                status=status,
                time_ms=draw(TIMES) if status is Status.OK else None,
                detail="" if status is Status.OK else draw(st.text(max_size=8)),
                compile_ms=compile_ms,
                cost_s=(compile_ms + draw(TIMES)) / 1e3,
            )
        )
    sizes = draw(st.none() | st.dictionaries(NAMES, st.integers(1, 2**40), min_size=1, max_size=3))
    parameters = domains(names, [trial.config for trial in trials])
    return Recording("kernel", draw(st.text("ab 1", min_size=1)), sizes, parameters, tuple(trials))


def through(recording, form):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "recording"
        path.write_text(WRITERS[form](recording), encoding="utf-8")
        return read_recording(path)


@pytest.mark.parametrize("form", WRITERS)
@given(recording=recordings())
def test_once_through_a_format_nothing_changes_any_more(form, recording):
    once = through(recording, form)
    again = through(once, form)
    assert replace(again, trials=once.trials) == once
    for before, after in zip(once.trials, again.trials, strict=True):
        assert replace(after, cost_s=before.cost_s) == before
        assert math.isclose(before.cost_s, after.cost_s)
    assert (once.kernel, once.device) == (recording.kernel, recording.device)
    for before, after in zip(recording.trials, once.trials, strict=True):
        assert (before.config, before.time_ms) == (after.config, after.time_ms)
        assert (before.status is Status.OK) == (after.status is Status.OK)
        assert math.isclose(before.cost_s, after.cost_s, abs_tol=1e-9)


@pytest.mark.parametrize("one", WRITERS)
@pytest.mark.parametrize("other", WRITERS)
@settings(max_examples=20)
@given(recording=recordings())
def test_the_way_through_another_format_changes_no_outcome(one, other, recording):
    straight, detour = through(recording, other), through(through(recording, one), other)
    for before, after in zip(straight.trials, detour.trials, strict=True):
        assert (before.config, before.time_ms) == (after.config, after.time_ms)
        assert (before.status is Status.OK) == (after.status is Status.OK)


@given(recording=recordings())
def test_a_recorded_space_holds_the_recorded_configurations_and_no_other(recording):
    recorded = prepare(recording)
    times_ms = {trial.config: trial.time_ms for trial in recording.trials}
    assert len(recorded.space) == len(times_ms) == len(recorded.trials)
    for row, config in enumerate(recorded.space):
        assert recorded.space.index(config) == row and not recorded.space.why_invalid(config)
        assert recorded.trials[row].time_ms == times_ms[config]


@given(recording=recordings())
def test_whatever_is_recorded_makes_valid_t4(recording):
    jsonschema.validate(json.loads(WRITERS["t4"](recording)), SCHEMA)
