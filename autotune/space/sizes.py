"""Read the sizes of a space file: those to tune for, and those to verify at."""

from __future__ import annotations

from collections.abc import Collection

from autotune.core.records import Sizes
from autotune.core.text import hint
from autotune.space.parameters import new_name
from autotune.space.yaml_document import Element

_SIZE_SETS = ("default", "cpu", "gpu")


def _size_set(element: Element, declared: Collection[str] | None = None) -> dict[str, int]:
    sizes = {}
    for name, entry in element.mapping().items():
        if declared is None:
            new_name(entry, name, ())
        elif name not in declared:
            raise entry.error(f"unknown size{hint(name, declared)}")
        if entry.is_list or entry.shown.startswith(("range(", "powers_of_two(")):
            raise entry.error(
                f"expected one whole number, found {entry.shown}; write the one to tune for; sizes to verify "
                f"at are in `verify_sizes`, and --sweep {name}=FIRST:LAST:x2 searches for several"
            )
        sizes[name] = entry.integer()
        if sizes[name] < 1:
            raise entry.error(f"expected a whole number of at least 1, found {sizes[name]}")
    return sizes


def read_sizes(element: Element) -> dict[str, Sizes]:
    """The sets of sizes by name, `default` first among them; raises SpaceError."""
    entries = element.mapping(example="{default: {n: 1_000_000}}")
    if not {*_SIZE_SETS} & entries.keys():
        listed = ", ".join(f"{name}: {entry.shown}" for name, entry in entries.items())
        raise element.error(
            "expected sets of sizes by name: default, and cpu and gpu where they differ; write "
            f"`default: {{{listed}}}`"
        )
    entries = element.record(_SIZE_SETS[:1], _SIZE_SETS[1:])
    default = _size_set(entries["default"])
    sizes: dict[str, Sizes] = {kind: _size_set(entry, default) for kind, entry in entries.items()}
    for kind, entry in entries.items():
        if missing := [name for name in default if name not in sizes[kind]]:
            raise entry.error(f"missing size: {', '.join(missing)}")
    return sizes


def read_verify_sizes(element: Element | None, declared: Collection[str]) -> tuple[Sizes, ...]:
    """The sizes at which results are verified besides those to tune for; raises SpaceError."""
    if element is None:
        return ()
    for item in (items := element.items()):
        if item.is_scalar:
            texts = (
                size.shown if not size.is_scalar else f"{{{next(iter(declared))}: {size.shown}}}"
                for size in items
            )
            raise item.error(f"expected sizes by name, found {item.shown}; write [{', '.join(texts)}]")
    return tuple(_size_set(item, declared) for item in items)
