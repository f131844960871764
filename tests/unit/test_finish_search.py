"""The end of a search: what happens when another search stores a result first."""

from pathlib import Path

from autotune.core.records import Config
from autotune.processes.machine_load import cpu_times
from autotune.searchers.base import evaluate
from autotune.tuning.finish_search import finish_search
from autotune.tuning.last_round import LastRoundSetting
from autotune.tuning.limits import LastRoundTime
from autotune.tuning.remeasure import remeasure
from autotune.tuning.task import Target, read_task
from tests.conftest import KERNEL, opened


def test_what_a_last_round_rejected_stays_out_when_another_search_stores_first(folder, monkeypatch):
    """The fastest one becomes wrong once the last round has begun; the other search has a new best."""
    monkeypatch.chdir(folder.path)
    folder.write("import os\n\n" + KERNEL.replace("2 * x", "(2 + (A == 5 and os.path.exists('late'))) * x"))
    fastest, rounds = Config({"A": 5, "B": 0}), []

    def measure_again(context, chosen, deadline):
        rounds.append([trial.config for trial in chosen])
        if len(rounds) == 1:
            Path("late").touch()
            folder.search("--engine", "exhaustive", "--journal", "other.jsonl")
        return remeasure(context, chosen, deadline)

    task = read_task(Target(folder.space, "fake"))
    setting = LastRoundSetting(
        Path("cache"), "", 0, 1.0, cpu_times(), LastRoundTime(), measure_again=measure_again
    )
    with opened(task) as context:
        evaluate(context.evaluator, [task.spec.default, *(Config({"A": a, "B": 0}) for a in (3, 5))])
        result = finish_search(context, setting)
    assert result.winner.config == Config({"A": 4, "B": 0})
    assert [fastest in chosen for chosen in rounds].count(True) == 1, rounds
