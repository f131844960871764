"""The element types that C's types stand for, on a device and on a 64-bit host."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

from autotune.errors import InputError

# The element types of space files, as C writes them.
C_TYPES = {
    "int8": "char",
    "uint8": "unsigned char",
    "int16": "short",
    "uint16": "unsigned short",
    "int32": "int",
    "uint32": "unsigned int",
    "int64": "long",
    "uint64": "unsigned long",
    "float16": "half",
    "bfloat16": "__nv_bfloat16",
    "float32": "float",
    "float64": "double",
    "complex64": "float2",
    "complex128": "double2",
    "bool": "bool",
}
# For inputs of Triton kernels; without the headers of CUDA's toolkit, C has no type for it.
FLOAT8 = "float8_e4m3fn"
POINTER = "pointer"  # a field of a structure that is passed by value: the address of an array
# Compiled at first use: few look-ups need it.
_FIELD = r"([A-Za-z_]\w{0,63}):([a-z0-9]{1,10})(?:\[([1-9]\d{0,3})\])?"
SCALARS = {
    "bool": "uint8",
    "char": "int8",
    "signed char": "int8",
    "unsigned char": "uint8",
    "uchar": "uint8",
    "short": "int16",
    "unsigned short": "uint16",
    "ushort": "uint16",
    "int": "int32",
    "unsigned": "uint32",
    "unsigned int": "uint32",
    "uint": "uint32",
    "long": "int64",
    "long long": "int64",
    "unsigned long": "uint64",
    "unsigned long long": "uint64",
    "ulong": "uint64",
    "size_t": "uint64",
    "half": "float16",
    "__half": "float16",
    "__nv_bfloat16": "bfloat16",
    "nv_bfloat16": "bfloat16",
    "long int": "int64",
    "short int": "int16",
    "long long int": "int64",
    "unsigned short int": "uint16",
    "unsigned long int": "uint64",
    "unsigned long long int": "uint64",
    "long unsigned int": "uint64",
    "longlong": "int64",
    "ulonglong": "uint64",
    "cl_int": "int32",
    "float": "float32",
    "double": "float64",
    "DTYPE": "DTYPE",
} | {f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


Field = tuple[str, str, int]  # name, element type, number of elements; 0 for a field that is no array


def struct_dtype(fields: Iterable[Field]) -> str:
    """The name of a structure's element type, such as `struct(x:float32,cells:int32[4])`."""
    texts = (f"{name}:{kind}" + (f"[{count}]" if count else "") for name, kind, count in fields)
    return f"struct({','.join(texts)})"


@cache
def struct_fields(dtype: str) -> tuple[Field, ...]:
    """The fields of a structure; empty for any other type or text."""
    if not (dtype.startswith("struct(") and dtype.endswith(")")):
        return ()
    matches = [re.fullmatch(_FIELD, text) for text in dtype[7:-1].split(",")]
    fields = tuple((match[1], match[2], int(match[3] or 0)) for match in matches if match)
    names = {name for name, kind, _ in fields if kind in (*C_TYPES, POINTER)}
    return fields if len(names) == len(matches) else ()


def is_dtype(text: object) -> bool:
    """True if a text names an element type: one of C_TYPES, FLOAT8, or a structure."""
    return isinstance(text, str) and (text in (*C_TYPES, FLOAT8) or bool(struct_fields(text)))


@cache
def element_bytes(dtype: str) -> int:
    """The size of an element of one of C_TYPES, or of FLOAT8."""
    bits = re.search(r"\d+", dtype)
    return int(bits[0]) // 8 if bits else 1


def require_dtype_name(dtype: object, subject: str) -> None:
    """Raise InputError unless an element type is a name or None: numpy's types may equal their names."""
    if not isinstance(dtype, str | None):
        raise InputError(f'{subject}: dtype is a name, such as "float32"; found {dtype!r}')


def is_floating(dtype: str) -> bool:
    """True if a type holds real floating-point numbers."""
    return dtype.startswith(("float", "bfloat"))


def is_complex(dtype: str) -> bool:
    """True if a type holds pairs of floating-point numbers."""
    return dtype.startswith("complex")


def integer_limits(dtype: str) -> tuple[int, int] | None:
    """The lowest and the highest value of a whole number's type; None for any other type."""
    if dtype == "bool":
        return 0, 1
    if "int" not in dtype or struct_fields(dtype):
        return None
    bits = 8 * element_bytes(dtype)
    return (0, 2**bits - 1) if dtype.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
