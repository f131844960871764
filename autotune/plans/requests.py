"""Tunes what programs asked for: problems that the cache did not have, and kernels recorded as they tuned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from autotune.compilers.source_text import packaged
from autotune.core.text import problem_text
from autotune.devices.listing import find_device
from autotune.errors import AutotuneError, InputError
from autotune.plans.search_plan import PlannedSearch, PlanResult, Searches
from autotune.recording.tunings import Tuning
from autotune.serving.cache import writable_root
from autotune.serving.miss_log import CacheMiss, forget_miss, read_misses
from autotune.serving.triton_call import CallReader, launch_of
from autotune.space import SpaceSpec, load_space
from autotune.tuning.options import Options
from autotune.tuning.task import Target, find_space_file, read_task


class Requests(NamedTuple):
    """The problems that programs asked for."""

    targets: list[tuple[Target, CacheMiss | None]]  # each with the cache miss that it answers, if any
    failures: list[str]  # why others cannot be tuned
    failed: str = "requests failed"  # follows the numbers in a message of failures


def requests_of_misses(cache: Path | None, device: str | None, space: Path | None = None) -> Requests:
    """The cache misses recorded for a device of this machine, by default the one that a search takes.

    With a space, only misses of its kernel count. Without a space, all misses count, each with the space
    `spaces/KERNEL.yaml` of the current folder or of the package.
    """
    address, info = find_device(device)
    space_file = find_space_file(space) if space else None
    kernel = load_space(space_file).kernel if space_file else None
    requests = Requests([], [], "requests failed and stay listed")
    for miss in read_misses(writable_root(cache)):
        if not miss.is_for(info) or kernel not in (None, miss.kernel):
            continue
        place = space_file or _space_file(miss)
        if place.is_file():
            target = Target(place, str(address), miss.sizes, miss.dtype, miss.data or None)
            requests.targets.append((target, miss))
        else:
            requests.failures.append(
                f"{miss.kernel}: spaces/{miss.kernel}.yaml: no such file; if it is elsewhere, name it: "
                f"autotune search {miss.kernel}.yaml --wanted"
            )
    return requests


def _space_file(miss: CacheMiss) -> Path:
    """The space file of a miss; only these two places, because the list of misses is not trusted."""
    here = Path("spaces", f"{miss.kernel}.yaml")
    return here if here.is_file() else packaged("spaces") / here.name


def requests_of_tunings(tunings: Iterable[Tuning], spaces: Sequence[Path], device: str | None) -> Requests:
    """The problems of recorded kernels, the longest to tune first; raises InputError if a space is wrong."""
    specs = [load_space(find_space_file(space)) for space in spaces]
    targets: list[Target] = []
    failures: dict[str, None] = {}
    for tuning in sorted(tunings, key=lambda tuning: -tuning.seconds):
        launching = [spec for spec in specs if tuning.function in {step.entry for step in spec.launch}]
        if not launching:
            command = f"autotune new {tuning.file} --entry {tuning.function}"
            failures[f"{tuning.function}: no space launches it; name one, or write one: {command}"] = None
        for spec in launching:
            try:
                target = _target(tuning, spec, device)
            except InputError as error:
                failures[str(error)] = None
            else:
                if target not in targets:
                    targets.append(target)
    return Requests([(target, None) for target in targets], [*failures])


def _target(tuning: Tuning, spec: SpaceSpec, device: str | None) -> Target:
    step = launch_of(spec.kernel, spec.launch, tuning.function)
    reader = CallReader(spec.kernel, step, spec.arguments, spec.sizes["default"], tuning.passed)
    sizes, dtype = reader.problem(tuning.given)
    return Target(spec.path, device, sizes, dtype)


def search_requests(requests: Requests, options: Options, searches: Searches) -> PlanResult:
    """Search each target, and delete its miss once the result is stored."""
    searches.failures += requests.failures
    for number, (target, miss) in enumerate(requests.targets):
        name = f"{target.space.stem}: {problem_text(target.sizes, target.dtype)}"
        try:
            task = read_task(target, searches.observer.stage)
            searches.run(PlannedSearch(number, name, task, options))
            if miss is not None and number in searches.results:
                forget_miss(writable_root(options.cache), miss)
        except AutotuneError as error:
            searches.failures.append(f"{name}: {error}")
    total = len(requests.targets) + len(requests.failures)
    return searches.done(f"of {total} {requests.failed}")
