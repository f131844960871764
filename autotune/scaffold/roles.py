"""Guess which arrays a kernel reads and writes."""

from __future__ import annotations

from enum import Enum

from autotune.scaffold.reading import KernelArgument
from autotune.sources.facts import Facts


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
