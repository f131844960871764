"""Short runs are repeated within a sample: all that is compared gets the same share of cold caches."""

import json
from dataclasses import replace

import pytest

from autotune.analysis.merge import merge_rows
from autotune.core.records import Config, Launch
from autotune.core.trials import Binary, CallMode, Measurement, Problem, Rule, Trial
from autotune.devices import backend
from autotune.devices.fake import FakeDevice
from autotune.evaluation.buffers import SharedBuffers, WorkloadBuffers
from autotune.evaluation.journal import Journal, read_trials
from autotune.evaluation.measure import IncumbentTimer, measure
from autotune.evaluation.stopwatch import Stopwatch
from autotune.evaluation.work_item import MeasurementPolicy, WorkItem
from autotune.problem.inputs import prepare
from autotune.problem.workload import Array, Scalar, Workload

WARM = 0.4  # of the time that a run takes with cold caches
PROBLEM = Workload(
    Problem({"n": 4}, "float32"),
    (Array("x", "float32", (4,), "in", ("constant", 1)),),
    (Scalar("n", "int32", 4),),
    (Launch("kernel", (1, 1, 1), (1, 1, 1), 0, ("x", "n")),),
)


class CachedDevice(FakeDevice):
    """A device whose runs are faster once the caches are warm."""

    is_cold = True

    def flush_cache(self):
        self.is_cold = True

    def run(self, program, launches, arguments, repeats=1, graph=None, warm_first=False):
        run_ms = super().run(program, launches, arguments)
        cold, self.is_cold = int(self.is_cold and not warm_first), False
        return run_ms * (cold + WARM * (repeats - cold))


@pytest.fixture
def timed(tmp_path):
    """Time a kernel that takes so many ms with cold caches."""
    reference = tmp_path / "reference.py"
    reference.write_text("def reference(inputs, sizes):\n    return {}\n")

    def time(cold_ms, incumbent=None, batch=None, cache=""):
        device = CachedDevice()
        source = f"def kernel(grid, block, x, n):\n    return {cold_ms}\n"
        program = device.load(backend("fake").open_compiler(0).compile(source, ()))
        buffers = WorkloadBuffers(PROBLEM, SharedBuffers(device, prepare(PROBLEM, reference)))
        policy = MeasurementPolicy(call_mode=CallMode(cache))
        stopwatch = Stopwatch(program, buffers, policy.call_mode, changed=())
        item = WorkItem(Binary(b"", "", "", 0.0), (), PROBLEM, policy, None, batch, 0.0)
        return measure(stopwatch, item, cold_ms, incumbent and IncumbentTimer(incumbent, lambda: None))

    return time


def test_the_first_that_is_timed_decides_and_ratios_are_those_of_cold_runs(timed):
    first = timed(0.0505)
    second = timed(0.0485, first, first.batch)
    assert first.batch == second.batch == 1
    assert first.median_ms / second.median_ms == pytest.approx(0.0505 / 0.0485)


def test_a_short_one_is_repeated_and_a_longer_one_as_often(timed):
    first = timed(0.0101)
    second = timed(0.0202, None, first.batch)
    assert first.batch == second.batch == 5
    assert second.median_ms / first.median_ms == pytest.approx(2)


def test_one_that_takes_long_by_any_measure_is_not_repeated(timed):
    assert timed(15.0, None, 50).batch == 1


def test_caches_are_as_they_were_asked_for(timed):
    cold, warm = timed(0.01, cache="cold"), timed(0.01, cache="warm")
    assert (cold.batch, cold.median_ms) == (1, pytest.approx(0.01))
    assert warm.batch > 1 and warm.median_ms == pytest.approx(0.01 * WARM)
    assert timed(0.01, warm, warm.batch, "warm").rule == "steady"  # its cold run alone would be hopeless


def test_one_run_is_compared_with_one_run_of_the_best(timed):
    best = timed(0.02)
    assert (best.median_ms, best.alone_ms) == pytest.approx((0.012, 0.02))
    assert timed(0.06, best, best.batch).rule == "screened"
    assert timed(0.071, best, best.batch).rule == "hopeless"


def test_a_slow_default_and_a_best_that_is_30_times_shorter(timed):
    default = timed(0.09)
    best, second = (timed(cold_ms, default, default.batch) for cold_ms in (0.003, 0.0031))
    assert second.median_ms / best.median_ms == pytest.approx(0.0031 / 0.003)


def _batches(folder, result):
    """Of all that were sampled in a search, and in the last round."""
    rows = [json.loads(line) for line in (folder.path / result["journal"]).read_text().splitlines()[1:]]
    trials = [row["trial"]["measurement"] for row in rows if "trial" in row]
    finals = [found for row in rows if "finals" in row for found in row["finals"].values()]
    return {found["batch"] for found in trials if found["rule"] != "hopeless"}, {
        found["batch"] for found in finals
    }


def test_a_search_has_one_batch_that_its_journal_keeps(folder):
    kernel = (folder.path / "double.py").read_text()
    folder.write(kernel.replace("(A - 5) ** 2 + B + 1.0", "0.01 * (1 + A + B)"))
    assert _batches(folder, folder.search("--budget", "3")) == ({3}, {3})
    folder.edit("default: {A: 1, B: 0}", "default: {A: 6, B: 0}")
    assert _batches(folder, folder.search("--engine", "exhaustive")) == ({3}, {3})


def test_rows_in_the_order_of_a_merge_keep_the_batch(tmp_path):
    path, header = tmp_path / "j.jsonl", {"kernel": "reduce"}
    journal = Journal(path, header)
    assert journal.batch is None
    for key, rule, batch in (("b", Rule.STEADY, 5), ("c", Rule.STEADY, 2), ("a", Rule.HOPELESS, 1)):
        measured = Measurement((0.01,), rule, batch=batch)
        journal.append(Trial(Config({"A": key}), key, measurement=measured))
    assert journal.batch == 5
    journal.close()
    first, *rows = path.read_text().splitlines()
    path.write_text("".join(f"{line}\n" for line in (first, *merge_rows(rows))))
    assert [trial.key for trial in read_trials(path)] == ["a", "b", "c"]
    merged = Journal(path, header)
    assert merged.batch == 5
    merged.close()


def test_finalists_are_not_repeated_where_one_of_them_cannot_be(folder):
    folder.edit("arguments: [x, y, n]", "arguments: [x, y, n, w]")
    folder.edit(
        "  - {name: n,",
        "  - {name: w, dtype: int32, shape: [1], role: inout, fill: {constant: 0}}\n  - {name: n,",
    )
    folder.write("""\
def double(grid, block, x, y, n, w):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    w.view("int32")[0] += A == 2
    return 0.0009 + 0.0001 * (A + B)
""")
    searched, last = _batches(folder, folder.search())
    assert searched == {50, 1} and last == {1}


def test_the_word_of_the_job_counts_not_the_own_need(timed):
    alone = timed(0.01)
    assert alone.batch == 5 and timed(0.01, replace(alone, samples_ms=(1.0,)), 2).batch == 2
