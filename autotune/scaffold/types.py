"""What the types of a source are: C's, its aliases and structures, and those that it leaves to its user."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from autotune.core.brackets import closing
from autotune.core.c_types import C_TYPES, SCALARS, element_bytes
from autotune.scaffold.macros import WORD, with_values

UNKNOWN, STRUCT = "unknown", "structure"
_ALIASES = 8  # of aliases, one after the other
_VECTOR = re.compile(r"(\w+?)(2|3|4|8|16)")
_MAX_ALIGNED = 16  # bytes, of vectors of CUDA
_BYTE = re.compile(r"(?i)char|byte")
_TYPEDEF = re.compile(r"\btypedef\s+([\w\s]+?)\s+(\w+)\s*;|\busing\s+(\w+)\s*=\s*([\w\s:]+?)\s*;")
_DECLARED = re.compile(  # types that a source declares anywhere, also those whose layout is not read
    r"\busing\s+(\w+)\s*=|\btypedef\b[^;{}]*?\b(\w++)\s*+(?:\[[^;]*+)?+;|\b(?:typename|class)\s+(\w+)|"
    r"\b(?:struct|class|union)\b[^;{}]*?\b(\w+)\s*+(?:final\s*+)?(?:[:<][^;{}]*+)?+\{"
)
_ATTRIBUTES = (
    r"((?:\s*(?:__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|(?:__align__|alignas)\s*\(\s*\d+\s*\)))*)\s*"
)
_STRUCTURE = re.compile(rf"\b(struct|class|union)\b{_ATTRIBUTES}(\w*)\s*\{{")
_ALIAS = re.compile(rf"{_ATTRIBUTES}(\w*)\s*;")
_ALIGNED = re.compile(r"align\w*\s*\(\s*(\d+)")
_ACCESS = re.compile(r"\b(?:public|private|protected)\s*:")
_ENUMERATION = re.compile(
    r"\benum\s+(?:(?:class|struct)\s+)?(\w*)\s*(?::\s*([\w\s:]+?)\s*)?\{[^{}]*\}\s*(\w*)\s*;"
)
_MAX_FIELDS = 64  # of a structure that is passed by value, with the elements of its arrays
_BODY = re.compile(r"\{[^{}]*\}")
_METHOD = re.compile(r"[^;@]*\([^;@]*\)[^;@]*[;@]")  # with @ for its body
_FIELD = re.compile(r"\s*((?:\w+\s+)+)([\w\s,\[\]]+)$")
_COMPLEX = {
    "cuFloatComplex": ("float32", 2),
    "cuComplex": ("float32", 2),
    "cuDoubleComplex": ("float64", 2),
}


class Structure(NamedTuple):
    """A structure as so many elements of one type; STRUCT if its layout is not known."""

    dtype: str
    width: int
    alignment_bytes: int


_NO_LAYOUT = Structure(STRUCT, 1, 1)


@dataclass(frozen=True)
class KnownTypes:
    """Aliases and structures of a source, and the numbers that its macros define.

    `fields` has the names and types of the structures that hold only numbers, `code` the source itself, and
    `declared` the names of types that it declares, whether or not their layout is known.
    `generic` is given for the types that templates take, and a vector of three takes `of_three` elements.
    """

    aliases: Mapping[str, str]
    structures: Mapping[str, Structure]
    definitions: Mapping[str, str]
    fields: Mapping[str, Sequence[tuple[str, str]]] = field(default_factory=dict)
    code: str = ""
    declared: frozenset[str] = frozenset()
    generic: str = "DTYPE"
    of_three: int = 3

    def with_parameters(self, given: Mapping[str, str]) -> KnownTypes:
        """The same with types that a template takes, and what each stands for."""
        return replace(self, aliases={**self.aliases, **given})

    def layout(self, kind: str) -> tuple[str, int]:
        """Element type and number of elements of a type, UNKNOWN or STRUCT where they cannot be told."""
        kind = self._resolved(kind)
        if kind in SCALARS:
            return SCALARS[kind], 1
        if kind == "void":  # of a pointer to bytes
            return "uint8", 1
        if kind in _COMPLEX:
            return _COMPLEX[kind]
        if kind in self.structures:
            return self.structures[kind][:2]
        vector = _VECTOR.fullmatch(kind)
        if vector is not None and vector[1] in SCALARS:
            return SCALARS[vector[1]], self.of_three if vector[2] == "3" else int(vector[2])
        return UNKNOWN, 1

    def alignment_bytes(self, kind: str) -> int:
        """What addresses of a type are multiples of."""
        kind = self._resolved(kind)
        if kind in self.structures:
            return self.structures[kind].alignment_bytes
        dtype, width = self.layout(kind)
        is_vector = width % 2 == 0 or self.of_three == 4
        aligned = assumed_bytes(dtype) * (width if is_vector else 1)
        return aligned if self.of_three == 4 else min(aligned, _MAX_ALIGNED)

    def fields_of(self, kind: str) -> tuple[tuple[str, str], ...]:
        """Names and types of the numbers in a structure or a vector; empty for any other type."""
        kind = self._resolved(kind)
        dtype, width = self.layout(kind)
        if kind in self.structures:
            return tuple(self.fields.get(kind, ()))
        if width == 1 or dtype in (UNKNOWN, STRUCT):
            return ()
        names = "xyzw"[:width] if width <= 4 else [f"s{number}" for number in range(width)]
        return tuple((name, dtype) for name in names)

    def number(self, text: str) -> str:
        """An extent with the values of the macros that the source defines."""
        for _ in range(_ALIASES):
            text = with_values(text, self.definitions)
        return text if re.fullmatch(r"[A-Za-z_]\w*|\d+", text) else f"({text})"

    def is_unknown(self, name: str) -> bool:
        """Whether a word is used as a type that the source leaves to its user."""
        if name in self.declared:
            return False
        used = (
            rf"\bconst\s+{name}\b\s*[*\w]|\b{name}\s*\*\s*\)|\bsizeof\s*\(\s*{name}\s*\)|"
            rf"\b{name}\s+\w+\s*[=;,)\[]"
        )
        return self.layout(name)[0] == UNKNOWN and re.search(used, self.code) is not None

    def stand_in(self, name: str) -> str:
        """A type for one that the source leaves to its user.

        Whole numbers if they are shifted, masked or stand in an index.
        """
        width = re.search(r"[234]$", name)
        variables = "|".join(re.findall(rf"\b{name}\b[\s*]+(?:(?:__)?restrict(?:__)?\s+)?(\w+)", self.code))
        index = rf"\[[^\[\]]*\b(?:{variables})\b"
        bits = rf"\b(?:{variables})\b\s*(?:\[[^\[\]]*\]\s*)?(?:<<|>>|%|\^|&(?!&)|\|(?!\|))"
        elements = width[0] if width else self._elements(variables)
        if _BYTE.search(name):
            return f"uchar{elements}"
        if variables and re.search(f"{bits}|{index}", self.code):
            return f"uint{elements}" if elements else "unsigned"
        return f"float{elements}"

    def _elements(self, variables: str) -> str:
        """How many elements vectors have whose members are used, `p.w` or `p.s3`; empty if none is."""
        used = rf"(?<![\w.])(?:{variables})\b\s*(?:\[[^\[\]]*\]\s*)?\.\s*([xyzw]|s[0-9a-fA-F])\b"
        members = re.findall(used, self.code) if variables else []
        last = max(["xyzw".find(one) if one in "xyzw" else int(one[1:], 16) for one in members], default=0)
        return next(str(count) for count in (2, 4, 8, 16) if last < count) if members else ""

    def _resolved(self, kind: str) -> str:
        for _ in range(_ALIASES):
            kind = " ".join(self.aliases.get(kind, kind).split())
        return kind


def known_types(plain: str, definitions: Mapping[str, str], *, is_opencl: bool) -> KnownTypes:
    """Read the aliases and structures of a source without directives.

    A vector of three has the size of one of four in OpenCL only.
    """
    meanings: dict[str, list[str]] = {}
    for match in _TYPEDEF.finditer(plain):
        name, meaning = (match[2], match[1]) if match[2] else (match[3], match[4])
        words = [word for word in WORD.findall(meaning) if word not in ("struct", "std", "const")]
        meanings.setdefault(name, []).append(" ".join(words))
    aliases = {name: widest_meaning(texts) for name, texts in meanings.items()}
    for match in _ENUMERATION.finditer(plain):
        aliases |= dict.fromkeys(filter(None, (match[1], match[3])), match[2] or "int")
    aliases = {"dim3": "uint3", **aliases, **definitions}
    declared = frozenset(name for names in _DECLARED.findall(plain) for name in names if name)
    known = KnownTypes(
        aliases, {}, definitions, code=plain, declared=declared, of_three=4 if is_opencl else 3
    )
    structures: dict[str, Structure] = {}
    fields: dict[str, Sequence[tuple[str, str]]] = {}
    for match in _STRUCTURE.finditer(plain):
        end = closing(plain, match.end() - 1)
        alias = _ALIAS.match(plain, end + 1)
        attributes = match[2] + (alias[1] if alias else "")
        inside = _without_methods(plain[match.end() : end])
        for name in filter(None, (match[3], alias and alias[2])):
            known = replace(known, structures=structures, fields=fields)
            structures[name] = _structure(inside, known, attributes, is_union=match[1] == "union")
            fields[name] = _fields(inside, known) if match[1] != "union" and not attributes else []
    return replace(known, structures=structures, fields=fields)


def _without_methods(inside: str) -> str:
    """What stands in a structure, without its member functions."""
    while _BODY.search(inside):
        inside = _BODY.sub("@", inside)
    return _METHOD.sub("", _ACCESS.sub("", inside))


def widest_meaning(meanings: Sequence[str]) -> str:
    """The meaning of a name that has several under conditions: the first, as its longest vector.

    Arrays then have room for the vectors of every configuration.
    """
    first = meanings[0]
    base = re.sub(r"\d+$", "", first)
    vectors = [match for text in meanings if (match := _VECTOR.fullmatch(text)) and match[1] in SCALARS]
    alike = [match for match in vectors if match[1] == base or base not in SCALARS]
    return max(alike, key=lambda match: int(match[2]))[0] if alike else first


def _fields(inside: str, types: KnownTypes) -> list[tuple[str, str]]:
    """Names and types of the numbers in a structure, also those of its arrays and vectors: `w_0`, `w_1`.

    Empty if a field holds anything else, or does not lie where the numbers alone would.
    """
    found: list[tuple[str, str]] = []
    place = 0
    widest = own_widest = 1
    for match in map(_FIELD.match, filter(None, (part.strip() for part in inside.split(";")))):
        kind = " ".join(match[1].split()) if match else ""
        dtype, width = types.layout(kind) if match else (STRUCT, 1)
        if match is None or dtype in (UNKNOWN, STRUCT):
            return []
        if width > 1 and {one for _, one in types.fields_of(kind)} != {dtype}:  # bytes of several types
            return []
        widest = max(widest, types.alignment_bytes(kind))
        own_widest = max(own_widest, assumed_bytes(dtype))
        for name, count in _declared(match[2], types):
            place = _round_up(place, assumed_bytes(dtype))
            if count == 0 or place % types.alignment_bytes(kind):
                return []
            place += count * width * assumed_bytes(dtype)
            names = [name] if count * width == 1 else [f"{name}_{number}" for number in range(count * width)]
            found += [(one, dtype) for one in names]
    is_alike = _round_up(place, widest) == _round_up(place, own_widest)
    return found if is_alike and len(found) <= _MAX_FIELDS else []


def _declared(names: str, types: KnownTypes) -> Iterator[tuple[str, int]]:
    """The names of fields, each with its number of elements; 0 if that is not known."""
    for name in names.split(","):
        counts = [types.number(count) for count in re.findall(r"\[([^\]]*)\]", name)]
        is_known = all(count.isdigit() for count in counts)
        yield name.partition("[")[0].strip(), math.prod(map(int, counts)) if is_known else 0


def _round_up(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def _structure(fields: str, types: KnownTypes, attributes: str, *, is_union: bool) -> Structure:
    """Read a structure: its elements are bytes where the types of its fields differ."""
    dtypes: set[str] = set()
    is_packed = "packed" in attributes
    size_bytes = 0
    widest = max([1, *map(int, _ALIGNED.findall(attributes))])
    for text in filter(None, (part.strip() for part in fields.split(";"))):
        match = _FIELD.match(text)
        kind = " ".join(match[1].split()) if match else ""
        dtype, width = types.layout(kind) if match else (STRUCT, 1)
        if dtype == UNKNOWN:  # a type that the source leaves to its user
            kind = types.stand_in(kind) if kind.isidentifier() else ""
            dtype, width = types.layout(kind) if kind else (STRUCT, 1)
        if match is None or dtype == STRUCT:
            return _NO_LAYOUT
        dtypes.add(dtype)
        aligned = 1 if is_packed else types.alignment_bytes(kind)
        widest = max(widest, aligned)
        for _, count in _declared(match[2], types):
            if count == 0:
                return _NO_LAYOUT
            total_bytes = count * width * assumed_bytes(dtype)
            before = 0 if is_union else _round_up(size_bytes, aligned)
            size_bytes = max(size_bytes, before + total_bytes)
    if not dtypes:
        return _NO_LAYOUT if fields.strip() else Structure("uint8", widest, widest)
    size_bytes = _round_up(size_bytes, widest)
    dtype = dtypes.pop() if len(dtypes) == 1 else "uint8"
    return Structure(dtype, size_bytes // assumed_bytes(dtype), widest)


def assumed_bytes(dtype: str) -> int:
    """The size of an element; 4 for DTYPE and for a type that is not known."""
    return element_bytes(dtype) if dtype in C_TYPES else 4
