"""Grid, block and shared memory, which Kernel Tuner computes from the values of parameters."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

from kernel_tuner import util

from autotune.core.records import Grid, LaunchSpec
from autotune.errors import ExpressionError
from autotune.kernel_tuner.arguments import KernelArguments
from autotune.kernel_tuner.call import KernelCall
from autotune.kernel_tuner.parameters import Params

AXES = "xyz"
_WRONG = (
    ArithmeticError,
    LookupError,
    NameError,
    SyntaxError,
    TypeError,
    ValueError,
)  # of what a script gives


@dataclass(frozen=True)
class LaunchRule:
    """The launch of a configuration; the fields are arguments of `tune_kernel`."""

    problem_size: Any
    grid_div: tuple[Any, Any, Any]
    block_names: tuple[str, ...]
    shared_size: Any = 0

    def block(self, params: Params) -> Grid:
        """Threads of a block."""
        x, y, z = util.get_thread_block_dimensions(params, self.block_names)
        return x, y, z

    def grid(self, params: Params) -> Grid:
        """Blocks of the grid: the problem's size over its divisors, rounded up."""
        try:
            size = util.get_problem_size(self.problem_size, params)
            x, y, z = util.get_grid_dimensions(size, params, self.grid_div, self.block_names)
        except _WRONG as error:
            raise ExpressionError(f"problem_size, grid_div: {error}") from None
        return x, y, z

    def shared_bytes(self, params: Params) -> int:
        """Dynamic shared memory of a block in bytes."""
        try:
            return int(util.get_smem_args({"size": self.shared_size}, params)["size"])
        except _WRONG as error:
            raise ExpressionError(f"smem_args: {error}") from None

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
        block_names=(*given, *util.default_block_size_names[len(given) :]),
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
