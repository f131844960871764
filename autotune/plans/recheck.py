"""Checks named configurations, or cached results after a driver, a compiler or a source has changed.

Also compares the bits of a kernel's results: from run to run, and from configuration to configuration.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import Enum
from pathlib import Path

from autotune.core.outcomes import combined, reasons
from autotune.core.records import NOISY, Config, Entry
from autotune.core.stages import COMPILING
from autotune.core.trials import Budget, Failure, Objective, Trial
from autotune.core.version import __version__
from autotune.evaluation.device_samples import output_hashes
from autotune.evaluation.identity import workload_sha256
from autotune.processes.deadline import Deadline
from autotune.searchers.base import evaluate
from autotune.serving.cache import store
from autotune.tuning.cache_entry import record_of, source_path
from autotune.tuning.context import TuningContext, open_run
from autotune.tuning.last_round import Decision, remeasure_and_check
from autotune.tuning.limits import LastRoundTime
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask
from autotune.tuning.winner_checks import WinnerChecks

MAX_RUNNERS_UP = 3
BITS_RUNS = 10
_CHANGE = 0.02  # relative difference of two times below which they count as the same


class CheckState(Enum):
    """Verdict on a cached result."""

    SAME = "same"
    FASTER = "faster"
    SLOWER = "slower"
    WRONG = "wrong"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class CheckedEntry:
    """A cached result, and the findings of a check."""

    entry: Entry
    state: CheckState
    detail: str
    time_ms: float | None = None  # what the cached configuration takes now
    refreshed: Entry | None = None  # the entry that a refresh stores; None if nothing was found


def check(
    task: TuningTask, options: Options, observer: Observer, configs: Sequence[Config]
) -> dict[Config, Failure | None]:
    """Verify configurations, and run the checks before storing; None for a configuration that passes."""
    with open_check(task, options, observer, len(configs)) as context:
        trials = evaluate(context.evaluator, configs)
        failures: dict[Config, Failure | None] = {trial.config: trial.failure for trial in trials}
        passed = [config for config in configs if failures[config] is None]
        return failures | WinnerChecks().check(context, passed, Deadline())


def recheck(task: TuningTask, options: Options, observer: Observer, entry: Entry) -> CheckedEntry:
    """Verify and time a cached result's best, its ties, a few runners-up and the default."""
    if entry.config not in task.space:
        return CheckedEntry(entry, CheckState.UNDECIDED, "the configuration is no longer in the space")
    runners_up = [config for config, _ in entry.measured if config not in entry.ties][:MAX_RUNNERS_UP]
    named = dict.fromkeys((entry.config, *entry.ties, *runners_up, task.spec.default))
    configs = [config for config in named if config in task.space]
    with open_check(task, options, observer, len(configs)) as context:
        trials = {trial.config: trial for trial in evaluate(context.evaluator, configs)}
        failures = {config: failure for config, trial in trials.items() if (failure := trial.failure)}
        return _compare(context, entry, _decide(context, trials, failures), failures)


def refresh(task: TuningTask, root: str, checked: CheckedEntry) -> None:
    """Replace the cached result by what a check found; raises Overtaken if the cached one has changed."""
    if checked.refreshed is not None:
        record = record_of(task.spec, source_path(task, Path(root)), checked.refreshed)
        store(root, task.device, record, seen=(checked.entry,))


@contextmanager
def open_check(task: TuningTask, options: Options, observer: Observer, count: int) -> Iterator[TuningContext]:
    """Open a run of so many known configurations, with a journal of its own that starts empty.

    Raises:
        SetupError: The reference or the device cannot be used.
        WriteError: The journal cannot be written.
    """
    check_options = replace(options, fresh=True, budget=Budget(), objective=Objective.TIME)
    with open_run(task, check_options, observer, "check.jsonl") as context:
        observer.started(task, count, context.journal)
        yield context


def _decide(
    context: TuningContext, trials: Mapping[Config, Trial], failures: dict[Config, Failure]
) -> Decision | None:
    """Time in turns the configurations that have not failed, until none fails; add failures to `failures`."""
    checks = WinnerChecks()
    while left := [trial for config, trial in trials.items() if config not in failures]:
        end = remeasure_and_check(context, left, checks, LastRoundTime())
        if isinstance(end, Decision):
            return end
        failures |= end.failures
    return None


def _compare(
    context: TuningContext, entry: Entry, decision: Decision | None, failures: Mapping[Config, Failure]
) -> CheckedEntry:
    """Compare the result with the measurements of now; without a decision, all configurations have failed."""
    fresh = _refreshed(context, entry, decision) if decision else None
    if decision is None or entry.config in failures:
        failure = failures[entry.config]
        state = CheckState.UNDECIDED if failure.by_machine else CheckState.WRONG
        return CheckedEntry(entry, state, str(failure), None, fresh)
    now = decision.measurements[context.maker.make(entry.config).key]
    fastest = decision.measurements[decision.stored[0].key]
    noise = max(_CHANGE, entry.noise or 0.0, fastest.noise or 0.0)
    ratio = now.median_ms / entry.time_ms
    overlaps = now.interval_ms[0] <= entry.interval_ms[1] and entry.interval_ms[0] <= now.interval_ms[1]
    change = f"{ratio:.3g} times as long as stored"
    if noise > NOISY:
        state, detail = CheckState.UNDECIDED, f"times differ by {noise:.0%} for the same binary"
    elif abs(ratio - 1) <= noise:
        state, detail = CheckState.SAME, ""
    elif overlaps:
        state, detail = CheckState.SAME, f"{change}, but the confidence intervals overlap"
    else:
        state, detail = (CheckState.FASTER if ratio < 1 else CheckState.SLOWER), change
    if entry.config not in [trial.config for trial in decision.stored]:
        share = fastest.median_ms / now.median_ms
        better = f"{decision.stored[0].config} now takes {share:.3g} times as long"
        detail = "; ".join(filter(None, (detail, better)))
    return CheckedEntry(entry, state, detail, now.median_ms, fresh)


def _refreshed(context: TuningContext, entry: Entry, decision: Decision) -> Entry:
    """The entry with new measurements; what is known of its search stays."""
    task, (winner, *ties) = context.task, decision.stored
    final = decision.measurements[winner.key]
    default = decision.measurements.get(context.default.key)
    return replace(
        entry,
        config=winner.config,
        time_ms=final.median_ms,
        interval_ms=final.interval_ms,
        default_time_ms=default.median_ms if default else entry.default_time_ms,
        ties=tuple(trial.config for trial in ties),
        registers=winner.registers,
        noise=final.noise,
        measured=tuple(row for row in entry.measured if row[0] != winner.config),
        provenance=replace(
            entry.provenance,
            tuned_at=datetime.now(UTC).isoformat(timespec="seconds"),
            autotune=__version__,
            **task.provenance,
            workload_sha256=workload_sha256(task.spec),
            checks="",
            checked=reasons(combined(decision.outcomes)),
        ),
    )


@dataclass(frozen=True)
class Bits:
    """The results of a configuration in several runs on the same inputs."""

    runs: tuple[Mapping[str, str], ...] = ()  # for each run, the hash of each output
    failure: Failure | None = None  # why it could not run, or is wrong

    @property
    def unsteady(self) -> tuple[str, ...]:
        """The outputs that differ between runs."""
        return tuple(name for name in self.outputs if len({run[name] for run in self.runs}) > 1)

    @property
    def outputs(self) -> Mapping[str, str]:
        """The hash of each output of the first run."""
        return self.runs[0] if self.runs else {}


def served_configs(task: TuningTask, root: str) -> list[Config]:
    """The configurations that the cache serves for the task's element type and that its problem allows."""
    record, dtype = task.cached_record(root), task.space.problem.dtype
    if record is None:
        return []
    entries = [entry.config for entry in record.entries if entry.dtype == dtype]
    tables = [table.configs for table in record.variants if table.dtype == dtype]
    served = dict.fromkeys([*entries, *(config for table in tables for config in table)])
    return [config for config in served if config in task.space]


def compare_bits(
    task: TuningTask, options: Options, observer: Observer, configs: Sequence[Config]
) -> dict[Config, Bits]:
    """Verify configurations, then run each on the same inputs again and again."""
    with open_check(task, options, observer, len(configs)) as context:
        trials = evaluate(context.evaluator, configs)
        results = {trial.config: Bits(failure=trial.failure) for trial in trials}
        passed = [trial.config for trial in trials if trial.failure is None]
        builds, rejected = context.build(passed, COMPILING)
        for config, (instance, binary) in builds.items():
            answer = context.run(output_hashes, binary, instance.workload, BITS_RUNS)
            results[config] = Bits(failure=answer) if isinstance(answer, Failure) else Bits(answer)
        return results | {config: Bits(failure=failure) for config, failure in rejected.items()}
