"""Read language, kernels, arguments and macros from a kernel source.

Regular expressions instead of a compiler are enough for a first space file, which its user reviews.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from autotune.core.text import bare_code
from autotune.errors import InputError
from autotune.scaffold.macros import DEFINITION, WORD, Macro, find_macros

# The keyword before a kernel, by dialect; the first dialect with a match is that of the source.
_INTRODUCERS = {
    "portable": re.compile(r"\bKERNEL\b"),
    "cuda": re.compile(r"\b__global__\b"),
    "opencl": re.compile(r"\b__kernel\b|\bkernel\b(?=\s+(?:void|__attribute__)\b)"),
}
_ATTRIBUTE = re.compile(
    r"\b(KERNEL_BLOCK|KERNEL_RESIDENT_BLOCK|__launch_bounds__|reqd_work_group_size|__attribute__)\s*\("
)
_DIRECTIVE = re.compile(r"^[ \t]*#(?![ \t]*pragma)[^\n]*$", re.MULTILINE)
_TYPEDEF = re.compile(r"\btypedef\s+([\w\s]+?)\s+(\w+)\s*;")
_QUALIFIERS = re.compile(
    r"\b(?:volatile|restrict|__restrict__|__restrict|RESTRICT|__global|global|GLOBAL|__constant|constant|"
    r"__private|register|__grid_constant__)\b"
)
_UNSUPPORTED = {
    "__local": "takes dynamic local memory; declare the array in the kernel instead",
    "local": "takes dynamic local memory; declare the array in the kernel instead",
    "image2d_t": "is an image; autotune passes arrays and numbers only",
    "sampler_t": "is a sampler; autotune passes arrays and numbers only",
}
_SCALARS = {
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
    "float": "float32",
    "double": "float64",
    "DTYPE": "DTYPE",
} | {f"{sign}int{bits}_t": f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)}


@dataclass(frozen=True)
class KernelArgument:
    """One argument of a kernel; `width` is 4 for float4."""

    name: str
    text: str
    dtype: str
    width: int
    is_pointer: bool
    is_const: bool


@dataclass(frozen=True)
class FoundKernel:
    """A kernel with its arguments, its declared block and the text of its body.

    The block has three extents, or one if only its number of threads is declared, or none. `has_c_name` is
    False for a CUDA kernel that is not `extern "C"`.
    """

    entry: str
    arguments: tuple[KernelArgument, ...]
    block: tuple[str, ...]
    body: str
    has_c_name: bool


@dataclass(frozen=True)
class Source:
    """What was found in a source: at least one kernel, in the order of the text.

    `code` is the text without comments, strings and preprocessor directives other than pragmas.
    """

    dialect: str
    kernels: tuple[FoundKernel, ...]
    macros: tuple[Macro, ...]
    code: str


def read_kernels(name: str, text: str, dialect_words: Iterable[str]) -> Source:
    """Read a source; `dialect_words` are the macros of portable.h, `name` is for messages.

    Raises InputError when there is no kernel, or one that no launch plan can call.
    """
    code = bare_code(text)
    definitions = {match[1]: match[3].strip() for match in DEFINITION.finditer(code) if not match[2]}
    plain = _DIRECTIVE.sub("", code)
    for alias, meaning in definitions.items():
        if any(pattern.search(meaning) for pattern in _INTRODUCERS.values()):
            plain = re.sub(rf"\b{alias}\b", meaning, plain)
    for dialect, introducer in _INTRODUCERS.items():
        starts = [match.end() for match in introducer.finditer(plain)]
        kernels = [
            kernel for start in starts if (kernel := _kernel(name, plain, start, dialect, definitions))
        ]
        if kernels:
            taken = {argument.name for kernel in kernels for argument in kernel.arguments}
            taken.update(dialect_words if dialect == "portable" else ())
            return Source(dialect, tuple(kernels), tuple(find_macros(code, plain, taken, _SCALARS)), plain)
    raise InputError(
        f"{name}: no kernel found; expected a function that starts with KERNEL (the portable dialect), "
        "__global__ (CUDA C++) or __kernel (OpenCL C)"
    )


def _kernel(
    name: str, plain: str, start: int, dialect: str, definitions: dict[str, str]
) -> FoundKernel | None:
    """The kernel whose introducer ends at `start`; None for a declaration without body."""
    end = re.compile("[{;]").search(plain, start)
    if end is None or end[0] == ";":
        return None
    signature, block = _without_attributes(plain[start : end.start()])
    opening = signature.find("(")
    words = WORD.findall(signature[:opening])
    if opening < 0 or not words:
        raise InputError(f"{name}: cannot read the kernel that begins {signature.strip()[:40]!r}")
    before = plain[:start].rstrip()
    if re.search(r"\btemplate\s*<[^;{}]*$", before):
        raise InputError(
            f"{name}: {words[-1]} is a template, which cannot be launched by its name; "
            "write DTYPE for its type and macros for its numbers"
        )
    inside = signature[opening + 1 : closing(signature, opening)]
    types = {alias: " ".join(type_.split()) for type_, alias in _TYPEDEF.findall(plain)} | definitions
    arguments = tuple(
        _argument(f"{name}: {words[-1]}", text, types) for text in _split(inside) if text != "void"
    )
    exported = dialect != "cuda" or re.search(r"\bextern\s*(?:\{|[^;{}]*$)", before) is not None
    body = plain[end.end() : closing(plain, end.start())]
    return FoundKernel(words[-1], arguments, block, body, exported)


def _without_attributes(signature: str) -> tuple[str, tuple[str, ...]]:
    """Split a signature into the part without attributes and the block that an attribute declares."""
    block: tuple[str, ...] = ()
    while (match := _ATTRIBUTE.search(signature)) is not None:
        last = closing(signature, match.end() - 1)
        inside = signature[match.end() : last]
        if match[1] == "__attribute__":
            if (nested := _ATTRIBUTE.search(inside)) is not None:
                block = _split(inside[nested.end() : closing(inside, nested.end() - 1)])
        elif match[1] == "__launch_bounds__":
            block = _split(inside)[:1]
        else:
            block = _split(inside)[:3]
        signature = signature[: match.start()] + signature[last + 1 :]
    return signature, block


def _argument(place: str, text: str, types: dict[str, str]) -> KernelArgument:
    words = WORD.findall(text)
    for word in words[:-1]:
        if word in _UNSUPPORTED:
            raise InputError(f"{place}: {words[-1]} {_UNSUPPORTED[word]}")
    name = words[-1]
    kind = " ".join(
        word
        for word in WORD.findall(_QUALIFIERS.sub(" ", text.rpartition(name)[0]))
        if word not in ("const", "struct")
    )
    kind = " ".join(types.get(kind, kind).split())
    vector = re.fullmatch(r"([a-z]+)(2|3|4|8|16)", kind)
    if kind not in _SCALARS and vector is not None and vector[1] in _SCALARS:
        dtype, width = _SCALARS[vector[1]], int(vector[2])
    elif kind in _SCALARS:
        dtype, width = _SCALARS[kind], 1
    else:
        raise InputError(
            f"{place}: the type {kind or 'missing'!r} of {name} is not known; expected a type of C, "
            "or DTYPE, which autotune defines"
        )
    is_pointer = "*" in text or "[" in text
    if width > 1 and not is_pointer:
        raise InputError(f"{place}: {name} is a vector passed by value; autotune passes plain numbers")
    is_const = re.search(r"\bconst\b", text.partition("*")[0]) is not None or "constant" in text
    return KernelArgument(name, " ".join(text.split()), dtype, width, is_pointer, is_const)


def closing(text: str, opening: int) -> int:
    """The position of the bracket that closes the one at `opening`; the end of the text without one."""
    depth = 0
    for position in range(opening, len(text)):
        depth += (text[position] in "([{") - (text[position] in ")]}")
        if depth == 0:
            return position
    return len(text)


def _split(text: str) -> tuple[str, ...]:
    """Split at the commas outside brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "([{") - (letter in ")]}")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return tuple(" ".join(part.split()) for part in parts if part.strip())
