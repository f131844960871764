"""Names of `typing` for modules that a look-up imports: `typing` takes a sixth of a look-up's time."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar

    T = TypeVar("T")
else:
    Any = T = object

__all__ = ["Any", "T"]
