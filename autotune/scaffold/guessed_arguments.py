"""Guess what the arguments of a kernel hold: roles, shapes, fills and values."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from autotune.scaffold.array_shapes import GuessedShape, steers
from autotune.scaffold.guessed_launch import GuessedLaunch
from autotune.scaffold.reading import KernelArgument
from autotune.scaffold.roles import Role
from autotune.sources.bare_code import WORD
from autotune.sources.facts import Facts


@dataclass(frozen=True)
class GuessedArgument:
    """An argument of the space file: an array with role, shape and fill, or a scalar with a value.

    `is_result` holds for an array that the kernel only writes, whatever its role is for now; `is_indexed` for
    one that it reads or writes at all.
    """

    argument: KernelArgument
    role: Role | None
    shape: tuple[str, ...] = ()
    fill: str = ""
    value: str = ""
    remark: str = ""
    is_result: bool = False
    is_indexed: bool = True


def scalar_argument(argument: KernelArgument, launch: GuessedLaunch) -> GuessedArgument:
    """A number that is passed."""
    value, remark = launch.number(argument)
    return GuessedArgument(argument, None, value=value, remark=remark)


def variable_argument(argument: KernelArgument, names: Collection[str]) -> GuessedArgument:
    """A variable of the source that a program fills before a launch."""
    known = set(WORD.findall(argument.shape)) <= set(names)
    extents = argument.shape if known else "1"
    shape = (extents if argument.width == 1 else f"{argument.width} * {extents}",)
    remark = "" if known else "how many elements are copied?"
    return GuessedArgument(argument, Role.IN, shape, _fill(argument), remark=remark)


def array_argument(
    argument: KernelArgument,
    role: Role,
    guessed: GuessedShape,
    facts: Facts,
    *,
    has_reference: bool,
    is_roomy: bool,
) -> GuessedArgument:
    """An array with its role, and a fill if it has an input; `is_roomy` fills whole numbers with 0."""
    extents, question = list(guessed.extents), guessed.question
    if argument.width > 1:
        extents[-1] = f"{argument.width} * {_factor(extents[-1])}"
    guess = GuessedArgument(
        argument,
        role,
        (*extents,),
        remark=question,
        is_indexed=guessed.is_indexed,
        is_result=role is Role.OUT,
    )
    if role is Role.LOCAL or (role is Role.OUT and has_reference):
        return guess
    from_zero = replace(guess, fill="constant: 0")
    if role is Role.OUT:
        remark = f"{question}; when reference() returns it, make it `role: out`, without a fill"
        return replace(from_zero, role=Role.INOUT, remark=remark)
    if role is Role.SUM:
        return replace(from_zero, role=Role.INOUT, remark=f"{question}; atomics add to it, from 0")
    is_whole = "int" in argument.dtype
    if (is_whole and is_roomy) or (steers(argument.name, facts) and argument.dtype != "uint8"):
        remark = f"{question}; it holds indices or counts, and 0 is always in bounds: give real ones"
        return replace(from_zero, remark=remark)
    return replace(guess, fill=_fill(argument))


def _factor(extent: str) -> str:
    return extent if re.fullmatch(r"[\w *]+", extent) else f"({extent})"


def _fill(argument: KernelArgument) -> str:
    if argument.dtype.startswith(("float", "bfloat", "DTYPE")):
        return "uniform: [-1, 1]"
    if re.fullmatch(r"(?i).*(ind(ex|ices)|idx|map|perm\w*|order)", argument.name):
        return "sequence: [0, 1]"
    if argument.dtype == "uint8":
        return "integers: [0, 255]"
    return "integers: [0, 100]" if argument.dtype.startswith("u") else "integers: [-100, 100]"
