"""Schema 1 of the cache's files: records to JSON text and back; where the files lie is not its business.

The text is stable, keys sorted and one value per line, so that a new result reads well in version
control. The field annotations of the records in `model` are the schema: each has its reader here.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass
from sys import float_info
from typing import Any, TypeVar

from autotune.errors import CacheError
from autotune.model import (
    ArgumentSpec,
    Config,
    DeviceInfo,
    Entry,
    KernelRecord,
    LaunchSpec,
    Parameter,
    ProblemKey,
    Provenance,
)
from autotune.plan import C_TYPES

SCHEMA = 1
# Left out when empty: files from before they existed are read, and written alike.
_LATER_KEYS = {"measured", "registers", "front", "work_bytes", "work_flops", "rivals", "compiler"}
# There are many measured configurations, so each has a line. No text has a line's end in it once it is JSON.
_MEASURED = r'(?ms)^( +)"measured": \[$.*?^\1\]'

_Read = Callable[[Any, str], Any]  # a JSON value and its place in the file, to a field's value
_T = TypeVar("_T")


class _Damaged(ValueError):
    """What was found at which place, and what was expected."""

    def __init__(self, place: str, expected: str, found: object) -> None:
        super().__init__(f"{place}: expected {expected}, found {str(found)[:60]!r}")


def record_text(record: KernelRecord) -> str:
    """The text of a kernel's file; raises CacheError for a number that JSON cannot hold."""
    # The order of derived names matters and keys are sorted, so they become a list.
    derived = [{"name": name, "expression": text} for name, text in record.derived.items()]
    return _dump(_plain(record) | {"derived": derived}, record.kernel)


def device_text(device: DeviceInfo) -> str:
    """The text of a device's file."""
    return _dump(_plain(device), device.name)


def entry_text(entry: Entry) -> str:
    """A result as one line: equal for equal results."""
    return json.dumps(_plain(entry), sort_keys=True)


def parse_record(text: str, path: str) -> KernelRecord:
    """Read a kernel's file; raises CacheError naming `path` when damaged or of another schema."""
    return _parse(_record, text, path)


def parse_device(text: str, path: str) -> DeviceInfo:
    """Read a device's file; raises CacheError naming `path` when damaged or of another schema."""
    return _parse(_object(DeviceInfo), text, path)


def damaged(path: str, reason: object) -> CacheError:
    """The error for a file that cannot be used, with the way out of it."""
    return CacheError(
        f"{path}: damaged: {reason}; restore it from version control, or delete it and tune again"
    )


def _dump(data: dict[str, Any], subject: str) -> str:
    try:
        text = json.dumps(
            data | {"schema": SCHEMA}, indent=2, sort_keys=True, allow_nan=False, ensure_ascii=False
        )
    except ValueError:
        raise CacheError(f"{subject}: a number of its results is not finite and cannot be stored") from None
    return re.sub(_MEASURED, _unbroken, text) + "\n"


def _unbroken(block: re.Match[str]) -> str:
    """A block of measured configurations with a line for each."""
    indent = len(block[1])
    return re.sub(rf"\n {{{indent + 4},}}|\n {{{indent + 2}}}(?=\])", " ", block[0])


def _plain(value: Any) -> Any:
    if is_dataclass(value):
        values = {item.name: _plain(getattr(value, item.name)) for item in fields(value)}
        return {name: item for name, item in values.items() if item or name not in _LATER_KEYS}
    if isinstance(value, Mapping):
        return {name: _plain(item) for name, item in value.items()}
    return [_plain(item) for item in value] if isinstance(value, tuple) else value


def _parse(read: Callable[[Any, str], _T], text: str, path: str) -> _T:
    try:
        data = json.loads(text)
        if not isinstance(data, dict):
            raise _Damaged("the file", "an object", data)
        schema = data.pop("schema", None)
        if schema == SCHEMA:
            return read(data, "")
    except (ValueError, RecursionError) as error:
        raise damaged(path, error) from None
    raise CacheError(
        f"{path}: schema {schema!r}, this version of autotune reads schema {SCHEMA}; "
        "install the version that wrote it, or delete it and tune again"
    )


def _object(record: type[_T]) -> Callable[[Any, str], _T]:
    def read(data: Any, place: str) -> _T:
        prefix = f"{place}." if place else ""
        items = fields(record)  # type: ignore[arg-type]
        if not isinstance(data, dict):
            raise _Damaged(place, "an object", data)
        required = {item.name for item in items} - _LATER_KEYS
        for name in sorted((required - data.keys()) | (data.keys() - {item.name for item in items})):
            raise _Damaged(prefix + name, "a value" if name not in data else "no such key", data.get(name))
        return record(
            **{
                item.name: _READERS[str(item.type)](data[item.name], prefix + item.name)
                for item in items
                if item.name in data
            }
        )

    return read


def _one_of(expected: str, *kinds: type) -> _Read:
    numbers = {int, float} if float in kinds else set()  # a whole number that no float can hold is none

    def read(value: Any, place: str) -> Any:
        if type(value) not in kinds or (type(value) in numbers and not abs(value) <= float_info.max):
            raise _Damaged(place, expected, value)
        return value

    return read


def _size(value: Any, place: str) -> int:
    if type(value) is not int or value < 1:
        raise _Damaged(place, "a whole number of at least 1", value)
    return value


def _record(data: Any, place: str) -> KernelRecord:
    """A record with one result a problem, of known element types: the rest of the package looks them up."""
    record = _object(KernelRecord)(data, place)
    types = [*record.dtypes, *(item.dtype for item in record.arguments if item.dtype != "DTYPE")]
    strange = next((name for name in types if name not in C_TYPES), None if record.dtypes else "none")
    if strange is not None:
        raise _Damaged("dtypes and arguments", f"element types among {', '.join(C_TYPES)}", strange)
    seen: set[ProblemKey] = set()
    for number, entry in enumerate(record.entries):
        if entry.problem in seen:
            sizes = "".join(f" {name}={size}" for name, size in entry.sizes.items())
            raise _Damaged(f"entries[{number}]", "a problem of its own", entry.dtype + sizes)
        seen.add(entry.problem)
    return record


def _list(read_item: _Read, length: int | None = None) -> _Read:
    def read(value: Any, place: str) -> tuple[Any, ...]:
        if not isinstance(value, list) or length not in (None, len(value)):
            raise _Damaged(place, "a list" if length is None else f"a list of {length}", value)
        return tuple(read_item(item, f"{place}[{number}]") for number, item in enumerate(value))

    return read


def _mapping(read_item: _Read) -> _Read:
    def read(value: Any, place: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise _Damaged(place, "an object", value)
        return {name: read_item(item, f"{place}.{name}") for name, item in value.items()}

    return read


def _config(value: Any, place: str) -> Config:
    if isinstance(value, dict) and _PLAIN.issuperset(map(type, value.values())):
        return Config(value)  # there are many of them, and few have a float
    return Config(_mapping(_value)(value, place))


def _front(value: Any, place: str) -> tuple[tuple[Any, ...], ...]:
    if not isinstance(value, list) or not all(isinstance(row, list) and len(row) == 3 for row in value):
        raise _Damaged(place, "a list of triples", value)
    return tuple(
        (_config(config, place), _number(time_ms, place), _number(energy_j, place))
        for config, time_ms, energy_j in value
    )


def _measured(value: Any, place: str) -> tuple[tuple[Any, ...], ...]:
    if not isinstance(value, list) or not all(isinstance(row, list) and len(row) == 2 for row in value):
        raise _Damaged(place, "a list of pairs", value)
    return tuple((_config(config, place), _number(time_ms, place)) for config, time_ms in value)


def _derived(value: Any, place: str) -> dict[str, str]:
    items = _list(_mapping(_text))(value, place)
    for number, item in enumerate(items):
        if item.keys() != {"name", "expression"}:
            raise _Damaged(f"{place}[{number}]", "a name and an expression", item)
    return {item["name"]: item["expression"] for item in items}


_PLAIN = {int, str, bool}
_text = _one_of("text", str)
_integer = _one_of("a whole number", int)
_number = _one_of("a finite number", int, float)
_value = _one_of("a number, text or truth value", int, float, str, bool)
_READERS: dict[str, _Read] = {
    "str": _text,
    "str | None": _one_of("text or null", str, type(None)),
    "int": _integer,
    "int | None": _one_of("a whole number or null", int, type(None)),
    "float": _number,
    "float | None": _one_of("a finite number or null", int, float, type(None)),
    "bool": _one_of("true or false", bool),
    "tuple[str, ...]": _list(_text),
    "tuple[Value, ...]": _list(_value),
    "tuple[float, float]": _list(_number, length=2),
    "Sizes": _mapping(_size),
    "Mapping[str, str]": _derived,
    "Mapping[str, Mapping[str, str]]": _mapping(_mapping(_text)),
    "Config": _config,
    "tuple[Config, ...]": _list(_config),
    "tuple[Parameter, ...]": _list(_object(Parameter)),
    "tuple[ArgumentSpec, ...]": _list(_object(ArgumentSpec)),
    "tuple[LaunchSpec, ...]": _list(_object(LaunchSpec)),
    "tuple[Entry, ...]": _list(_object(Entry)),
    "Provenance": _object(Provenance),
    "Measured": _measured,
    "Front": _front,
}
