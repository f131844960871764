"""What the evaluator compiles and runs before it is asked for trials."""

import time

import pytest

from autotune.cli.progress import SearchProgress
from autotune.core.trials import Budget, Status
from autotune.errors import BudgetSpent
from autotune.tuning.context import open_context
from autotune.tuning.options import Options
from autotune.tuning.task import Target, bind_target


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


def test_the_device_runs_what_was_begun_early_while_the_searcher_chooses(task):
    configs = [task.space.config(row) for row in range(4)]
    with open_context(task, Options(budget=Budget(trials=3)), SearchProgress()) as context:
        evaluate = context.evaluator
        evaluate(configs[:1])
        evaluate.begin_early(configs[1:3])
        assert configs[1] not in evaluate.trials
        for _ in range(3000):
            evaluate.run_early()
            assert evaluate(()) == []
            if configs[1] in evaluate.trials:  # although nobody asked for it
                break
            time.sleep(0.01)
        assert evaluate(configs[1:2]) == [evaluate.trials[configs[1]]]
        with pytest.raises(BudgetSpent):
            evaluate(configs[2:])
        assert [*evaluate.trials] == configs[:3]
        assert [trial.config for trial in context.journal.trials.values()] == configs[:3]
        assert all(trial.status is Status.OK for trial in evaluate.trials.values())


def test_what_runs_early_is_not_begun_again(task):
    configs = [task.space.config(row) for row in range(3)]
    with open_context(task, Options(budget=Budget(trials=2)), SearchProgress()) as context:
        evaluate = context.evaluator
        evaluate(configs[:1])
        evaluate.begin_early(configs[1:2])
        while evaluate.compile_ahead.begun:
            evaluate.run_early()
        evaluate.begin_early(configs[1:])  # one runs, and the budget covers no other
        assert not evaluate.compile_ahead.begun
        with pytest.raises(BudgetSpent):
            evaluate(configs[1:])
        assert [*evaluate.trials] == configs[:2]


def test_compilers_that_share_the_cores_of_a_cpu_begin_nothing_early(task):
    with open_context(task, Options(), SearchProgress()) as context:
        assert context.evaluator.may_begin_early
        context.evaluator.compile_ahead.shares_cores = True  # as on a CPU
        assert not context.evaluator.may_begin_early
