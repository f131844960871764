"""The special values that `verify` asks for: the reference says what a kernel makes of them."""

from __future__ import annotations

from collections.abc import Sequence

from autotune.core.error_bounds import UNIT_ROUNDOFF
from autotune.core.fills import RANDOM_FILLS, SPECIAL_VALUES
from autotune.space.arguments import FilledArgument
from autotune.space.yaml_document import Element


def read_special(
    element: Element, arguments: Sequence[FilledArgument], dtypes: Sequence[str], *, has_file: bool
) -> tuple[str, ...]:
    """The names of the special values; raises SpaceError.

    Args:
        element: The list of names.
        arguments: All arguments.
        dtypes: Element types of the problem.
        has_file: Whether the reference is a file, which can be run on other inputs.
    """
    found = tuple(dict.fromkeys(item.choice(SPECIAL_VALUES) for item in element.items()))
    if not has_file:
        raise element.error("special values need a reference file, which is run on inputs that have them")
    for item in arguments:
        kinds = dtypes if item.dtype == "DTYPE" else (item.dtype,)
        if (
            item.fill is not None
            and item.fill.kind in RANDOM_FILLS
            and not UNIT_ROUNDOFF.keys().isdisjoint(kinds)
        ):
            return found
    raise element.error(
        f"no input has random floating-point numbers: expected a fill {', '.join(RANDOM_FILLS[:-1])} or "
        f"{RANDOM_FILLS[-1]} of an argument of type {', '.join(UNIT_ROUNDOFF)}"
    )
