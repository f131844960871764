"""Guess which arrays a kernel reads and writes."""

from __future__ import annotations

import re
from enum import Enum

from autotune.core.brackets import closing
from autotune.scaffold.reading import KernelArgument

_NO_AXIS = r"(?<!\.)(?<!_INDEX\()(?<!_EXTENT\()"  # threadIdx.x and THREAD_INDEX(x) read no array x
_MEMBER = r"\.\w+(?:\[[^\[\]]*\])?"
_CHANGED = re.compile(rf"(?:{_MEMBER})*\s*(?:(?:[-+*/%&|^]|<<|>>)=|\+\+|--)|(?:{_MEMBER})+\s*=(?!=)")


class Role(Enum):
    """The role of an array; SUM is an `inout` array that atomics add to, LOCAL is local memory."""

    IN = "in"
    OUT = "out"
    INOUT = "inout"
    SUM = "sum"
    LOCAL = "local"


def role_of(argument: KernelArgument, body: str) -> Role:
    """The role that the uses of a pointer suggest; INOUT where they are ambiguous."""
    if argument.is_local:
        return Role.LOCAL
    if argument.is_const:
        return Role.IN
    reads = writes = escapes = sums = 0
    for match in re.finditer(rf"{_NO_AXIS}\b{argument.name}\b", body):
        before, after = body[: match.start()].rstrip(), body[match.end() :].lstrip()
        if re.search(r"(?i)atomic_?add\w*\s*\(\s*&?$", before):
            sums += 1
        elif after.startswith("[") and not before.endswith("&"):
            opening = body.index("[", match.end())
            rest = body[closing(body, opening) + 1 :].lstrip()
            written = re.match(r"=(?!=)", rest) is not None
            changed = _CHANGED.match(rest) is not None
            writes += written or changed
            reads += not written
        elif before.endswith("*") and re.match(r"=(?!=)", after):
            writes += 1
        else:
            escapes += 1
    if sums and not (reads or writes or escapes):
        return Role.SUM
    if writes and not (reads or escapes or sums):
        return Role.OUT
    return Role.IN if reads and not (writes or escapes or sums) else Role.INOUT
