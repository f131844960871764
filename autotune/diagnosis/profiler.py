"""Runs one configuration under an NVIDIA profiler, and profiles its launches only."""

from __future__ import annotations

import subprocess
from dataclasses import dataclass, replace
from pathlib import Path

from autotune.compilers.nvidia_tools import find_tool
from autotune.core.records import Config
from autotune.core.runs_folder import RUNS
from autotune.core.trials import Binary, Failure
from autotune.devices import Address
from autotune.errors import ChildFailed, InputError, SetupError
from autotune.evaluation.device_process import DeviceSetting, DeviceState, run_and_reset_clocks, run_bare
from autotune.problem.workload import Workload
from autotune.processes.child import Child
from autotune.processes.files import require_unlinked
from autotune.tuning.context import open_run
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.shared_processes import open_processes
from autotune.tuning.task import TuningTask

TIMEOUT_S = 300.0  # a profiler replays each kernel many times
_PRODUCTS = {"ncu": "Nsight Compute", "nsys": "Nsight Systems"}
PROFILERS = tuple(_PRODUCTS)


@dataclass(frozen=True)
class Counting:
    """Hardware counters to read instead of a whole profile, by ncu's names, and the number of launches."""

    metrics: tuple[str, ...]
    max_launches: int


@dataclass(frozen=True)
class Profiler:
    """A profiler for one device."""

    name: str  # ncu or nsys
    program: str  # its path
    address: Address
    reference: Path
    counting: Counting | None = None  # for a table in CSV; None for a profile

    def run(self, binary: Binary, workload: Workload, report: Path) -> str:
        """Run the launches of a configuration once; return the profiler's output.

        `report` is the file for the profiler's own viewer; it is replaced. Raises SetupError when the launch
        fails, or the profiler does.
        """
        report.parent.mkdir(parents=True, exist_ok=True)
        setting = DeviceSetting(self.address, self.reference)
        child = Child(DeviceState, setting, wrapper=self._command(report))
        try:
            failure: Failure | None = child.call(
                run_and_reset_clocks, run_bare, binary, workload, timeout_s=TIMEOUT_S
            )
            code, output = child.finish(TIMEOUT_S)
        except ChildFailed as error:
            raise SetupError(f"{self.name}: {error}") from None
        finally:
            child.kill()
        if failure is not None:
            raise SetupError(f"{self.name}: {failure}")
        if code != 0 or not report.is_file():
            lines = output.strip().splitlines() or [f"exit code {code}"]
            reason = next((line for line in lines if "ERR_" in line), lines[-1])
            raise SetupError(f"{self.name} wrote no report: {reason}")
        return output if self.name == "nsys" else self._details(report)

    def _command(self, report: Path) -> tuple[str, ...]:
        file = str(report.absolute())
        if self.name == "ncu":
            counted: tuple[str, ...] = ()
            if self.counting is not None:
                metrics, launches = ",".join(self.counting.metrics), str(self.counting.max_launches)
                counted = ("--metrics", metrics, "--launch-count", launches)
            return self.program, "--force-overwrite", *counted, "--export", file
        return self.program, "profile", "--trace=cuda", "--force-overwrite=true", "--stats=true", "-o", file

    def _details(self, report: Path) -> str:
        page = ("details",) if self.counting is None else ("raw", "--csv", "--print-units", "base")
        command = [self.program, "--import", str(report), "--page", *page]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def profile_once(
    task: TuningTask, options: Options, observer: Observer, config: Config, name: str, report: Path
) -> str:
    """Run the launches of a configuration under a profiler, `ncu` or `nsys`, and return its output.

    `report` is the file for the profiler's viewer.

    Raises:
        InputError: The profiler is not installed, or cannot profile the device.
        SetupError: The configuration does not compile or run, or the profiler fails.
    """
    program = find_profiler(name, task.address)
    fresh_options = replace(options, fresh=True)
    with (
        open_processes(task, fresh_options, observer) as processes,
        open_run(task, fresh_options, observer, "run.jsonl", processes=processes) as context,
    ):
        instance = context.maker.make(config)
        binary = context.pool.compile(instance).result()
        if isinstance(binary, Failure):
            raise SetupError(str(binary))
        context.worker.discard_child()
        profiler = Profiler(name, program, task.address, task.spec.reference)
        return profiler.run(binary, instance.workload, report)


def find_profiler(name: str, address: Address) -> str:
    """The path of a profiler; raises InputError if it is not installed, or cannot profile the device."""
    if not address.is_nvidia:
        raise InputError(
            f"--profile {name}: {name} profiles NVIDIA GPUs through CUDA; {address} is another kind of device"
        )
    path = find_tool(name)
    if path is None:
        raise InputError(f"--profile {name}: {name} is not installed; it comes with {_PRODUCTS[name]}")
    return path


def report_file(name: str, stem: str) -> Path:
    """The file of a profile: `runs/STEM.ncu-rep` or `runs/STEM.nsys-rep`."""
    path = RUNS / f"{stem}.{name}-rep"
    require_unlinked(path)
    return path
