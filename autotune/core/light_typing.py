"""Names of `typing` for modules that a look-up imports: `typing` takes a sixth of a look-up's time."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar, cast
else:
    Any = object

    def _type_variable(name: str) -> type:
        return object

    def cast(kind: object, value: object) -> object:
        """Return the value."""
        return value

    TypeVar = _type_variable

__all__ = ["Any", "TypeVar", "cast"]
