"""What the evaluator compiles before it is asked for trials."""

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
        evaluate.begin(configs[:3])  # one of them has its trial
        assert evaluate.compile_ahead.begun == 2
        evaluate.begin(configs[3:])
        assert evaluate.compile_ahead.begun == 3
        trials = evaluate(configs[:4])
        assert evaluate.compile_ahead.begun == 0
        assert trials[0] is tried and [trial.config for trial in trials] == configs[:4]
        assert all(trial.status is Status.OK for trial in trials)
        evaluate.begin(configs[4:])
        assert evaluate.compile_ahead.begun == 0
        with pytest.raises(BudgetSpent):
            evaluate(configs[4:])


def test_nothing_is_compiled_while_a_cpu_times_something_else(task):
    configs = [task.space.config(row) for row in range(3)]
    with open_context(task, Options(), SearchProgress()) as context:
        context.evaluator.compile_ahead.shares_cores = True  # as on a CPU
        context.evaluator.begin(configs)
        assert context.evaluator.compile_ahead.begun == 0
        assert all(trial.status is Status.OK for trial in context.evaluator(configs))
