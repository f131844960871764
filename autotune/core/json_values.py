"""Readers that check the values of JSON files.

A reader takes a value and its place in the file, and returns the value or raises Damaged. Every file that
others may have written is read through them, so that later code need not check again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping
from sys import float_info
from typing import Any, TypeVar

from autotune.core.records import Config

Read = Callable[[Any, str], Any]
_T = TypeVar("_T")
INT64_END = 2**63  # whole numbers that kernels and devices accept are below


class Damaged(ValueError):
    """A value that is not what a reader expects at its place in a file."""

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
    """Whether a text is a C identifier: ASCII letters, digits and underscores, no digit first."""
    return isinstance(text, str) and text.isascii() and text.isidentifier()


def is_word(text: str) -> bool:
    """Whether a text can be a named value of a parameter, which becomes part of a macro's name."""
    return is_name(f"_{text}")


def is_slug(text: object) -> bool:
    """Whether a text can name a device's folder: lower-case letters and digits, single hyphens between."""
    return isinstance(text, str) and all(
        part.isascii() and part.isalnum() and part == part.lower() for part in text.split("-")
    )


def one_of(expected: str, *kinds: type) -> Read:
    """A reader of values of exactly these types (True is not an int); numbers must be finite."""
    numbers = {int, float}

    def read(value: Any, place: str) -> Any:
        if type(value) not in kinds or (type(value) in numbers and not abs(value) <= float_info.max):
            raise Damaged(place, expected, value)
        return value

    return read


def integer(value: Any, place: str) -> int:
    """A whole number that fits into 64 bits."""
    if type(value) is not int or not -INT64_END <= value < INT64_END:
        raise Damaged(place, "a whole number of at most 64 bits", value)
    return value


def count(value: Any, place: str) -> int:
    """A whole number of at least 0."""
    if integer(value, place) < 0:
        raise Damaged(place, "a whole number of at least 0", value)
    return int(value)


def size(value: Any, place: str) -> int:
    """A whole number of at least 1."""
    if type(value) is not int or not 1 <= value < INT64_END:
        raise Damaged(place, "a whole number of at least 1", value)
    return value


def amount(value: Any, place: str) -> float:
    """A finite number of at least 0, such as a time."""
    if not number(value, place) >= 0:
        raise Damaged(place, "a number of at least 0", value)
    return value  # type: ignore[no-any-return]


def name(value: Any, place: str) -> str:
    """A C identifier."""
    if not is_name(value):
        raise Damaged(place, "a name of letters, digits and underscores", value)
    return str(value)


def slug(value: Any, place: str) -> str:
    """The name of a device's folder."""
    if not is_slug(value):
        raise Damaged(place, "a device's slug of small letters, digits and hyphens", value)
    return str(value)


def text(value: Any, place: str) -> str:
    """A text that UTF-8 can encode: without lone surrogates."""
    if type(value) is not str or not (value.isascii() or value.encode(errors="ignore").decode() == value):
        raise Damaged(place, "text", value)
    return value


def plain(value: Any, place: str) -> Any:
    """A finite number, a truth value or any text, as other tools record them."""
    return text(value, place) if type(value) is str else _plain(value, place)


def scalar(value: Any, place: str) -> Any:
    """A parameter's value: a finite number, a truth value or a word."""
    if type(value) is not str:
        return _plain(value, place)
    if not is_word(value):
        raise Damaged(place, "a number, a truth value, or a word of letters, digits and underscores", value)
    return value


def nullable(read: Read) -> Read:
    """A reader that also accepts null."""
    return lambda value, place: None if value is None else read(value, place)


def choice(known: Mapping[str, object] | tuple[str, ...]) -> Read:
    """A reader of one of the known words."""

    def read(value: Any, place: str) -> Any:
        if type(value) is not str or value not in known:
            raise Damaged(place, f"one of {', '.join(known)}", value)
        return value

    return read


def items(value: Any, place: str) -> list[Any]:
    """A list of any items."""
    if not isinstance(value, list):
        raise Damaged(place, "a list", value)
    return value


def list_of(read_item: Read, length: int | None = None) -> Read:
    """A reader of a list as a tuple, of a given length if one is given."""

    def read(value: Any, place: str) -> tuple[Any, ...]:
        if len(items(value, place)) != length and length is not None:
            raise Damaged(place, f"a list of {length}", value)
        return tuple(read_item(item, f"{place}[{number}]") for number, item in enumerate(value))

    return read


def row_of(*readers: Read) -> Read:
    """A reader of a list with one item for each of `readers`, as a tuple."""

    def read(value: Any, place: str) -> tuple[Any, ...]:
        if len(items(value, place)) != len(readers):
            raise Damaged(place, f"a list of {len(readers)}", value)
        return tuple(read_item(item, place) for read_item, item in zip(readers, value, strict=True))

    return read


def mapping_of(read_item: Read, read_key: Read) -> Read:
    """A reader of an object as a dictionary."""

    def read(value: Any, place: str) -> dict[str, Any]:
        return {
            read_key(key, place): read_item(item, f"{place}.{key}")
            for key, item in mapping(value, place).items()
        }

    return read


def mapping(value: Any, place: str) -> dict[str, Any]:
    """An object with any members."""
    if not isinstance(value, dict):
        raise Damaged(place, "an object", value)
    return value


def config_of(read_item: Read) -> Callable[[Any, str], Config]:
    """A reader of a configuration whose values `read_item` accepts."""
    read = mapping_of(read_item, name)
    return lambda value, place: Config(read(value, place))


def one_each(names: list[Any], place: str) -> list[str]:
    """A non-empty list of distinct names."""
    found = list_of(name)(names, place)
    if not found or len(set(found)) < len(found):
        raise Damaged(place, "each name once, and one at least", names)
    return list(found)


def record(
    kind: type[_T], readers: Mapping[str, Read], optional: Collection[str], value: Any, place: str
) -> _T:
    """Read an object as a record.

    Args:
        kind: The class of the record.
        readers: A reader for each of its fields.
        optional: Fields that may be missing.
        value: The object.
        place: Its place in the file, for messages.

    Raises:
        Damaged: A field is missing, unknown, or refused by its reader.
    """
    found = mapping(value, place)
    prefix = f"{place}." if place else ""
    for name in sorted((readers.keys() - optional - found.keys()) | (found.keys() - readers.keys())):
        raise Damaged(prefix + name, "no such key" if name in found else "a value", found.get(name))
    return kind(**{name: read(found[name], prefix + name) for name, read in readers.items() if name in found})


number = one_of("a finite number", int, float)
truth = one_of("true or false", bool)
_plain = one_of("a number, text or truth value", int, float, bool)
