"""Cut the host's functions from a CUDA source; lines keep their numbers.

A kernel's file often also holds a host program, whose libraries a compiler of device code does not have.
Kernels cannot call host functions, so they lose nothing.
"""

from __future__ import annotations

import re

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
    r"\s*(?:static\s+|unsigned\s+|signed\s+)*(?:int|long|float|double|char|bool|size_t)[\s*]+\w+(?:\s*\[\w*\])*"
    r"(?:\s*,\s*\**\s*\w+(?:\s*\[\w*\])*)*(?:\s*=[^;{}]*)?"
)
_PROTOTYPE = re.compile(
    r"\s*(?!typedef\b)(?:static\s+|inline\s+)*\w[\w:]*(?:\s+\w+)*[\s*&]+\w+\s*\([^;{}=]*\)\s*"
)
_INSTANCE = re.compile(r"\s*template\s+(?!<)(?![^;]*__global__)")
_ALIGNED = re.compile(r"\b(?:__align__|alignas)\s*\([^()]*\)\s*")
_FUNCTION = re.compile(r"\)\s*(?:const|noexcept)?\s*$")
_DIRECTIVE = re.compile(r"^[ \t]*#(?:[^\n\\]|\\\n|\\.)*", re.MULTILINE)
_TYPE = re.compile(r"\b(?:struct|class|union|enum)\b")


def device_part(source: str) -> str:
    """The source with functions and types that only the host uses replaced by spaces."""
    masked = _MASKED.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)
    for_device = re.compile("|".join((_FOR_DEVICE, *(rf"\b{name}\b" for name in _ALIAS.findall(source)))))
    kept = list(source)
    begin = position = 0
    while (found := re.compile(r"[{};]").search(masked, position)) is not None:
        position = found.end()
        head = masked[begin : found.start()]
        if found[0] != "{":
            is_host = "=" not in head and _HOST_TYPE.search(head) is not None
            is_host |= bool(_HOST_VARIABLE.fullmatch(head) or _INSTANCE.match(head))
            is_host |= bool(_PROTOTYPE.fullmatch(head) and not for_device.search(head))
            if found[0] == ";" and is_host:
                kept[begin:position] = _blank(source[begin:position])
            begin = position
        elif re.search(r"\bnamespace\b|\bextern\s*$", head) and "(" not in head:
            begin = position  # its contents are examined one by one
        else:
            end = closing(masked, found.start(), "{}") + 1
            body = masked[found.start() : end]
            is_function = _FUNCTION.search(_ALIGNED.sub("", head)) is not None
            is_type = not is_function and _TYPE.search(head) is not None
            if (is_function and not for_device.search(head)) or (
                is_type and _HOST_TYPE.search(body) and not for_device.search(body)
            ):
                if is_type:  # to the semicolon behind it
                    end = masked.find(";", end) + 1 or end
                kept[begin:end] = _blank(source[begin:end])
            begin = position = end
    return "".join(kept)


def _blank(text: str) -> str:
    """Replace a text by spaces, except line ends and preprocessor directives."""
    kept, start = [], 0
    for directive in _DIRECTIVE.finditer(text):
        kept += [re.sub(r"[^\n]", " ", text[start : directive.start()]), directive[0]]
        start = directive.end()
    return "".join((*kept, re.sub(r"[^\n]", " ", text[start:])))
