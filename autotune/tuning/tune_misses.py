"""Tunes cache misses: problems that programs requested and the cache did not have."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from autotune.compilers.kernel_source import packaged
from autotune.core.stages import OnStage
from autotune.devices.listing import find_device
from autotune.errors import AutotuneError
from autotune.serving.cache import writable_root
from autotune.serving.miss_log import CacheMiss, forget_miss, read_misses
from autotune.space import load_space
from autotune.tuning.options import Options
from autotune.tuning.plan import Plan, planned_search
from autotune.tuning.result import SearchResult
from autotune.tuning.task import Target, bind_target, locate


def missed_targets(
    cache: Path | None, device: str | None, space: Path | None
) -> list[tuple[CacheMiss, Target]]:
    """The cache misses recorded for a device of this machine, each with the target to tune for it.

    Args:
        cache: The cache folder, as `--cache`.
        device: The device; None means the default device of a search.
        space: Only misses of this space's kernel. None takes all, with the space `spaces/KERNEL.yaml` of the
            current folder or of the package.
    """
    address, info = find_device(device)
    own = locate(space) if space else None
    kernel = load_space(own).kernel if own else None
    return [
        (miss, Target(own or _space_file(miss), str(address), miss.sizes, miss.dtype, miss.data or None))
        for miss in read_misses(writable_root(cache))
        if miss.is_for(info) and kernel in (None, miss.kernel)
    ]


def plan_of_misses(targets: Sequence[tuple[CacheMiss, Target]], options: Options, on_stage: OnStage) -> Plan:
    """A plan that searches each target, and deletes its miss once the result is stored."""
    failures = []
    for number, (miss, target) in enumerate(targets):
        if not target.space.is_file():
            failures.append(
                f"{miss.kernel}: spaces/{miss.kernel}.yaml: no such file; name its space, wherever it is: "
                f"autotune search {miss.kernel}.yaml --wanted"
            )
            continue
        found = yield planned_search(number, miss.kernel, partial(bind_target, target, on_stage), options)
        if isinstance(found, SearchResult):
            try:
                forget_miss(writable_root(options.cache), miss)
            except AutotuneError as error:
                failures.append(f"{miss.kernel}: {error}")
    return failures


def _space_file(miss: CacheMiss) -> Path:
    """The space file of a miss; only these two places, because the list of misses is not trusted."""
    own = Path("spaces", f"{miss.kernel}.yaml")
    return own if own.is_file() else packaged("spaces") / own.name
