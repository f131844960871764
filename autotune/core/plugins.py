"""Entry points by which other distributions add devices and engines of a search."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from autotune.errors import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@cache
def plugins(group: str, taken: frozenset[str]) -> Mapping[str, EntryPoint]:
    """The entry points of a group by name; a name that is taken is left out, with a warning."""
    from importlib.metadata import entry_points  # reads files of every distribution

    entries: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        if entry.name in taken or entry.name in entries:
            warnings.warn(f"{_place(entry)}: not used, because the name is taken", stacklevel=2)
        else:
            entries[entry.name] = entry
    return entries


def load(entry: EntryPoint, *functions: str) -> Any:
    """Import what an entry point names; raises InputError if that fails, or without one of the functions."""
    try:
        plugin = entry.load()
    except Exception as error:  # noqa: BLE001 - the code of others
        raise plugin_error(entry, error) from None
    missing = [name for name in functions if not callable(getattr(plugin, name, None))]
    if missing:
        raise InputError(f"{_place(entry)}: {entry.value} has no function {' and no '.join(missing)}")
    return plugin


def plugin_error(entry: EntryPoint, error: Exception) -> InputError:
    """What the code of an entry point raised, in one line."""
    return InputError(f"{_place(entry)}: {type(error).__name__}: {' '.join(str(error).split())}")


def _place(entry: EntryPoint) -> str:
    owner = f" of {entry.dist.name}" if entry.dist else ""
    return f"entry point {entry.name} in {entry.group}{owner}"
