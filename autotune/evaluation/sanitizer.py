"""What NVIDIA's compute-sanitizer says of a configuration: accesses out of bounds that no guard zone sees.

A kernel that reads past its shared memory, or far beyond an array, usually runs and is right by luck. Under
the sanitizer it runs on small problems and in a process of its own.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autotune.core.trials import Binary, Failure, Status
from autotune.devices import BACKENDS, Address
from autotune.errors import ChildDied, ChildRaised, ChildTimeout
from autotune.evaluation.device_process import DeviceState, verify_once
from autotune.evaluation.work_item import ProblemInstance
from autotune.processes.child import Child, was_killed

TIMEOUT_S = 30.0  # for all that is looked at: under the sanitizer a kernel runs up to a hundred times slower
_FOUND = 86  # the exit code that is asked for when something was found
_USUAL_PLACES = ("/usr/local/cuda/bin", "/opt/cuda/bin")
_FIRST_ERROR = re.compile(
    r"^=+ ((?:Invalid|Misaligned|Program hit|Race|Barrier|Uninitialized).*)$", re.MULTILINE
)


@dataclass(frozen=True)
class Sanitizer:
    """The sanitizer for the device of one search."""

    program: str
    address: Address
    reference: Path
    environment: Mapping[str, str]

    def check(self, binary: Binary, cases: tuple[ProblemInstance, ...]) -> Failure | None:
        """Run a configuration on some problems; a Failure if the sanitizer finds something.

        One that does not work here, or does not end in time, finds nothing. What it finds it turns into a
        failed launch, so a configuration that fails under it is where its verdict is wanted most.
        """
        try:
            code, output = self._run(binary, cases)
            if was_killed(code):
                code, output = self._run(binary, cases)
        except ChildTimeout:
            return None
        if code != _FOUND:
            return None
        first = _FIRST_ERROR.search(output)
        what = first[1].strip() if first else "an error"
        return Failure(Status.OUT_OF_BOUNDS, f"compute-sanitizer found: {what}")

    def _run(self, binary: Binary, cases: tuple[ProblemInstance, ...]) -> tuple[int, str]:
        """Exit code and output of the sanitizer; raises ChildTimeout."""
        deadline_s = time.monotonic() + TIMEOUT_S
        wrapper = (self.program, "--tool", "memcheck", "--error-exitcode", str(_FOUND), "--print-limit", "1")
        child = Child(
            DeviceState, self.address, self.reference, cases, environment=self.environment, wrapper=wrapper
        )
        try:
            with suppress(ChildDied, ChildRaised):
                for case in cases:
                    child.call(verify_once, binary, case, timeout_s=max(0.0, deadline_s - time.monotonic()))
            return child.finish(max(0.0, deadline_s - time.monotonic()))
        finally:
            child.kill()


def find_sanitizer(address: Address) -> str | None:
    """The program, for a device that it can look at and where it is installed."""
    if BACKENDS[address.backend].dialect != "cuda":
        return None
    usual = os.pathsep.join(_USUAL_PLACES)
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=usual)
