"""Cut the host's functions from a CUDA source; lines keep their numbers.

A kernel's file often also holds a host program, whose libraries a compiler of device code does not have.
Kernels cannot call host functions, so they lose nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from autotune.core.brackets import closing

_MASKED = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|^[ \t]*#(?:[^\n\\]|\\\n|\\.)*""",
    re.DOTALL | re.MULTILINE,
)
_ALIAS = re.compile(
    r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\([^)]*\))?[ \t]+[^\n]*(?:__device__|__global__)", re.MULTILINE
)
_FOR_DEVICE = r"__device__|__global__|constexpr|__constant__"
_HOST_TYPE = re.compile(
    r"\bstd::(?:vector|string|map|set|list|unordered_\w+|shared_ptr|unique_ptr|function|chrono|mutex|thread|"
    r"[io]?f?stream)\b|\bcuda(?:Event|Stream|Graph|Array)_t\b|\bFILE\b|\bthrust::(?:device|host)_vector\b"
)
_HOST_VARIABLE = re.compile(
    r"\s*(?:static\s+|unsigned\s+|signed\s+)*(?:(?:int|long|short|float|double|char|bool|size_t|u?int\d+_t|"
    r"uint|ulong|ushort|uchar)[\s*]+|\w+\s*\*[\s*]*)\w+(?:\s*\[\w*\])*"
    r"(?:\s*,\s*\**\s*\w+(?:\s*\[\w*\])*)*(?:\s*=[^;{}]*)?"
)
_PROTOTYPE = re.compile(
    r"\s*(?!typedef\b)(?:static\s+|inline\s+)*\w[\w:]*(?:\s+\w+)*[\s*&]+\w+\s*\([^;{}=]*\)\s*"
)
_INSTANCE = re.compile(r"\s*template\s+(?!<)(?![^;]*__global__)")
_ALIGNED = re.compile(r"\b(?:__align__|alignas)\s*\([^()]*\)\s*")
_SCOPE = re.compile(r"\bnamespace\b|\bextern\s*$")
_FUNCTION = re.compile(r"\)\s*(?:const|noexcept)?\s*$")
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
_TYPE = re.compile(r"\b(?:struct|class|union|enum)\b")


def device_part(source: str) -> str:
    """The source with functions and types that only the host uses replaced by spaces."""
    masked = _MASKED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    for_device = re.compile("|".join((_FOR_DEVICE, *(rf"\b{name}\b" for name in _ALIAS.findall(source)))))
    kept = list(source)
    for begin, end in _host_parts(masked, for_device):
        kept[begin:end] = _blank(source[begin:end])
    return "".join(kept)


def _host_parts(masked: str, for_device: re.Pattern[str]) -> Iterator[tuple[int, int]]:
    """Where declarations and definitions begin and end that only the host uses.

    Args:
        masked: The source without comments, strings and directives.
        for_device: What a declaration for devices has.
    """
    begin = position = 0
    while (found := re.compile(r"[{};]").search(masked, position)) is not None:
        head, position = masked[begin : found.start()], found.end()
        is_scope = "(" not in head and _SCOPE.search(head) is not None
        if found[0] == "{" and not is_scope:  # the contents of a scope are examined one by one
            end = closing(masked, found.start(), "{}") + 1
            is_function = _FUNCTION.search(_ALIGNED.sub("", head)) is not None
            if not for_device.search(head) and is_function:
                yield begin, end
            elif not for_device.search(head) and _is_host_type(head, masked[found.start() : end]):
                end = masked.find(";", end) + 1 or end
                yield begin, end
            position = end
        elif found[0] == ";" and _is_host_declaration(head, for_device):
            yield begin, position
        begin = position


def _is_host_type(head: str, body: str) -> bool:
    """Whether a definition is of a type that holds what only the host has."""
    return _TYPE.search(head) is not None and _HOST_TYPE.search(body) is not None


def _is_host_declaration(head: str, for_device: re.Pattern[str]) -> bool:
    """Whether what ends with a semicolon declares something of the host's."""
    if _HOST_VARIABLE.fullmatch(head) or _INSTANCE.match(head):
        return True
    if "=" not in head and _HOST_TYPE.search(head):
        return True
    return _PROTOTYPE.fullmatch(head) is not None and not for_device.search(head)


def _blank(text: str) -> str:
    """Replace a text by spaces, except line ends and preprocessor directives."""
    kept, start = [], 0
    for directive in _DIRECTIVE.finditer(text):
        kept += [re.sub(r"[^\n]", " ", text[start : directive.start()]), directive[0]]
        start = directive.end()
    return "".join((*kept, re.sub(r"[^\n]", " ", text[start:])))
