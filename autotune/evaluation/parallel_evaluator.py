"""An evaluator for several devices: configurations run at the same time, trials arrive in any order."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from queue import Empty, SimpleQueue
from typing import Any

from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.trials import Trial
from autotune.errors import BudgetSpent
from autotune.evaluation.compile_ahead import Compiling, Ready
from autotune.evaluation.compiler_pool import Compilation
from autotune.evaluation.device_host import Evaluated
from autotune.evaluation.evaluator import Evaluator, RunKey, Running
from autotune.evaluation.fleet import LOST, Fleet
from autotune.evaluation.work_item import WorkItem

# Short work items are sent together, because a task costs this process some milliseconds, short or long.
MIN_TASK_S = 0.2
TASK_S_PER_DEVICE = 0.025  # with more devices, each has fewer and longer tasks
MAX_ITEMS = 100
MIN_UNDER_WAY = 8
_PATIENCE_S = 5.0  # without an event, before the fleet is checked
_SMOOTHING = 0.3
_Task = list[tuple[Running, WorkItem]]
_MEASURING = Stage("measuring on several devices")


class ParallelEvaluator(Evaluator):
    """The evaluator of a fleet; a searcher may also submit configurations and collect trials as they end."""

    def __init__(self, fleet: Fleet, *arguments: Any, **options: Any) -> None:
        """Take the fleet and the arguments of `Evaluator`."""
        super().__init__(*arguments, **options)
        self._fleet = fleet
        self._waiting: deque[Config] = deque()  # to be compiled
        self._compiling: dict[Future[Compilation], Compiling] = {}
        self._compiled: deque[Compiling] = deque()  # to be run
        self._outgoing: _Task = []  # the next one
        self._running: dict[Future[list[Evaluated]], _Task] = {}
        # items of lost tasks: one at a time is sent again, to see which of them costs its worker
        self._suspects: deque[_Task] = deque()
        self._suspect: Future[list[Evaluated]] | None = None
        self._twins: dict[RunKey, list[Compiling]] = {}  # of what runs: the same binary and launches
        self._cost_s = MIN_TASK_S  # of a work item, on average
        self._events: SimpleQueue[Future[Any]] = SimpleQueue()
        self._under_way: set[Config] = set()  # all of these
        self._ended: list[Trial] = []  # to be collected

    @property
    def devices(self) -> int:
        """How many devices measure at the same time."""
        return max(1, len(self._fleet.devices))

    @property
    def may_begin_early(self) -> bool:
        """No: what is submitted begins as soon as there is room for it."""
        return False

    @property
    def parallel(self) -> int:
        """How many configurations under way keep devices and compilers busy."""
        return max(MIN_UNDER_WAY, self._fleet.slots)

    def submit(self, configs: Sequence[Config]) -> None:
        """Begin to evaluate configurations as far as the budget covers them."""
        fresh, pruned = self._new(configs)
        fresh = [config for config in fresh if config not in self._under_way]
        known = self.trials | pruned
        self._ended += [known[config] for config in configs if config in known]
        affordable = self._charge(fresh)
        self._start(affordable)

    def collect(self) -> list[Trial]:
        """Wait for trials that have ended since the last call; raises BudgetSpent after the last one."""
        while not self._ended:
            if not self._under_way:
                raise BudgetSpent
            self._go_on(self._budget.seconds)
        ended, self._ended = self._ended, []
        return ended

    def _evaluate(self, configs: Sequence[Config], limit_s: float | None) -> None:
        """Evaluate configurations, and whatever else is under way, to the end."""
        self._start(configs)
        while self._under_way:
            self._go_on(limit_s)
        self._ended.clear()

    def _start(self, configs: Sequence[Config]) -> None:
        self._waiting.extend(configs)
        self._under_way.update(configs)

    def _go_on(self, limit_s: float | None) -> None:
        """Keep compilers and devices busy, and record what has ended."""
        try:
            self._step(limit_s)
        finally:  # what has ended is written even after an error; a full disk then hides that error
            self._report()

    def _step(self, limit_s: float | None) -> None:
        if limit_s is not None and self.spent_s >= limit_s:
            self.time_was_over |= bool(self._waiting or self._compiling or self._compiled or self._suspects)
            self._stop()
        ahead = self.compile_ahead.count + self._fleet.slots * self._most_items
        while self._waiting and len(self._compiling) + len(self._compiled) < ahead:
            self._compile(self.compile_ahead.begin(self._waiting.popleft()))
        while self._compiled and len(self._running) < self._fleet.slots and not self._may_wait:
            self._send_task()
        if self._suspects and self._suspect not in self._running:
            self._suspect = self._send(self._suspects.popleft())
        if self._compiling or self._running:
            self._take_events()

    def _compile(self, ready: Ready) -> None:
        if isinstance(ready, Compiling):
            self._compiling[ready.compilation] = ready
            ready.compilation.add_done_callback(self._events.put)
        else:
            self._submit(ready)

    @property
    def _most_items(self) -> int:
        """How many work items one task should have."""
        task_s = max(MIN_TASK_S, TASK_S_PER_DEVICE * self.devices)
        return min(MAX_ITEMS, max(1, int(task_s / max(self._cost_s, 1e-3))))

    @property
    def _may_wait(self) -> bool:
        """Whether all devices are busy and more is to come, so that the next task can grow."""
        to_come = bool(self._compiling or self._waiting)
        return to_come and len(self._running) >= self.devices and len(self._compiled) < self._most_items

    def _send_task(self) -> None:
        """Send what is compiled: as much as one task should have, but no more than a fair share."""
        share = len(self._compiled) // (self._fleet.slots - len(self._running))
        count = max(1, min(share, self._most_items))
        while self._compiled and len(self._outgoing) < count:
            self._submit(self._compiled.popleft())
        task, self._outgoing = self._outgoing, []
        if task:
            self._send(task)

    def _send(self, task: _Task) -> Future[list[Evaluated]]:
        future = self._fleet.submit([item for _, item in task], self._item_timeout_s)
        self._running[future] = task
        future.add_done_callback(self._events.put)
        self._on_stage(_MEASURING)
        return future

    def _run(self, running: Running, item: WorkItem) -> None:
        """Put it into the next task, unless the same binary and launches run already."""
        twins = self._twins.get(running.key)
        if twins is None:
            self._twins[running.key] = []
            self._outgoing.append((running, item))
        else:
            twins.append(running.ready)

    def _take_events(self) -> None:
        """Wait for an event, and take all that have happened."""
        try:
            events = [self._events.get(timeout=_PATIENCE_S)]
        except Empty:
            self._fleet.check()
            self._send_again(self._fleet.unplaced())
            return
        while not self._events.empty():
            events.append(self._events.get())
        for event in events:
            if event in self._compiling:
                self._compiled.append(self._compiling.pop(event))
        for event in events:
            if event in self._running:
                self._take_outcomes(event)
        self._send_again(self._fleet.stranded())

    def _take_outcomes(self, future: Future[list[Evaluated]]) -> None:
        """Record what a task found; send what was lost again."""
        outcomes = self._fleet.result(future)
        task = self._running.pop(future)
        if outcomes is None and len(task) > 1:
            self._suspects.extend([one] for one in task)
            return
        if outcomes is not None and not outcomes:
            self._send(task)
            return
        for (running, _), evaluated in zip(task, outcomes or [Evaluated(LOST, "", 0.0)], strict=True):
            self._land(running, evaluated.outcome, evaluated.cost_s, evaluated.device)
            self._compiled.extendleft(self._twins.pop(running.key))
            self._cost_s += _SMOOTHING * (evaluated.cost_s - self._cost_s)

    def _send_again(self, futures: Sequence[Future[list[Evaluated]]]) -> None:
        for future in futures:
            self._send(self._running.pop(future))

    def _stop(self) -> None:
        """Let what runs end, drop what does not run yet, and raise BudgetSpent."""
        self._waiting.clear()
        self._compiling.clear()
        self._compiled.clear()
        self._suspects.clear()
        while self._running:
            self._take_events()
            self._report()
        self._compiled.clear()
        self._under_way.clear()
        raise BudgetSpent

    def _record(self, trial: Trial, ready: Ready) -> None:
        super()._record(trial, ready)
        self._under_way.discard(trial.config)
        self._ended.append(self.trials[trial.config])
