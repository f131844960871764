"""Search on every GPU model of a cluster at the same time; each search learns from the others' results."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import replace
from threading import Lock

from autotune.cluster.connection import Cluster
from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.trials import Trial
from autotune.errors import AutotuneError
from autotune.evaluation.journal import Journal
from autotune.hardware.names import traits_of
from autotune.plans.search_plan import PlanResult
from autotune.searchers import learns_from_priors
from autotune.searchers.base import PriorResults
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.prior_results import origin_of
from autotune.tuning.result import SearchResult
from autotune.tuning.shared_processes import compiler_processes
from autotune.tuning.task import Target, TuningTask, bind_target
from autotune.tuning.tuner import choose_engine, priors_of, search


def search_each_model(
    target: Target,
    options: Options,
    observer: Observer,
    clusters: Sequence[Cluster],
    on_result: Callable[[SearchResult], object] = lambda _: None,
) -> PlanResult:
    """Search on all models at once, each in a thread of its own; the failure of one does not end the others.

    The budget is per model. `on_result` is called in this thread when a search has ended.
    """
    failures: list[str] = []
    models: list[_Model] = []
    shared = _SharedObserver(observer)
    for cluster in clusters:
        try:
            task = bind_target(target, observer.stage, [(cluster.address, cluster.info)])
            models.append(_Model(task, cluster, shared, models))
        except AutotuneError as error:
            failures.append(f"{cluster.info.name}: {error}")
    threads = ThreadPoolExecutor(max(1, len(models)), thread_name_prefix="model")
    try:
        running = {
            threads.submit(model.search, _share(options, model.task, len(models))): model for model in models
        }
        for ended in as_completed(running):
            if ended.exception() is None:
                on_result(ended.result())
    finally:
        threads.shutdown(wait=False)  # after an interrupt, they end once their devices are given back
        shared.close()
    errors = {model: failed for ended, model in running.items() if (failed := ended.exception())}
    for model, failed in errors.items():
        if not isinstance(failed, AutotuneError):
            raise failed
        failures.append(f"{model.task.device.name}: {failed}")
    results = (ended.result() for ended, model in running.items() if model not in errors)
    return PlanResult(tuple(results), tuple(failures))


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
        self._lock = Lock()  # of the times
        self._models = models
        self._times: dict[Config, float | None] = {}
        self._best_ms = math.inf

    def search(self, options: Options) -> SearchResult:
        """Search, starting from earlier results and from what the other models find meanwhile."""
        engine, _ = choose_engine(options, len(self.task.space))
        learns = options.transfer and learns_from_priors(engine)
        others = [model for model in self._models if model is not self and learns]
        names = {origin_of(model.task) for model in others}
        earlier = [prior for prior in priors_of(self.task, options) if prior.origin not in names]
        return search(self.task, options, self, _GrowingSources(earlier, others), self._cluster)

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


class _GrowingSources(Collection[PriorResults]):
    """Results of earlier searches, and what the other searches have found so far."""

    def __init__(self, earlier: Sequence[PriorResults], others: Sequence[_Model]) -> None:
        self._earlier, self._others = earlier, others

    def __iter__(self) -> Iterator[PriorResults]:
        so_far = [model.so_far() for model in self._others]
        return iter([*self._earlier, *(prior for prior in so_far if prior.results)])

    def __len__(self) -> int:
        return len([*self])

    def __contains__(self, prior: object) -> bool:
        return prior in [*self]
