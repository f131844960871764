"""Guess the values of the numbers that a kernel takes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from autotune.scaffold.macros import WORD
from autotune.scaffold.reading import FoundKernel, KernelArgument

_OFFSET = re.compile(r"(?i)offset|shift|start|begin|first|border|base")
_SHIFT = re.compile(r"(?:<<|>>)\s*(\w+|\([^()]*\))")


def is_offset(name: str, body: str) -> bool:
    """Whether a number is called like one that an index begins with, or says by how many bits to shift."""
    shifts = WORD.findall(" ".join(_SHIFT.findall(body)))
    return _OFFSET.search(name) is not None or name in shifts


def is_called(name: str, body: str) -> bool:
    """Whether a kernel calls an argument, which is a function object then."""
    return re.search(rf"(?<![\w.>]){name}\s*\(", body) is not None


def scalar_value(argument: KernelArgument, kernel: FoundKernel, sizes: Sequence[str]) -> str:
    """The value of a scalar argument in the space file: a size, 0 for an offset, else 1.

    Floats are 2, 3 and so on: a kernel that swaps two equal ones would pass.
    """
    if argument.name in sizes:
        return argument.name
    if "int" not in argument.dtype:
        floats = [item.name for item in kernel.arguments if not (item.is_pointer or "int" in item.dtype)]
        return str(2 + floats.index(argument.name))
    integers = [item.name for item in kernel.arguments if not item.is_pointer and "int" in item.dtype]
    if is_offset(argument.name, kernel.body):
        return "0"
    if is_called(argument.name, kernel.body):
        return "1"
    stands_for_n = argument.name == integers[0] and sizes[0] not in integers
    return sizes[0] if stands_for_n else "1"
