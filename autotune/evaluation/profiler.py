"""Runs one configuration under a profiler of NVIDIA's, so that its launches are all that is profiled."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from autotune.core.trials import Binary, Failure
from autotune.devices import BACKENDS, Address
from autotune.errors import ChildFailed, InputError, SetupError
from autotune.evaluation.device_process import DeviceSetting, DeviceState, run_and_restore, run_bare
from autotune.evaluation.work_item import ProblemInstance
from autotune.processes.child import Child

TIMEOUT_S = 300.0  # a profiler replays each kernel many times
_PRODUCTS = {"ncu": "Nsight Compute", "nsys": "Nsight Systems"}
PROFILERS = tuple(_PRODUCTS)
_USUAL_PLACES = ("/usr/local/cuda/bin", "/opt/cuda/bin")
_NVIDIA = Path("/opt/nvidia")
_OWN_PLACES = {"ncu": "nsight-compute/*", "nsys": "nsight-systems/*/bin"}


@dataclass(frozen=True)
class Profiler:
    """A profiler for one device; `name` is ncu or nsys, `program` its path.

    With `metrics`, ncu counts these alone, in the first `max_launches`, and what it says is their table, as
    CSV.
    """

    name: str
    program: str
    address: Address
    reference: Path
    environment: Mapping[str, str]
    metrics: tuple[str, ...] = ()
    max_launches: int = 0

    def run(self, binary: Binary, problem: ProblemInstance, report: Path) -> str:
        """Run the launches of a configuration once; return what the profiler says of them.

        Args:
            binary: The compiled configuration.
            problem: What it runs on.
            report: The file for the profiler's own viewer; it is replaced.

        Raises:
            SetupError: The launch fails, or the profiler does.
        """
        report.parent.mkdir(parents=True, exist_ok=True)
        setting = DeviceSetting(self.address, self.reference, (problem,))
        child = Child(DeviceState, setting, environment=self.environment, wrapper=self._command(report))
        try:
            failure: Failure | None = child.call(
                run_and_restore, run_bare, binary, problem, timeout_s=TIMEOUT_S
            )
            code, said = child.finish(TIMEOUT_S)
        except ChildFailed as error:
            raise SetupError(f"{self.name}: {error}") from None
        finally:
            child.kill()
        if failure is not None:
            raise SetupError(f"{self.name}: {failure}")
        if code != 0 or not report.is_file():
            lines = said.strip().splitlines() or [f"exit code {code}"]
            reason = next((line for line in lines if "ERR_" in line), lines[-1])
            raise SetupError(f"{self.name} wrote no report: {reason}")
        return said if self.name == "nsys" else self._details(report)

    def _command(self, report: Path) -> tuple[str, ...]:
        file = str(report.absolute())
        if self.name == "ncu":
            limit = ("--launch-count", str(self.max_launches))
            chosen = ("--metrics", ",".join(self.metrics), *limit) if self.metrics else ()
            return self.program, "--force-overwrite", *chosen, "--export", file
        return self.program, "profile", "--trace=cuda", "--force-overwrite=true", "--stats=true", "-o", file

    def _details(self, report: Path) -> str:
        page = ("raw", "--csv", "--print-units", "base") if self.metrics else ("details",)
        command = [self.program, "--import", str(report), "--page", *page]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def find_profiler(name: str, address: Address) -> str:
    """The path of a profiler; raises InputError where it is not installed, or cannot profile the device."""
    if BACKENDS[address.backend].dialect != "cuda":
        raise InputError(
            f"--profile {name}: {name} profiles NVIDIA GPUs through CUDA; {address} is another kind of device"
        )
    places = os.pathsep.join(
        (*_USUAL_PLACES, *sorted(map(str, _NVIDIA.glob(_OWN_PLACES[name])), reverse=True))
    )
    found = shutil.which(name) or shutil.which(name, path=places)
    if found is None:
        raise InputError(f"--profile {name}: {name} is not installed; it comes with {_PRODUCTS[name]}")
    return found


def report_file(name: str, stem: str) -> Path:
    """Where a profile is written: `runs/STEM.ncu-rep` or `runs/STEM.nsys-rep`."""
    return Path("runs") / f"{stem}.{name}-rep"
