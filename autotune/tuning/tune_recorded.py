"""Tunes what programs were recorded to tune themselves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path

from autotune.core.stages import OnStage
from autotune.core.text import problem_text
from autotune.errors import InputError
from autotune.recording.tunings import Tuning
from autotune.serving.triton_call import CallReader, launch_of
from autotune.space import SpaceSpec, load_space
from autotune.tuning.options import Options
from autotune.tuning.plan import Plan, planned_search
from autotune.tuning.task import Target, bind_target, locate


def recorded_targets(
    tunings: Iterable[Tuning], spaces: Sequence[Path], device: str | None
) -> tuple[list[Target], list[str]]:
    """The problems of recorded kernels, the longest to tune first, and why others cannot be tuned.

    Args:
        tunings: What was recorded.
        spaces: The spaces of the kernels.
        device: The device to tune on; None means the default device of a search.

    Raises:
        InputError: A space is wrong.
    """
    specs = [load_space(locate(space)) for space in spaces]
    targets: list[Target] = []
    failures: dict[str, None] = {}
    for tuning in sorted(tunings, key=lambda one: -one.seconds):
        own = [spec for spec in specs if tuning.function in {step.entry for step in spec.launch}]
        if not own:
            made = f"autotune new {tuning.file} --entry {tuning.function}"
            failures[f"{tuning.function}: name its space; to write one: {made}"] = None
        for spec in own:
            try:
                target = _target(tuning, spec, device)
            except InputError as error:
                failures[str(error)] = None
            else:
                if target not in targets:
                    targets.append(target)
    return targets, list(failures)


def _target(tuning: Tuning, spec: SpaceSpec, device: str | None) -> Target:
    """The problem of the recorded call; raises InputError."""
    step = launch_of(spec.kernel, spec.launch, tuning.function)
    reader = CallReader(spec.kernel, step, spec.arguments, spec.sizes["default"], tuning.passed)
    sizes, dtype = reader.problem(tuning.given)
    return Target(spec.path, device, sizes, dtype)


def plan_of_recorded(
    targets: Sequence[Target], failures: Sequence[str], options: Options, on_stage: OnStage
) -> Plan:
    """A plan that searches each target."""
    for number, target in enumerate(targets):
        name = f"{target.space.stem}: {problem_text(target.sizes, target.dtype)}"
        yield planned_search(number, name, partial(bind_target, target, on_stage), options)
    return failures
