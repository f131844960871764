"""The process that reads, compiles and runs: whatever a source does to it, it costs one line."""

from __future__ import annotations

from importlib import import_module
from types import TracebackType
from typing import Any, Self

from autotune import errors
from autotune.errors import ChildFailed, ChildRaised, ChildTimeout, InputError, SetupError
from autotune.processes.child import Child
from autotune.processes.deadline import Deadline


class Stopped(Exception):
    """A step gave no result; the message says why: it took too long, or its process ended."""

    is_late = False


class Workshop:
    """Runs steps of `drafting` and `trials` in a child process, each within a time limit."""

    def __init__(self, limit_s: float) -> None:
        """Start the process in the background; `limit_s` is what all steps should take together."""
        self._deadline = Deadline.after(limit_s)
        self._child = Child(_ready)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._child.kill()

    @property
    def left_s(self) -> float:
        """The time that is left for all further steps."""
        return self._deadline.left_s()

    def run(self, step: str, *arguments: Any, limit_s: float, **options: Any) -> Any:
        """Run a step, a function of this package such as `draft_steps.draft`, and return its result.

        Raises:
            InputError: The step found the input wrong.
            SetupError: The step raised another error of autotune.
            Stopped: The step took too long, or its process ended; the next one gets a fresh process.
        """
        limit_s = max(0.1, limit_s)
        try:
            return self._child.call(_run, step, *arguments, timeout_s=limit_s, **options)
        except ChildRaised as error:
            kind = getattr(errors, error.kind, None)
            if isinstance(kind, type) and issubclass(kind, errors.AutotuneError):
                raise (InputError if issubclass(kind, InputError) else SetupError)(error.message) from None
            raise Stopped(str(error)) from None
        except ChildFailed as error:
            self._child.kill()
            self._child = Child(_ready)
            if not isinstance(error, ChildTimeout):
                raise Stopped(str(error)) from None
            late = Stopped(f"took longer than {float(f'{limit_s:.3g}'):,g} s")
            late.is_late = True
            raise late from None


def _ready() -> None:
    """The process keeps no state: each step says all that it needs."""


def _run(_state: None, step: str, *arguments: Any, **options: Any) -> Any:
    module, _, name = step.partition(".")  # not imported before: it takes long, and only the child needs it
    return getattr(import_module(f"autotune.drafting.{module}"), name)(*arguments, **options)
