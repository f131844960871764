"""Times without one trouble: by macros, by the source's tree, and never as a result."""

import json
from dataclasses import replace

import pytest

from autotune.core.records import Config
from autotune.core.runs_folder import problem_in_name
from autotune.diagnosis.bound import Bound
from autotune.diagnosis.diagnose import Diagnosis
from autotune.diagnosis.foretold import Foretold, foretold_text, other_work
from autotune.diagnosis.record import keep, read
from autotune.errors import SpaceError
from autotune.evaluation.journal import read_trials
from autotune.report.gather import gather_sources
from autotune.report.search_page import report_json
from autotune.space import bind, load_space, problem_of
from autotune.space.configurations import TROUBLES
from tests.conftest import ROOT, run_in_process
from tests.space_example import GPU
from tests.unit.test_bottleneck import IDLE, pipes

KERNEL = """\
#include "portable.h"
#ifdef COALESCED
#define PLACE(i) (i)
#else
#define PLACE(i) ((i) % 64 * (n / 64) + (i) / 64)
#endif
KERNEL KERNEL_BLOCK(BLOCK, 1, 1)
spread(GLOBAL const int *x, GLOBAL int *y, const unsigned int n)
{
    SHARED int cells[BLOCK];
    const unsigned int i = BLOCK_INDEX(x) * BLOCK + THREAD_INDEX(x);
#if ORDER == 0
    cells[THREAD_INDEX(x)] = i < n ? x[PLACE(i)] : 0;
#else
    cells[THREAD_INDEX(x)] = i < n ? x[i] : 0;
#endif
    BARRIER();
    if (i < n)
        y[i] = cells[THREAD_INDEX(x)];
}
"""
SPACE = """\
schema: 1
kernel: spread
source: spread.cu
reference: spread.py
dtypes: [int32]
sizes: {default: {n: 4096}}
parameters:
  BLOCK: [64]
  ORDER: [0, 1]
default: {BLOCK: 64, ORDER: 0}
landmarks:
  strided: {fixed_by: {COALESCED: side_by_side}}
  side_by_side: {ORDER: 1}
arguments:
  - {name: x, dtype: int32, shape: [n], role: in, fill: {constant: 3}}
  - {name: y, dtype: int32, shape: [n], role: out}
  - {name: n, dtype: uint32, value: n}
launch:
  - {entry: spread, grid: ["ceil_div(n, BLOCK)"], block: [BLOCK], arguments: [x, y, n]}
verify: {rtol: 0, atol: 0}
"""
REFERENCE = """\
def reference(inputs, sizes):
    return {"y": inputs["x"]}
"""


@pytest.fixture
def own(tmp_path):
    """A kernel of a user with one macro, a barrier and checks of bounds."""
    (tmp_path / "spread.cu").write_text(KERNEL)
    (tmp_path / "spread.py").write_text(REFERENCE)
    (tmp_path / "spread.yaml").write_text(SPACE)
    return tmp_path


def diagnosed(folder, *arguments):
    done = run_in_process(
        folder, "diagnose", "spread.yaml", "-d", "opencl:0", "-q", "--json", "--cache", "cache", *arguments
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_macro_and_the_source_itself_foretell_times_next_to_the_landmark_that_does_it(own):
    found = {one["trouble"]: one for one in diagnosed(own, "--landmark", "strided")["foretold"]}
    assert found.keys() == {"COALESCED", "NO_BARRIERS", "NO_BOUNDS_CHECKS"}
    assert found["COALESCED"]["how"] == "by its macro"
    assert found["COALESCED"]["landmark"] == "side_by_side" and found["COALESCED"]["landmark_ms"] > 0
    assert found["NO_BARRIERS"]["how"] == "barriers taken out" and not found["NO_BARRIERS"]["landmark"]
    assert all(one["time_ms"] > 0 and one["other_work"] is None for one in found.values())


def test_a_variant_reaches_neither_a_journal_nor_a_cache(own):
    diagnosed(own, "--landmark", "strided", "--journal", "j.jsonl")
    trials = read_trials(own / "j.jsonl")
    assert [dict(trial.config)["ORDER"] for trial in trials] == [0, 1]  # itself and the landmark, verified
    assert not (own / "cache").exists()
    assert "COALESCED" not in (own / "j.jsonl").read_text()


def test_a_report_shows_the_latest_verdict_on_its_problem(own):
    found = diagnosed(own, "--landmark", "strided", "--journal", "j.jsonl")
    (kept,) = (own / "runs").glob("spread.*.diagnosis.json")
    journal = (own / "j.jsonl").rename(kept.with_name(kept.name.replace("diagnosis.json", "jsonl")))
    (search,) = report_json(gather_sources([journal]))["searches"]
    shown = search["diagnosis"]
    assert (shown["verdict"], shown["reason"]) == (found["bound"], found["reason"])
    assert [line.partition(":")[0] for line in shown["foretold"]] == [
        one["trouble"] for one in found["foretold"]
    ]
    assert len(shown["uses"]) == len(found["uses"]) and "strided" in shown["origin"]
    diagnosed(own, "--size", "n=8192", "--default", "--journal", "other.jsonl")
    (search,) = report_json(gather_sources([journal]))["searches"]
    assert search["diagnosis"] is None


def test_the_problem_of_a_verdict_has_its_sizes_in_any_order(tmp_path):
    found = Diagnosis("a", "GPU", {"rows": 2, "columns": 3}, "int32", Config({}), "", 1.0, Bound.DRAM, "")
    keep(found, "sorted", tmp_path / "a.diagnosis.json")
    assert read(tmp_path / "a.diagnosis.json").problem == problem_in_name(
        {"columns": 3, "rows": 2}, "int32", "sorted"
    )


def test_a_damaged_verdict_is_none(tmp_path):
    path = tmp_path / "a.diagnosis.json"
    for damage in (None, "", "[]", "{}", '{"schema": 1}', '{"schema": 1, "diagnosis": {"verdict": 1}}'):
        if damage is not None:
            path.write_text(damage)
        assert read(path) is None


def test_a_macro_that_changes_nothing_of_a_configuration_foretells_nothing(own):
    found = diagnosed(own, "--landmark", "side_by_side")["foretold"]
    assert "COALESCED" not in {one["trouble"] for one in found}


def test_a_parameter_with_the_name_of_a_trouble_is_a_parameter(own):
    text = SPACE.replace("ORDER", "COALESCED").replace(
        "  strided: {fixed_by: {COALESCED: side_by_side}}\n", ""
    )
    (own / "spread.yaml").write_text(text)
    (own / "spread.cu").write_text((own / "spread.cu").read_text().replace("ORDER", "COALESCED"))
    found = diagnosed(own, "--default")["foretold"]
    assert {one["trouble"] for one in found} == {"NO_BARRIERS", "NO_BOUNDS_CHECKS"}


def test_checks_that_hold_threads_back_stay_and_the_reason_is_told(own):
    found = diagnosed(own, "--landmark", "side_by_side", "--size", "n=4095")
    assert {one["trouble"] for one in found["foretold"]} == {"NO_BARRIERS"}
    (told,) = [line for line in found["missing"] if line.startswith("NO_BOUNDS_CHECKS")]
    assert "reads element 4095 of x, which has 4095" in told


def test_other_work_of_a_variant_is_told():
    whole = replace(IDLE, pipe_threads=pipes(float32=100.0, integer=100.0))
    assert other_work(whole, replace(whole, instructions=7.0, active_lanes=32.0)) == ""
    assert other_work(whole, replace(whole, pipe_threads=pipes(float32=100.0, integer=110.0))) == ""
    assert other_work(whole, replace(whole, global_load_bytes=5e5)) == (
        "requests 50% fewer bytes of global memory"
    )
    assert other_work(whole, replace(whole, pipe_threads=pipes(float32=150.0, integer=100.0))) == (
        "does 50% more float32 operations"
    )
    atomics = replace(whole, global_load_bytes=0.0, atomic_bytes=1e6)
    assert other_work(atomics, replace(atomics, atomic_bytes=0.0, global_store_bytes=1e6)) == ""


@pytest.mark.parametrize(
    ("one", "text"),
    [
        (
            Foretold("COALESCED", "by its macro", 0.5, "", "good", 0.4),
            "COALESCED: 0.5 ms (50%), by its macro, the same work; good, which does that, takes 0.4 ms",
        ),
        (
            Foretold("NO_SPILLS", "without its cap of registers", 0.5, None, "good"),
            "NO_SPILLS: 0.5 ms (50%), without its cap of registers, its work was not counted; good, which "
            "does that, did not run",
        ),
    ],
)
def test_a_foretold_time_is_one_line(one, text):
    assert foretold_text(one, 1.0) == text


@pytest.mark.parametrize(
    ("written", "said"),
    [("{SLOW: side_by_side}", "unknown key"), ("{COALESCED: nowhere}", "unknown value 'nowhere'")],
)
def test_a_trouble_and_the_landmark_without_it_have_to_exist(own, written, said):
    (own / "spread.yaml").write_text(SPACE.replace("{COALESCED: side_by_side}", written))
    with pytest.raises(SpaceError, match=said):
        load_space(own / "spread.yaml")


def test_every_trouble_is_in_the_documentation():
    text = (ROOT / "docs" / "diagnose.md").read_text()
    assert all(f"`{trouble}`" in text for trouble in TROUBLES)


@pytest.mark.parametrize("path", sorted((ROOT / "spaces").glob("[!t]*.yaml")), ids=lambda path: path.stem)
def test_shipped_landmarks_that_are_mended_have_the_macro_or_are_changed_by_their_tree(path):
    spec = load_space(path)
    space = bind(spec, GPU, problem_of(spec, GPU))
    mended = [(one, trouble) for one in spec.landmarks for trouble in one.fixed_by]
    text = spec.source.read_text()
    for landmark, trouble in mended:
        assert landmark.config in space
        assert trouble in text or trouble == "NO_BOUNDS_CHECKS", (landmark.name, trouble)
