"""Checks that a problem's arrays fit in device memory, and finds sizes that would."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from autotune.core.records import Sizes
from autotune.core.text import size_text
from autotune.errors import ExpressionError, NoMemory
from autotune.evaluation.buffers import device_bytes
from autotune.evaluation.instance import InstanceMaker
from autotune.evaluation.work_item import ProblemInstance

_FITTING_SHARE = 0.75  # of the memory, for suggested sizes: other programs use some of it, too


@contextmanager
def enough_memory(maker: InstanceMaker, default: ProblemInstance) -> Iterator[None]:
    """Raise NoMemory, naming sizes that fit, when the default's arrays take more memory than the device has.

    Also raises NoMemory if an allocation fails inside the block.
    """
    device = maker.space.device
    if device_bytes(default) > device.memory_bytes:
        raise _too_large(maker, default, f"has {_gib(device.memory_bytes)}")
    try:
        yield
    except NoMemory as error:
        reason = f"has no room for them in its {_gib(device.memory_bytes)} ({error})"
        raise _too_large(maker, default, reason) from None


def _too_large(maker: InstanceMaker, default: ProblemInstance, reason: str) -> NoMemory:
    needed = _gib(device_bytes(default))
    smaller = _fitting_sizes(maker)
    advice = ", such as " + " ".join(f"--size {name}={smaller[name]}" for name in smaller) if smaller else ""
    sizes = size_text(default.definition.sizes)
    return NoMemory(
        f"{maker.space.spec.path}: the arrays for {sizes} take {needed} of device memory, "
        f"and {maker.space.device.name} {reason}; choose a smaller problem with --size{advice}"
    )


def _fitting_sizes(maker: InstanceMaker) -> Sizes | None:
    """Halve the largest size until the arrays fit; None if the default configuration cannot run then."""
    space = maker.space
    sizes = dict(space.problem.sizes)
    while max(sizes.values()) > 1:
        largest = max(sizes, key=lambda name: sizes[name])
        sizes[largest] //= 2
        try:
            problem = maker.problem_instance(space.spec.default, replace(space.problem, sizes=sizes))
        except ExpressionError:
            return None
        fits = device_bytes(problem) <= _FITTING_SHARE * space.device.memory_bytes
        if fits and space.holds(space.spec.default, sizes):
            return sizes
    return None


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
