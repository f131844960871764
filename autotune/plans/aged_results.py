"""Checks results of another driver, compiler or source again, and searches anew where they lose."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from autotune.compilers.source_text import read_source
from autotune.core.records import DeviceInfo, Entry
from autotune.core.trials import Budget
from autotune.devices import Address
from autotune.errors import AutotuneError
from autotune.evaluation.compiler_pool import compiler_name
from autotune.plans.recheck import CheckedEntry, CheckState, recheck, refresh
from autotune.processes.deadline import Deadline
from autotune.serving.query import changes
from autotune.space import load_space
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask, find_space_file, provenance_of
from autotune.tuning.tuner import priors_of, search

MIN_SEARCH_S = 10.0  # a shorter search finds little


@dataclass(frozen=True)
class AgedResult:
    """A result whose origin is of another time, and what a check of now has found.

    `searched_ms` is the time of a new search's best; None without one, for the reason in `note`, if any.
    """

    checked: CheckedEntry
    changes: tuple[str, ...]
    searched_ms: float | None = None
    note: str = ""

    @property
    def loses(self) -> bool:
        """True if it fails, is slower than it was, or others are faster, by more than the noise."""
        entry, fresh = self.checked.entry, self.checked.refreshed
        is_beaten = fresh is None or entry.config not in (fresh.config, *fresh.ties)
        return is_beaten or self.checked.state is CheckState.SLOWER


def present_provenance(kernel: str, address: Address, device: DeviceInfo) -> dict[str, str]:
    """As `TuningTask.provenance`, for a kernel by its name; empty if no space of it can be read."""
    try:
        spec = load_space(find_space_file(Path(kernel)))
        source = read_source(spec.source, spec.include_dirs)
        compiler = compiler_name(address, device, spec.compiler)
    except AutotuneError:
        return {}
    return provenance_of(device, compiler, source, spec)


def update_result(
    task: TuningTask, options: Options, observer: Observer, entry: Entry, root: str, deadline: Deadline
) -> AgedResult | None:
    """Check a result again, and search anew if it loses; None if nothing has changed since it was found.

    A result that holds is stored with its times of now; a search stores what it finds. No search goes on
    after the deadline.
    """
    reasons = changes(entry.provenance, task.provenance)
    if not reasons:
        return None
    aged = AgedResult(recheck(task, options, observer, entry), reasons)
    if not aged.loses:
        refresh(task, root, aged.checked)
        return aged
    left_s = deadline.left_s()
    if left_s < MIN_SEARCH_S:
        return replace(aged, note="no time is left for a search; give more with --time")
    search_options = replace(options, fresh=True, budget=Budget(seconds=left_s), cache=Path(root))
    result = search(task, search_options, observer, priors_of(task, search_options))
    return replace(aged, searched_ms=result.final.median_ms)
