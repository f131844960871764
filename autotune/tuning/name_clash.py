"""Finds another kernel of the same name in the cache, whose results new ones would mix with."""

from __future__ import annotations

import os
from pathlib import Path

from autotune.serving.cache import read_record, record_path
from autotune.tuning.cache_entry import source_path
from autotune.tuning.task import TuningTask


def name_clash(task: TuningTask, root: Path) -> str:
    """A warning before results of two kernels get into one file; empty if they do not.

    A source that was edited in place, moved or copied is still the same kernel. Sources that come with
    autotune, and source text that a program passed, have no path: these kernels differ if their parameters
    do.
    """
    path = record_path(str(root), task.device.slug, task.spec.kernel)
    if not Path(path).exists():
        return ""
    record, now = read_record(path), source_path(task, root)
    newest = max((entry.provenance for entry in record.entries), key=lambda one: one.tuned_at, default=None)
    if record.source == now or (newest and newest.source_sha256 == task.source.sha256):
        return ""
    if record.source and now:
        is_other = (root / record.source).is_file()
    else:
        is_other = record.parameter_names != {parameter.name for parameter in task.spec.parameters}
    if not is_other:
        return ""
    other, this = (f" ({os.path.relpath(root / one)})" if one else "" for one in (record.source, now))
    return (
        f"{path} has results of another kernel named {record.kernel}{other}; results of this one{this} go to "
        "the same file and replace those of the same sizes: rename one of the kernels, or choose another "
        "folder with --cache (cache= in Python)"
    )
