"""From a finished search to the record that the cache keeps and the loader serves."""

from __future__ import annotations

import platform
from collections.abc import Container, Iterable, Mapping
from datetime import UTC, datetime
from operator import itemgetter

from autotune import __version__
from autotune.core.launch_plan import CUDA_COMPILERS
from autotune.core.records import ArgumentSpec, Config, Entry, Front, KernelRecord, Measured, Provenance
from autotune.core.trials import Measurement, Trial
from autotune.evaluation.instance import work
from autotune.evaluation.work_item import MeasurementPolicy
from autotune.tuning.task import TuningTask

MAX_MEASURED = 32  # how many of the fastest configurations a result keeps beside the best


def measured(
    trials: Iterable[Trial], finals: Mapping[str, Measurement], winner: Trial, kept: Container[Config]
) -> Measured:
    """What other GPUs may learn from a search: its fastest configurations, and how foreign bests did here.

    The time of a last round, by content key, counts before that of the search. `kept` are the default and the
    best configurations of other devices, which stay however slow they are here.
    """
    times_ms = {
        trial.config: finals[trial.key].median_ms if trial.key in finals else trial.time_ms
        for trial in trials
        if trial.time_ms is not None and trial.config != winner.config
    }
    ranked = sorted(((config, time_ms) for config, time_ms in times_ms.items() if time_ms), key=itemgetter(1))
    return tuple(row for place, row in enumerate(ranked) if place < MAX_MEASURED or row[0] in kept)


def kernel_record(
    task: TuningTask,
    winner: Trial,
    final: Measurement,
    default: Measurement,
    ties: tuple[Config, ...],
    others: Measured,
    front: Front,
    uncompared: tuple[str, ...],
    engine: str,
    seed: int,
    trials: int,
    protocol: MeasurementPolicy,
) -> KernelRecord:
    """One entry, with all that the loader needs to check and use it without reading YAML."""
    spec, problem = task.spec, task.space.problem
    amounts = work(task.space, winner.config, problem.sizes)
    entry = Entry(
        sizes=problem.sizes,
        dtype=problem.dtype,
        config=winner.config,
        time_ms=final.median_ms,
        interval_ms=final.interval_ms,
        default_time_ms=default.median_ms,
        ties=ties,
        provenance=_provenance(task, engine, seed, trials, protocol),
        measured=others,
        registers=winner.registers,
        work_bytes=amounts.get("bytes"),
        work_flops=amounts.get("flops"),
        front=front,
        uncompared=uncompared,
        noise=final.noise,
    )
    return KernelRecord(
        kernel=spec.kernel,
        dtypes=spec.dtypes,
        parameters=spec.parameters,
        constraints=tuple(constraint.text for constraint in spec.constraints),
        derived=spec.derived,
        arguments=tuple(
            ArgumentSpec(item.name, item.dtype, item.role, item.shape, item.value) for item in spec.arguments
        ),
        launch=spec.launch,
        compiler_options=spec.compiler_options,
        default=spec.default,
        entries=(entry,),
        compiler="" if spec.compiler == CUDA_COMPILERS[0] else spec.compiler,
    )


def _provenance(
    task: TuningTask, engine: str, seed: int, trials: int, protocol: MeasurementPolicy
) -> Provenance:
    return Provenance(
        tuned_at=datetime.now(UTC).isoformat(timespec="seconds"),
        autotune=__version__,
        host=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        driver=task.device.driver,
        runtime=task.device.runtime,
        source_sha256=task.source.sha256,
        space_sha256=task.spec.sha256,
        engine=engine,
        seed=seed,
        trials=trials,
        valid_configurations=len(task.space),
        protocol=str(protocol),
        compiler=task.compiler,
    )
