"""What the evaluator compiles and runs before it is asked for trials."""

import time

import pytest

from autotune.cli.progress import SearchProgress
from autotune.core.records import Config
from autotune.core.trials import Budget, Status
from autotune.errors import BudgetSpent
from autotune.tuning.context import open_context
from autotune.tuning.options import Options
from autotune.tuning.task import Target, bind_target
from tests.conftest import KERNEL, wait_until


@pytest.fixture
def task(folder, monkeypatch):
    monkeypatch.chdir(folder.path)
    return bind_target(Target(folder.space, "fake"))


def test_only_what_the_budget_covers_is_compiled_ahead(task):
    configs = [task.space.config(row) for row in range(5)]
    with open_context(task, Options(budget=Budget(trials=4)), SearchProgress()) as context:
        evaluate = context.evaluator
        (tried,) = evaluate(configs[:1])
        evaluate.begin_early(configs[:3])  # one of them has its trial
        assert set(evaluate.compile_ahead.begun) == {*configs[1:3]}
        evaluate.begin_early(configs[1:])  # the budget covers one more
        assert set(evaluate.compile_ahead.begun) == {*configs[1:4]}
        trials = evaluate(configs[:4])
        assert not evaluate.compile_ahead.begun
        assert trials[0] is tried and [trial.config for trial in trials] == configs[:4]
        assert all(trial.status is Status.OK for trial in trials)
        evaluate.begin_early(configs[4:])
        assert not evaluate.compile_ahead.begun
        with pytest.raises(BudgetSpent):
            evaluate(configs[4:])


@pytest.fixture
def configs(task):
    return [task.space.config(row) for row in range(4)]


@pytest.fixture
def context(task, configs):
    """A run that may try three configurations, and has tried the first."""
    with open_context(task, Options(budget=Budget(trials=3)), SearchProgress()) as context:
        context.evaluator(configs[:1])
        yield context


def test_the_device_runs_what_was_begun_early_while_the_searcher_chooses(context, configs):
    evaluate = context.evaluator
    evaluate.begin_early(configs[1:3])

    def has_run():
        evaluate.run_early()
        assert evaluate(()) == []
        return configs[1] in evaluate.trials  # although nobody asked for it

    assert configs[1] not in evaluate.trials
    wait_until(has_run)
    assert evaluate(configs[1:2]) == [evaluate.trials[configs[1]]]
    with pytest.raises(BudgetSpent):
        evaluate(configs[2:])
    assert [*evaluate.trials] == configs[:3]
    assert [trial.config for trial in context.journal.trials.values()] == configs[:3]
    assert all(trial.status is Status.OK for trial in evaluate.trials.values())


def test_what_runs_early_is_not_begun_again(context, configs):
    evaluate = context.evaluator
    evaluate.begin_early(configs[1:2])

    def runs():
        evaluate.run_early()
        return not evaluate.compile_ahead.begun

    wait_until(runs)
    evaluate.begin_early(configs[1:])  # one runs, and the budget covers one more
    assert [*evaluate.compile_ahead.begun] == configs[2:3]
    with pytest.raises(BudgetSpent):
        evaluate(configs[1:])
    assert [*evaluate.trials] == configs[:3]


def test_what_ends_early_without_a_run_is_told_and_journaled_at_once(folder, monkeypatch):
    monkeypatch.chdir(folder.path)
    folder.write(KERNEL + "def compiling():\n    assert A == 1\n")
    told = []

    class Told(SearchProgress):
        def tried(self, trial):
            told.append(trial)

    first, other = Config({"A": 1, "B": 0}), Config({"A": 2, "B": 0})
    with open_context(bind_target(Target(folder.space, "fake")), Options(), Told()) as context:
        evaluate = context.evaluator
        evaluate([first])
        evaluate.begin_early([other])

        def has_ended():
            evaluate.run_early()
            return other in evaluate.trials

        wait_until(has_ended)
        assert [(one.config, one.status) for one in told] == [
            (first, Status.OK),
            (other, Status.COMPILE_ERROR),
        ]
        assert [one.config for one in context.journal.trials.values()] == [first, other]


def test_nothing_runs_early_when_the_time_is_over(task):
    configs = [task.space.config(row) for row in range(2)]
    with open_context(task, Options(budget=Budget(seconds=1e-3)), SearchProgress()) as context:
        evaluate = context.evaluator
        evaluate.begin_early(configs[:1])
        for _ in range(50):
            evaluate.run_early()
            time.sleep(0.01)
        assert [*evaluate.compile_ahead.begun] == configs[:1]
        with pytest.raises(BudgetSpent):
            evaluate(configs)
        assert not evaluate.trials


def test_compilers_that_share_the_cores_of_a_cpu_begin_nothing_early(task):
    with open_context(task, Options(), SearchProgress()) as context:
        assert context.evaluator.may_begin_early
        context.evaluator.compile_ahead.shares_cores = True  # as on a CPU
        assert not context.evaluator.may_begin_early
