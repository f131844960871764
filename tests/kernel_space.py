"""For tests of the project's own spaces: one by its kernel's name, on a GPU and a CPU, and its reference."""

import importlib.util
from dataclasses import replace
from functools import cache
from pathlib import Path

from autotune.compilers.source_text import read_source
from autotune.space import bind, constraint_report, lint, load_space, problem_of
from tests.space_example import GPU

CPU = replace(GPU, name="CPU", backend="opencl", kind="cpu", compute_units=2, warp_size=1, has_shuffle=False)


@cache
def spec_of(kernel):
    """One of the project's own, read once: many modules ask for all of them when tests are collected."""
    return load_space(Path(__file__).parents[1] / "spaces" / f"{kernel}.yaml")


def bound(spec, device=GPU, **sizes):
    return bind(spec, device, problem_of(spec, device, sizes))


def reference_of(spec):
    """The function of the reference module."""
    return reference_module(spec).reference


def reference_module(spec):
    specification = importlib.util.spec_from_file_location(f"{spec.kernel}_reference", spec.reference)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def findings(spec, device=GPU):
    """What lint says of the space and its source."""
    space = bound(spec, device)
    return lint(space, read_source(spec.source).text, constraint_report(space)).mistakes


def invalid_landmarks(spec):
    """Landmarks that the GPU cannot run, or that do not say what they are."""
    space = bound(spec)
    return [mark.name for mark in spec.landmarks if space.why_invalid(mark.config) or not mark.note]


def steps(spec):
    """The numbers of the ladder's steps, in the order of the space file."""
    names = [mark.name.removeprefix(spec.kernel).partition("_")[0] for mark in spec.landmarks]
    return [int(name) for name in names if name.isdigit()]
