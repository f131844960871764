"""Configurations that no device has begun: they wait, are compiled ahead of the devices, and are ready."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

from autotune.core.records import Config
from autotune.core.stages import Stage
from autotune.core.trials import Binary, Failure, Status, Trial
from autotune.errors import ExpressionError
from autotune.evaluation.compiler_pool import Compilation, CompilerPool
from autotune.evaluation.instance import InstanceMaker, KernelInstance
from autotune.evaluation.ledger import Ledger


@dataclass(frozen=True, eq=False)
class Submission:
    """A configuration on its way to a device."""

    compilation: Future[Compilation]  # done, and without a binary, if the trial is known
    instance: KernelInstance | None  # None if none could be made, which is why it failed
    known_trial: Trial | None = None  # the trial, if no run is needed for it
    is_journaled: bool = False  # that trial is in the journal

    @property
    def binary(self) -> Binary | None:
        """The binary, once the compilation is done; None if it failed, or if the trial is known."""
        compiled = self.compilation.result()
        return compiled if isinstance(compiled, Binary) else None


class CompileQueue:
    """Compiles configurations ahead of the devices; at the end of a search, it drops them.

    A configuration waits, is compiled, and is then `ready`. The compilation of a prefetched one begins before
    the configuration is added.
    """

    def __init__(
        self,
        maker: InstanceMaker,
        pool: CompilerPool,
        ledger: Ledger,
        on_compiled: Callable[[Future[Any]], object],
        *,
        in_order: bool,
    ) -> None:
        """Begin nothing yet.

        `on_compiled` is called, in any thread, with each compilation when it is done. If `in_order`,
        configurations are ready in the order in which they were added.
        """
        self._maker, self._pool, self._ledger = maker, pool, ledger
        self._on_compiled, self._in_order = on_compiled, in_order
        self._prefetched: dict[Config, Submission] = {}
        self._waiting: deque[Config] = deque()
        self._compiling: list[Submission] = []
        self.ready: deque[Submission] = deque()

    @property
    def is_compiling(self) -> bool:
        """True if compilers have work."""
        return bool(self._compiling) or any(
            not prefetched.compilation.done() for prefetched in self._prefetched.values()
        )

    @property
    def has_more(self) -> bool:
        """True if further configurations will be ready."""
        return bool(self._compiling or self._waiting)

    @property
    def is_begun(self) -> bool:
        """True if a configuration is being compiled, or ready."""
        return bool(self._compiling or self.ready)

    @property
    def stage(self) -> Stage:
        """How many configurations are compiled, of all whose compilation has begun."""
        done = len(self.ready) + sum(submission.compilation.done() for submission in self._compiling)
        return Stage("compiling", done, len(self._compiling) + len(self.ready))

    def prefetch(self, config: Config) -> None:
        """Begin to compile a configuration before it is added."""
        if config not in self._prefetched:
            self._prefetched[config] = self._look_up_or_compile(config)

    def add(self, config: Config) -> None:
        """Let a configuration wait for a compiler."""
        self._waiting.append(config)

    def begin(self, most: int) -> None:
        """Begin to compile what waits, until `most` configurations are being compiled, or ready."""
        while self._waiting and len(self._compiling) + len(self.ready) < most:
            config = self._waiting.popleft()
            begun = self._prefetched.pop(config, None)
            self._compiling.append(begun or self._look_up_or_compile(config))
        self.take_compiled()  # what was prefetched may be done

    def take_compiled(self) -> None:
        """Make ready what is compiled."""
        for submission in list(self._compiling):
            if submission.compilation.done():
                self._compiling.remove(submission)
                self.ready.append(submission)
            elif self._in_order:
                return

    def drop(self) -> bool:
        """Drop everything, and end the compilers that are at work; True if a configuration was dropped."""
        begun = [submission.compilation for submission in (*self._compiling, *self._prefetched.values())]
        if any(not compilation.done() for compilation in begun):
            self._pool.drop(begun)
        is_lost = bool(self._waiting or self._compiling or self.ready)
        for queue in (self._prefetched, self._waiting, self._compiling, self.ready):
            queue.clear()
        return is_lost

    def _look_up_or_compile(self, config: Config) -> Submission:
        """Look up the trial of a configuration, or begin to compile it."""
        try:
            instance = self._maker.make(config)
        except ExpressionError as error:
            failure = Failure(Status.LAUNCH_ERROR, str(error))
            return self._without_run(None, Trial(config, self._maker.key(config), failure))
        earlier = self._ledger.journaled_trial(instance)
        if earlier is not None:
            return self._without_run(instance, earlier)
        submission = Submission(self._pool.compile(instance), instance)
        submission.compilation.add_done_callback(self._on_compiled)
        return submission

    def _without_run(self, instance: KernelInstance | None, trial: Trial) -> Submission:
        """The submission of a configuration that needs no compilation, because its trial is known."""
        done: Future[Any] = Future()
        done.set_result(None)
        return Submission(done, instance, trial, trial.key in self._ledger.journal.trials)
