"""Grid, block and shared memory, which Kernel Tuner computes from the values of parameters."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from typing import Any

from kernel_tuner import util

from autotune.core.expressions import parse
from autotune.core.records import Grid, LaunchSpec
from autotune.errors import ExpressionError
from autotune.kernel_tuner.arguments import KernelArguments
from autotune.kernel_tuner.call import KernelCall
from autotune.kernel_tuner.parameters import Parameters, Params

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

    def expressions(self, parameters: Parameters) -> dict[str, str]:
        """The values of launches that expressions of sizes and parameters give, by name.

        Functions of the script, and expressions of values that are no whole numbers, are not among them.
        """
        whole = {name for name in parameters.given if parameters.is_whole(name)}
        sizes = sizes_of(self.problem_size)
        listed = self.problem_size if isinstance(self.problem_size, tuple | list) else (self.problem_size,)
        texts = {"shared_bytes": _expression(self.shared_size, whole)}
        for place, axis in enumerate(AXES):
            block = self.block_names[place]
            default = block if block in parameters.given else None
            threads = _expression(default or self.block({})[place], whole)
            divisor = _product(self.grid_div[place], default or 1, whole)
            is_size = axis in sizes and axis not in parameters.given
            size = axis if is_size else _expression([*listed, 1, 1, 1][place], whole)
            texts[f"block_{axis}"] = threads
            if size and divisor:
                texts[f"grid_{axis}"] = size if divisor == "1" else f"ceil_div({size}, {divisor})"
        return {name: text for name, text in texts.items() if text}

    def values(self) -> dict[str, Callable[[Params], int]]:
        """The values that launches read: `grid_x` to `grid_z`, `block_x` to `block_z` and `shared_bytes`."""
        functions: dict[str, Callable[[Params], int]] = {"shared_bytes": self.shared_bytes}
        for place, axis in enumerate(AXES):
            functions[f"grid_{axis}"] = partial(_extent, self.grid, place)
            functions[f"block_{axis}"] = partial(_extent, self.block, place)
        return functions


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


def sizes_of(problem_size: Any) -> dict[str, int]:
    """The extents of a problem as sizes of a space; empty unless all are numbers."""
    listed = problem_size if isinstance(problem_size, tuple | list) else (problem_size,)
    if not all(isinstance(size, Integral) for size in listed):
        return {}
    return {axis: int(size) for axis, size in zip(AXES, listed, strict=False)}


def launch_specs(
    call: KernelCall, arguments: KernelArguments, expressions: Mapping[str, str]
) -> tuple[LaunchSpec, ...]:
    """A launch for each list of arguments; of these, every configuration has one.

    What has no expression is read from the value of a function by that name.
    """
    grid, block = ([f"{kind}_{axis}" for axis in AXES] for kind in ("grid", "block"))
    return tuple(
        LaunchSpec(
            entry=call.kernel_name,
            grid=tuple(expressions.get(name, name) for name in grid),
            block=tuple(expressions.get(name, name) for name in block),
            arguments=names,
            shared_bytes=expressions.get("shared_bytes", "shared_bytes"),
            when=f"passed == {number}" if len(arguments.passed) > 1 else "True",
        )
        for number, names in enumerate(arguments.passed)
    )


def _extent(extents: Callable[[Params], Grid], place: int, params: Params) -> int:
    return extents(params)[place]


def _expression(given: Any, whole: Container[str]) -> str:
    """A number or an expression of whole parameters, rounded down as by Kernel Tuner; empty for others."""
    if isinstance(given, Integral):
        return str(int(given))
    if not isinstance(given, str):
        return ""
    try:
        names = parse(given).names
    except ExpressionError:
        return ""
    if not all(name in whole for name in names):
        return ""
    return given if names == {given} else f"floor({given})"


def _product(divisor: Any, default: str | int, whole: Container[str]) -> str:
    """The product of a grid's divisors as an expression; empty if one of them is none."""
    if isinstance(divisor, tuple | list):
        factors = [_product(factor, 1, whole) for factor in divisor]
        return " * ".join(factor for factor in factors if factor != "1") or "1" if all(factors) else ""
    return _expression(default if divisor is None else divisor, whole)
