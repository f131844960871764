"""What the types of a source are: C's, its aliases and structures, and those that it leaves to its user."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property

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

_OF_VECTOR = re.compile(r"[xyzw]{1,4}|[sS][0-9a-fA-F]+|lo|hi|odd|even")
_MAX_FIELDS = 64  # of a structure that is passed by value, with the elements of its arrays
_BITS = (ast.LShift, ast.RShift, ast.Mod, ast.BitXor, ast.BitAnd, ast.BitOr)


@dataclass(frozen=True)
class KnownTypes(TypeLayouts):
    """The types of a source; `generic` is given for the types that templates take."""

    generic: str = "DTYPE"
    chosen: dict[str, str] = field(default_factory=dict)  # types that stand in

    @classmethod
    def of(cls, source: KernelSource, generic: str = "DTYPE") -> KnownTypes:
        """The types of a source."""
        return cls(source, {**ALIASES_OF_CUDA, **source.types.aliases}, source.constants, generic)

    def fields_of(self, kind: str) -> tuple[tuple[str, str], ...]:
        """Names and types of the numbers in a structure or a vector; empty for any other type."""
        kind = self.resolved(kind)
        if kind in self.source.types.structures:
            return self._fields(kind)
        dtype, width = self.layout(kind)
        if width == 1 or dtype in (UNKNOWN, STRUCT):
            return ()
        names = "xyzw"[:width] if width <= 4 else [f"s{number}" for number in range(width)]
        return tuple((name, dtype) for name in names)

    def obstacle(self, kind: str) -> str:
        """Why nobody can tell how the values of a structure lie; empty for another type."""
        kind = self.resolved(kind)
        declared = self.source.types.structures.get(kind)
        for member in declared.fields if declared else ():
            if member.is_pointer or member.type == kind:
                return f"{member.name} is a pointer"
            if inner := self.obstacle(member.type):
                return f"{member.name}.{inner}"
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

    def _fields(self, name: str) -> tuple[tuple[str, str], ...]:
        """Names and types of the numbers in a structure, also those of its arrays and vectors: `w_0`, `w_1`.

        Empty if a field holds anything else, or does not lie where the numbers alone would.
        """
        declared, whole = self.source.types.structures[name], self.structure(name)
        found: list[tuple[str, str]] = []
        place, widest = 0, 1
        if whole.dtype == STRUCT or declared.is_union or declared.is_packed or declared.alignment:
            return ()
        for member in declared.fields:
            kind = self._known(member.type)
            dtype, width = self.layout(kind)
            dtypes = {dtype for _, dtype in self.fields_of(kind)}
            if width > 1 and dtypes != {dtype}:  # bytes of several types
                return ()
            widest = max(widest, assumed_bytes(dtype))
            place = round_up(place, assumed_bytes(dtype))
            if place % self.alignment_bytes(kind):
                return ()
            numbers = range(self.count(member) * width)
            place += len(numbers) * assumed_bytes(dtype)
            names = [member.name] if len(numbers) == 1 else [f"{member.name}_{number}" for number in numbers]
            found += [(name, dtype) for name in names]
        is_alike = round_up(place, whole.alignment_bytes) == round_up(place, widest)
        return tuple(found) if is_alike and len(found) <= _MAX_FIELDS else ()


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
