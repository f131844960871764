"""Frozen records that a look-up can afford: `dataclass(frozen=True)` without the module `dataclasses`.

That module imports `inspect` and compiles half a dozen functions for each class, which takes as long as a
whole look-up (docs/decisions/0026). Only modules that `best_config` imports use this one. Type checkers see
`dataclasses`, and its functions accept these records, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NoReturn

_MISSING: Any = object()


class _Field:
    """A field's default, and whether comparisons include it."""

    def __init__(
        self, *, default: Any = _MISSING, default_factory: Any = _MISSING, compare: bool = True
    ) -> None:
        self.name = ""
        self.default = default
        self.default_factory = default_factory
        self.compare = compare


def _dataclass(*, frozen: bool, eq: bool = True) -> Callable[[Any], Any]:
    """As `dataclasses.dataclass`, for frozen classes that inherit no fields."""
    assert frozen

    def decorate(cls: Any) -> Any:
        items = []
        for name in cls.__annotations__:
            default = cls.__dict__.get(name, _MISSING)
            item = default if isinstance(default, _Field) else _Field(default=default)
            item.name = name
            if item.default is not _MISSING:
                setattr(cls, name, item.default)
            elif name in cls.__dict__:
                delattr(cls, name)
            items.append(item)
        names = tuple(item.name for item in items)
        cls.__frozen_fields__ = tuple(items)
        methods: dict[str, Any] = {
            "__init__": _init(cls),
            "__match_args__": names,
            "__repr__": _repr,
            "__setattr__": _refuse_to_set,
            "__delattr__": _refuse_to_delete,
        }
        if eq:
            compared = _values(item.name for item in items if item.compare)
            methods["__eq__"] = _eq(compared)
            methods["__hash__"] = lambda self: hash(compared(self))
        for name, method in methods.items():
            if name not in cls.__dict__:
                setattr(cls, name, method)
        cls.__dataclass_fields__ = _Described("__dataclass_fields__", cls)
        cls.__dataclass_params__ = _Described("__dataclass_params__", cls)
        return cls

    return decorate


def _fields(record: Any) -> tuple[Any, ...]:
    """As `dataclasses.fields`: objects with `name` and `compare`."""
    kind: Any = record if isinstance(record, type) else type(record)
    if "__frozen_fields__" in kind.__dict__:
        described: tuple[_Field, ...] = kind.__frozen_fields__
        return described
    from dataclasses import fields  # a subclass with further fields is a real dataclass

    return fields(kind)


def _replace(record: Any, **changes: Any) -> Any:
    """As `dataclasses.replace`."""
    return type(record)(**{item.name: getattr(record, item.name) for item in _fields(record)} | changes)


def optional_fields(kind: type) -> frozenset[str]:
    """The names of the fields of a class that have a default."""
    return frozenset(
        item.name
        for item in _fields(kind)
        if item.default is not _MISSING or item.default_factory is not _MISSING
    )


def _init(cls: Any) -> Callable[..., None]:
    items = cls.__frozen_fields__
    names = tuple(item.name for item in items)
    defaults = {item.name: item.default for item in items if item.default is not _MISSING}
    factories = {item.name: item.default_factory for item in items if item.default_factory is not _MISSING}
    expected = frozenset(names)

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        values = defaults | dict(zip(names, args)) | kwargs  # noqa: B905 - their numbers are compared below
        for name, make in factories.items():
            if name not in values:
                values[name] = make()
        is_right = len(args) <= len(names) and not (args and kwargs.keys() & names[: len(args)])
        if not is_right or values.keys() != expected:
            given = ", ".join((*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())))
            raise TypeError(f"{cls.__name__} has the fields {', '.join(names)}; given: {given}")
        self.__dict__.update(values)

    return init


def _values(names: Iterable[str]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that reads attributes as a tuple."""
    names = tuple(names)
    if len(names) > 1:
        return attrgetter(*names)
    return lambda record: tuple(getattr(record, name) for name in names)


def _eq(values: Callable[[Any], Any]) -> Callable[[Any, Any], bool]:
    def equals(self: Any, other: Any) -> bool:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    return equals


def _repr(self: Any) -> str:
    shown = (f"{item.name}={getattr(self, item.name)!r}" for item in self.__frozen_fields__)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _refuse_to_set(self: Any, name: str, value: object) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_to_delete(self: Any, name: str) -> NoReturn:
    from dataclasses import FrozenInstanceError

    raise FrozenInstanceError(f"cannot delete field {name!r}")


class _Described:
    """An attribute by which `dataclasses` knows a class, taken from a real dataclass at its first use."""

    def __init__(self, name: str, cls: Any) -> None:
        self._name, self._cls = name, cls

    def __get__(self, instance: object, owner: object) -> Any:
        import dataclasses

        content = {"__annotations__": self._cls.__annotations__}
        for item in self._cls.__frozen_fields__:
            options = {"compare": item.compare}
            if item.default is not _MISSING:
                options["default"] = item.default
            if item.default_factory is not _MISSING:
                options["default_factory"] = item.default_factory
            content[item.name] = dataclasses.field(**options)
        twin: Any = dataclasses.dataclass(frozen=True)(type(self._cls.__name__, (), content))
        value = getattr(twin, self._name)
        setattr(self._cls, self._name, value)
        return value


if TYPE_CHECKING:
    from dataclasses import dataclass, field, fields, replace
else:
    dataclass, field, fields, replace = _dataclass, _Field, _fields, _replace

__all__ = ["dataclass", "field", "fields", "optional_fields", "replace"]
