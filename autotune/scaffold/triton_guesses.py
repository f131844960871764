"""Guess the parts of a first space file for a kernel in Triton: sizes, values, grid and shapes."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from autotune.core.expressions import parse, unknown_names
from autotune.core.launch_plan import TRITON_OPTIONS
from autotune.core.records import Value
from autotune.errors import ExpressionError
from autotune.scaffold.triton_reading import TritonKernel, grids

_FLOATS = re.compile(r"eps|alpha|beta|scale|slope|factor|momentum|^p$|^lr$", re.IGNORECASE)
_TILES = re.compile(r"BLOCK|TILE|GROUP|ROWS|SIZE|UNROLL")
_TILE_VALUES: tuple[Value, ...] = (32, 64, 128, 256)
_LONG_VALUES: tuple[Value, ...] = (256, 512, 1024, 2048, 4096)
DEFAULTS: Mapping[str, Value] = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": 255}


@dataclass(frozen=True)
class TritonGuess:
    """The guessed parts of a space file.

    `sizes` has at least one extent, `values` those of each constant and option that is tuned, and `derived`
    the constants that follow from others. The grid is guessed where the file has no launch that says it.
    """

    kernel: TritonKernel
    sizes: Mapping[str, int]
    values: Mapping[str, tuple[Value, ...]]
    derived: Mapping[str, str]
    grid: Sequence[str]
    is_grid_guessed: bool

    def shape(self, array: str) -> tuple[str, bool]:
        """The shape of an array by the names of its strides, else of its size, and whether it is sure."""
        dims = [dim for number in self.kernel.numbers for dim in _stride_dims(number, array)]
        found = [next((size for size in self.sizes if size.lower() == dim), None) for dim in dims]
        if found and all(found):
            return ", ".join(map(str, found)), True
        return " * ".join(self.sizes), len(self.sizes) == 1

    def stride(self, name: str) -> tuple[str, bool]:
        """The value of a stride, and whether it is sure: the product of the extents behind its own."""
        for array in self.kernel.roles:
            if dims := _stride_dims(name, array):
                extents = self.shape(array)[0].split(", ")
                places = [place for place, size in enumerate(extents) if size.lower() == dims[0]]
                if places:
                    return " * ".join(extents[places[0] + 1 :]) or "1", True
        return list(self.sizes)[-1] if len(self.sizes) > 1 else "1", False


def guess_triton(kernel: TritonKernel, tree: ast.Module) -> TritonGuess:
    """Guess the parts for a kernel of a module."""
    sizes, values = _sizes(kernel), _values(kernel)
    names = {*sizes, *values, *kernel.heuristics}
    derived = {name: text for name, text in kernel.heuristics.items() if _reads_only(text, names)}
    names = {*sizes, *values, *derived}
    launched = (grid for grid in grids(tree, kernel.entry) if all(_reads_only(one, names) for one in grid))
    grid = next(launched, None)
    usual = _usual_grid(kernel, list(sizes), list(values))
    return TritonGuess(
        kernel, sizes, values, derived, usual if grid is None else grid, is_grid_guessed=grid is None
    )


def _sizes(kernel: TritonKernel) -> dict[str, int]:
    """Numbers that look like sizes, and constants that neither have a default nor are tuned."""
    names = [name for name in kernel.numbers if "stride" not in name.lower() and not _FLOATS.search(name)]
    fixed = [
        one.name
        for one in kernel.parameters
        if one.is_constant
        and not one.has_default
        and one.name not in kernel.heuristics
        and not _constant_values(kernel, one.name)
    ]
    if len(names) + len(fixed) == 1:
        return dict.fromkeys([*names, *fixed], 2**24)
    return {**dict.fromkeys(names, 4096), **dict.fromkeys(fixed, 128)} or {"n": 2**20}


def _values(kernel: TritonKernel) -> dict[str, tuple[Value, ...]]:
    """Values for each constant and option: those of the configurations, else usual ones."""
    values = {
        one.name: found
        for one in kernel.parameters
        if one.is_constant
        and one.name not in kernel.heuristics
        and (found := _constant_values(kernel, one.name))
    }
    for name in TRITON_OPTIONS:
        if any(name in config for config in kernel.configs):
            values[name] = _distinct(config.get(name, DEFAULTS[name]) for config in kernel.configs)
    if not kernel.configs:
        values["num_warps"] = (1, 2, 4, 8)
        if "for " in kernel.code:
            values["num_stages"] = (1, 2, 3, 4)
    return values


def _constant_values(kernel: TritonKernel, name: str) -> tuple[Value, ...]:
    """The values of a `tl.constexpr`; none where nothing says what it may be."""
    if any(name in config for config in kernel.configs):
        return _distinct(config.get(name) for config in kernel.configs)
    if _TILES.search(name):
        return _TILE_VALUES if "dot(" in kernel.code else _LONG_VALUES
    return (False,) if re.search(rf"\bif (not )?{name}\b(?! *[<>=])", kernel.code) else ()


def _reads_only(text: str, names: Collection[str]) -> bool:
    """Whether a text is an expression of these names."""
    try:
        return not unknown_names(parse(text), names)
    except ExpressionError:
        return False


def _usual_grid(kernel: TritonKernel, sizes: Sequence[str], tuned: Sequence[str]) -> list[str]:
    """The grid of a kernel whose file does not launch it."""
    tiles = [name for name in tuned if "BLOCK" in name] or tuned[:1]
    axes = max(1, len({*re.findall(r"program_id\((?:axis=)?(\d)\)", kernel.code)}))
    pairs = zip(sizes[:axes], tiles[:axes], strict=False)
    return [f"ceil_div({size}, {tile})" for size, tile in pairs] or ["1"]


def _stride_dims(number: str, array: str) -> list[str]:
    """The dimension of an array that a stride such as `stride_am` is of; none for another array's."""
    match = re.fullmatch(r"stride_([a-z]+)([a-z])", number.lower())
    short = re.sub(r"_?ptr$", "", array.lower())
    return [match[2]] if match and match[1] in (short, short[:1]) else []


def _distinct(values: Iterable[Value | None]) -> tuple[Value, ...]:
    return tuple(
        sorted({value for value in values if value is not None}, key=lambda value: (str(type(value)), value))
    )
