"""Turns configurations into trials: compiled, verified, timed and journaled.

A searcher submits configurations and collects trials. Compilers work ahead of the devices. One device runs
configurations in the order of submission; several devices take whichever is compiled.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import replace
from queue import Empty, SimpleQueue
from typing import Any

from autotune.compilers.triton_binary import code_sha256
from autotune.core import timeline
from autotune.core.records import Config
from autotune.core.stages import OnStage, Stage, unobserved
from autotune.core.trials import Binary, Failure, Measurement, Status, Trial
from autotune.errors import NoMoreTrials
from autotune.evaluation.compile_queue import CompileQueue, Submission
from autotune.evaluation.compiler_pool import CompilerPool
from autotune.evaluation.device_process import arrays_after_run, read_and_remove
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.evaluation.job_runner import JobRunner
from autotune.evaluation.jobs import Jobs, RunningItem
from autotune.evaluation.ledger import Ledger, RunKey
from autotune.evaluation.work_item import ItemResult, MeasurementPolicy
from autotune.space.functions import function_name

MIN_TIMEOUT_S = 10.0
COMPILE_AHEAD = 4  # configurations per compiler process that are compiled ahead of the devices
BY_MACHINE = "the machine may be the cause: the next search tries again"
TIMEOUT_FACTOR = 20  # a trial may take this many times as long as the default's
_PATIENCE_S = 5.0  # without an event for so long, it asks whether a device is left
_CHOOSING = Stage("choosing what to try next")


class Evaluator:
    """Takes configurations from a searcher, and gives it their trials.

    A configuration goes from `submit` to `collect` in three steps:

    1. `_queue`: it is compiled, and then ready for a device.
    2. `_jobs`: a device verifies and times it in a job.
    3. `_ended`: its trial is in the ledger, to be collected.

    A configuration whose trial is known without a run goes from 1 to 3. If a running configuration has the
    same binary and launches, it waits in `_duplicates` and goes back to 1.
    """

    def __init__(
        self,
        maker: InstanceMaker,
        pool: CompilerPool,
        devices: JobRunner,
        ledger: Ledger,
        *,
        policy: MeasurementPolicy,
        timeout_s: float,
        on_stage: OnStage = unobserved,
    ) -> None:
        """Begin nothing yet.

        `timeout_s` limits the time of a configuration; it gets less once one has run.
        """
        self._maker, self._devices = maker, devices
        self._ledger, self.policy = ledger, policy
        self._timeout_s, self._on_stage = timeout_s, on_stage
        self.beside_budget = 0  # trials that cost no budget
        self.time_was_over = False  # True if the time limit ended the search, and nothing else had
        # called when the last configurations that the budget covers begin to compile, perhaps more than once
        self.on_spent: Callable[[], object] = lambda: None
        # few under a time limit: many would overrun it
        self._ahead = pool.size * (1 if ledger.budget.seconds is not None else COMPILE_AHEAD)
        # compilers would disturb times on a CPU: a whole window is compiled, then run
        self._shares_cores = devices.parallel == 1 and maker.space.device.kind == "cpu"
        self._events: SimpleQueue[Future[Any]] = SimpleQueue()  # compilations and jobs that are done
        self._queue = CompileQueue(maker, pool, ledger, self._events.put, in_order=devices.parallel == 1)
        self._jobs = Jobs(devices, timeout_s + policy.energy_limit_s, self._events.put, on_stage)
        self._ended: deque[Trial] = deque()
        self._running_keys: set[RunKey] = set()  # the keys of what runs, and of the retries
        self._duplicates: dict[RunKey, list[Submission]] = {}  # by the running key that they wait for
        self._under_way: set[Config] = set()  # submitted, and not ended

    @property
    def parallel(self) -> int:
        """Number of configurations that should be under way; 1: trials come one by one, in order."""
        return self._devices.parallel

    def prefetch(self, configs: Iterable[Config]) -> None:
        """Begin to compile configurations before they are submitted; nothing else is done with them.

        Invalid ones are left out.
        """
        for config in configs:
            is_new = config not in self._under_way and config not in self._ledger.trials
            if is_new and config in self._maker.space:
                self._queue.prefetch(config)

    def submit(self, configs: Sequence[Config]) -> None:
        """Begin to evaluate as many of the configurations as the budget covers.

        A configuration that was tried before or is invalid costs nothing: its trial can be collected at once.
        """
        for config in dict.fromkeys(configs):
            if config in self._under_way:
                continue
            trial = self._ledger.trials.get(config) or self._trial_if_invalid(config)
            if trial is not None:
                self._ended.append(trial)
            elif self._ledger.try_charge():
                self._add(config)
        self._compile_waiting()
        if self._ledger.is_spent:
            self.on_spent()

    def collect(self) -> list[Trial]:
        """Wait for trials; raises NoMoreTrials when no more come."""
        while not self._ended:
            if not self._under_way:
                raise NoMoreTrials
            if self._ledger.is_time_over:
                self._end_search()
            self._advance()
        if not self._under_way:
            self._on_stage(_CHOOSING)
        count = 1 if self.parallel == 1 else len(self._ended)
        return [self._ended.popleft() for _ in range(count)]

    def evaluate_beside_budget(self, config: Config) -> Trial:
        """Evaluate one valid configuration at once, whatever the budget; no other may be under way."""
        if config not in self._ledger.trials:
            self.beside_budget += 1
            self._add(config)
            while self._under_way:
                self._advance()
            self._ended.clear()
        return self._ledger.trials[config]

    def _trial_if_invalid(self, config: Config) -> Trial | None:
        """The trial of an invalid configuration; None for a valid one."""
        reasons = self._maker.space.why_invalid(config)
        return Trial(config, "", Failure(Status.INVALID, "; ".join(reasons))) if reasons else None

    def _add(self, config: Config) -> None:
        self._queue.add(config)
        self._under_way.add(config)

    def _advance(self) -> None:
        """Keep compilers and devices busy, wait for an event, and report what has ended."""
        try:
            self._compile_waiting()
            self._fill_devices()
            if (self._queue.is_compiling or self._jobs.running) and not self._ended:
                self._wait_for_events()
            # the device goes on while trials are journaled and a searcher chooses
            if not (self._shares_cores or self._ledger.is_time_over):
                self._fill_devices()
        finally:  # finished trials are written even after an error; a full disk then hides that error
            self._ledger.report()

    def _end_search(self) -> None:
        """Drop what no device has begun, let the running configurations end, and raise NoMoreTrials."""
        self.time_was_over |= self._queue.drop() or bool(self._jobs.retries)
        while self._jobs.running:
            self._wait_for_events()
            self._ledger.report()
        # jobs that ended meanwhile leave duplicates that are ready, and retries
        for left in (self._ended, self._queue.ready, self._jobs.retries, self._under_way):
            left.clear()
        self._running_keys.clear()
        self._duplicates.clear()
        raise NoMoreTrials

    def _compile_waiting(self) -> None:
        """Begin to compile waiting configurations, a few ahead of the devices."""
        if self._shares_cores and (self._queue.is_begun or self._jobs.running):
            return
        is_idle = not (self._queue.ready or self._jobs.running)
        self._queue.begin(self._ahead + self._devices.slots * self._devices.job_items)
        if is_idle and self._queue.is_begun:
            self._tell_compiling()

    def _fill_devices(self) -> None:
        """Send compiled configurations to devices with a free slot, and one that runs again."""
        if self._shares_cores and self._queue.is_compiling:
            return
        ready = self._queue.ready
        while not self._is_late and (count := self._jobs.next_count(len(ready), self._queue.has_more)):
            if job := self._next_job(count):
                self._jobs.begin(job)
        self._jobs.begin_retry()

    @property
    def _is_late(self) -> bool:
        """True if nothing more may begin: there are trials to collect, and the time is over."""
        return bool(self._ended) and self._ledger.is_time_over

    def _next_job(self, count: int) -> list[RunningItem]:
        """Take so many of the compiled configurations that a device has to run; trials of others end."""
        job: list[RunningItem] = []
        while self._queue.ready and len(job) < count and not self._is_late:
            submission = self._queue.ready.popleft()
            key = _run_key(submission)
            if key is not None and key in self._running_keys:
                self._duplicates.setdefault(key, []).append(submission)
            elif (trial := self._trial_without_run(submission, key)) is not None:
                self._end_trial(trial, submission)
            else:
                job.append(self._item_to_run(submission))
        return job

    def _trial_without_run(self, submission: Submission, key: RunKey | None) -> Trial | None:
        """The trial of a configuration that no device has to time; None if a device has to time it.

        The trial is known, the configuration was not compiled, it runs the same as an earlier one, or its
        result is wrong by the caller's `verify`.
        """
        if submission.known_trial is not None:
            return submission.known_trial
        instance, compiled, laps = submission.instance, submission.compilation.result(), self._devices.laps
        assert instance is not None
        if isinstance(compiled, Failure):
            return self._make_trial(submission, compiled, laps.next_s())
        if key is not None and (same := self._ledger.trials_by_run.get(key)) is not None:
            trial = self._make_trial(submission, same.measurement, laps.next_s())
            return replace(trial, note=f"same binary and launches as {same.config}")
        failure = self._call_verify(instance, compiled)
        return None if failure is None else self._make_trial(submission, failure, laps.next_s())

    def _item_to_run(self, submission: Submission) -> RunningItem:
        """What a device runs for a configuration; those that would run the same wait for it from now on."""
        instance, binary, key = submission.instance, submission.binary, _run_key(submission)
        assert instance is not None and binary is not None and key is not None
        item = instance.work_item(binary, self.policy, self._ledger.incumbent, self._ledger.batch)
        self._running_keys.add(key)
        return RunningItem(submission, key, item)

    def _call_verify(self, instance: KernelInstance, binary: Binary) -> Failure | None:
        """The failure that the caller's function `verify` reports; None if it passes, or without one."""
        functions = self._maker.space.spec.functions
        verify = functions.verify
        if verify is None:
            return None
        files = self._devices.worker.run(
            arrays_after_run,
            binary,
            instance.workload,
            functions.verified,
            timeout_s=self._timeout_s,
            workloads=(*instance.verify_workloads, instance.workload),
        )
        if isinstance(files, Failure):
            return files
        if verify(instance.config, {name: read_and_remove(path) for name, path in files.items()}):
            return None
        return Failure(Status.WRONG_RESULT, f"{function_name(verify)} says that the result is wrong")

    def _wait_for_events(self) -> None:
        """Wait for an event, and take all that have happened."""
        try:
            with timeline.span("wait: devices" if self._jobs.running else "wait: compilers"):
                self._devices.finish_jobs()  # one device is waited for here, several by threads
                events = [self._events.get(timeout=_PATIENCE_S)]
        except Empty:
            self._jobs.begin_again(self._devices.without_device())
            return
        while not self._events.empty():
            events.append(self._events.get())
        self._queue.take_compiled()
        self._tell_compiling()
        for running, result in self._jobs.ended(events):
            self._end_item(running, result)

    def _tell_compiling(self) -> None:
        """Report how many configurations are compiled, while no device runs any."""
        if not self._jobs.running:
            self._on_stage(self._queue.stage)

    def _end_item(self, running: RunningItem, result: ItemResult) -> None:
        """Add the trial of a configuration that ran; those that would run the same end next."""
        trial = self._make_trial(running.submission, result.outcome, result.cost_s)
        self._end_trial(replace(trial, device=result.device), running.submission)
        self._running_keys.discard(running.key)
        self._queue.ready.extendleft(self._duplicates.pop(running.key, ()))
        self._devices.laps.restart()

    def _make_trial(
        self, submission: Submission, outcome: Measurement | Failure | None, cost_s: float
    ) -> Trial:
        instance, binary = submission.instance, submission.binary
        assert instance is not None
        failure = outcome if isinstance(outcome, Failure) else None
        if failure is not None and failure.by_machine:
            failure = replace(failure, detail=f"{failure.detail}; {BY_MACHINE}")
        trial = Trial(
            instance.config,
            instance.key,
            failure,
            measurement=outcome if isinstance(outcome, Measurement) else None,
            cost_s=cost_s,
            objective=self._ledger.scoring.objective,
        )
        if binary is None:
            return trial
        return replace(
            trial,
            compile_ms=binary.compile_ms,
            binary_sha256=_short_sha256(binary),
            binary_cached=binary.cached,
            registers=binary.registers,
            spill_bytes=binary.spill_bytes,
            shared_bytes=binary.shared_bytes,
        )

    def _end_trial(self, trial: Trial, submission: Submission) -> None:
        if self._ledger.best is None and trial.time_ms is not None:  # the default's, perhaps of the journal
            self._timeout_s = min(self._timeout_s, max(MIN_TIMEOUT_S, TIMEOUT_FACTOR * trial.cost_s))
            self._jobs.limit_s = self._timeout_s + self.policy.energy_limit_s
        self._ledger.add(
            trial,
            submission.instance,
            submission.binary,
            is_journaled=submission.is_journaled,
            devices=self._devices.count,
        )
        self._under_way.discard(trial.config)
        self._ended.append(self._ledger.trials[trial.config])


def _run_key(submission: Submission) -> RunKey | None:
    """Equal for all that run the same binary with the same launches and arguments; None without a binary."""
    binary, instance = submission.binary, submission.instance
    return (_short_sha256(binary), instance.workloads_key) if binary and instance else None


def _short_sha256(binary: Binary) -> str:
    return code_sha256(binary)[:16]
