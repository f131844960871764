"""Undeclared names in a device's functions that are one slip away from a declared name."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator

from autotune.sources.dialects import CUDA, OPENCL, portable_macros
from autotune.sources.facts import BARRIERS
from autotune.sources.kernel_source import KernelSource

_SHORTEST = 4  # letters
_INCLUDE = re.compile(r"^[ \t]*#[ \t]*include\b", re.MULTILINE)  # one that was not found: it may declare all
_WORDS = {
    CUDA: ("threadIdx", "blockIdx", "blockDim", "gridDim", "__syncthreads"),
    OPENCL: (
        *("get_local_id", "get_group_id", "get_global_id", "get_local_size", "get_global_size"),
        *("get_num_groups", "barrier"),
    ),
}


def misspelt_names(read: KernelSource, macros: Collection[str]) -> Iterator[tuple[str, str]]:
    """Each such name, and the intended one; `macros` are the macros of the space."""
    words = _WORDS.get(read.dialect) or (*portable_macros(), *BARRIERS)
    is_whole = not _INCLUDE.search(read.original)
    given = {*read.code.macros, *(function.name for function in read.functions)}
    for function in read.device_functions:
        own = {*(item.name for item in function.parameters), *function.declared} if is_whole else set()
        called = dict.fromkeys(function.called, words)  # others may be functions of the language
        for name, known in {**called, **dict.fromkeys(function.unknown, (*words, *macros, *own))}.items():
            meant = {word for word in known if is_slip(name, word)}
            if len(meant) == 1 and name not in given and name not in own:
                yield name, meant.pop()


def is_slip(word: str, meant: str) -> bool:
    """True if a word lacks a letter of another, has one more, another one, or two that changed places."""
    if min(len(word), len(meant)) < _SHORTEST or abs(len(word) - len(meant)) > 1 or word == meant:
        return False
    begin = next((place for place, (a, b) in enumerate(zip(word, meant, strict=False)) if a != b), None)
    if begin is None:  # a letter at the end
        return (word + meant)[-1].isalpha() and len(word) != len(meant)
    rest, other = word[begin:], meant[begin:]
    if rest == other[1:] or rest[1:] == other:
        return (other if rest == other[1:] else rest)[0].isalpha()
    swapped = rest[1::-1] + rest[2:] == other
    is_letter = rest[0].isalpha() and other[0].isalpha()  # x1 is no misspelt x2
    return is_letter and (swapped or rest[1:] == other[1:])
