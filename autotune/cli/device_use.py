"""A configuration's use of the device: occupancy, its limiter, share of the peak bandwidth, counters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from autotune.cli.tables import UNKNOWN, Table, cell, table
from autotune.compilers.occupancy import Occupancy
from autotune.core.records import Config, DeviceInfo
from autotune.core.trials import Trial
from autotune.diagnosis.trial_occupancy import occupancy_of
from autotune.evaluation.instance import work
from autotune.space import ValidSpace

if TYPE_CHECKING:
    from autotune.diagnosis.counted_runs import CountedRun

COLUMNS = ("occupancy", "limited by", "of peak")
_COUNTED = "{:,.4g}"


@dataclass(frozen=True)
class DeviceUse:
    """A trial's use of the device; each value is None if unknown."""

    occupancy: Occupancy | None = None
    bandwidth_share: float | None = None  # of the memory's nominal bandwidth

    @property
    def cells(self) -> tuple[str, str, str]:
        """A cell for each of COLUMNS."""
        occupancy = self.occupancy
        return (
            cell(occupancy.share if occupancy else None, "{:.0%}"),
            occupancy.limit if occupancy else UNKNOWN,
            cell(self.bandwidth_share, "{:.0%}"),
        )


def use_of(space: ValidSpace, trial: Trial) -> DeviceUse:
    """A trial's use of the device of a bound space."""
    moved_bytes = work(space, trial.config, space.problem.sizes).get("bytes")
    return DeviceUse(occupancy_of(space, trial), _bandwidth_share(moved_bytes, trial, space.device))


def uses_of_journal(journal: Path) -> Mapping[Config, DeviceUse]:
    """The same for a journal's trials, if its kernel's space is found."""
    from autotune.report.gather import gather_sources

    uses: dict[Config, DeviceUse] = {}
    for search in gather_sources([journal]).searches:
        moved = search.work.get("bytes", [None] * len(search.trials))
        for trial, occupancy, moved_bytes in zip(search.trials, search.occupancies, moved, strict=True):
            uses[trial.config] = DeviceUse(occupancy, _bandwidth_share(moved_bytes, trial, search.device))
    return uses


def _bandwidth_share(moved_bytes: float | None, trial: Trial, device: DeviceInfo | None) -> float | None:
    """The share of the nominal bandwidth: these bytes, moved in the trial's time."""
    peak = device.memory_bandwidth_bytes_per_s if device else None
    return moved_bytes / (trial.time_ms * 1e-3) / peak if moved_bytes and trial.time_ms and peak else None


def counters_table(runs: Mapping[str, CountedRun]) -> Table:
    """Make a table with a row for each run."""
    rows = [(name, *(cell(value, _COUNTED) for value in run.values())) for name, run in runs.items()]
    return table(("step", *next(iter(runs.values()))), rows)


def counters_text(run: CountedRun) -> str:
    """The counters of a run on one line."""
    return f"counters   {', '.join(f'{name} {cell(value, _COUNTED)}' for name, value in run.items())}"
