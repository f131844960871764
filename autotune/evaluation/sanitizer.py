"""Runs a configuration under NVIDIA's compute-sanitizer, which finds accesses that guard zones do not see.

A kernel that reads past its shared memory, or far beyond an array, usually runs, and its result is right by
luck. The sanitizer runs it on small problems and in a process of its own.
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

TIMEOUT_S = 30.0  # for all problems: under the sanitizer a kernel runs up to a hundred times slower
_FOUND = 86  # the exit code that the sanitizer is told to use for a finding
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

    def check(self, binary: Binary, problems: tuple[ProblemInstance, ...]) -> Failure | None:
        """Run a configuration on some problems; return a Failure if the sanitizer finds something.

        A sanitizer that does not work here, or does not end in time, finds nothing. It turns a finding into a
        failed launch, so errors of the run are ignored and the sanitizer's exit code decides.
        """
        try:
            code, output = self._run(binary, problems)
            if was_killed(code):
                code, output = self._run(binary, problems)
        except ChildTimeout:
            return None
        if code != _FOUND:
            return None
        first = _FIRST_ERROR.search(output)
        what = first[1].strip() if first else "an error"
        return Failure(Status.OUT_OF_BOUNDS, f"compute-sanitizer found: {what}")

    def _run(self, binary: Binary, problems: tuple[ProblemInstance, ...]) -> tuple[int, str]:
        """Return the sanitizer's exit code and output; raises ChildTimeout."""
        deadline_s = time.monotonic() + TIMEOUT_S
        wrapper = (self.program, "--tool", "memcheck", "--error-exitcode", str(_FOUND), "--print-limit", "1")
        child = Child(
            DeviceState, self.address, self.reference, problems, environment=self.environment, wrapper=wrapper
        )
        try:
            with suppress(ChildDied, ChildRaised):
                for problem in problems:
                    child.call(
                        verify_once, binary, problem, timeout_s=max(0.0, deadline_s - time.monotonic())
                    )
            return child.finish(max(0.0, deadline_s - time.monotonic()))
        finally:
            child.kill()


def find_sanitizer(address: Address) -> str | None:
    """Return the path of compute-sanitizer; None if it is not installed, or for devices other than CUDA's."""
    if BACKENDS[address.backend].dialect != "cuda":
        return None
    usual = os.pathsep.join(_USUAL_PLACES)
    return shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path=usual)
