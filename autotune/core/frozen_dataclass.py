"""Classes that behave as `dataclass(frozen=True)` makes them, without the module `dataclasses`.

That module imports `inspect` and compiles half a dozen functions for each class, which takes longer than a
whole look-up. Here `__init__` is compiled once there are many instances, and fields are described to the
functions of `dataclasses` on demand. Type checkers see `dataclasses`: import from `autotune.core.frozen`.
"""

from __future__ import annotations

from operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

_MISSING: Any = object()
_MANY = 100  # instances of a class: they take as long to make as it takes to compile an `__init__`


class Field:
    """A field's default, and whether it takes part in comparisons and texts."""

    def __init__(
        self,
        *,
        default: Any = _MISSING,
        default_factory: Any = _MISSING,
        repr: bool = True,
        hash: bool | None = None,
        compare: bool = True,
    ) -> None:
        self.name = ""
        self.default = default
        self.default_factory = default_factory
        self.repr = repr
        self.hash = compare if hash is None else hash
        self.compare = compare


field = Field


def dataclass(*, frozen: bool, eq: bool = True) -> Callable[[Any], Any]:
    """As `dataclasses.dataclass`, for frozen classes that inherit no fields."""
    assert frozen

    def decorate(cls: Any) -> Any:
        found = []
        for name in cls.__annotations__:
            default = cls.__dict__.get(name, _MISSING)
            item = default if isinstance(default, Field) else Field(default=default)
            item.name = name
            if item.default is not _MISSING:
                setattr(cls, name, item.default)
            elif name in cls.__dict__:
                delattr(cls, name)
            found.append(item)
        cls.__frozen_fields__ = tuple(found)
        cls.__init__ = _first_init(cls)
        methods: dict[str, Any] = {
            "__match_args__": tuple(item.name for item in found),
            "__repr__": _repr,
            "__setattr__": _refuse_to_set,
            "__delattr__": _refuse_to_delete,
        }
        if eq:
            hashed = _values(item.name for item in found if item.hash)
            methods["__eq__"] = _eq(_values(item.name for item in found if item.compare))
            methods["__hash__"] = lambda self: hash(hashed(self))
        for name, method in methods.items():
            if name not in cls.__dict__ or (name == "__hash__" and cls.__dict__[name] is None):
                setattr(cls, name, method)
        cls.__dataclass_fields__ = _Described("__dataclass_fields__", cls)
        cls.__dataclass_params__ = _Described("__dataclass_params__", cls)
        return cls

    return decorate


def fields(record: Any) -> tuple[Any, ...]:
    """As `dataclasses.fields`: objects with `name` and `compare`."""
    kind: Any = record if isinstance(record, type) else type(record)
    if "__frozen_fields__" in kind.__dict__:
        found: tuple[Field, ...] = kind.__frozen_fields__
        return found
    from dataclasses import fields  # a subclass with more of them

    return fields(kind)


def optional_fields(kind: type) -> frozenset[str]:
    """The names of the fields of a class that have a default."""
    return frozenset(item.name for item in fields(kind) if _has_default(item))


def replace(record: Any, **changes: Any) -> Any:
    """As `dataclasses.replace`."""
    return type(record)(**{item.name: getattr(record, item.name) for item in fields(record)} | changes)


def _first_init(cls: Any) -> Callable[..., None]:
    """An `__init__` for the first instances; the compiled one that follows says what is wrong with a call."""
    items = cls.__frozen_fields__
    names = [item.name for item in items]
    has_more = hasattr(cls, "__post_init__")
    left = _MANY

    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        nonlocal left
        left -= 1
        given = dict(zip(names, args)) | kwargs  # noqa: B905 - their numbers are compared below
        rest = [item for item in items if item.name not in given]
        is_right = len(args) + len(kwargs) + len(rest) == len(items) and all(map(_has_default, rest))
        if not left or not is_right:
            cls.__init__ = _compiled_init(cls)
            cls.__init__(self, *args, **kwargs)
            return
        for item in rest:
            given[item.name] = item.default if item.default_factory is _MISSING else item.default_factory()
        self.__dict__.update(given)
        if has_more:
            self.__post_init__()

    return init


def _has_default(item: Field) -> bool:
    return item.default is not _MISSING or item.default_factory is not _MISSING


def _compiled_init(cls: Any) -> Callable[..., None]:
    namespace: dict[str, Any] = {"_missing": _MISSING}
    parameters, lines = [], ["_own = self.__dict__"]
    for item in cls.__frozen_fields__:
        name = value = item.name
        if item.default_factory is not _MISSING:
            namespace[f"_make_{name}"] = item.default_factory
            value = f"_make_{name}() if {name} is _missing else {name}"
            parameters.append(f"{name}=_missing")
        elif item.default is not _MISSING:
            namespace[f"_default_{name}"] = item.default
            parameters.append(f"{name}=_default_{name}")
        else:
            parameters.append(name)
        lines.append(f"_own[{name!r}] = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    exec(f"def __init__(self, {', '.join(parameters)}):\n " + "\n ".join(lines), namespace)
    init: Callable[..., None] = namespace["__init__"]
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
    shown = (f"{item.name}={getattr(self, item.name)!r}" for item in self.__frozen_fields__ if item.repr)
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
            options = {"repr": item.repr, "hash": item.hash, "compare": item.compare}
            if item.default is not _MISSING:
                options["default"] = item.default
            if item.default_factory is not _MISSING:
                options["default_factory"] = item.default_factory
            content[item.name] = dataclasses.field(**options)
        twin: Any = dataclasses.dataclass(frozen=True)(type(self._cls.__name__, (), content))
        value = getattr(twin, self._name)
        setattr(self._cls, self._name, value)
        return value
