"""Hardware counters of a run, read by Nsight Compute if it is installed and allowed."""

from __future__ import annotations

import csv
from pathlib import Path

from autotune.core.trials import Binary
from autotune.diagnosis.profiler import Counting, Profiler, find_profiler
from autotune.errors import InputError, SetupError
from autotune.problem.workload import Workload
from autotune.processes.scratch_folder import scratch_folder
from autotune.tuning.task import TuningTask

MAX_LAUNCHES = 32  # each is replayed several times, which takes a tenth of a second
_TIME = "gpu__time_duration.sum"
_STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_SECTORS = "l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_{}.ratio"
# Totals add up over the launches of a run; other figures are means over the launches that have them,
# weighted by their times.
_TOTALS = {
    "DRAM bytes": "dram__bytes.sum",
    "L2 bytes": "lts__t_bytes.sum",
    "shared-memory bank conflicts": "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
    "local sectors loaded": "l1tex__t_sectors_pipe_lsu_mem_local_op_ld.sum",
    "local sectors stored": "l1tex__t_sectors_pipe_lsu_mem_local_op_st.sum",
}
_MEANS = {
    "sectors per load": _SECTORS.format("ld"),
    "sectors per store": _SECTORS.format("st"),
    "branches taken together, %": "smsp__sass_average_branch_targets_threads_uniform.pct",
    "hits of L1, %": "l1tex__t_sector_hit_rate.pct",
    "hits of L2, %": "lts__t_sector_hit_rate.pct",
    "active threads": "smsp__thread_inst_executed_per_inst_executed.ratio",
    "issue slots used, %": "smsp__issue_active.avg.pct_of_peak_sustained_active",
    "achieved occupancy, %": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "warps waiting for global memory": _STALLED.format("long_scoreboard"),
    "warps waiting for shared memory": _STALLED.format("short_scoreboard"),
    "warps waiting at barriers": _STALLED.format("barrier"),
    "warps waiting for arithmetic units": _STALLED.format("math_pipe_throttle"),
}


def hardware_counters(task: TuningTask, binary: Binary, workload: Workload) -> dict[str, float]:
    """Hardware counters of one run, or of its first `MAX_LAUNCHES` launches, by their meaning.

    Raises:
        InputError: Nsight Compute is not installed, or cannot profile the device.
        SetupError: It may not count on this machine, or the launch fails.
    """
    counting = Counting((_TIME, *_TOTALS.values(), *_MEANS.values()), MAX_LAUNCHES)
    try:
        program = find_profiler("ncu", task.address)
        with scratch_folder() as scratch:
            profiler = Profiler("ncu", program, task.address, task.spec.reference, counting)
            counters = read_counters(profiler.run(binary, workload, Path(scratch) / "counters.ncu-rep"))
    except (InputError, SetupError) as error:
        raise type(error)(why_no_counters(error)) from None
    left_out = len(workload.launches) - MAX_LAUNCHES
    return counters | {"launches left out": float(left_out)} if left_out > 0 else counters


def read_counters(text: str) -> dict[str, float]:
    """The counters in the table that Nsight Compute writes: a head, units, and a row for each launch.

    A counter that the device does not have is left out. Raises SetupError for any other text.
    """
    rows = list(csv.DictReader(line for line in text.splitlines() if line.startswith('"')))[1:]
    launches = [{name: _number(value) for name, value in row.items() if name} for row in rows]
    if not any(row.get(_TIME) for row in launches):
        raise SetupError("ncu: its table has no launch")
    counters: dict[str, float] = {}
    for meaning, name in _TOTALS.items():
        values = [value for row in launches if (value := row.get(name)) is not None]
        counters |= {meaning: sum(values)} if values else {}
    for meaning, name in _MEANS.items():
        counted = [(value, row.get(_TIME) or 0.0) for row in launches if (value := row.get(name)) is not None]
        time = sum(weight for _, weight in counted)
        counters |= {meaning: sum(value * weight for value, weight in counted) / time} if time else {}
    return counters


def why_no_counters(error: Exception) -> str:
    """One line that says why there are no counters, and what to do where permission is missing."""
    text = str(error).removeprefix("--profile ncu: ")
    if "ERR_NVGPUCTRPERM" not in text:
        return f"no hardware counters: {text}"
    return (
        "no hardware counters: the driver keeps them for administrators (ERR_NVGPUCTRPERM); "
        "its option NVreg_RestrictProfilingToAdminUsers=0 allows them"
    )


def _number(value: str | None) -> float | None:
    try:
        return float((value or "").replace(",", ""))
    except ValueError:
        return None
