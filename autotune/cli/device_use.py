"""How well a configuration uses the device: occupancy, its limiter, and the share of the peak bandwidth."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from autotune.compilers.occupancy import Occupancy
from autotune.core.records import Config, DeviceInfo
from autotune.core.trials import Trial
from autotune.evaluation.device_use import occupancy_of
from autotune.evaluation.instance import work
from autotune.space import Space

COLUMNS = ("occupancy", "limited by", "of peak")
Use = tuple[str, str, str]  # a cell of each column; empty where unknown
NO_USE: Use = ("", "", "")


def use_of(space: Space, trial: Trial) -> Use:
    """The cells of a trial on a bound space."""
    return _cells(
        occupancy_of(space, trial),
        work(space, trial.config, space.problem.sizes).get("bytes"),
        trial,
        space.device,
    )


def uses_of_journal(journal: Path) -> Mapping[Config, Use]:
    """The cells of a journal's trials, as far as its kernel's space is found."""
    from autotune.report.gather import gather_sources
    from autotune.report.view import SearchView

    found: dict[Config, Use] = {}
    for search in gather_sources([journal]).searches:
        view = SearchView(search)
        moved = view.work.get("bytes", [None] * len(view.trials))
        for trial, held, amount in zip(view.trials, view.occupancies, moved, strict=True):
            found[trial.config] = _cells(held, amount, trial, search.device)
    return found


def _cells(held: Occupancy | None, moved_bytes: float | None, trial: Trial, device: DeviceInfo | None) -> Use:
    peak = device.memory_bandwidth_bytes_per_s if device else None
    share = moved_bytes / (trial.time_ms * 1e-3) / peak if moved_bytes and trial.time_ms and peak else None
    return (
        "" if held is None else f"{held.share:.0%}",
        "" if held is None else held.limit,
        "" if share is None else f"{share:.0%}",
    )
