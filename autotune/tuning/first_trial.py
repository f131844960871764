"""The trial of the default, which comes first, and what runs in threads meanwhile."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from autotune.core import timeline
from autotune.core.trials import Status, Trial
from autotune.errors import SetupError
from autotune.searchers.base import evaluate
from autotune.space import Finding, lint_source
from autotune.tuning.context import TuningContext
from autotune.tuning.failed_default import failed_default
from autotune.tuning.observer import Observer

_T = TypeVar("_T")


class FirstTrial:
    """The trial of the default; meanwhile threads find mistakes in the source, and load what comes next.

    Mistakes in the source are warned of: while the search goes on, or at once if the default fails.
    """

    def __init__(
        self, context: TuningContext, load: Callable[[], object] = lambda: None, *, warns: bool = True
    ) -> None:
        """Begin the threads; `load` loads what comes next, and without `warns` no mistakes are looked for."""
        task, self._context = context.task, context
        lint = partial(lint_source, task.space, task.source.text) if warns else lambda: ()
        self._mistakes = in_thread("find mistakes in the source", lint)
        self._loaded = in_thread("load what the searcher needs", load)

    def run(self) -> Trial:
        """Try the default; raises SetupError if it fails, because then the setup is broken."""
        task, observer = self._context.task, self._context.observer
        functions = task.spec.functions
        if task.device.kind == "cpu" or functions.source or functions.values:
            for running in (self._mistakes, self._loaded):  # they would disturb times, or the functions
                running.result()
        default: Trial | None = None
        try:
            (default,) = evaluate(self._context.evaluator, [task.spec.default])
        finally:
            if default is None or default.status is not Status.OK:
                warn_of_causes(observer, self._mistakes.result())
        if default.status is not Status.OK:
            raise self._diagnose(default)
        self._mistakes.add_done_callback(lambda done: _warn_of(observer, done.result()))
        return default

    def wait(self) -> None:
        """Wait until the mistakes in the source are found."""
        self._mistakes.result()

    def _diagnose(self, default: Trial) -> SetupError:
        """Find why the default fails; if its result is wrong, others are tried and journaled for that."""
        context, task = self._context, self._context.task
        had_success, is_wrong = context.journal.has_success, default.status is Status.WRONG_RESULT
        ends = dict.fromkeys(task.space.config(row) for row in (0, len(task.space) - 1)) if is_wrong else ()
        others = [context.evaluator.evaluate_beside_budget(end) for end in ends if end != task.spec.default]
        failed = failed_default(task, default, others)
        is_dumped = context.processes.wrong_arrays is not None
        if is_wrong and not (failed.cause or is_dumped) and task.spec.path.is_file():  # a command line
            dump = "--dump-wrong DIR writes the found and the expected array"
            failed = replace(failed, helps=(*failed.helps, dump))
        error = SetupError(failed.message(default, task.device.name))
        if not had_success and context.journal.has_success:
            context.journal.start_over()  # once the kernel is fixed, no message asks for --fresh
        return error


def in_thread(span: str, function: Callable[[], _T]) -> Future[_T]:
    """Call a function that takes long in a thread of its own, for which nobody has to wait."""

    def call() -> _T:
        with timeline.span(span):
            return function()

    thread = ThreadPoolExecutor(1, thread_name_prefix="searcher")
    called = thread.submit(call)
    thread.shutdown(wait=False)
    return called


def warn_of_causes(observer: Observer, findings: Iterable[Finding]) -> None:
    """Warn of the findings in a source that may be why a configuration fails."""
    _warn_of(observer, (finding for finding in findings if not finding.is_about_checks))


def _warn_of(observer: Observer, findings: Iterable[Finding]) -> None:
    for finding in findings:
        observer.warn(str(finding))
