"""Tunes in a few runs, starting from the results of other devices or sizes."""

from __future__ import annotations

import argparse
from typing import Any

from autotune.cli import options as opt
from autotune.cli.output import emit
from autotune.cli.texts import space_problem
from autotune.core.records import Entry
from autotune.core.text import count_text
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask


def search_by_adoption(parsed: argparse.Namespace, options: Options) -> None:
    """Adopt a result, unless a search has stored one for this device and problem already."""
    from autotune.cli.search_summary import result_json, result_text
    from autotune.tuning.served_best import full_search_result
    from autotune.tuning.tuner import adopt

    with opt.opened_task(parsed) as (task, progress):
        entry = full_search_result(task, parsed.cache)
        result = adopt(task, options, progress) if entry is None else None
    if entry is not None:
        emit(known_json(entry) if parsed.json else known_text(task, entry))
    if result is not None:
        emit(result_json(result) | {"adopted": True} if parsed.json else result_text(result))


def known_text(task: TuningTask, entry: Entry) -> str:
    """The message that nothing was run, with the reason."""
    origin = entry.provenance
    return (
        f"{task.spec.kernel} on {task.device.name}, {space_problem(task.space)}: tuned already, with "
        f"{count_text(origin.trials, 'trial')} of {origin.engine}{entry.caveat}; nothing was run\n"
        f"best    {entry.time_ms:.4g} ms: {entry.config}"
    )


def known_json(entry: Entry) -> dict[str, Any]:
    return {"adopted": False, "config": dict(entry.config), "time_ms": entry.time_ms}
