"""Reads 64-bit ELF files, in which compilers put machine code: sections and symbols."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

_FILE = 4  # the kind of a symbol that names the file that was compiled


class Section(NamedTuple):
    """A named part of a file; one of uninitialised memory has a size and no content."""

    name: str
    content: bytes
    size_bytes: int
    link: int  # the number of the section that it refers to


class Symbol(NamedTuple):
    """A named place: `value` bytes from the start of the section of this number."""

    name: str
    is_file: bool  # the name of what was compiled
    other: int  # flags of the processor
    section: int
    value: int
    size_bytes: int


def read_sections(file: bytes) -> list[Section]:
    """The sections in their order, which is how a file numbers them; raises ValueError for another file."""
    try:
        magic, width = struct.unpack_from("<4sB", file)
        if (magic, width) != (b"\x7fELF", 2):
            raise ValueError("not a 64-bit ELF file")
        (table,) = struct.unpack_from("<Q", file, 40)
        entry_bytes, count, names = struct.unpack_from("<HHH", file, 58)
        heads = [struct.unpack_from("<IIQQQQI", file, table + place * entry_bytes) for place in range(count)]
        return [
            Section(_text(file, heads[names][4] + name), file[offset : offset + size], size, link)
            for name, _, _, _, offset, size, link in heads
        ]
    except (struct.error, IndexError, OverflowError) as error:
        raise ValueError(f"a damaged ELF file: {error}") from None


def read_symbols(sections: Sequence[Section]) -> list[Symbol]:
    """The symbols of a file in their order, which is how it numbers them; raises ValueError."""
    try:
        table = next(section for section in sections if section.name == ".symtab")
        names = sections[table.link].content
        return [
            Symbol(_text(names, name), info & 15 == _FILE, other, section, value, size)
            for name, info, other, section, value, size in struct.iter_unpack("<IBBHQQ", table.content)
        ]
    except (struct.error, IndexError, StopIteration) as error:
        raise ValueError(f"a damaged ELF file: {error}") from None


def _text(content: bytes, offset: int) -> str:
    return content[offset : content.index(b"\0", offset)].decode()
