"""The cache folder of a search: whether it can take the result, and the source's path as seen from it."""

from __future__ import annotations

import os
from pathlib import Path

from autotune.core.packaged import packaged_folder
from autotune.core.records import KernelRecord
from autotune.errors import InputError
from autotune.serving.cache import (
    VARIABLE,
    check_writable,
    objective_root,
    read_record,
    record_path,
    writable_root,
)
from autotune.tuning.journaled_task import JournaledTask
from autotune.tuning.observer import Observer
from autotune.tuning.options import Options
from autotune.tuning.task import TuningTask


def result_folder(journaled: JournaledTask, options: Options, observer: Observer) -> Path:
    """The folder for a task's results; warns if another kernel has results under the same name there.

    Raises:
        InputError: It belongs to the installed package, or has results of a kernel with other arguments.
        WriteError: It cannot be written.
        CacheError: It has results of another device in the same place, or a file that cannot be read.
    """
    task = journaled.task
    root = Path(objective_root(str(writable_root(options.cache)), journaled.scoring.folder))
    check_writable(root, task.device, task.spec.kernel)
    path = record_path(str(root), task.device.slug, task.spec.kernel)
    if Path(path).exists() and (warning := _warning_of_another(path, read_record(path), task, root)):
        observer.warn(warning)
    return root


def _warning_of_another(path: str, record: KernelRecord, task: TuningTask, root: Path) -> str:
    """A warning if the record is of another kernel of that name; InputError if replacing would break it.

    It breaks if arguments differ. A space may rename its arguments one by one. A script's have no names, and
    their number tells. A source that was edited in place, moved or copied is still the same kernel. Sources
    that come with autotune, and source text that a program passed, have no path: these kernels differ if
    their parameters do.
    """
    stored, own = ([item.name for item in one.arguments] for one in (record, task.spec))
    sizes, own_sizes = record.size_names, task.space.problem.sizes
    if task.spec.functions.source is not None:
        is_other_call = stored != own or bool(sizes and sizes != own_sizes.keys())
    else:
        is_other_call = bool(stored) and set(stored).isdisjoint(own)
    if record.entries and is_other_call:
        was, new = ", ".join((*sorted(sizes), *stored)), ", ".join((*own_sizes, *own))
        raise InputError(
            f"{path} has results of a kernel {record.kernel} with other sizes or arguments: {was}; those of "
            f"this one, {new}, would break them: choose another folder with {VARIABLE} or --cache, or rename "
            "the kernel"
        )
    source = source_path(task, root)
    newest = max((entry.provenance for entry in record.entries), key=lambda one: one.tuned_at, default=None)
    if record.source == source or (newest and newest.source_sha256 == task.source.sha256):
        return ""
    if record.source and source:
        is_other = (root / record.source).is_file()
    else:
        is_other = record.parameter_names != {parameter.name for parameter in task.spec.parameters}
    if not is_other:
        return ""
    other, this = (f" ({os.path.relpath(root / one)})" if one else "" for one in (record.source, source))
    return (
        f"{path} has results of another kernel named {record.kernel}{other}; results of this one{this} go to "
        "the same file and replace those of the same sizes: rename one of the kernels, or choose another "
        "folder with --cache (cache= in Python)"
    )


def source_path(task: TuningTask, root: Path) -> str:
    """The path of the kernel's source from a cache's folder.

    Empty for a kernel that comes with autotune, and for source text that a program passed, even if a file has
    its name.
    """
    source = task.spec.source.resolve()
    if not source.is_file() or source.parent == Path(packaged_folder("kernels")).resolve():
        return ""
    if task.spec.functions.source and source.read_text(errors="replace") not in task.source.text:
        return ""
    return Path(os.path.relpath(source, root.resolve())).as_posix()
