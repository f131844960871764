"""Finds out why a configuration takes as long as it does, without a profiler's permissions.

A configuration is verified and timed like any other, and then runs again in other forms: with counters in its
PTX, with shared memory that it does not need, without its arithmetic or its memory accesses, and as the same
launches of an empty kernel. Together with the device's ceilings these tell what it waits for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

from autotune.compilers.occupancy import Occupancy
from autotune.compilers.ptx_counters import Counts
from autotune.compilers.sass import MachineCode
from autotune.core.records import Config, Sizes
from autotune.core.stages import Stage
from autotune.core.trials import Status, Trial
from autotune.diagnosis.bottleneck import Times, verdict
from autotune.diagnosis.bound import Bound
from autotune.diagnosis.foretold import Foretold, other_work
from autotune.diagnosis.hardware_counters import hardware_counters
from autotune.diagnosis.littles_law import ArithmeticInFlight, LittlesLaw, arithmetic_in_flight, littles_law
from autotune.diagnosis.other_forms import Form, LadderStep, OtherForms
from autotune.diagnosis.resource_use import Use, Work, uses
from autotune.diagnosis.transfers import call_transfer_ms
from autotune.errors import CompileError, InputError, SetupError
from autotune.evaluation.instance import work
from autotune.evaluation.journal import read_trials
from autotune.searchers.base import evaluate
from autotune.serving.cache import read_roots
from autotune.serving.ceilings import known_ceilings
from autotune.space.configurations import PARTS, TROUBLES
from autotune.tuning.context import TuningContext, open_run
from autotune.tuning.journaled_task import default_journal
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask

_T = TypeVar("_T")


@dataclass(frozen=True)
class Diagnosis:
    """A configuration's resources, traffic, arithmetic and waits."""

    kernel: str
    device: str
    sizes: Sizes
    dtype: str
    config: Config
    origin: str  # what the configuration is, such as "the tuned best"
    time_ms: float
    bound: Bound
    reason: str
    occupancy: Occupancy | None = None
    resident_warps: int | None = None  # on a multiprocessor: what fits there, or what the grid has for it
    launches: int = 1
    launch_ms: float | None = None  # time of the same launches of an empty kernel
    transfer_ms: float | None = None  # time of copying inputs and outputs, where that was asked for
    uses: tuple[Use, ...] = ()  # of each resource whose amount and ceiling are known, the highest share first
    counts: Counts | None = None
    ladder: tuple[LadderStep, ...] = ()  # times at lower and lower occupancy, the configuration's own first
    # times of MEMORY_ONLY and COMPUTE_ONLY, if the source knows them
    variants_ms: Mapping[str, float] = field(default_factory=dict)
    foretold: tuple[Foretold, ...] = ()  # times without one trouble each
    littles_law: LittlesLaw | None = None
    arithmetic_in_flight: ArithmeticInFlight | None = None
    machine_code: MachineCode | None = None
    hardware_counters: Mapping[str, float] = field(default_factory=dict)
    missing: tuple[str, ...] = ()  # what could not be found out, and why
    advice: tuple[str, ...] = ()  # what the known trials say of changing one parameter


@contextmanager
def open_diagnosis(task: TuningTask, options: Options, observer: Observer) -> Iterator[TuningContext]:
    """Open the compilers and the worker for diagnoses of a space; trials go to a journal of their own.

    Raises WriteError if the journal cannot be written.
    """
    with open_run(task, replace(options, fresh=True), observer, "diagnose.jsonl") as context:
        observer.started(task, None, context.journal)
        yield context


def diagnose(
    context: TuningContext,
    config: Config,
    origin: str = "",
    *,
    cache: Path | None,
    with_transfers: bool = False,
) -> Diagnosis:
    """Diagnose one valid configuration in a context of `open_diagnosis`; raises SetupError where a run fails.

    `origin` says what the configuration is, and `cache` has ceilings and earlier results. With transfers, a
    call is judged whose inputs come from the host and whose results go back.
    """
    trial = evaluate(context.evaluator, [config])[0]
    if trial.status is not Status.OK:
        raise SetupError(f"{context.task.spec.path}: {config}: {trial.failure}")
    return _Examination(context, trial).diagnosis(origin, cache, with_transfers)


class _Examination:
    """Looks at one configuration from all sides; notes what it cannot find out."""

    def __init__(self, context: TuningContext, trial: Trial) -> None:
        self._context, self._trial, self._space = context, trial, context.task.space
        self._forms = OtherForms(context, trial)
        self._missing: list[str] = []

    def diagnosis(self, origin: str, cache: Path | None, with_transfers: bool) -> Diagnosis:
        """Run everything and put it together."""
        context, forms, task = self._context, self._forms, self._context.task
        device, problem, config = task.device, self._space.problem, self._trial.config
        assert self._trial.measurement is not None
        run_ms = self._trial.measurement.median_ms
        ceilings = known_ceilings(device.slug, cache)
        if not ceilings:
            self._missing.append(
                "ceilings are nominal or unknown: `autotune devices --measure` measures them"
            )
        counts = self._attempt("counting instructions", forms.counts, "instructions were not counted: {}")
        transfer = partial(call_transfer_ms, context, forms.workload, pinned=False)
        times = Times(
            run_ms=run_ms,
            launch_ms=self._attempt(
                "timing empty launches", forms.empty_launches_ms, "empty launches were not timed: {}"
            ),
            transfer_ms=self._attempt("timing transfers", transfer, "no {}") if with_transfers else None,
            variants_ms=self._variants_ms(),
        )
        used = uses(device, ceilings, self._work(counts), run_ms)
        bound, reason = verdict(times, used, counts)
        ladder = tuple(self._ladder(run_ms))
        reason += _ladder_text(ladder) if bound is Bound.LATENCY else ""
        warps = forms.resident_warps() or 0
        in_flight = counts.bytes_per_thread_in_flight if counts else 0.0
        counters = partial(hardware_counters, task, forms.binary, forms.workload)
        return Diagnosis(
            kernel=task.spec.kernel,
            device=device.name,
            sizes=problem.sizes,
            dtype=problem.dtype,
            config=config,
            origin=origin,
            time_ms=run_ms,
            bound=bound,
            reason=reason,
            occupancy=forms.occupancy,
            resident_warps=warps or None,
            launches=len(forms.workload.launches),
            launch_ms=times.launch_ms,
            transfer_ms=times.transfer_ms,
            uses=used,
            counts=counts,
            ladder=ladder,
            variants_ms=times.variants_ms,
            littles_law=littles_law(device, ceilings, warps, in_flight),
            arithmetic_in_flight=arithmetic_in_flight(device, ceilings, warps, problem.dtype),
            machine_code=self._attempt(
                "reading machine code", forms.machine_code, "machine code was not read: {}"
            ),
            hardware_counters=self._attempt("reading hardware counters", counters, "{}") or {},
            foretold=tuple(self._foretold(counts)),
            missing=tuple(self._missing),
            advice=advice_from(config, _known_times(task, cache), run_ms),
        )

    def _attempt(self, stage: str, find_out: Callable[[], _T], note: str) -> _T | None:
        """The result of a function; None if it fails, with a note that has the reason for `{}`."""
        self._context.observer.stage(Stage(stage))
        try:
            return find_out()
        except (InputError, SetupError, CompileError) as error:
            self._missing.append(note.format(error))
            return None

    def _variants_ms(self) -> dict[str, float]:
        """The times of the parts of the work that the source can be reduced to."""
        forms = {name: form for name in PARTS if (form := self._forms.form(name)) is not None}
        if not forms:
            self._missing.append(f"the source has no variants ({' and '.join(PARTS)})")
        times_ms = {name: self._form_ms(name, form) for name, form in forms.items()}
        return {name: time_ms for name, time_ms in times_ms.items() if time_ms is not None}

    def _foretold(self, counts: Counts | None) -> Iterator[Foretold]:
        """The times without each of the troubles that can be left out."""
        landmarks = {landmark.name: landmark for landmark in self._space.spec.landmarks}
        fixed_by = next(
            (step.fixed_by for step in landmarks.values() if step.config == self._trial.config), {}
        )
        for name in TROUBLES:
            form = self._attempt(f"making {name}", partial(self._forms.form, name), f"{name}: {{}}")
            time_ms = self._form_ms(name, form) if form else None
            if form is None or time_ms is None:
                continue
            counted = counts and self._attempt(
                f"counting instructions of {name}",
                partial(self._forms.counts, form),
                f"the work of {name} was not counted: {{}}",
            )
            yield Foretold(
                name,
                form.how,
                time_ms,
                other_work(counts, counted) if counts and counted else None,
                fixed_by.get(name, ""),
                self._landmark_ms(landmarks[fixed_by[name]].config) if name in fixed_by else None,
            )

    def _landmark_ms(self, config: Config) -> float | None:
        """The time of a landmark, verified like any configuration; None if it does not run here."""
        return evaluate(self._context.evaluator, [config])[0].time_ms if config in self._space else None

    def _form_ms(self, name: str, form: Form) -> float | None:
        """The time of a variant; None, with a note, if it fails."""
        return self._attempt(f"timing {name}", partial(self._forms.form_ms, form), f"{name}: {{}}")

    def _ladder(self, run_ms: float) -> Iterator[LadderStep]:
        """Times with fewer and fewer blocks on a multiprocessor, the configuration's own first."""
        occupancy = self._forms.adjustable_occupancy
        if occupancy is None:
            self._missing.append("no occupancy ladder: it needs dynamic shared memory, which only CUDA has")
            return
        yield LadderStep(occupancy.blocks, occupancy.warps, occupancy.share, run_ms)
        for blocks, launches in self._forms.ladder(occupancy).items():
            name = f"{blocks} blocks on a multiprocessor"
            step = self._attempt(
                f"timing {name}", partial(self._forms.ladder_step, blocks, launches), f"{name}: {{}}"
            )
            if step is None:
                return
            yield step

    def _work(self, counts: Counts | None) -> Work:
        """The bytes and operations of a run; without `work` in the space, every array it uses counts once."""
        stated = work(self._space, self._trial.config, self._space.problem.sizes)
        workload = self._forms.workload
        arrays = [array for array in workload.arrays if array.name in workload.used_names]
        array_bytes = sum(array.size_bytes for array in arrays)
        if counts and counts.global_load_bytes + counts.global_store_bytes:
            stored, moved = counts.global_store_bytes, counts.global_load_bytes + counts.global_store_bytes
        else:
            stored, moved = sum(array.size_bytes for array in arrays if array.role != "in"), array_bytes
        return Work(
            bytes=stated.get("bytes", array_bytes),
            array_bytes=array_bytes,
            store_share=stored / moved if moved else 0.0,
            flops=stated.get("flops"),
            dtype=self._space.problem.dtype,
            counts=counts,
        )


def _known_times(task: TuningTask, cache: Path | None) -> list[tuple[Config, float]]:
    """Configurations with their times in ms: those of the usual journal, else those of the cache."""
    path = default_journal(task)
    with suppress(InputError):
        trials = read_trials(path) if path.is_file() else []
        if timed := [(trial.config, trial.time_ms) for trial in trials if trial.time_ms is not None]:
            return timed
    for root in read_roots(cache):
        entry = task.cached_entry(root)
        if entry is not None:
            return list(entry.measured)
    return []


def advice_from(
    config: Mapping[str, object], timed: Sequence[tuple[Mapping[str, object], float]], time_ms: float
) -> tuple[str, ...]:
    """Changes of one parameter according to the trials: the best and the worst value of each."""
    moves: dict[str, list[tuple[float, object]]] = {}
    for tried, tried_ms in timed:
        changed = [name for name in config if tried.get(name) != config[name]]
        if len(changed) == 1 and tried.keys() == config.keys():
            moves.setdefault(changed[0], []).append((tried_ms / time_ms - 1, tried[changed[0]]))
    lines = []
    for name, changes in sorted(moves.items(), key=lambda item: -max(abs(change) for change, _ in item[1])):
        shown = {min(changes, key=lambda row: row[0]), max(changes, key=lambda row: row[0])}
        said = ", ".join(
            f"{value} takes {abs(change):.1%} {'more' if change >= 0 else 'less'}"
            for change, value in sorted(shown, key=lambda row: row[0])
        )
        lines.append(f"{name}={config[name]}: {said}")
    return tuple(lines)


def _ladder_text(ladder: tuple[LadderStep, ...]) -> str:
    if len(ladder) < 2:
        return ""
    last, first = ladder[-1], ladder[0]
    return (
        f"; with {last.warps} instead of {first.warps} warps on a multiprocessor it takes "
        f"{last.time_ms / first.time_ms:.2f} times as long"
    )
