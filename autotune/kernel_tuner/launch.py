"""Grid, block and shared memory as Kernel Tuner computes them from the values of parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from autotune.core.expressions import integer, number, parse
from autotune.core.records import Grid, LaunchSpec
from autotune.errors import InputError
from autotune.kernel_tuner.arguments import KernelArguments
from autotune.kernel_tuner.call import KernelCall
from autotune.kernel_tuner.parameters import Params

AXES = "xyz"
_BLOCK_NAMES = ("block_size_x", "block_size_y", "block_size_z")
_DEFAULT_BLOCK = (256, 1, 1)


@dataclass(frozen=True)
class LaunchRule:
    """The launch of a configuration; the fields are arguments of `tune_kernel`."""

    problem_size: Any
    grid_div: tuple[Any, Any, Any]
    block_names: tuple[str, ...]
    shared_size: Any = 0

    def block(self, params: Params) -> Grid:
        """Threads of a block."""
        x, y, z = (
            int(params.get(name, size)) for name, size in zip(self.block_names, _DEFAULT_BLOCK, strict=True)
        )
        return x, y, z

    def grid(self, params: Params) -> Grid:
        """Blocks of the grid: the problem's size over its divisors, rounded up."""
        size = self.problem_size(params) if callable(self.problem_size) else self.problem_size
        extents = (size,) if isinstance(size, str | int | np.integer) else tuple(size)
        whole = [_whole(extent, params) for extent in extents] + [1] * (3 - len(extents))
        divisors = [
            params.get(name, 1) if divisor is None else _divisor(divisor, params)
            for divisor, name in zip(self.grid_div, self.block_names, strict=True)
        ]
        x, y, z = (math.ceil(float(extent) / float(by)) for extent, by in zip(whole, divisors, strict=True))
        return x, y, z

    def shared_bytes(self, params: Params) -> int:
        """Dynamic shared memory of a block in bytes."""
        size = self.shared_size(params) if callable(self.shared_size) else self.shared_size
        return _whole(size, params)

    def values(self) -> dict[str, Callable[[Params], int]]:
        """The values that launches read: `grid_x` to `grid_z`, `block_x` to `block_z` and `shared_bytes`."""
        found: dict[str, Callable[[Params], int]] = {"shared_bytes": self.shared_bytes}
        for place, axis in enumerate(AXES):
            found[f"grid_{axis}"] = partial(_extent, self.grid, place)
            found[f"block_{axis}"] = partial(_extent, self.block, place)
        return found


def read_launch_rule(call: KernelCall, params: Params) -> LaunchRule:
    """The rule of a script's launches, tried on one configuration; raises InputError for what is wrong.

    Sizes of a block whose names are not given have those that Kernel Tuner gives them.
    """
    given = tuple(call.block_size_names or ())
    rule = LaunchRule(
        problem_size=call.problem_size,
        grid_div=(call.grid_div_x, call.grid_div_y, call.grid_div_z),
        block_names=(*given, *_BLOCK_NAMES[len(given) :]),
        shared_size=(call.smem_args or {}).get("size", 0),
    )
    for compute in (rule.grid, rule.block, rule.shared_bytes):
        compute(params)
    return rule


def launch_specs(call: KernelCall, arguments: KernelArguments) -> tuple[LaunchSpec, ...]:
    """A launch for each list of arguments; of these, every configuration has one."""
    return tuple(
        LaunchSpec(
            entry=call.kernel_name,
            grid=tuple(f"grid_{axis}" for axis in AXES),
            block=tuple(f"block_{axis}" for axis in AXES),
            arguments=names,
            shared_bytes="shared_bytes" if call.smem_args else "0",
            when=f"passed == {number}" if len(arguments.passed) > 1 else "True",
        )
        for number, names in enumerate(arguments.passed)
    )


def _extent(extents: Callable[[Params], Grid], place: int, params: Params) -> int:
    return extents(params)[place]


def _whole(value: Any, params: Params) -> int:
    if isinstance(value, str):
        return integer(parse(f"floor({value})"), params)
    if isinstance(value, int | np.integer):
        return int(value)
    raise InputError(f"problem_size, smem_args: {value!r}: expected a whole number, a text or a function")


def _divisor(divisor: Any, params: Params) -> float:
    if isinstance(divisor, int | float | np.number):
        return float(divisor)
    if callable(divisor):
        return float(divisor(params))
    if isinstance(divisor, str):
        return float(number(parse(divisor), params))
    if isinstance(divisor, Iterable):
        return math.prod(_divisor(one, params) for one in divisor)
    raise InputError(f"grid_div: {divisor!r}: expected a number, a text, a function or a list of them")
