"""What the types of a source are: C's, its aliases and structures, and those that it leaves to its user."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from autotune.core.c_types import POINTER
from autotune.core.expression_ops import round_up
from autotune.sources.facts import names_in
from autotune.sources.kernel_source import KernelSource
from autotune.sources.statements import parsed_expression
from autotune.sources.type_layouts import (
    ALIASES_OF_CUDA,
    STRUCT,
    UNKNOWN,
    TypeLayouts,
    assumed_bytes,
)
from autotune.sources.type_table import StructField

_OF_VECTOR = re.compile(r"[xyzw]{1,4}|[sS][0-9a-fA-F]+|lo|hi|odd|even")
_MAX_FIELDS = 64  # of a structure that is passed by value, with the elements of its arrays
_POINTER_BYTES = 8
_BITS = (ast.LShift, ast.RShift, ast.Mod, ast.BitXor, ast.BitAnd, ast.BitOr)


class Member(NamedTuple):
    """A number or a pointer in a structure that is passed by value."""

    path: str  # from the structure to it: `.at.x`, `.w[0]`; empty for a number that is in none
    place: int  # in bytes
    dtype: str
    field: StructField | None = None  # of a pointer

    @property
    def size_bytes(self) -> int:
        """Its size, of which its place is a multiple where nothing is around it."""
        return _POINTER_BYTES if self.dtype == POINTER else assumed_bytes(self.dtype)


class _Placed(NamedTuple):
    """A type that is passed by value."""

    members: tuple[Member, ...]
    size_bytes: int
    alignment_bytes: int


@dataclass(frozen=True)
class KnownTypes(TypeLayouts):
    """The types of a source; `generic` is given for the types that templates take."""

    generic: str = "DTYPE"
    chosen: dict[str, str] = field(default_factory=dict)  # types that stand in

    @classmethod
    def of(cls, source: KernelSource, generic: str = "DTYPE") -> KnownTypes:
        """The types of a source."""
        return cls(source, {**ALIASES_OF_CUDA, **source.types.aliases}, source.constants, generic)

    def members(self, kind: str) -> tuple[Member, ...]:
        """The numbers and pointers in a structure or a vector, also those of its arrays: `w[0]`, `at.x`.

        Empty for any other type, and where they do not lie as they would without what is around them.
        """
        placed = self._placed(kind)
        if placed is None or self.layout(kind)[0] == UNKNOWN:
            return ()
        end, widest = 0, 1
        for member in placed.members:
            size_bytes = member.size_bytes
            end, widest = round_up(end, size_bytes), max(widest, size_bytes)
            if end != member.place:
                return ()
            end += size_bytes
        is_alike = placed.size_bytes == round_up(end, widest)
        is_number = len(placed.members) == 1 and not placed.members[0].path
        return () if is_number or not is_alike else placed.members

    def _placed(self, kind: str) -> _Placed | None:
        """Where everything in a type lies; None if that cannot be told, or if there is too much of it."""
        declared = self.declared(kind)
        if declared is None or declared.is_union:
            is_own = kind in self.source.types.declared  # nothing stands in for it
            dtype, width = self.layout(kind if is_own else self._known(kind))
            if dtype in (UNKNOWN, STRUCT) or width > _MAX_FIELDS or (declared and width > 1):
                return None
            names = ["xyzw"[one] if width <= 4 else f"s{one:X}" for one in range(width)]
            paths = [f".{name}" for name in names] if width > 1 else [""]
            if declared:
                paths = [f".{declared.fields[0].name}"]
            size_bytes = assumed_bytes(dtype)
            numbers = [Member(path, one * size_bytes, dtype) for one, path in enumerate(paths)]
            return _Placed((*numbers,), width * size_bytes, self.alignment_bytes(kind))
        if not declared.is_plain or declared.is_packed:
            return None
        members: list[Member] = []
        end, widest = 0, max([1, *(self.constant(text) or 1 for text in declared.alignment)])
        for one in declared.fields:
            count = self.count(one)
            pointer = _Placed((Member("", 0, POINTER, one),), _POINTER_BYTES, _POINTER_BYTES)
            inside = pointer if one.pointers else self._placed(one.type)
            if inside is None or not 1 <= count <= _MAX_FIELDS:
                return None
            widest = max(widest, inside.alignment_bytes)
            before = f".{one.name}" if one.name else ""
            for number in range(count):
                end = round_up(end, inside.alignment_bytes)
                start = before + (f"[{number}]" if one.extents else "")
                members += [
                    part._replace(path=start + part.path, place=end + part.place) for part in inside.members
                ]
                end += inside.size_bytes
        if len(members) > _MAX_FIELDS:
            return None
        return _Placed((*members,), max(1, round_up(end, widest)), widest)

    def obstacle(self, kind: str, *, with_pointers: bool = False) -> str:
        """Why nobody can tell how the values of a structure lie; empty for another type."""
        declared = self.declared(kind)
        is_skipped = with_pointers and declared is not None and not declared.is_union
        for member in declared.fields if declared else ():
            if member.pointers and is_skipped:
                continue
            if member.pointers or member.type == self.resolved(kind):
                return f"{member.name} is a pointer"
            if inner := self.obstacle(member.type, with_pointers=with_pointers):
                is_path = inner.endswith(" is a pointer")
                return f"{member.name}.{inner}".removeprefix(".") if is_path else inner
            if self.layout(self._known(member.type))[0] == UNKNOWN:
                return f"the type {member.type} of {member.name} is not known"
            if self.count(member) == 0:
                words = names_in(ast.Tuple([*filter(None, map(parsed_expression, member.extents))]))
                given = "".join(f" (--define {word}=NUMBER gives it)" for word in sorted(words)[:1])
                return f"the extent of {member.name} is not known{given}"
        is_odd = declared is not None and not declared.is_plain
        return "it has a base, bit fields or parts that cannot be read" if is_odd else ""

    def is_unknown(self, name: str) -> bool:
        """True if a word is used as a type that the source leaves to its user."""
        return name in self._used and self.is_open(name)

    def is_open(self, name: str) -> bool:
        """True if nothing says what a type is."""
        return name not in self.source.types.declared and self.layout(name)[0] == UNKNOWN

    @property
    def unknown_structures(self) -> tuple[str, ...]:
        """The types that the source uses and leaves to its user, with members that no vector has."""
        unknown = (name for name in sorted(self._used) if name.isidentifier() and self.is_unknown(name))
        return tuple(name for name in unknown if not all(map(_OF_VECTOR.fullmatch, self._members(name))))

    @cached_property
    def _used(self) -> frozenset[str]:
        """The names of types that the device's functions and structures use."""
        fields = (
            member.type for structure in self.source.types.structures.values() for member in structure.fields
        )
        own = (name for function in self.source.device_functions for name in function.types)
        return frozenset((*fields, *own))

    def stand_in(self, name: str) -> str:
        """A type for one that the source leaves to its user.

        Whole numbers if they are shifted, masked or stand in an index, or if only structures have them.
        """
        if name not in self.chosen:
            self.chosen[name] = self._chosen(name)
        return self.chosen[name]

    def _chosen(self, name: str) -> str:
        if re.search("(?i)char|byte", name):
            return f"uchar{self.elements(name)}"
        width = re.search(r"(?<!\d)(?:16|[2348])$", name)
        elements = width[0] if width else self.elements(name)
        variables = self._variables(name)
        if not variables and name in self._used:  # of fields alone
            return "int"
        if any(_is_whole(names, parts) for names, parts in variables):
            return f"uint{elements}" if elements else "unsigned"
        return f"float{elements}"

    def _variables(self, kind: str) -> list[tuple[set[str], tuple[ast.AST, ...]]]:
        """For each function, its variables of a type and all that it consists of."""
        own = self.source.device_functions
        return [(function.variables_of(kind), function.parts) for function in own if kind in function.types]

    def elements(self, kind: str) -> str:
        """How many elements vectors have whose members are used, `p.w` or `p.s3`; empty if none is."""
        members = self._members(kind)
        places = ["xyzw".find(member) if len(member) == 1 else _numbered(member) for member in members]
        last = max(places, default=-1)
        return next((str(count) for count in (2, 4, 8, 16) if last < count), "") if last >= 0 else ""

    def _members(self, kind: str) -> set[str]:
        """The members that are used of the variables of a type."""
        return {
            part.attr
            for names, parts in self._variables(kind)
            for part in parts
            if isinstance(part, ast.Attribute) and _base(part.value) in names
        }

    def _known(self, kind: str) -> str:
        """A type itself, or what stands in for one that the source leaves to its user."""
        is_unknown = kind.isidentifier() and self.layout(kind)[0] == UNKNOWN
        return self.stand_in(kind) if is_unknown else kind


def _is_whole(names: set[str], parts: Iterable[ast.AST]) -> bool:
    """True if the values of variables are shifted, masked or stand in an index."""
    for part in parts:
        match part:
            case ast.Subscript(_, index) if names & names_in(index):
                return True
            case ast.BinOp(left, operator, right) | ast.AugAssign(left, operator, right):
                if isinstance(operator, _BITS) and (_base(left) in names or _base(right) in names):
                    return True
    return False


def _base(node: ast.AST) -> str:
    """The variable whose value, element or member an expression is; empty for any other."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _numbered(member: str) -> int:
    """The place of `s3` or `sA` in a vector; -1 for another member."""
    match = re.fullmatch(r"[sS]([0-9a-fA-F])", member)
    return int(match[1], 16) if match else -1
