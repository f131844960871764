"""Turns the result of a search into the record that the cache keeps and the loader serves."""

from __future__ import annotations

import platform
from collections.abc import Container, Iterable, Mapping
from datetime import UTC, datetime
from operator import itemgetter

from autotune.core.checks import reasons
from autotune.core.launch_plan import CUDA_COMPILERS
from autotune.core.records import ArgumentSpec, Config, Entry, KernelRecord, Measured, Provenance
from autotune.core.trials import Measurement, Objective, Trial
from autotune.core.version import __version__
from autotune.evaluation.identity import workload_sha256
from autotune.evaluation.instance import work
from autotune.evaluation.work_item import MeasurementPolicy
from autotune.space import SpaceSpec
from autotune.tuning.result import SearchResult
from autotune.tuning.result_folder import source_path

MAX_MEASURED = 32  # how many of the fastest configurations a result keeps besides the best


def choose_measured(
    trials: Iterable[Trial], last_round: Mapping[str, Measurement], winner: Trial, kept: Container[Config]
) -> Measured:
    """Choose the configurations whose times other GPUs may learn from, fastest first, without the winner.

    Measurements of the last round, by content key, replace the times of the search. What is `kept` is chosen
    in any case.
    """
    times_ms = {
        trial.config: last_round[trial.key].median_ms if trial.key in last_round else trial.time_ms
        for trial in trials
        if trial.time_ms is not None and trial.config != winner.config
    }
    ranked = sorted(((config, time_ms) for config, time_ms in times_ms.items() if time_ms), key=itemgetter(1))
    return tuple(row for place, row in enumerate(ranked) if place < MAX_MEASURED or row[0] in kept)


def kernel_record(
    result: SearchResult, others: Measured, seed: int, policy: MeasurementPolicy
) -> KernelRecord:
    """Make a record of one entry, self-contained: the loader checks and uses it without reading YAML.

    `others` are the times of other configurations.
    """
    spec, space, winner = result.task.spec, result.task.space, result.winner
    amounts = work(space, winner.config, space.problem.sizes)
    entry = Entry(
        sizes=space.problem.sizes,
        dtype=space.problem.dtype,
        config=winner.config,
        time_ms=result.final.median_ms,
        interval_ms=result.final.interval_ms,
        default_time_ms=result.default.median_ms,
        ties=result.ties,
        provenance=_provenance(result, seed, policy),
        measured=others,
        registers=winner.registers,
        work_bytes=amounts.get("bytes"),
        work_flops=amounts.get("flops"),
        front=result.front,
        uncompared=result.uncompared,
        noise=result.final.noise,
        data=space.problem.data,
        data_sha256=result.data_sha256,
    )
    return record_of(spec, source_path(result.task, result.cache_root), entry)


def record_of(spec: SpaceSpec, source: str, entry: Entry) -> KernelRecord:
    """Make a record of one entry from its space as it is now; `source` comes from `source_path`."""
    return KernelRecord(
        kernel=spec.kernel,
        dtypes=spec.dtypes,
        parameters=spec.parameters,
        constraints=tuple(constraint.text for constraint in spec.constraints),
        derived=spec.derived,
        arguments=tuple(
            ArgumentSpec(
                item.name, item.dtype, item.role, item.shape, item.value, item.symbol, item.of, item.offset
            )
            for item in spec.arguments
        ),
        launch=spec.launch,
        compiler_options=spec.compiler_options,
        default=spec.default,
        entries=(entry,),
        call=spec.call,
        compiler="" if spec.compiler == CUDA_COMPILERS[0] else spec.compiler,
        source=source,
    )


def _provenance(result: SearchResult, seed: int, policy: MeasurementPolicy) -> Provenance:
    task = result.task
    return Provenance(
        tuned_at=datetime.now(UTC).isoformat(timespec="seconds"),
        autotune=__version__,
        host=f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
        **task.provenance,
        engine=result.engine,
        seed=seed,
        trials=len(result.trials),
        valid_configurations=len(task.space),
        protocol=str(policy),
        objective=result.objective_name if result.objective is Objective.OWN else "",
        workload_sha256=workload_sha256(task.spec),
        cache_state=task.spec.measure.cache,
        launch_mode=task.spec.measure.launch,
        checked=reasons(result.checks),
    )
