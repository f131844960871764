"""Readers that check the values of JSON files.

A reader takes a value and its place in the file, and returns the value or raises Damaged. Every file that
others may have written is read through them, so later code need not check again.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping
from sys import float_info
from typing import Any, TypeVar

from autotune.core.records import Config

T = TypeVar("T")
Read = Callable[[Any, str], Any]
_TIME = r"(\d{4})-(0[1-9]|1[0-2])-(0[1-9]|[12]\d|3[01])T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d\+00:00"
INT64_END = 2**63  # the largest signed 64-bit number, plus one


class Damaged(ValueError):
    """Raised by a reader: the value at this place of a file is not what the format expects."""

    def __init__(self, place: str, expected: str, found: object) -> None:
        super().__init__(f"{place or 'the file'}: expected {expected}, found {str(found)[:60]!r}")


class NoJson(ValueError):
    """A text that is not JSON, with the reason."""


def load(text: str) -> Any:
    """Parse a JSON text; raises NoJson if it is not JSON or nested too deeply."""
    try:
        return json.loads(text)
    except RecursionError:
        raise NoJson("nested too deeply") from None
    except ValueError as error:
        raise NoJson(error) from None


def is_name(text: object) -> bool:
    """True if a text is a C identifier: ASCII letters, digits and underscores, no digit first."""
    return isinstance(text, str) and text.isascii() and text.isidentifier()


def is_word(text: str) -> bool:
    """True if a text can be a named value of a parameter, which becomes part of a macro's name."""
    return is_name(f"_{text}")


def is_slug(text: object) -> bool:
    """True if a text can name a device's folder: lower-case letters and digits, single hyphens between."""
    return isinstance(text, str) and all(
        part.isascii() and part.isalnum() and part == part.lower() for part in text.split("-")
    )


def reader(is_right: Callable[[Any], bool], expected: str) -> Read:
    """A reader of values that pass `is_right`; `expected` describes them in messages."""

    def read(value: Any, place: str) -> Any:
        if not is_right(value):
            raise Damaged(place, expected, value)
        return value

    return read


def is_integer(value: object) -> bool:
    """True if a value is a whole number of up to 64 bits; booleans do not count."""
    return type(value) is int and -INT64_END <= value < INT64_END


def is_number(value: object) -> bool:
    """True if a value is a finite number; booleans do not count."""
    return type(value) in (int, float) and abs(value) <= float_info.max  # type: ignore[arg-type]


def is_text(value: object) -> bool:
    """True if a value is a text that UTF-8 can encode: without lone surrogates."""
    return type(value) is str and (value.isascii() or value.encode(errors="ignore").decode() == value)


def is_time(value: object) -> bool:
    """True if a value is a time in results' form: a second of UTC, such as 2026-03-01T12:00:00+00:00."""
    match = re.fullmatch(_TIME, value, re.ASCII) if isinstance(value, str) else None
    if match is None:
        return False
    year, month, day = map(int, match.groups())
    is_leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    days = (31, 29 if is_leap else 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return year > 0 and day <= days[month - 1]


integer = reader(is_integer, "a whole number of at most 64 bits")
size = reader(lambda value: is_integer(value) and value >= 1, "a whole number of at least 1")
number = reader(is_number, "a finite number")
amount = reader(
    lambda value: is_number(value) and value >= 0, "a finite number of at least 0"
)  # such as a time
truth = reader(lambda value: type(value) is bool, "true or false")
name = reader(is_name, "a name of letters, digits and underscores")
slug = reader(is_slug, "a device's slug of small letters, digits and hyphens")
text = reader(is_text, "text")
plain = reader(  # as other tools record them
    lambda value: type(value) is bool or is_number(value) or is_text(value), "a number, text or truth value"
)
time = reader(is_time, "a time such as 2026-03-01T12:00:00+00:00")
scalar = reader(  # a parameter's value
    lambda value: type(value) is bool or is_number(value) or (type(value) is str and is_word(value)),
    "a number, a truth value, or a word of letters, digits and underscores",
)
items = reader(lambda value: isinstance(value, list), "a list")
mapping = reader(lambda value: isinstance(value, dict), "an object")


def load_object(text: str, schema: int | None = None) -> dict[str, Any]:
    """Parse the JSON text of an object, whose `schema` is the given one; raises NoJson and Damaged."""
    content: dict[str, Any] = mapping(load(text), "")
    if schema is not None and content.get("schema") != schema:
        raise Damaged("schema", str(schema), content.get("schema"))
    return content


def nullable(read: Read) -> Read:
    """A reader that also accepts null."""
    return lambda value, place: None if value is None else read(value, place)


def choice(known: Mapping[str, object] | tuple[str, ...]) -> Read:
    """A reader of one of the known words."""
    return reader(lambda value: type(value) is str and value in known, f"one of {', '.join(known)}")


def list_of(read_item: Read) -> Read:
    """A reader of a list as a tuple."""
    return lambda value, place: tuple(
        read_item(item, f"{place}[{number}]") for number, item in enumerate(items(value, place))
    )


def row_of(*readers: Read) -> Read:
    """A reader of a list with one item for each of `readers`, as a tuple."""

    def read(value: Any, place: str) -> tuple[Any, ...]:
        if len(items(value, place)) != len(readers):
            raise Damaged(place, f"a list of {len(readers)}", value)
        return tuple(read_item(item, place) for read_item, item in zip(readers, value, strict=True))

    return read


def mapping_of(read_item: Read, read_key: Read) -> Read:
    """A reader of an object as a dictionary."""
    return lambda value, place: {
        read_key(key, place): read_item(item, f"{place}.{key}") for key, item in mapping(value, place).items()
    }


def config_of(read_item: Read) -> Callable[[Any, str], Config]:
    """A reader of a configuration whose values `read_item` accepts."""
    read = mapping_of(read_item, name)
    return lambda value, place: Config(read(value, place))


def distinct_names(names: list[Any], place: str) -> list[str]:
    """A non-empty list of distinct names."""
    read = list_of(name)(names, place)
    if not read or len(set(read)) < len(read):
        raise Damaged(place, "each name once, and one at least", names)
    return list(read)


def record(
    kind: Callable[..., T], readers: Mapping[str, Read], optional: Collection[str], value: Any, place: str
) -> T:
    """Read an object as a record, with a reader for each of its fields; `optional` ones may be missing.

    Raises Damaged if a field is missing, unknown, or refused by its reader.
    """
    given = mapping(value, place)
    prefix = f"{place}." if place else ""
    for name in sorted((readers.keys() - optional - given.keys()) | (given.keys() - readers.keys())):
        raise Damaged(prefix + name, "no such key" if name in given else "a value", given.get(name))
    return kind(**{name: read(given[name], prefix + name) for name, read in readers.items() if name in given})
