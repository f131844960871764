"""The evaluator of several devices, where whoever runs a certain configuration is lost each time."""

from concurrent.futures import Future
from typing import ClassVar

import pytest

from autotune.cli.progress import SearchProgress
from autotune.core.trials import Budget, Status
from autotune.evaluation.work_item import Outcome
from autotune.tuning.context import open_context
from autotune.tuning.options import Options
from autotune.tuning.task import Target, bind_target

pytest.importorskip("distributed", reason="needs the extra cluster")

from autotune.evaluation.device_host import Evaluated
from autotune.evaluation.parallel_evaluator import ParallelEvaluator


class AtOnce:
    """Compilers that are done when they are asked, so that tasks are the same in every run."""

    def __init__(self, pool):
        self.pool, self.workers = pool, pool.workers

    def compile(self, instance):
        compilation = self.pool.compile(instance)
        compilation.result()
        return compilation


class LossyFleet:
    """A cluster of one device; each task with the `deadly` binary costs the workers that run it."""

    slots = 2
    devices: ClassVar = {"host/fake:0": "tcp://worker"}

    def __init__(self, worker, deadly):
        self.worker, self.deadly = worker, deadly
        self.tasks = []  # the binaries of each
        self.under_way = {}
        self.lost = set()
        self.most_sent_again = 0  # at the same time

    def submit(self, items, timeout_s):
        task = [item.binary.sha256 for item in items]
        future = Future()
        future.set_result(None if self.deadly in task else [self.run(item, timeout_s) for item in items])
        self.tasks.append(task)
        self.under_way[future] = task
        again = [binaries for binaries in self.under_way.values() if self.lost & set(binaries)]
        self.most_sent_again = max(self.most_sent_again, len(again))
        return future

    def run(self, item, timeout_s):
        failure = self.worker.begin_item(item, timeout_s)
        return Evaluated(self.worker.finish_item() if failure is None else Outcome(failure), "fake:0", 0.0)

    def result(self, future):
        task = self.under_way.pop(future)
        self.lost |= set(task) if future.result() is None else set()
        return future.result()

    def stranded(self):
        return []


def test_items_of_a_lost_task_are_sent_again_one_at_a_time_and_only_the_one_to_blame_is_lost(
    folder, monkeypatch
):
    monkeypatch.chdir(folder.path)
    task = bind_target(Target(folder.space, "fake"))
    configs = [task.space.config(row) for row in range(len(task.space))]
    with open_context(task, Options(), SearchProgress()) as context:
        deadly = context.pool.compile(context.maker.make(configs[-2])).result().sha256
        fleet = LossyFleet(context.worker, deadly)
        evaluate = ParallelEvaluator(
            *(fleet, context.maker, AtOnce(context.pool), context.worker, context.journal),
            Budget(trials=len(configs)),
            policy=context.policy,
            timeout_s=context.timeout_s,
            on_trial=lambda trial: None,
        )
        trials = evaluate(configs)
    failed = [trial for trial in trials if trial.status is not Status.OK]
    assert [trial.config for trial in failed] == [configs[-2]]
    assert failed[0].detail.startswith("the workers that ran it were lost")
    (first, *_) = (number for number, binaries in enumerate(fleet.tasks) if deadly in binaries)
    lost = fleet.tasks[first]
    assert len(lost) > 1 and fleet.tasks[first + 1 :] == [[binary] for binary in lost]
    assert fleet.most_sent_again == 1
