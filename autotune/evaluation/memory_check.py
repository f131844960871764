"""Checks that a workload's arrays fit in device and host memory, and finds sizes that fit."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from autotune.core.c_types import is_floating
from autotune.core.records import Sizes
from autotune.core.syntax import parse_module
from autotune.core.text import size_text
from autotune.errors import ExpressionError, NoMemory
from autotune.evaluation.buffers import device_bytes
from autotune.evaluation.instance import InstanceMaker
from autotune.problem.sampling import INDICES
from autotune.problem.workload import Workload
from autotune.processes.host_limits import HostMemory, host_memory

_FITTING_SHARE = 0.75  # share of the memory that suggested sizes may take: other programs use some as well


@contextmanager
def enough_memory(maker: InstanceMaker, default: Workload) -> Iterator[None]:
    """Raise NoMemory, naming sizes that fit, when the default's arrays take more memory than there is.

    Also raises NoMemory if an allocation on the device fails inside the block.
    """
    device, host = maker.space.device, host_memory()
    if device_bytes(default) > device.memory_bytes:
        raise _too_large(maker, default, f"has {_gib(device.memory_bytes)}")
    needed_bytes = _host_bytes(maker, default)
    if host is not None and needed_bytes > host.total_bytes:
        images = ", and two copies of each for this device, which is the CPU" if device.kind == "cpu" else ""
        raise NoMemory(
            f"{_arrays(maker, default)} take {_gib(needed_bytes)} of the host's memory (inputs, expected "
            f"results{images}), and the host has {_gib(host.total_bytes)}; {_advice(maker)}"
        )
    try:
        yield
    except NoMemory as error:
        reason = f"has no room for them in its {_gib(device.memory_bytes)} ({error})"
        raise _too_large(maker, default, reason) from None


def memory_warning(maker: InstanceMaker, default: Workload) -> str:
    """A warning before a reference that may need more memory than is free; empty in most cases."""
    host = host_memory()
    needed_bytes = _host_bytes(maker, default)
    most_bytes = needed_bytes + _float64_bytes(default)
    if host is None or most_bytes <= host.free_bytes:
        return ""
    return (
        f"{_arrays(maker, default)} take {_gib(needed_bytes)} of the host's memory, and {_gib(most_bytes)} "
        f"if the reference computes in float64; {_gib(host.free_bytes)} are free. If a process is killed, "
        f"{_advice(maker)}"
    )


def _host_bytes(maker: InstanceMaker, workload: Workload) -> int:
    """Lower bound of the host memory that a workload's arrays take.

    It holds inputs, unless they are read from files; whole results of the reference, unless it returns
    samples; and the arrays of a CPU.
    """
    drawn = [array for array in workload.arrays if array.fill and array.fill[0] not in ("stored", "copy")]
    returned = [array for array in workload.arrays if array.role in ("out", "inout")]
    images_bytes = device_bytes(workload) if maker.space.device.kind == "cpu" else 0
    if _is_sampled(maker.space.spec.reference):
        images_bytes -= sum(array.size_bytes for array in returned) if images_bytes else 0
        returned = []
    return sum(array.size_bytes for array in (*drawn, *returned)) + images_bytes


def _float64_bytes(workload: Workload) -> int:
    """The memory of float64 copies of the arrays that a reference reads and returns."""
    read = [array for array in workload.arrays if array.role != "scratch"]
    return sum(8 * array.count for array in read if is_floating(array.dtype))


def _is_sampled(reference: Path) -> bool:
    """True if the text of a reference file shows a function with a parameter `indices`."""
    try:
        tree = parse_module(reference.read_text(encoding="utf-8"))
    except (OSError, ValueError, SyntaxError):
        return True  # nothing is known
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    named = [node for node in functions if node.name == "reference"]
    return not named or any(argument.arg == INDICES for node in named for argument in node.args.args)


def _too_large(maker: InstanceMaker, default: Workload, reason: str) -> NoMemory:
    needed = _gib(device_bytes(default))
    return NoMemory(
        f"{_arrays(maker, default)} take {needed} of device memory, and {maker.space.device.name} {reason}; "
        f"{_advice(maker)}"
    )


def _arrays(maker: InstanceMaker, default: Workload) -> str:
    return f"{maker.space.spec.path}: the arrays for {size_text(default.problem.sizes)}"


def _advice(maker: InstanceMaker) -> str:
    smaller = _fitting_sizes(maker)
    sizes = ", such as " + " ".join(f"--size {name}={smaller[name]}" for name in smaller) if smaller else ""
    return f"choose a smaller problem with --size{sizes}"


def _fitting_sizes(maker: InstanceMaker) -> Sizes | None:
    """Halve the largest size until the arrays fit; None if the default configuration cannot run then."""
    space, host = maker.space, host_memory()
    sizes = dict(space.problem.sizes)
    while max(sizes.values()) > 1:
        largest = max(sizes, key=lambda name: sizes[name])
        sizes[largest] //= 2
        try:
            workload = maker.workload(space.spec.default, replace(space.problem, sizes=sizes))
        except ExpressionError:
            return None
        if _fits(maker, workload, host) and space.holds(space.spec.default, sizes):
            return sizes
    return None


def _fits(maker: InstanceMaker, workload: Workload, host: HostMemory | None) -> bool:
    """True if a workload's arrays fit, with a margin, in both memories."""
    on_host_bytes = _host_bytes(maker, workload) + _float64_bytes(workload)
    return device_bytes(workload) <= _FITTING_SHARE * maker.space.device.memory_bytes and (
        host is None or on_host_bytes <= _FITTING_SHARE * host.total_bytes
    )


def _gib(size_bytes: int) -> str:
    return f"{size_bytes / 2**30:.1f} GiB"
