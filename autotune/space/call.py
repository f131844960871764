"""Read the section `call` of a space file: what a caller gives and gets."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.core.c_types import element_bytes
from autotune.core.records import CallSpec
from autotune.core.text import hint
from autotune.space.arguments import FilledArgument
from autotune.space.yaml_document import Element


def read_call(section: Element, arguments: Sequence[FilledArgument], dtypes: Sequence[str]) -> CallSpec:
    """Read which arrays a caller passes and gets; the fills say how the others start. Raises SpaceError."""
    entries = section.record(("inputs", "returns"))
    inputs = _names(entries["inputs"], arguments, ("in", "inout"))
    returns = _names(entries["returns"], arguments, ("out",))
    copies: dict[str, str] = {}
    kept: dict[str, int | float] = {}
    for argument in arguments:
        if argument.fill is None or argument.name in inputs:
            continue
        start = argument.fill.arguments[0] if argument.fill.arguments else None
        if argument.role == "inout" and argument.fill.kind == "copy" and start in inputs:
            copies[argument.name] = str(start)
        elif argument.role == "inout" and argument.fill.kind == "constant" and isinstance(start, int | float):
            kept[argument.name] = start
            types = dtypes if argument.dtype == "DTYPE" else (argument.dtype,)
            if start != 0 and any(element_bytes(dtype) > 4 for dtype in types):
                raise section.error(f"{argument.name} starts as {start}: types of 64 bits start as 0 only")
        else:
            raise section.error(
                f"nobody gives {argument.name}: add it to inputs, or make it inout with a fill that is a "
                "constant or a copy of an input"
            )
    return CallSpec(inputs, returns, copies, kept)


def _names(element: Element, arguments: Sequence[FilledArgument], roles: tuple[str, ...]) -> tuple[str, ...]:
    """One name or several; their arrays have one of the roles."""
    roles_of = {argument.name: argument.role for argument in arguments}
    suitable = [name for name, role in roles_of.items() if role in roles]
    found: list[str] = []
    for item in element.items() if element.is_list else [element]:
        name = item.text()
        if name not in suitable or name in found:
            known = f", of role {roles_of[name]}" if name in roles_of else hint(name, suitable)
            raise item.error(f"expected an array of role {' or '.join(roles)}, once; found {name!r}{known}")
        found.append(name)
    return tuple(found)
