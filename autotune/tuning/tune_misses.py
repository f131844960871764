"""What programs asked of a device and did not find, tuned one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from autotune.compilers.kernel_source import packaged
from autotune.errors import AutotuneError
from autotune.serving.cache import writable_root
from autotune.serving.miss_log import CacheMiss, forget_miss, read_misses
from autotune.space import load_space
from autotune.tuning.context import Observer
from autotune.tuning.options import Options
from autotune.tuning.result import Result
from autotune.tuning.task import Target, bind_target, find_device, locate
from autotune.tuning.tuner import search


class MissedTask(NamedTuple):
    """A line of a cache's list, and the search that answers it."""

    root: Path
    wanted: CacheMiss
    target: Target


def missed_tasks(cache: Path | None, device: str | None, space: Path | None) -> list[MissedTask]:
    """What is wanted of a device of this machine, None meaning the one a search would take.

    With a space only of its kernel. Otherwise a kernel's space is `spaces/<kernel>.yaml`, here or of the
    package.
    """
    root = writable_root(cache)
    address, info = find_device(device)
    kernel = load_space(locate(space)).kernel if space else None
    return [
        MissedTask(root, wanted, Target(space or _space(wanted), str(address), wanted.sizes, wanted.dtype))
        for wanted in read_misses(root)
        if wanted.is_for(info) and kernel in (None, wanted.kernel)
    ]


def tune_misses(
    questions: Sequence[MissedTask], options: Options, observer: Observer
) -> tuple[list[Result], list[str]]:
    """Search each and take it off the list once its result is stored; returns results and what failed."""
    results, failures = [], []
    for root, wanted, target in questions:
        try:
            results.append(search(bind_target(target), options, observer))
            forget_miss(root, wanted)
        except AutotuneError as error:
            failures.append(f"{wanted.kernel}: {error}")
    return results, failures


def _space(wanted: CacheMiss) -> Path:
    """The only two places that a list may lead to: its kernel is a name, and no path."""
    own = Path("spaces", f"{wanted.kernel}.yaml")
    return own if own.is_file() else packaged("spaces") / own.name
