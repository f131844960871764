"""How the types of a source lie in memory: C's, its aliases and its structures."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import NamedTuple

from autotune.core.c_types import C_TYPES, SCALARS, element_bytes
from autotune.core.expression_ops import round_up
from autotune.sources.kernel_source import KernelSource
from autotune.sources.statements import parsed_expression
from autotune.sources.type_table import StructField, StructureType, split_arguments
from autotune.sources.whole_numbers import number_of

UNKNOWN, STRUCT = "unknown", "structure"
ALIASES_OF_CUDA = {
    **{"dim3": "uint3", "cuDoubleComplex": "double2"},
    **dict.fromkeys(("cuComplex", "cuFloatComplex"), "float2"),
    **dict.fromkeys(("cudaTextureObject_t", "cudaSurfaceObject_t"), "unsigned long long"),
}
# Structures of cuRAND, of 48 and 64 bytes.
_STATES = dict.fromkeys(
    ("curandState", "curandState_t", "curandStateXORWOW", "curandStateXORWOW_t"), ("uint32", 12)
) | {"curandStatePhilox4_32_10": ("uint32", 16), "curandStatePhilox4_32_10_t": ("uint32", 16)}
_ALIASES = 8  # of aliases, one after the other
VECTOR = re.compile(r"(\w+?)(2|3|4|8|16)")
_MAX_ALIGNED = 16  # bytes, of vectors of CUDA


class Layout(NamedTuple):
    """A structure as so many elements of one type; STRUCT if its layout is not known."""

    dtype: str
    width: int
    alignment_bytes: int


_NO_LAYOUT = Layout(STRUCT, 1, 1)


@dataclass(frozen=True)
class TypeLayouts:
    """The types of a source."""

    source: KernelSource
    aliases: Mapping[str, str]
    constants: Mapping[str, ast.expr]  # that extents may read

    @classmethod
    def compiled(cls, source: KernelSource) -> TypeLayouts:
        """The types of a source whose macros have their values."""
        meanings = ((name, source.code.meaning(name) or "") for name in source.code.macros)
        numbers = {name: ast.Constant(int(text)) for name, text in meanings if text.isdigit()}
        return cls(source, {**ALIASES_OF_CUDA, **source.types.aliases}, {**source.constants, **numbers})

    @property
    def of_three(self) -> int:
        """The elements that a vector of three takes."""
        return 4 if self.source.dialect == "opencl" else 3

    def layout(self, kind: str) -> tuple[str, int]:
        """Element type and number of elements of a type, UNKNOWN or STRUCT where they cannot be told."""
        kind = self.resolved(kind)
        if kind in SCALARS:
            return SCALARS[kind], 1
        if kind == "void":  # of a pointer to bytes
            return "uint8", 1
        if declared := self.declared(kind):
            return self.structure(declared)[:2]
        vector = VECTOR.fullmatch(kind)
        if vector is not None and vector[1] in SCALARS:
            return SCALARS[vector[1]], self.of_three if vector[2] == "3" else int(vector[2])
        return _STATES.get(kind, (UNKNOWN, 1))

    def alignment_bytes(self, kind: str) -> int:
        """What addresses of a type are multiples of."""
        kind = self.resolved(kind)
        if declared := self.declared(kind):
            return self.structure(declared).alignment_bytes
        dtype, width = self.layout(kind)
        is_vector = width % 2 == 0 or self.of_three == 4
        aligned = assumed_bytes(dtype) * (width if is_vector else 1)
        return aligned if self.of_three == 4 else min(aligned, _MAX_ALIGNED)

    def bytes_of(self, kind: str) -> int | None:
        """The size of a type of numbers; None for any other."""
        dtype, width = self.layout(kind)
        return width * assumed_bytes(dtype) if dtype in C_TYPES else None

    def resolved(self, kind: str) -> str:
        """What an alias, or a macro with a value that is given, stands for."""
        for _ in range(_ALIASES):
            meaning = self.source.code.meaning(kind) or self.aliases.get(kind, kind)
            plain = " ".join(meaning.split()).removeprefix("const ")
            kind = plain.removeprefix("cuda::").removeprefix("std::")
        own = kind.rpartition("::")[2]
        return own if own in self.source.types.structures else kind

    def _known(self, kind: str) -> str:
        """A type itself; a subclass may say what stands in for one that is not known."""
        return kind

    def constant(self, text: str) -> int | None:
        """The value of an expression of numbers and constants; None if it has others."""
        node = parsed_expression(text)
        return None if node is None else number_of(_WithSizes(self).visit(node), self.constants)

    def count(self, declared: StructField) -> int:
        """The number of elements of a field; 0 if that is not known."""
        return prod(self.constant(text) or 0 for text in declared.extents)

    def declared(self, kind: str) -> StructureType | None:
        """The structure that a type names, with what a template is given in place of its parameters."""
        kind, structures = self.resolved(kind), self.source.types.structures
        name, bracket, given = kind.partition("<")
        if kind in structures or not bracket:
            return structures.get(kind)
        own = name.rpartition("::")[2].strip()
        if any(other.startswith(f"{own}<") for other in structures):  # which of its specializations it is
            return None
        return (
            structures[own].instance(split_arguments(given.rpartition(">")[0])) if own in structures else None
        )

    def structure(self, declared: StructureType) -> Layout:
        """A structure: its elements are bytes where the types of its fields differ."""
        alignments = [self.constant(text) or 1 for text in declared.alignment]
        widest = max([1, *alignments])
        dtypes: set[str] = set()
        size_bytes = 0
        if not declared.is_plain or any(
            member.pointers or member.type == declared.name for member in declared.fields
        ):
            return _NO_LAYOUT
        for member in declared.fields:
            kind, count = self._known(member.type), self.count(member)
            dtype, width = self.layout(kind)
            if dtype in (STRUCT, UNKNOWN) or count == 0:
                return _NO_LAYOUT
            dtypes.add(dtype)
            aligned = 1 if declared.is_packed else self.alignment_bytes(kind)
            widest = max(widest, aligned)
            before = 0 if declared.is_union else round_up(size_bytes, aligned)
            size_bytes = max(size_bytes, before + count * width * assumed_bytes(dtype))
        if not dtypes:
            return Layout("uint8", widest, widest)
        size_bytes = round_up(size_bytes, widest)
        dtype = dtypes.pop() if len(dtypes) == 1 else "uint8"
        return Layout(dtype, size_bytes // assumed_bytes(dtype), widest)


class _WithSizes(ast.NodeTransformer):
    """Writes numbers in place of the sizes of types."""

    def __init__(self, types: TypeLayouts) -> None:
        self._types = types

    def visit_Call(self, node: ast.Call) -> ast.expr:
        match node:
            case ast.Call(ast.Name("sizeof"), [ast.Constant(value=str(kind))]):
                return ast.Constant(self._types.bytes_of(kind))
        return node


def assumed_bytes(dtype: str) -> int:
    """The size of an element; 4 for DTYPE and for a type that is not known."""
    return element_bytes(dtype) if dtype in C_TYPES else 4
