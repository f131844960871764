"""What a search leaves behind for other devices."""

import pytest

from autotune import NoConfig, best_config
from autotune.core.records import Config
from autotune.core.trials import Failure, Measurement, Rule, Status, Trial
from autotune.serving.cache import kernels, read_record
from autotune.space import load_space
from autotune.tuning.cache_entry import MAX_MEASURED, choose_measured
from tests.conftest import ROOT


def trial(number: int, time_ms: float | None) -> Trial:
    """A trial that was timed, or one that failed."""
    found = None if time_ms is None else Measurement((time_ms,), Rule.STEADY)
    failure = None if found else Failure(Status.TIMEOUT, "no answer")
    return Trial(Config({"A": number}), str(number), failure, measurement=found)


def test_the_fastest_are_kept_in_order_and_bests_of_other_devices_always():
    trials = [trial(number, 100.0 - number) for number in range(90)] + [trial(99, None)]
    kept = choose_measured(trials, {}, trials[89], {Config({"A": 3}), Config({"A": 99})})
    numbers = [config["A"] for config, _ in kept]
    assert numbers == [*range(88, 88 - MAX_MEASURED, -1), 3]
    assert [time_ms for _, time_ms in kept] == [100.0 - number for number in numbers]


def test_the_last_round_s_times_count_before_the_search_s():
    trials = [trial(1, 5.0), trial(2, 6.0), trial(3, 7.0)]
    last_round = {"2": Measurement((9.0,), Rule.LAST_ROUND), "1": Measurement((1.0,), Rule.LAST_ROUND)}
    assert choose_measured(trials, last_round, trials[0], ()) == (
        (Config({"A": 3}), 7.0),
        (Config({"A": 2}), 9.0),
    )


@pytest.mark.parametrize("budget", [6])
def test_a_search_stores_what_it_measured(folder, budget):
    found = folder.search("--size", "n=1000", "--engine", "random", "--budget", budget, "--seed", "1")
    (entry,) = read_record(str(folder.path / found["cache_file"])).entries
    assert len(entry.measured) == budget - 1
    assert entry.provenance.compiler == "1, driver 1"  # the fake device's own
    assert entry.config not in dict(entry.measured)
    assert all(factor >= 1 for factor in entry.relative_times.values())


def test_a_record_says_which_compiler_its_kernel_needs(folder):
    """Where it is NVRTC the file says nothing, as files from before this was noted."""
    found = folder.search("--budget", "1")
    assert '"compiler": "nv' not in (folder.path / found["cache_file"]).read_text()
    folder.edit("dialect: python", "dialect: python\ncompiler: nvcc")
    found = folder.search("--budget", "1", "--fresh")
    assert read_record(str(folder.path / found["cache_file"])).compiler == "nvcc"


@pytest.mark.parametrize("kernel", kernels(str(ROOT / "cache")))
def test_results_that_are_shipped_name_the_compiler_of_their_space(kernel):
    needed = load_space(ROOT / f"spaces/{kernel}.yaml").compiler
    found = [read_record(str(path)).compiler for path in (ROOT / "cache").glob(f"*/{kernel}.json")]
    assert found and {one or "nvrtc" for one in found} == {needed}


@pytest.mark.parametrize(
    ("returned", "uncompared", "served"),
    [("{'w': inputs['w']}", [], True), ("{'w': inputs['w']}", ["v"], True), ("{}", ["w"], False)],
    ids=["all", "some", "nothing"],
)
def test_uncompared_outputs_are_recorded_and_reported(folder, returned, uncompared, served):
    (folder.path / "reference.py").write_text(f"def reference(inputs, sizes):\n    return {returned}\n")
    folder.edit(
        "name: y, dtype: int32, shape: [n], role: out",
        "name: w, dtype: int32, shape: [n], role: inout, fill: {copy: x}",
    )
    folder.edit("[x, y, n]", "[x, w, n]")
    if "v" in uncompared:
        folder.edit(
            "  - {name: n, dtype",
            "  - {name: v, dtype: int32, shape: [n], role: inout, fill: {constant: 0}}\n  - {name: n, dtype",
        )
        folder.edit("[x, w, n]", "[x, w, n, v]")
    folder.write("def double(grid, block, x, w, n, v=None):\n    return A + B\n")
    for _ in range(2):  # the second search finds everything in the journal
        found = folder.search("--budget", "2")
        assert (found["uncompared"], found["compared"]) == (uncompared, served)
    cache, asked = folder.path / "cache", {"n": 1000}
    best = best_config("double", "fake-gpu", cache=cache, **asked)
    said = f"; not compared with a reference: {', '.join(uncompared)}"
    assert best.match.detail.endswith(said if uncompared else "for n=1000")
    if served:
        assert best_config("double", "fake-gpu", cache=cache, strict=True, **asked).config == best.config
    else:
        with pytest.raises(NoConfig, match="never compared with a reference"):
            best_config("double", "fake-gpu", cache=cache, strict=True, **asked)
