"""Search on every GPU model of a cluster at the same time; each search learns from the others' results."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from threading import Lock

from autotune.cluster.connection import Cluster
from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.trials import Trial
from autotune.errors import AutotuneError
from autotune.evaluation.journal import Journal
from autotune.hardware.names import traits_of
from autotune.plans.search_plan import PlannedSearch, PlanResult, Searches
from autotune.searchers import learns_from_priors
from autotune.searchers.base import PriorResults
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.prior_results import origin_of
from autotune.tuning.shared_processes import compiler_processes
from autotune.tuning.task import Target, TuningTask, read_task
from autotune.tuning.tuner import choose_engine, priors_of


def search_models(
    target: Target, options: Options, clusters: Sequence[Cluster], searches: Searches
) -> PlanResult:
    """Search on all models at once, each with the budget; they share the compilers."""
    models: list[_Model] = []
    shared = _SharedObserver(searches.observer)
    for cluster in clusters:
        try:
            task = read_task(target, searches.observer.stage, [(cluster.address, cluster.info)])
            models.append(_Model(task, cluster, shared, models))
        except AutotuneError as error:
            searches.failures.append(f"{cluster.info.name}: {error}")
    try:
        searches.run(
            *(
                model.planned(number, _share(options, model.task, len(models)))
                for number, model in enumerate(models)
            )
        )
    finally:
        shared.close()
    return searches.done(f"of {len(clusters)} models failed")


def _share(options: Options, task: TuningTask, searches: int) -> Options:
    """The options of one of several searches that share the compilers."""
    compilers = options.compilers or compiler_processes(task.device.kind)
    return replace(options, compilers=max(1, compilers // searches))


class _SharedObserver:
    """An observer that several threads may call, until it is closed."""

    def __init__(self, observer: Observer) -> None:
        self._observer: Observer = observer
        self._lock = Lock()

    def call(self, tell: Callable[[Observer], None]) -> None:
        """Pass on one event."""
        with self._lock:
            tell(self._observer)

    def close(self) -> None:
        """Ignore all further events."""
        with self._lock:
            self._observer = Observer()


class _Model(Observer):
    """The search on one model; as its observer, it passes on what the user should see."""

    def __init__(
        self, task: TuningTask, cluster: Cluster, observer: _SharedObserver, models: Sequence[_Model]
    ) -> None:
        self.task = task
        self._stage = Stage("starting")
        self._cluster = cluster
        self._observer = observer
        self._lock = Lock()  # guards the times, which other searches read
        self._models = models
        self._times: dict[Config, float | None] = {}
        self._best_ms = math.inf

    def planned(self, number: int, options: Options) -> PlannedSearch:
        """Its search."""
        name = self.task.device.name
        return PlannedSearch(number, name, self.task, options, self._cluster, self, self._priors)

    def _priors(self, task: TuningTask, options: Options) -> Collection[PriorResults]:
        """Earlier results, and what the other models find meanwhile."""
        engine, _ = choose_engine(options, len(task.space))
        learns = options.transfer and learns_from_priors(engine)
        others = [model for model in self._models if model is not self and learns]
        names = {origin_of(model.task) for model in others}
        earlier = [prior for prior in priors_of(task, options) if prior.origin not in names]
        return _GrowingPriors(earlier, others)

    def so_far(self) -> PriorResults:
        """The results so far."""
        with self._lock:
            times = tuple(self._times.items())
        return PriorResults(origin_of(self.task), times, traits_of(self.task.device))

    def started(self, task: TuningTask, total: int | None, journal: Journal, note: str = "") -> None:
        """As `Observer.started`, without a total, because several searches run."""
        self._observer.call(lambda observer: observer.started(task, None, journal, note))

    def tried(self, trial: Trial) -> None:
        """Keep the result for the other searches."""
        with self._lock:
            self._times[trial.config] = trial.time_ms
            self._best_ms = min(self._best_ms, math.inf if trial.time_ms is None else trial.time_ms)
        self._show()

    def stage(self, stage: Stage) -> None:
        """Show what each search is doing."""
        self._stage = stage
        self._show()

    def _show(self) -> None:
        shown = Stage("; ".join(map(str, self._models)))
        self._observer.call(lambda observer: observer.stage(shown))

    def __str__(self) -> str:
        best = "" if math.isinf(self._best_ms) else f", best {self._best_ms:.4g} ms"
        return f"{self.task.device.name}: {self._stage}, {len(self._times)} tried{best}"

    def warn(self, text: str) -> None:
        """Say which model a warning is about."""
        self._observer.call(lambda observer: observer.warn(f"{self.task.device.name}: {text}"))

    def last_round(self, count: int) -> None:
        """Show it as a stage."""
        self.stage(Stage(f"last round of {count}"))


class _GrowingPriors(Collection[PriorResults]):
    """Results of earlier searches, and what the other searches have found so far."""

    def __init__(self, earlier: Sequence[PriorResults], others: Sequence[_Model]) -> None:
        self._earlier, self._others = earlier, others

    def __iter__(self) -> Iterator[PriorResults]:
        so_far = [model.so_far() for model in self._others]
        return iter([*self._earlier, *(prior for prior in so_far if prior.results)])

    def __len__(self) -> int:
        return sum(1 for _ in self)  # not of a list: making one asks for the length

    def __contains__(self, prior: object) -> bool:
        return any(one == prior for one in self)
