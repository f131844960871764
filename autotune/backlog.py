"""What programs asked of a device and did not find, tuned one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from autotune.cache import writable_root
from autotune.devices import choose
from autotune.errors import AutotuneError
from autotune.rig import Observer, Options
from autotune.session import Result, search
from autotune.space import load_space
from autotune.targets import Target, bind_target, find_devices, locate
from autotune.wanted import Wanted, forget_wanted, read_wanted


class OpenQuestion(NamedTuple):
    """A line of a cache's list, and the search that answers it."""

    root: Path
    wanted: Wanted
    target: Target


def open_questions(cache: Path | None, device: str | None, space: Path | None) -> list[OpenQuestion]:
    """What is wanted of a device of this machine, None meaning the one a search would take.

    With a space only of its kernel. Otherwise a kernel's space is `spaces/<kernel>.yaml`, here or of the
    package.
    """
    root = writable_root(cache)
    address, info = choose(device, find_devices())
    kernel = load_space(locate(space)).kernel if space else None
    return [
        OpenQuestion(root, wanted, Target(space or _space(wanted), str(address), wanted.sizes, wanted.dtype))
        for wanted in read_wanted(root)
        if wanted.is_for(info) and kernel in (None, wanted.kernel)
    ]


def work_off(
    questions: Sequence[OpenQuestion], options: Options, observer: Observer
) -> tuple[list[Result], list[str]]:
    """Search each and take it off the list once its result is stored; returns results and what failed."""
    results, failures = [], []
    for root, wanted, target in questions:
        try:
            results.append(search(bind_target(target), options, observer))
            forget_wanted(root, wanted)
        except AutotuneError as error:
            failures.append(f"{wanted.kernel}: {error}")
    return results, failures


def _space(wanted: Wanted) -> Path:
    own = Path("spaces", f"{wanted.kernel}.yaml")
    return own if own.is_file() else Path(wanted.kernel)
