"""What is submitted to an evaluator: what the budget covers, and in which order trials come."""

import threading
import time
from concurrent.futures import Future
from dataclasses import replace

import pytest

from autotune.cli.progress import SearchProgress
from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.trials import Binary, Budget, Failure, Objective, Status
from autotune.errors import NoMoreTrials
from autotune.evaluation.evaluator import Evaluator
from autotune.evaluation.job_runner import JobKills
from autotune.evaluation.ledger import Ledger
from autotune.evaluation.scoring import Scoring
from autotune.evaluation.work_item import ItemResult, Laps
from autotune.searchers.base import collect_next, evaluate
from autotune.searchers.whole_space import RandomSearch
from autotune.space import bind
from autotune.tuning.options import Options
from autotune.tuning.task import Target, read_task
from tests.conftest import KERNEL, opened, wait_until

WAITING_SPACE = """
schema: 1
kernel: f
dialect: python
source: f.py
reference: reference.py
sizes: {default: {n: 8}}
dtypes: [int32]
parameters: {A: [1, 2]}
default: {A: 1}
arguments:
  - {name: x, dtype: int32, shape: [n], role: out}
launch:
  - {entry: f, grid: [1], block: [1], arguments: [x]}
"""
WAITING_KERNEL = """
import pathlib, time
COMPILED = pathlib.Path("compiled-2")

def compiling():
    pathlib.Path(f"compiled-{A}").touch()

def f(grid, block, x):
    for _ in range(20_000):
        if COMPILED.exists():
            x.view("int32")[:] = 3
            return 1.0
        time.sleep(0.01)
"""


@pytest.fixture
def task(folder, monkeypatch):
    monkeypatch.chdir(folder.path)
    return read_task(Target(folder.space, "fake"))


@pytest.fixture
def configs(task):
    return [task.space.config(row) for row in range(5)]


def journaled(context):
    return [trial.config for trial in context.journal.trials.values()]


def test_only_what_the_budget_covers_is_tried_and_what_is_known_costs_nothing(task, configs):
    with opened(task, Options(budget=Budget(trials=4)), SearchProgress()) as context:
        (tried,) = evaluate(context.evaluator, configs[:1])
        outside = Config({**configs[0], "A": 12345})
        found = evaluate(context.evaluator, [configs[0], outside, *configs[1:4], configs[1]])
        assert found[0] is tried and found[1].status is Status.INVALID and found[2] is found[5]
        assert [trial.config for trial in found[2:5]] == configs[1:4] == journaled(context)[1:]
        assert all(trial.status is Status.OK for trial in found[2:])
        with pytest.raises(NoMoreTrials):
            evaluate(context.evaluator, configs[3:])
        assert [*context.ledger.trials] == configs[:4]


def test_one_device_gives_trials_one_by_one_in_the_order_of_submission(task, configs):
    with opened(task, Options(), SearchProgress()) as context:
        context.evaluator.submit(configs[:3])
        first = context.evaluator.collect()
        context.evaluator.submit([configs[4], configs[3]])  # while the others are under way
        later = [context.evaluator.collect() for _ in range(2)]
        rest = collect_next(context.evaluator, 2)
        order = [*configs[:3], configs[4], configs[3]]
        assert [[trial.config for trial in found] for found in (first, *later, rest)] == [
            *([config] for config in order[:3]),
            order[3:],
        ]
        assert journaled(context) == order
        with pytest.raises(NoMoreTrials):
            context.evaluator.collect()


def test_what_is_prefetched_is_only_compiled_and_then_runs_in_the_order_of_submission(task, configs):
    with opened(task, Options(budget=Budget(trials=2)), SearchProgress()) as context:
        compiled = []
        compile_one = context.pool.compile
        context.pool.compile = lambda instance: compiled.append(instance.config) or compile_one(instance)
        outside = Config({**configs[0], "A": 12345})
        context.evaluator.prefetch([*configs[:3], outside, configs[0]])
        assert compiled == configs[:3]
        with pytest.raises(NoMoreTrials):
            context.evaluator.collect()
        order = [configs[1], configs[0]]
        assert [trial.status for trial in evaluate(context.evaluator, order)] == [Status.OK] * 2
        assert compiled == configs[:3] and journaled(context) == order
        with pytest.raises(NoMoreTrials):
            evaluate(context.evaluator, configs[2:3])  # compiling it has cost no budget, nor paid for it


def test_a_cpu_runs_nothing_while_compilers_work(task, configs, monkeypatch):
    device = replace(task.device, kind="cpu")
    cpu = replace(task, device=device, space=bind(task.spec, device, task.space.problem))
    with opened(cpu, Options(), SearchProgress()) as context:
        slow = Future()
        compile_one = context.pool.compile
        monkeypatch.setattr(
            *(context.pool, "compile"),
            lambda instance: slow if instance.config == configs[1] else compile_one(instance),
        )
        context.evaluator.prefetch(configs[:2])
        context.evaluator.submit(configs[:1])
        runs = []
        begin = context.worker.begin_item
        context.worker.begin_item = lambda item, timeout_s: runs.append(slow.done()) or begin(item, timeout_s)
        threading.Timer(0.3, slow.set_result, [Failure(Status.COMPILE_ERROR, "")]).start()
        assert context.evaluator.collect()[0].status is Status.OK
        assert runs == [True]


def test_what_is_evaluated_beside_the_budget_costs_none(task, configs):
    with opened(task, Options(budget=Budget(trials=1, seconds=1e-3)), SearchProgress()) as context:
        evaluate(context.evaluator, configs[:1])
        assert context.evaluator.evaluate_beside_budget(configs[0]).config == configs[0]
        assert context.evaluator.evaluate_beside_budget(configs[1]).status is Status.OK
        assert context.evaluator.beside_budget == 1
        with pytest.raises(NoMoreTrials):
            context.evaluator.collect()


def test_the_default_of_a_journal_limits_the_other_trials_as_well(task, configs):
    with opened(task, Options(timeout_s=600.0), SearchProgress()) as context:
        assert evaluate(context.evaluator, [task.spec.default])[0].status is Status.OK
    with opened(task, Options(timeout_s=600.0), SearchProgress()) as context:
        limits_s = []
        begin = context.worker.begin_item
        context.worker.begin_item = lambda item, timeout_s: (
            limits_s.append(timeout_s) or begin(item, timeout_s)
        )
        evaluate(context.evaluator, [task.spec.default])
        evaluate(context.evaluator, [config for config in configs if config != task.spec.default][:1])
        assert limits_s and max(limits_s) < 600.0


def collect_first_while_second_runs(context, configs):
    """Submit two configurations, collect the first, and wait until the device has begun with the second."""
    runs = []
    begin = context.worker.begin_item
    context.worker.begin_item = lambda item, timeout_s: runs.append(item) or begin(item, timeout_s)
    context.evaluator.submit(configs[:2])
    context.evaluator.collect()
    wait_until(lambda: len(runs) == 2 or context.evaluator._advance())


def test_the_device_runs_what_is_compiled_while_the_searcher_chooses(task, configs):
    with opened(task, Options(), SearchProgress()) as context:
        collect_first_while_second_runs(context, configs)


def test_what_ends_without_a_run_is_told_and_journaled(folder, monkeypatch):
    monkeypatch.chdir(folder.path)
    folder.write(KERNEL + "def compiling():\n    assert A == 1\n")
    told = []

    class Told(SearchProgress):
        def tried(self, trial):
            told.append((trial.config, trial.status))

    first, other = Config({"A": 1, "B": 0}), Config({"A": 2, "B": 0})
    with opened(read_task(Target(folder.space, "fake")), Options(), Told()) as context:
        evaluate(context.evaluator, [first, other])
        assert told == [(first, Status.OK), (other, Status.COMPILE_ERROR)]
        assert journaled(context) == [first, other]


def test_trials_of_one_device_cost_no_time_twice(folder, monkeypatch):
    monkeypatch.chdir(folder.path)
    folder.write(KERNEL + "def compiling():\n    import time\n    time.sleep(A == 2)\n    assert A != 2\n")
    with opened(read_task(Target(folder.space, "fake")), Options(), SearchProgress()) as context:
        for a in (1, 2, 3):
            evaluate(context.evaluator, [Config({"A": a, "B": 0})])
        costs_s = [trial.cost_s for trial in context.ledger.trials.values()]
        assert costs_s[1] >= 1 and sum(costs_s) <= context.ledger.spent_s


def test_one_trial_and_no_other_runs_when_the_time_is_over(task, configs):
    with opened(task, Options(budget=Budget(seconds=1e-3)), SearchProgress()) as context:
        context.evaluator.submit(configs[:2])
        time.sleep(0.01)
        assert [trial.config for trial in context.evaluator.collect()] == configs[:1]
        with pytest.raises(NoMoreTrials):
            context.evaluator.collect()
        assert [*context.ledger.trials] == configs[:1] and context.evaluator.time_was_over


def test_what_runs_when_the_time_is_over_is_kept_and_the_best_in_the_cache_can_be_tried(
    task, configs, monkeypatch
):
    with opened(task, Options(), SearchProgress()) as context:
        collect_first_while_second_runs(context, configs)
        monkeypatch.setattr(type(context.ledger), "is_time_over", True)
        with pytest.raises(NoMoreTrials):
            collect_next(context.evaluator, 2)
        assert [*context.ledger.trials] == configs[:2]
        assert context.evaluator.evaluate_beside_budget(configs[2]).status is Status.OK


def test_what_is_being_compiled_when_the_time_is_over_ends(folder, monkeypatch):
    """The compiler of every configuration but the default's would take an hour."""
    monkeypatch.chdir(folder.path)
    kernel = (folder.path / "double.py").read_text()
    folder.write(f"import time\nopen('begun', 'w').close()\ntime.sleep(3600 * (A != 2))\n{kernel}")
    first, slow, later = (Config({"A": number, "B": 0}) for number in (2, 1, 3))
    with opened(read_task(Target(folder.space, "fake")), Options(compilers=1), SearchProgress()) as context:
        context.evaluator.submit([slow, later])
        wait_until((folder.path / "begun").exists)
        monkeypatch.setattr(type(context.ledger), "is_time_over", True)
        with pytest.raises(NoMoreTrials):
            context.evaluator.collect()
        found = context.pool.compile(context.maker.make(first)).result()
        assert isinstance(found, Binary) and not context.ledger.trials


class AtOnce:
    """Compilers that are done when they are asked, so that jobs are the same in every run."""

    def __init__(self, pool):
        self.pool, self.size = pool, pool.size

    def compile(self, instance):
        compilation = self.pool.compile(instance)
        compilation.result()
        return compilation


class LossyDevices:
    """Two devices; each job with the `deadly` binary costs the one that runs it."""

    stage = Stage("measuring")
    count, parallel, slots, job_items = 2, 8, 2, 100

    def __init__(self, worker, deadly):
        self.worker, self.deadly, self.laps = worker, deadly, Laps()
        self.jobs = []  # the binaries of each
        self.under_way = {}
        self.lost = set()
        self.most_sent_again = 0  # at the same time

    def submit(self, items, timeout_s):
        job = [item.binary.sha256 for item in items]
        future = Future()
        future.set_result(None if self.deadly in job else [self.run(item, timeout_s) for item in items])
        self.jobs.append(job)
        self.under_way[future] = job
        again = [binaries for binaries in self.under_way.values() if self.lost & set(binaries)]
        self.most_sent_again = max(self.most_sent_again, len(again))
        return future

    def run(self, item, timeout_s):
        return ItemResult(self.worker.run_item(item, timeout_s), "fake:0", 0.0)

    def finish_jobs(self):
        pass

    def result(self, future):
        job = self.under_way.pop(future)
        if future.result() is None:
            self.lost |= set(job)
            raise JobKills
        return future.result()

    def stranded(self):
        return []


def test_items_of_a_lost_job_are_sent_again_one_at_a_time_and_only_the_one_to_blame_is_lost(task):
    configs = [task.space.config(row) for row in range(len(task.space))]
    with opened(task, Options(), SearchProgress()) as context:
        deadly = context.pool.compile(context.maker.make(configs[-2])).result().sha256
        devices = LossyDevices(context.worker, deadly)
        scoring, budget = Scoring(task.space, Objective.TIME), Budget(trials=len(configs))
        ledger = Ledger(context.journal, budget, scoring, lambda trial: None)
        evaluator = Evaluator(
            *(context.maker, AtOnce(context.pool), devices, ledger),
            policy=context.policy,
            timeout_s=context.timeout_s,
        )
        trials = evaluate(evaluator, configs)
    failed = [trial for trial in trials if trial.status is not Status.OK]
    assert [trial.config for trial in failed] == [configs[-2]]
    assert failed[0].detail.startswith("the workers that ran it were lost")
    (first, *_) = (number for number, binaries in enumerate(devices.jobs) if deadly in binaries)
    lost = devices.jobs[first]
    assert len(lost) > 1 and devices.jobs[first + 1 :] == [[binary] for binary in lost]
    assert devices.most_sent_again == 1


def test_a_lost_job_whose_time_is_over_leaves_nothing_that_a_later_trial_waits_for(task):
    configs = [task.space.config(row) for row in range(len(task.space))]
    with opened(task, Options(), SearchProgress()) as context:
        deadly = context.pool.compile(context.maker.make(configs[0])).result().sha256

        class LostLate(LossyDevices):
            """The time is over when the first job is lost."""

            def result(self, future):
                time.sleep(0.5 if not self.lost else 0.0)
                return super().result(future)

        devices = LostLate(context.worker, deadly)
        scoring, budget = Scoring(task.space, Objective.TIME), Budget(seconds=0.4)
        ledger = Ledger(context.journal, budget, scoring, lambda trial: None)
        evaluator = Evaluator(
            *(context.maker, AtOnce(context.pool), devices, ledger),
            policy=context.policy,
            timeout_s=context.timeout_s,
        )
        with pytest.raises(NoMoreTrials):
            evaluate(evaluator, configs)
        jobs = len(devices.jobs)
        assert evaluator.evaluate_beside_budget(configs[1]).status is Status.OK
        assert len(devices.jobs) == jobs + 1


def test_what_a_searcher_leaves_under_way_is_finished(folder, monkeypatch):
    monkeypatch.chdir(folder.path)

    def search(self, space, stream, *, seed):
        stream.submit([space.config(row) for row in range(4)])

    monkeypatch.setattr(RandomSearch, "search", search)
    done = folder.search("--engine", "random", "--budget", "9")
    assert done["trials"] == 4  # the default among them


@pytest.mark.parametrize("engine", ["exhaustive", "random", "surrogate"])
def test_other_configurations_are_compiled_before_the_default_has_run(folder, engine):
    (folder.path / "f.py").write_text(WAITING_KERNEL)
    (folder.path / "reference.py").write_text("def reference(inputs, sizes):\n    return {'x': [3] * 8}\n")
    folder.space.write_text(WAITING_SPACE)
    done = folder.run("search", folder.space.name, "--device", "fake", "--engine", engine, "--timeout", "300")
    assert done.returncode == 0, done.stderr
    assert "2 ok" in done.stdout
