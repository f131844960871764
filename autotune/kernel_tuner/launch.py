"""Grid, block and shared memory as Kernel Tuner computes them from the values of parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from autotune.core.expressions import integer, number, parse
from autotune.errors import InputError

BLOCK_NAMES = ("block_size_x", "block_size_y", "block_size_z")
_DEFAULT_BLOCK = (256, 1, 1)

Params = Mapping[str, Any]


@dataclass(frozen=True)
class LaunchRule:
    """How a configuration is launched; the fields are arguments of `tune_kernel`."""

    problem_size: Any
    grid_div: tuple[Any, Any, Any]
    block_names: tuple[str, ...]
    shared_size: Any = 0

    def block(self, params: Params) -> tuple[int, int, int]:
        """Threads of a block."""
        x, y, z = (
            int(params.get(name, size)) for name, size in zip(self.block_names, _DEFAULT_BLOCK, strict=True)
        )
        return x, y, z

    def grid(self, params: Params) -> tuple[int, int, int]:
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

    def check(self, params: Params) -> None:
        """Evaluate everything once; raises InputError for what is wrong."""
        for compute in (self.grid, self.block, self.shared_bytes):
            compute(params)

    def values(self) -> dict[str, Callable[[Params], int]]:
        """What a launch plan reads: `grid_x` to `grid_z`, `block_x` to `block_z` and `shared_bytes`."""
        found: dict[str, Callable[[Params], int]] = {"shared_bytes": self.shared_bytes}
        for place, axis in enumerate("xyz"):
            found[f"grid_{axis}"] = lambda params, place=place: self.grid(params)[place]  # type: ignore[misc]
            found[f"block_{axis}"] = lambda params, place=place: self.block(params)[place]  # type: ignore[misc]
        return found


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
