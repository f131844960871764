"""Guess the parts of a first space file: parameters, sizes, arguments and launch geometry.

Every guess is valid in a space file; one that needs a second look carries a remark.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.scaffold.array_shapes import index_bounds, indexed_shape, samples, with_room
from autotune.scaffold.default_sizes import default_sizes, fitting_checks
from autotune.scaffold.guessed_arguments import (
    GuessedArgument,
    array_argument,
    scalar_argument,
    variable_argument,
)
from autotune.scaffold.guessed_launch import GuessedLaunch, guess_launch
from autotune.scaffold.guessed_reference import reference_body
from autotune.scaffold.reading import Assumptions, FoundKernel, Source
from autotune.scaffold.roles import Role, role_of
from autotune.scaffold.verify_sizes import is_checked, verify_sizes
from autotune.sources.bare_code import WORD

_EXTENTS = {1: (16_777_216, 1_048_576), 2: (4096, 512), 3: (256, 64)}  # of each size: on a GPU, on a CPU
_SMALL_EXTENTS = {1: (65_536, 4096), 2: (512, 64), 3: (64, 16)}


@dataclass(frozen=True)
class Guess:
    """The guessed parts of a space file.

    `sizes` has the extents for a GPU and a CPU, `verify_sizes` those of each check. `reference` holds the
    lines of a function's body, none where no formula was found.
    """

    launch: GuessedLaunch
    sizes: Mapping[str, tuple[int, int]]
    verify_sizes: tuple[tuple[int, ...], ...]
    arguments: tuple[GuessedArgument, ...]
    reference: tuple[str, ...]


def guess(kernel: FoundKernel, source: Source, assumed: Assumptions) -> Guess:
    """Guess the parts of a space file for one kernel of a source."""
    is_roomy = assumed.is_roomy
    launch = guess_launch(kernel, source, assumed)
    facts, names = launch.facts, launch.sizes
    roles = {item.name: role_of(item, facts) for item in kernel.arguments if item.is_pointer}
    reference = reference_body(launch.kernel, facts, roles, names)
    is_bounded = is_checked(facts) and not is_roomy
    tiled = (names, launch.grid, launch.block, launch.values)
    unguarded = {*launch.unguarded.values()}
    checks = verify_sizes(*tiled, checked=is_bounded, unguarded=unguarded)
    bounds = index_bounds(launch)
    arrays = [item.name for item in kernel.arguments if item.is_pointer and not item.symbol]
    shapes = {name: indexed_shape(name, launch, bounds) for name in arrays}
    dimensions = max([len(names), len(launch.axes), *(len(shape.extents) for shape in shapes.values())])
    extents = (_SMALL_EXTENTS if is_roomy else _EXTENTS)[min(3, dimensions)]
    tried = samples(launch, extents, checks)
    arguments = []
    for item in kernel.arguments:
        if item.symbol:
            arguments.append(variable_argument(item, launch.names))
        elif item.is_pointer:
            role = roles[item.name]
            shape = with_room(item, role, shapes[item.name], launch, bounds, tried, is_roomy=is_roomy)
            arguments.append(
                array_argument(item, role, shape, facts, has_reference=bool(reference), is_roomy=is_roomy)
            )
        else:
            arguments.append(scalar_argument(item, launch))
    if fixed := _of_the_problem(launch, arguments):
        return guess(kernel, source, replace(assumed, fixed=assumed.fixed | fixed))
    sizes = default_sizes(launch, arguments, extents)
    checks = fitting_checks(launch, arguments, checks)
    return Guess(launch, sizes, checks, tuple(arguments), reference)


def _of_the_problem(launch: GuessedLaunch, arguments: Sequence[GuessedArgument]) -> frozenset[str]:
    """Parameters with a default that alone give an input's extent, as a radius: they change the result."""
    open_words = {macro.name for macro in launch.source.macros if macro.default is not None}
    open_words &= launch.values.keys()
    open_words -= {*WORD.findall(" ".join((*launch.grid, *launch.block)))}
    extents = [{*WORD.findall(extent)} for item in arguments if item.role is Role.IN for extent in item.shape]
    return frozenset(name for words in extents if not words & {*launch.sizes} for name in words & open_words)
