"""Compares the bits of a kernel's results: from run to run, and from configuration to configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from autotune.core.records import Config, KernelRecord
from autotune.core.trials import Failure
from autotune.evaluation.device_samples import output_hashes
from autotune.searchers.base import evaluate
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.recheck import opened
from autotune.tuning.task import TuningTask
from autotune.tuning.turns import COMPILING

RUNS = 10


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


def served_configs(record: KernelRecord | None, task: TuningTask) -> list[Config]:
    """The configurations that the cache serves for the task's element type and that its problem allows."""
    dtype, space = task.space.problem.dtype, task.space
    entries = [entry.config for entry in (record.entries if record else ()) if entry.dtype == dtype]
    tables = [table.configs for table in (record.variants if record else ()) if table.dtype == dtype]
    known = dict.fromkeys([*entries, *(config for table in tables for config in table)])
    return [config for config in known if config in space]


def compare_bits(
    task: TuningTask, options: Options, observer: Observer, configs: Sequence[Config]
) -> dict[Config, Bits]:
    """Verify configurations, then run each on the same inputs again and again.

    Raises:
        SetupError: The reference or the device cannot be used.
        WriteError: The journal cannot be written.
    """
    with opened(task, options, observer, len(configs)) as context:
        trials = evaluate(context.evaluator, configs)
        found = {trial.config: Bits(failure=trial.failure) for trial in trials}
        built, rejected = context.build([one.config for one in trials if one.failure is None], COMPILING)
        for config, (instance, binary) in built.items():
            answer = context.run(output_hashes, binary, instance.problem, RUNS)
            found[config] = Bits(failure=answer) if isinstance(answer, Failure) else Bits(answer)
        return found | {config: Bits(failure=failure) for config, failure in rejected.items()}
