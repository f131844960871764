"""The parent's side of the one process that uses the device: run jobs, survive whatever they do."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from autotune.bench import Bench, prepare
from autotune.child import Child, ChildDied, ChildRaised, ChildTimeout
from autotune.devices import Address
from autotune.errors import SetupError
from autotune.jobs import Case
from autotune.model import Failure, Status

SETUP_TIMEOUT_S = 600.0


class Worker:
    """One device in a child process that is replaced after a crash, a hang or an error that sticks.

    `cases` are prepared (inputs drawn, references computed) whenever a child starts, so that a job's
    time limit is spent on the job.
    """

    def __init__(
        self,
        address: Address,
        reference: Path,
        cases: tuple[Case, ...],
        environment: Mapping[str, str] | None = None,
    ) -> None:
        self._address = address
        self._reference = reference
        self._cases = cases
        self._environment = environment
        self._child: Child | None = None
        self.starts = 0

    def run(self, function: Callable[..., Any], *arguments: Any, timeout_s: float, **options: Any) -> Any:
        """Run `function(bench, *arguments, **options)` in the child; a Failure if that goes wrong.

        Raises SetupError when the device or the reference is broken, whatever the configuration.
        """
        child = self._child or self._start()
        try:
            return child.call(function, *arguments, timeout_s=timeout_s, **options)
        except ChildTimeout:
            failure = Failure(Status.TIMEOUT, f"did not end within {timeout_s:g} s and was killed")
        except ChildDied as death:
            failure = Failure(Status.CRASHED, str(death))
        except ChildRaised as error:
            child.kill()
            failure = Failure(Status.CRASHED, str(error))
        self._child = None
        return failure

    def restart(self) -> None:
        """Continue in a fresh process."""
        self.close()

    def close(self) -> None:
        """Kill the child."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def _start(self) -> Child:
        child = Child(Bench, self._address, self._reference, environment=self._environment)
        self.starts += 1
        try:
            child.call(prepare, self._cases, timeout_s=SETUP_TIMEOUT_S)
        except (ChildRaised, ChildDied, ChildTimeout) as error:
            child.kill()
            raise SetupError(
                f"{self._reference} on {self._address}: cannot prepare the problem: {error}"
            ) from None
        self._child = child
        return child
