"""Guess what the arguments of a kernel are for: the roles of arrays, and the values of numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from enum import Enum

from autotune.scaffold.reading import FoundKernel, KernelArgument
from autotune.sources.facts import Facts, names_in

_OFFSET = re.compile(r"(?i)offset|shift|start|begin|first|border|base")


class Role(Enum):
    """The role of an array; SUM is an `inout` array that atomics add to, LOCAL is local memory."""

    IN = "in"
    OUT = "out"
    INOUT = "inout"
    SUM = "sum"
    LOCAL = "local"


def role_of(argument: KernelArgument, facts: Facts) -> Role:
    """The role that the uses of a pointer suggest; INOUT where they are ambiguous."""
    if argument.is_local:
        return Role.LOCAL
    if argument.is_const:
        return Role.IN
    uses = facts.of(argument.name)
    is_known = argument.name not in facts.escaped and bool(uses)
    if is_known and all("add" in use.atomic.lower() for use in uses):
        return Role.SUM
    if is_known and all(use.is_written and not use.is_read for use in uses):
        return Role.OUT
    return Role.IN if is_known and not any(use.is_written for use in uses) else Role.INOUT


def is_offset(name: str, facts: Facts) -> bool:
    """True if a number is called like one that an index begins with, or says by how many bits to shift."""
    shifts = (
        part.right
        for part in facts.expressions
        if isinstance(part, ast.BinOp) and isinstance(part.op, ast.LShift | ast.RShift)
    )
    return _OFFSET.search(name) is not None or any(name in names_in(shift) for shift in shifts)


def scalar_value(argument: KernelArgument, kernel: FoundKernel, facts: Facts, sizes: Sequence[str]) -> str:
    """The value of a scalar argument in the space file: a size, 0 for an offset, else 1.

    Floats are 2, 3 and so on: a kernel that swaps two equal ones would pass.
    """
    if argument.name in sizes:
        return argument.name
    if "int" not in argument.dtype:
        floats = [item.name for item in kernel.arguments if not (item.is_pointer or "int" in item.dtype)]
        return str(2 + floats.index(argument.name))
    if is_offset(argument.name, facts):
        return "0"
    if argument.name in facts.calls:
        return "1"
    stands_for_n = argument.name in kernel.integers[:1] and sizes[0] not in kernel.integers
    return sizes[0] if stands_for_n else "1"
