"""The last round: who takes turns with whom, and what counts as a difference."""

import json
import math
import time
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from queue import Queue
from threading import Barrier
from types import SimpleNamespace

import numpy as np
import pytest

from autotune.checks.device_sanitizer import TOOLS
from autotune.checks.host_sanitizer import HOST_TOOLS
from autotune.cli.progress import SearchProgress
from autotune.core.outcomes import LARGER_SIZES, NO_TIME, OTHER_SIZES, PASSED, Passed, Unchecked, reasons
from autotune.core.records import Config
from autotune.core.stages import of_last_round
from autotune.core.trials import Failure, Measurement, Objective, Problem, Rule, Status, Trial, ratio_interval
from autotune.evaluation.device_samples import energy
from autotune.evaluation.scoring import Scoring
from autotune.evaluation.work_item import MeasurementPolicy
from autotune.problem.workload import Workload
from autotune.processes.deadline import Deadline
from autotune.searchers.base import StoppingEstimate
from autotune.serving.cache import read_record
from autotune.tuning import finalists, limits, winner_checks
from autotune.tuning.context import BuiltConfig
from autotune.tuning.finalists import (
    MAX_FEW,
    MAX_FINALISTS,
    choose_in_time,
    fastest_trials,
    finalists_in_time,
    is_unsteady,
    nearly_as_fast,
)
from autotune.tuning.further_sizes import SmallWorkloads
from autotune.tuning.last_round import check_winners
from autotune.tuning.limits import LastRoundTime
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.remeasure import ROUNDS, Remeasurement, remeasure
from autotune.tuning.sanitizer_checks import LOOPS
from autotune.tuning.stress_checks import (
    MANY_RUNS,
    OTHER_SCHEDULES,
    TILE_SIZES,
    check_other_schedules,
    check_tile_sizes,
)
from autotune.tuning.task import Target, read_task
from autotune.tuning.ties import indistinguishable
from autotune.tuning.turns import (
    LEAVING_ROUNDS,
    MIN_ROUNDS,
    MIN_SERIES,
    SAMPLES_PER_TURN,
    Series,
    Turns,
    is_precise,
    remove_shifts,
)
from autotune.tuning.winner_checks import Check, WinnerChecks, early_checks, outcomes_so_far
from tests.conftest import KERNEL, LIMIT_S, opened

pytestmark = pytest.mark.usefixtures("whole_last_round")


def entry(*samples_ms, noise=None, chosen_from=9):
    return Measurement(samples_ms, Rule.LAST_ROUND, noise=noise, chosen_from=chosen_from)


@pytest.mark.parametrize(("noise", "tied"), [(None, False), (0.0099, False), (0.0101, True)])
def test_a_difference_below_the_noise_is_a_tie(noise, tied):
    winner, other = entry(*[1.0] * ROUNDS, noise=noise), entry(*[1.01] * ROUNDS)
    assert indistinguishable(winner, other, Objective.TIME) is tied


def test_the_interval_of_the_winner_covers_its_time_and_equals_are_seldom_told_apart():
    """Turns that have something in common within them, as those of a GPU do; the seed is fixed."""
    random = np.random.default_rng(0)
    noise = random.normal(0, 0.002, (300, 9, ROUNDS, 1))
    noise = noise + random.normal(0, 0.002, (300, 9, ROUNDS, SAMPLES_PER_TURN))
    fields = [[entry(*turns) for turns in field] for field in 1 + noise.mean(axis=-1)]
    winners = [min(field, key=lambda found: found.median_ms) for field in fields]
    assert np.mean([low <= 1 <= high for low, high in (winner.interval_ms for winner in winners)]) > 0.95
    told_apart = [
        not all(indistinguishable(winner, other, Objective.TIME) for other in field)
        for winner, field in zip(winners, fields, strict=True)
    ]
    assert np.mean(told_apart) < 0.09


def test_a_clock_step_that_all_saw_tells_nobody_apart_who_is_not():
    """Rounds at two clocks: the medians lie anywhere between, the ratios do not."""
    slow = [1.2 if number % 2 else 1.0 for number in range(ROUNDS)]
    winner, slower = entry(*slow), entry(*[1.01 * time_ms for time_ms in slow])
    assert not indistinguishable(winner, slower, Objective.TIME)


def test_the_interval_of_a_ratio_is_that_of_the_rounds_that_both_took_part_in():
    winner, other = entry(*[1.0, 2.0] * 4, 1.0), entry(*[3.0, 6.0] * 4)
    assert ratio_interval(other, winner) == (3.0, 3.0)
    assert ratio_interval(entry(2.0, 9.0), winner) == (2.0, 4.5)


def timed(key, time_ms, control_ratio=None):
    measured = Measurement((time_ms,), Rule.STEADY, control_ratio=control_ratio)
    return Trial(Config({"A": key}), key, measurement=measured, binary_sha256=key)


def test_one_that_was_timed_while_all_was_slow_takes_part():
    fast = [timed(f"f{number}", 1.0 + 0.01 * number) for number in range(MAX_FINALISTS)]
    assert timed("s", 1.2) not in fastest_trials([*fast, timed("s", 1.2)])
    assert fastest_trials([*fast, timed("s", 1.2, control_ratio=1.3)])[1].key == "s"


def test_many_that_were_timed_beside_one_slow_run_of_the_best_do_not_crowd_out_the_fastest():
    excused = [timed(f"e{number}", 1.2, control_ratio=1.5) for number in range(MAX_FINALISTS)]
    fast = [timed("f", 1.0), timed("g", 1.01), timed("h", 1.02)]
    found = [trial.key for trial in fastest_trials([*excused, *fast])]
    assert found == ["f", "e0", "e1", "g", "e2", "e3", "h", "e4"]
    assert [trial.key for trial in fastest_trials([*excused, *fast], 1)] == ["f"]


def test_one_far_slower_than_the_fastest_takes_no_part():
    trials = [timed("f", 1.0), timed("s", 1.6), timed("c", 1.6, control_ratio=1.3)]
    assert [trial.key for trial in fastest_trials(trials)] == ["f", "c"]


def test_what_is_nearly_as_fast_on_a_steady_machine_is_timed_again():
    trials = [timed("n", 1.2), timed("c", 1.6, control_ratio=1.3), timed("s", 1.3)]
    assert [trial.key for trial in nearly_as_fast(timed("f", 1.0), trials)] == ["n", "c"]
    assert [trial.key for trial in nearly_as_fast(timed("f", 1.3, control_ratio=1.3), trials)] == ["n", "c"]


def raced(times_ms, objective=Objective.TIME):
    """Series after two dozen rounds on a machine that becomes twice as slow; the first one stays."""
    rounds = 0

    def run(function, time_ms, problem, *arguments, **options):
        return (time_ms * (1 + rounds / 24),) * SAMPLES_PER_TURN

    def count(stage):
        nonlocal rounds
        rounds += 1

    context = SimpleNamespace(
        objective=objective,
        policy=MeasurementPolicy(),
        observer=SimpleNamespace(stage=count),
        worker=SimpleNamespace(load=lambda *problems: None),
        run=run,
    )
    series = []
    for time_ms in times_ms:
        instance = SimpleNamespace(config=Config({"A": time_ms}), workload=None)
        series.append(Series(BuiltConfig(instance, time_ms), batch=1, repeatable=True))
    series[0].stays = True
    Turns(context, series, {}).run(24, Deadline())
    return series


def test_a_series_leaves_once_it_can_neither_win_nor_tie():
    series = raced([2.0, 1.0, 1.001, 1.002, 1.003, 1.031, 1.11, 1.5, 2.1])
    counts = [len(one.values_ms) for one in series]
    assert counts == [24, 24, 24, 24, 24, 20, LEAVING_ROUNDS, LEAVING_ROUNDS, MIN_ROUNDS]
    assert {len(one.values_ms) for one in raced([1.0, 2.0, 3.0, 4.0, 5.0][:MIN_SERIES])} == {24}
    assert {len(one.values_ms) for one in raced([1.0, 2.0, 3.0, 4.0, 5.0], Objective.ENERGY)} == {24}


def test_times_of_a_series_that_has_left_compare_with_those_of_later_rounds():
    series = raced([1.0, 1.001, 1.002, 1.003, 1.11])
    fastest, left = series[0], series[-1]
    assert np.median(left.values_ms) < np.median(fastest.values_ms)  # it was timed before all became slower
    remove_shifts(series)
    assert np.median(left.values_ms) / np.median(fastest.values_ms) == pytest.approx(1.11)
    winner, other = (entry(*one.values_ms, noise=0.05) for one in (fastest, left))
    assert not indistinguishable(winner, other, Objective.TIME)


def test_the_time_of_a_series_that_has_left_needs_not_be_precise():
    fastest, left = raced([1.0, 1.0, 1.0, 1.0, 1.11])[::4]
    fastest.values_ms = [2.0] * ROUNDS  # all became slower once the other had left
    assert is_precise([fastest, left])


def test_a_time_needs_less_precision_where_each_other_one_is_slower():
    fastest, other = raced([1.0, 1.0])
    fastest.values_ms = [1.0, 1.05] * ROUNDS
    other.values_ms = [1.2 * time_ms for time_ms in fastest.values_ms]
    assert is_precise([fastest, other])
    assert not is_precise([fastest, other], Objective.ENERGY)
    other.values_ms = fastest.values_ms[::-1]
    assert not is_precise([fastest, other])


@pytest.mark.parametrize(("controls", "unsteady"), [((1.01, 0.98), False), ((1.01, 1.2), True), ((), False)])
def test_controls_tell_an_unsteady_machine(controls, unsteady):
    assert is_unsteady([timed("a", 1.0), *(timed("b", 1.0, control) for control in controls)]) is unsteady


def test_every_round_has_another_order_and_every_turn_one_value(folder):
    folder.write("""\
def double(grid, block, x, y, n):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    with open("order", "a") as file:
        file.write(f"{A}{B} ")
    return 1.0 + 0.001 * (A + B)
""")
    result = folder.search("--engine", "exhaustive")
    runs = (folder.path / "order").read_text().split()
    (row,) = [
        row["finals"]
        for row in map(json.loads, (folder.path / result["journal"]).read_text().splitlines())
        if "finals" in row
    ]
    assert {len(found["samples_ms"]) for found in row.values()} == {ROUNDS}
    turns = [
        name
        for name, several in groupby(runs)
        if len(list(several)) % (1 + SAMPLES_PER_TURN) == 0  # the search and the checks run other numbers
    ]
    followers = [after for before, after in pairwise(turns) if before == "10"]
    assert len(followers) >= ROUNDS // 2 and len(set(followers)) >= MAX_FINALISTS // 2


def test_energies_are_measured_once_no_finalist_fails(folder, monkeypatch):
    """A round with a rejected finalist is repeated, so energies measured in it would be for nothing.

    A search for time may note the energy of its trials; its last round needs none.
    """
    kernel = (folder.path / "double.py").read_text()
    folder.write(kernel.replace("2 * x", "(2 + (A == 2)) * x"))
    monkeypatch.chdir(folder.path)
    asked = []
    with opened(read_task(Target(folder.space, "fake")), Options(), SearchProgress()) as context:
        run = context.worker.run

        def noted(function, *arguments, **options):
            asked.append(function)
            return run(function, *arguments, **options)

        monkeypatch.setattr(context.worker, "run", noted)
        trials = [
            Trial(config, context.maker.make(config).key, measurement=entry(1.0))
            for config in (Config({"A": number, "B": 0}) for number in (1, 2, 3))
        ]
        context.evaluator.policy = MeasurementPolicy(energy_s=0.01)
        only_noted = remeasure(context, trials[::2], Deadline())  # by a search for time
        assert energy not in asked and not any(one.energy_j for one in only_noted.measurements.values())
        context.ledger.scoring = Scoring(context.task.space, Objective.ENERGY)
        failing, whole = (remeasure(context, chosen, Deadline()) for chosen in (trials, trials[::2]))
    assert list(failing.rejected) == [trials[1].config] and not whole.rejected
    assert all(found.energy_j for found in whole.measurements.values())
    assert asked.count(energy) == len(whole.measurements) == 2


def test_the_last_round_keeps_to_the_time_limit(folder):
    """The kernel is slow, so that no time is left after the first rounds."""
    kernel = (folder.path / "double.py").read_text()
    folder.write("import time\n" + kernel.replace("    return", "    time.sleep(0.1)\n    return"))
    result = folder.search("--time", "2", "--journal", "j.jsonl")
    rows = [json.loads(line) for line in (folder.path / "j.jsonl").read_text().splitlines()]
    (finals,) = [row["finals"] for row in rows if "finals" in row]
    assert {len(found["samples_ms"]) for found in finals.values()} == {MIN_ROUNDS}
    for row in rows:  # as if there had been time for all checks
        for record in row.get("checks", {}).values():
            record |= {"passed": [*record["passed"], *record["late"]], "late": {}}
    text = "".join(f"{json.dumps(row, separators=(',', ':'))}\n" for row in rows)
    (folder.path / "j.jsonl").write_text(text)
    # a machine with less load has time for further trials
    again = folder.search("--time", "600", "--budget", str(result["trials"]), "--journal", "j.jsonl")
    assert (again["config"], again["time_ms"]) == (result["config"], result["time_ms"])
    assert (folder.path / "j.jsonl").read_text() == text


def test_checks_that_no_time_is_left_for_are_told_and_made_up_for_by_a_search_with_time(
    folder, all_data_sets, monkeypatch
):
    """At first the kernel is slow, so that the last round takes all of the time."""
    monkeypatch.setattr(limits, "MIN_CHECKS_S", 0.0)
    monkeypatch.setattr(limits, "CHECKS_SHARE", 0.0)
    kernel = (folder.path / "double.py").read_text()
    slow = "    import os, time\n    time.sleep(0.1 * os.path.exists('slow'))\n    return"
    folder.write(kernel.replace("    return", slow))
    (folder.path / "slow").touch()
    command = ("search", "double.yaml", "--device", "fake", "--journal", "j.jsonl")
    done = folder.run(*command, "--time", "0.5")
    assert done.returncode == 0
    tiles = "sizes of its tiles, " * ("sizes of its tiles" in done.stderr)  # if the one that ran has any
    late = f"many runs, {tiles}12 sets of data"
    assert "warning: the best: checked without fresh inputs (no time was left)\n" in done.stderr
    assert f" checked without {late} (no time was left)\n" in done.stderr
    missed = f"without {late}, fresh inputs (no time was left)"
    assert f"{missed}\n" in done.stdout
    assert "next    autotune check double.yaml -d fake:0 --refresh\n" in done.stdout
    assert f"checks: {late}, fresh inputs\n" in done.stdout
    assert "; time ran out\n" in done.stdout
    (entry,) = read_record(str(*(folder.path / "cache").glob("*/double.json"))).entries
    late = {name for name, reason in entry.provenance.checked.items() if reason}
    assert {"many runs", "data zeros", "fresh inputs"} < late and len(late) == 14 + bool(tiles)
    (folder.path / "slow").unlink()
    assert folder.run(*command, "--budget", "1", "--cache", "other").returncode == 0
    (entry,) = read_record(str(*(folder.path / "other").glob("*/double.json"))).entries
    assert entry.provenance.checked == dict.fromkeys(
        ["output y", "other sizes", "sizes of its tiles", *late], ""
    )


def test_a_last_round_without_sanitizers_is_not_that_of_a_search_with_them(folder):
    options = ("--journal", "j.jsonl", "--budget", "1")
    rounds = []
    for skipped in (["--no-sanitizer"], ["--no-sanitizer"], [], [], ["--no-sanitizer"]):
        folder.search(*options, *skipped)
        rounds.append((folder.path / "j.jsonl").read_text().count('{"finals"'))
    assert rounds == [1, 1, 2, 2, 2]


def test_a_last_round_of_an_older_journal_is_reused_and_its_checks_are_made_again(folder):
    options = ("--journal", "j.jsonl", "--budget", "3")
    first = folder.search(*options)
    rows = [json.loads(line) for line in (folder.path / "j.jsonl").read_text().splitlines()]
    for row in rows:
        if row.pop("checks", None):
            row |= {"checked": list(row["finals"]), "fresh": True, "on_cpu": {}, "broken": []}
    older = "".join(f"{json.dumps(row, separators=(',', ':'))}\n" for row in rows)
    (folder.path / "j.jsonl").write_text(older)
    again = folder.search(*options)
    assert (again["time_ms"], again["unchecked"]) == (first["time_ms"], []) and "many runs" in again["checks"]
    assert (folder.path / "j.jsonl").read_text().count('"checks"') == 1


class PassAll(WinnerChecks):
    """Checks that all configurations pass, at once."""

    def check(self, context, configs, deadline, early):
        self.outcomes |= {config: {} for config in configs}
        return {}


def test_the_five_best_ties_are_checked_and_the_others_are_named_and_not_stored():
    chosen = [Trial(Config({"A": number}), str(number)) for number in range(9)]
    times = {trial.key: entry(*[1.0 + 1e-4 * int(trial.key)] * ROUNDS, noise=0.01) for trial in chosen}
    context = SimpleNamespace(objective=Objective.TIME, observer=Observer())
    checks = PassAll()
    found = check_winners(context, chosen[::-1], Remeasurement(times, {}, {}), checks, LastRoundTime())
    assert [trial.key for trial in found.stored] == ["0", "1", "2", "3", "4", "5"]
    assert [trial.key for trial in found.ties_left] == ["6", "7", "8"]
    assert checks.outcomes.keys() == {trial.config for trial in found.stored}


def test_what_is_left_to_find_is_estimated_for_the_winner_while_it_is_checked():
    both = Barrier(2, timeout=LIMIT_S)

    class Meets(PassAll):
        def check(self, context, configs, deadline, early):
            both.wait()
            return super().check(context, configs, deadline, early)

    def estimate(winner):
        both.wait()
        return StoppingEstimate(int(winner.key), 9, 0.5, 0.1)

    chosen = [Trial(Config({"A": number}), str(number)) for number in (3, 4)]
    times = {trial.key: entry(*[float(trial.key)] * ROUNDS, noise=0.01) for trial in chosen}
    context = SimpleNamespace(objective=Objective.TIME, observer=Observer())
    found = check_winners(context, chosen, Remeasurement(times, {}, {}), Meets(), LastRoundTime(), estimate)
    assert found.estimate == StoppingEstimate(3, 9, 0.5, 0.1)


def test_builds_that_no_time_is_left_to_run_or_nothing_is_compared_of_are_not_compiled():
    builds = []

    def compiled(instance):
        builds.append(Future())
        return builds[-1]

    context = SimpleNamespace(
        task=SimpleNamespace(is_c=True),
        pool=SimpleNamespace(compile=compiled),
        worker=SimpleNamespace(compared=frozenset({"x"})),
        observer=SimpleNamespace(stage=lambda stage: None),
    )
    instance = SimpleInstance('extern "C" __global__ void one(int *x) { *x = 1; }', ())
    built = {Config({}): BuiltConfig(instance, None)}
    assert check_other_schedules(context, built, Deadline(0.0)) == {Config({}): {OTHER_SCHEDULES: NO_TIME}}
    assert builds and all(build.cancelled() for build in builds)
    builds.clear()
    context.worker.compared = frozenset()  # then another schedule shows in no result
    assert check_other_schedules(context, built, Deadline()) == {} and not builds


def perturbed_context(compiled, verdict):
    return SimpleNamespace(
        task=SimpleNamespace(is_c=True, device=SimpleNamespace(kind="gpu")),
        pool=SimpleNamespace(compile=lambda instance: compiled),
        worker=SimpleNamespace(compared=frozenset({"x"})),
        observer=SimpleNamespace(stage=lambda stage: None),
        verify=lambda *_: verdict,
        timeout_s=1.0,
        further_sizes=SimpleNamespace(small=lambda instance: SmallWorkloads(instance.verify_workloads)),
    )


@pytest.mark.parametrize(
    ("compilation", "verdict", "outcome"),
    [
        ("binary", None, PASSED),
        (Failure(Status.COMPILE_ERROR, "no"), None, "could not run"),
        ("binary", Failure(Status.TIMEOUT, "it hangs"), "could not run"),
        ("binary", Failure(Status.WRONG_RESULT, "x[0] is 1"), "failed"),
    ],
)
def test_a_build_with_another_schedule_that_does_not_run_has_not_passed(compilation, verdict, outcome):
    done = Future()
    done.set_result(compilation)
    source = 'extern "C" __global__ void one(int *x) { *x = 1; }'
    problem = Workload(Problem({"n": 1}, "int32"), (), (), ())
    instance = SimpleInstance(source, (problem,))
    built = {Config({}): BuiltConfig(instance, None)}
    found = check_other_schedules(perturbed_context(done, verdict), built, Deadline())
    (said,) = found[Config({})].values()
    kinds = {Unchecked: "could not run", Failure: "failed", Passed: PASSED}
    assert kinds[type(said)] == outcome


@pytest.mark.parametrize(("kind", "builds"), [("gpu", 2), ("cpu", 0)])
def test_other_builds_and_the_sanitizer_begin_while_finalists_are_timed_on_a_gpu(kind, builds):
    done, compiled = Future(), Queue()
    done.set_result("binary")
    problem = Workload(Problem({"n": 1}, "int32"), (), (), ())
    instance = SimpleInstance('extern "C" __global__ void one(int *x) { *x = 1; }', (problem,))
    context = perturbed_context(done, None)
    context.task.device.kind, context.task.address = kind, SimpleNamespace(is_nvidia=False)
    context.default, context.maker = instance, SimpleNamespace(make=lambda config: instance)
    context.pool = SimpleNamespace(size=1, compile=lambda one: compiled.put(one.source) or done)
    calls = []

    @contextmanager
    def standing_by():
        calls.append("begun")
        yield
        calls.append("ended")

    sanitizer = SimpleNamespace(standing_by=standing_by)
    context.processes = SimpleNamespace(skips_sanitizers=False, sanitizer=sanitizer)
    context.task.spec = SimpleNamespace(default=Config({}), variants=())
    with early_checks(context, [Config({})], Deadline()):
        sources = {compiled.get() for _ in range(builds)}
    assert calls == (["begun", "ended"] if builds else [])
    assert len(sources) == builds and instance.source not in sources and compiled.empty()


def test_a_check_of_the_same_stage_as_one_that_began_early_is_made_too(monkeypatch):
    config, instance = Config({}), SimpleNamespace(verify_workloads=(None,), uncompared=lambda compared: ())
    context = perturbed_context(Future(), None)
    context.task.spec = SimpleNamespace(verify_sizes=({"n": 1},), default=config)
    context.default, context.maker = instance, SimpleNamespace(make=lambda config: instance)
    context.pool.size = 1
    context.processes = SimpleNamespace(sanitizer=None)
    context.worker = SimpleNamespace(compared=frozenset())
    context.build = lambda configs: ({config: BuiltConfig(instance, None) for config in configs}, {})

    def outcome_of(name):
        return lambda context, builds, deadline: {config: {name: PASSED} for config in builds}

    def begin(context, instance, deadline):
        return {"one": PASSED}

    both = (
        Check("it", outcome_of("one"), is_concurrent=True, names=lambda _: ("one",), early=begin),
        Check("it", outcome_of("two"), is_concurrent=True, names=lambda _: ("two",)),
    )
    monkeypatch.setattr(winner_checks, "CHECKS", both)
    checks = WinnerChecks()
    with early_checks(context, [config], Deadline()) as early:
        assert checks.check(context, [config], Deadline(), early) == {}
    assert checks.outcomes[config] == {OTHER_SIZES: PASSED, "one": PASSED, "two": PASSED}


@pytest.mark.parametrize(
    ("expected_s", "answer", "outcome"),
    [
        ((0.1, 0.1), None, PASSED),
        ((0.1, 99.0), None, Unchecked("1 of 2 sizes were verified in time")),
        ((99.0, 99.0), None, Unchecked("0 of 2 sizes were verified in time")),
        (
            (0.1, 0.1),
            Failure(Status.TIMEOUT, "no answer in 10 s"),
            Unchecked("0 of 2 sizes were verified in time"),
        ),
    ],
)
def test_sizes_whose_references_or_runs_take_the_time_of_the_check_are_counted_as_left_out(
    expected_s, answer, outcome
):
    prepared = []
    problems = [Workload(Problem({"n": n}, "int32"), (), (), ()) for n in range(len(expected_s))]
    context = SimpleNamespace(
        default=SimpleNamespace(config=Config({})),
        build=lambda configs: ({}, {}),
        observer=SimpleNamespace(stage=lambda stage: None),
        worker=SimpleNamespace(
            load=prepared.append, run=lambda _, one, timeout_s: expected_s[one.problem.sizes["n"]]
        ),
        verify=lambda *_: answer,
        further_sizes=SimpleNamespace(of_tiles=lambda _: problems, at_changed_condition=lambda _: ()),
    )
    built = {Config({}): BuiltConfig(SimpleInstance("", tuple(problems)), None)}
    assert check_tile_sizes(context, built, Deadline()) == {Config({}): {TILE_SIZES: outcome}}
    assert prepared == [one for one, its_s in zip(problems, expected_s, strict=True) if its_s < 3]


@pytest.mark.parametrize(
    ("group", "place"),
    [("of_tiles", "at sizes of its tiles"), ("at_changed_condition", "beyond the sizes of the space")],
)
def test_a_wrong_result_is_told_with_the_reason_for_its_sizes(group, place):
    problem = Workload(Problem({"n": 1}, "int32"), (), (), ())
    groups = {"of_tiles": lambda _: (), "at_changed_condition": lambda _: (), group: lambda _: (problem,)}
    context = SimpleNamespace(
        default=SimpleNamespace(config=Config({})),
        build=lambda configs: ({}, {}),
        worker=SimpleNamespace(load=lambda _: None, run=lambda *_, timeout_s: 0.1),
        verify=lambda *_: Failure(Status.WRONG_RESULT, "y[0] is 1"),
        further_sizes=SimpleNamespace(**groups, is_declared=lambda *_: True),
    )
    built = {Config({}): BuiltConfig(SimpleInstance("", (problem,)), None)}
    ((outcome,),) = (found.values() for found in check_tile_sizes(context, built, Deadline()).values())
    assert outcome.detail == f"{place}: y[0] is 1"


@pytest.mark.parametrize(
    ("right", "told", "constraint"),
    [
        ("n > 4", "at sizes of its tiles: y was never written", "n >= 5"),
        ("n <= 100", "default and reference disagree at sizes unlike the space's", "n <= 100"),
        ("n > 4 or A == 1", "at sizes of its tiles: y was never written", ""),
    ],
)
def test_sizes_at_which_the_default_is_wrong_too_are_told_with_the_constraint_to_write(
    folder, right, told, constraint
):
    kernel = KERNEL.replace("    y.view", f"    if {right}:\n        y.view")
    folder.write(kernel)
    folder.edit("{n: 1000}", "{n: 100}")
    folder.edit("{n: 1}, {n: 17}", "{n: 5}, {n: 17}")
    done = folder.run("check", "double.yaml", "-d", "fake", "--config", "A=5,B=2", "--json")
    (line,) = (line for line in (done.stdout + done.stderr).splitlines() if told in line)
    assert ("makes no sense, write" in line) == bool(constraint)
    assert "(at n=" in line and f"`{constraint}` into `constraints` of double.yaml" * bool(constraint) in line


def test_a_crash_is_told_with_its_sizes(folder):
    crash = "    if A != 1 and n not in (1, 17, 1000):\n        os._exit(1)\n"
    folder.write("import os\n\n\n" + KERNEL.replace("    y.view", f"{crash}    y.view"))
    done = folder.run("check", "double.yaml", "-d", "fake", "--config", "A=5,B=2")
    (line,) = (line for line in done.stdout.splitlines() if "at sizes of its tiles" in line)
    assert "crashed" in line and line.rpartition(" (at n=")[2].removesuffix(")").isdigit()


def test_checks_in_turns_share_the_time_and_those_aside_have_all_of_it(monkeypatch):
    calls, stages = {}, []
    good, bad = Config({"A": 1}), Config({"A": 2})

    def check(name, obstacle, *, is_concurrent=False):
        def run(context, builds, deadline):
            calls[name] = [*builds], deadline.at_s - began_s
            outcomes = dict.fromkeys(builds, PASSED) | {bad: Failure(Status.WRONG_RESULT, name)}
            return {config: {name: outcomes[config]} for config in builds}

        return Check(name, run, lambda _: obstacle, is_concurrent=is_concurrent)

    unable = Unchecked("it is not installed")
    rows = [("aside", None), ("first", None), ("unable", unable), ("second", None)]
    chosen = tuple(check(*row, is_concurrent=row[0] == "aside") for row in rows)
    monkeypatch.setattr(winner_checks, "CHECKS", chosen[1:] + chosen[:1])
    instance = SimpleNamespace(verify_workloads=(None,), uncompared=lambda compared: ())
    context = SimpleNamespace(
        task=SimpleNamespace(spec=SimpleNamespace(default=good)),
        default=instance,
        worker=SimpleNamespace(compared=frozenset()),
        build=lambda configs: ({config: BuiltConfig(instance, None) for config in configs}, {}),
        observer=SimpleNamespace(stage=lambda stage: stages.append((stage.name, stage.configs)), warn=print),
    )
    checks, began_s = WinnerChecks(), time.perf_counter()
    failures = checks.check(context, [good, bad], Deadline(began_s + 1000.0))
    assert failures == {bad: Failure(Status.WRONG_RESULT, "first")}
    assert calls["first"] == ([good, bad], pytest.approx(500.0, rel=0.01))
    assert calls["second"] == ([good], pytest.approx(1000.0, rel=0.01))
    assert calls["aside"] == ([good, bad], pytest.approx(1000.0))
    assert stages == [
        (of_last_round(name), count) for name, count in (("first", 2), ("second", 1), ("aside", 1))
    ]
    passed = dict.fromkeys(("first", "second", "aside"), PASSED)
    assert checks.outcomes[good] == {OTHER_SIZES: PASSED, "unable": unable} | passed


@dataclass(frozen=True)
class SimpleInstance:
    source: str
    verify_workloads: tuple


@pytest.mark.parametrize(
    ("words", "missed"),
    [
        ({}, {}),
        ({"skips_sanitizers": True}, dict.fromkeys((*HOST_TOOLS, LOOPS, *TOOLS), "sanitizers are off")),
        ({"sanitizer": None}, dict.fromkeys(TOOLS, "compute-sanitizer is not installed")),
    ],
    ids=["all", "left out", "not installed"],
)
def test_what_cannot_run_here_is_in_the_record_from_the_start(monkeypatch, words, missed):
    monkeypatch.setattr(winner_checks, "find_host_sanitizer", object)
    instance = SimpleNamespace(verify_workloads=(None,), uncompared=lambda compared: ("z",))
    context = SimpleNamespace(
        task=SimpleNamespace(
            address=SimpleNamespace(is_nvidia=True),
            is_c=True,
            device=SimpleNamespace(kind="gpu"),
            spec=SimpleNamespace(default=Config({}), variants=()),
        ),
        default=instance,
        worker=SimpleNamespace(compared=frozenset({"y"})),
        processes=SimpleNamespace(**({"skips_sanitizers": False, "sanitizer": object()} | words)),
    )
    expected = outcomes_so_far(context)
    late = [name for name, one in expected.items() if one is NO_TIME]
    unable = {name: reason for name, reason in reasons(expected).items() if reason and name not in late}
    assert unable == {"output z": "the reference does not return it", **missed}
    assert late == [
        n
        for n in (MANY_RUNS, TILE_SIZES, OTHER_SCHEDULES, LARGER_SIZES, *HOST_TOOLS, LOOPS, *TOOLS)
        if n not in missed
    ]
    assert expected["output y"] is PASSED and expected[OTHER_SIZES] is PASSED


def test_last_rounds_that_repeat_each_other_share_the_time_for_checks():
    class Takes(WinnerChecks):
        def check(self, context, configs, deadline, early):
            ends_s.append(deadline.at_s)
            time.sleep(0.02)
            return {config: Failure(Status.WRONG_RESULT, "") for config in configs}

    chosen, ends_s = [Trial(Config({}), "0")], []
    context = SimpleNamespace(objective=Objective.TIME, observer=Observer())
    again, left = Remeasurement({"0": entry(*[1.0] * ROUNDS)}, {}, {}), LastRoundTime(Deadline(0.0), 0.03)
    for left_s in (0.01, 0.0):
        left = check_winners(context, chosen, again, Takes(), left).time
        assert left.round.at_s == 0.0 and left.checks_s <= left_s
    assert ends_s[1] <= ends_s[0] + 0.03 and left.checks_deadline().left_s() == 0.0


def test_finalists_beyond_the_time_left_stay_out_but_never_the_needed_ones():
    trials = [
        Trial(Config({"A": number}), str(number), measurement=entry(1.0 + number), cost_s=2.0)
        for number in range(6)
    ]
    needed = [trials[0], trials[5]]
    assert finalists_in_time(trials[:5], needed, 9.0) == [*trials[:3], trials[5]]
    assert finalists_in_time(trials[:5], needed, -1.0) == needed
    assert finalists_in_time(trials[:5], needed, math.inf) == trials


def test_the_time_that_the_choice_of_finalists_takes_is_left_for_fewer_of_them(monkeypatch):
    def slow(trials):
        """Takes half of the time."""
        time.sleep(0.1)
        return is_unsteady(trials)

    monkeypatch.setattr(finalists, "is_unsteady", slow)
    trials = [replace(timed(str(number), 1.0 + number / 100), cost_s=0.04) for number in range(6)]
    context = SimpleNamespace(objective=Objective.TIME)
    limited = LastRoundTime(Deadline.after(0.2), checks_s=0.0, has_time_limit=True)
    assert len(choose_in_time(context, trials, (), [], limited)) <= 2


def test_the_fastest_of_a_choice_comes_first_and_what_failed_in_it_is_chosen_too():
    """Under a time limit, what comes first is the one that always takes part."""
    trials = [timed(f"{number:02}", 1.0 + number / 100, control_ratio=1.2) for number in range(MAX_FEW + 2)]
    instances = [SimpleNamespace(config=trial.config, workload=None) for trial in trials]
    answers = {trial.key: (trial.measurement.median_ms,) * SAMPLES_PER_TURN for trial in trials}
    context = SimpleNamespace(
        objective=Objective.TIME,
        policy=MeasurementPolicy(),
        observer=Observer(),
        worker=SimpleNamespace(load=lambda *problems: None),
        build=lambda configs, stage: (
            {one.config: BuiltConfig(one, one.config["A"]) for one in instances},
            {},
        ),
        run=lambda function, key, problem, *arguments, **options: answers[key],
    )
    answers["00"] = Failure(Status.TIMEOUT, "")
    chosen = choose_in_time(context, trials, (), [], LastRoundTime())
    assert [trial.key for trial in chosen] == [*(f"{number:02}" for number in range(1, 9)), "00"]


def test_processes_that_are_killed_end_no_work_without_a_deadline():
    killed = []
    with Deadline():
        pass
    with Deadline().holding(lambda: killed.append(True)):
        assert not killed
