"""The result of a search in the cache: the folder, and the record that it keeps and the loader serves."""

from __future__ import annotations

import os
import platform
from collections.abc import Container, Iterable, Mapping
from datetime import UTC, datetime
from operator import itemgetter
from pathlib import Path

from autotune.core.launch_plan import CUDA_COMPILERS
from autotune.core.outcomes import reasons
from autotune.core.packaged import packaged_folder
from autotune.core.records import ArgumentSpec, Config, Entry, KernelRecord, Measured, Provenance
from autotune.core.text import size_text
from autotune.core.trials import Measurement, Objective, Trial
from autotune.core.version import __version__
from autotune.errors import InputError
from autotune.evaluation.identity import workload_sha256
from autotune.evaluation.instance import work
from autotune.evaluation.work_item import MeasurementPolicy
from autotune.serving.cache import VARIABLE, check_writable, objective_root, record_path, writable_root
from autotune.space import SpaceSpec
from autotune.tuning.journaled_task import JournaledTask
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.result import SearchResult
from autotune.tuning.task import TuningTask

MAX_MEASURED = 32  # how many of the fastest configurations a result keeps besides the best


def result_folder(journaled: JournaledTask, options: Options, observer: Observer) -> Path:
    """The folder for a task's results; warns if another kernel has results under the same name there.

    Raises:
        InputError: It belongs to the installed package, or has results of a kernel with other arguments.
        WriteError: It cannot be written.
        CacheError: It has results of another device in the same place, or a file that cannot be read.
    """
    task = journaled.task
    root = Path(objective_root(str(writable_root(options.cache)), journaled.scoring.folder))
    path = record_path(str(root), task.device.slug, task.spec.kernel)
    record = check_writable(root, task.device, task.spec.kernel)
    if record is not None and (warning := _warning_of_another(path, record, task, root)):
        observer.warn(warning)
    return root


def _warning_of_another(path: str, record: KernelRecord, task: TuningTask, root: Path) -> str:
    """A warning if the record is of another kernel of that name; InputError if replacing would break it.

    It breaks if arguments differ. A space may rename its arguments one by one. A script's arguments have no
    names, so their number decides. A source that was edited in place, moved or copied is still the same
    kernel. Sources that come with autotune, and source text that a program passed, have no path: these
    kernels differ if their parameters do.
    """
    stored, named = ([argument.name for argument in kernel.arguments] for kernel in (record, task.spec))
    sizes, own_sizes = record.size_names, task.space.problem.sizes
    if task.spec.functions.source is not None:
        is_other_call = stored != named or bool(sizes and sizes != own_sizes.keys())
        if not is_other_call:
            _require_same_arguments(path, record, task)
    else:
        is_other_call = bool(stored) and set(stored).isdisjoint(named)
    if record.entries and is_other_call:
        was, new = ", ".join((*sorted(sizes), *stored)), ", ".join((*own_sizes, *named))
        raise InputError(
            f"{path} has results of a kernel {record.kernel} with other sizes or arguments: {was}; this "
            f"kernel's, {new}, would break them: choose another folder with {VARIABLE} or --cache, or rename "
            "the kernel"
        )
    source = source_path(task, root)
    newest = max(record.entries, key=lambda entry: entry.provenance.tuned_at, default=None)
    if record.source == source or (newest and newest.provenance.source_sha256 == task.source.sha256):
        return ""
    if record.source and source:
        is_other = (root / record.source).is_file()
    else:
        is_other = record.parameter_names != {parameter.name for parameter in task.spec.parameters}
    if not is_other:
        return ""
    other, this = (f" ({os.path.relpath(root / path)})" if path else "" for path in (record.source, source))
    return (
        f"{path} has results of another kernel named {record.kernel}{other}; results of this one{this} go to "
        "the same file and replace those of the same sizes: rename one of the kernels, or choose another "
        "folder with --cache (cache= in Python)"
    )


def _require_same_arguments(path: str, record: KernelRecord, task: TuningTask) -> None:
    """Raise InputError if a script's result for the same sizes is one of another shape or scalar."""
    problem = task.space.problem
    for entry in record.entries:
        if entry.sizes != problem.sizes:
            continue
        for stored, declared in zip(entry.arguments, argument_specs(task.spec), strict=False):
            was, new = (_listed_text(argument) for argument in (stored, declared))
            if was != new:
                raise InputError(
                    f"{path} has a result of {record.kernel} for {size_text(entry.sizes)} whose "
                    f"{stored.name} is {was}; here it is {new}: choose another folder with {VARIABLE}, "
                    "rename the kernel, or delete that file"
                )


def _listed_text(argument: ArgumentSpec) -> str:
    """What a script listed as an argument."""
    if argument.value is not None:
        return f"{argument.dtype} {argument.value}"
    return f"{argument.dtype} of shape ({', '.join(argument.shape)})"


def source_path(task: TuningTask, root: Path) -> str:
    """The path of the kernel's source from a cache's folder.

    Empty for a kernel that comes with autotune, and for source text that a program passed, even if a file has
    its name.
    """
    source = task.spec.source.resolve()
    if not source.is_file() or source.parent == Path(packaged_folder("kernels")).resolve():
        return ""
    if task.spec.functions.source and source.read_text(errors="replace") not in task.source.text:
        return ""
    return Path(os.path.relpath(source, root.resolve())).as_posix()


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
        arguments=argument_specs(spec) if spec.functions.source is not None else (),
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
        arguments=argument_specs(spec),
        launch=spec.launch,
        compiler_options=spec.compiler_options,
        default=spec.default,
        entries=(entry,),
        call=spec.call,
        compiler="" if spec.compiler == CUDA_COMPILERS[0] else spec.compiler,
        source=source,
    )


def argument_specs(spec: SpaceSpec) -> tuple[ArgumentSpec, ...]:
    """The arguments of a space without what fills them."""
    return tuple(
        ArgumentSpec(
            item.name, item.dtype, item.role, item.shape, item.value, item.symbol, item.of, item.offset
        )
        for item in spec.arguments
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
