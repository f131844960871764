"""A first space file and reference for a kernel, from nothing but its source."""

from __future__ import annotations

from dataclasses import dataclass

from autotune.errors import InputError
from autotune.scaffold.guesses import Guess, guess
from autotune.scaffold.macros import DEFINITION
from autotune.scaffold.reading import FoundKernel, Source, read_kernels
from autotune.scaffold.writing import reference_text, space_text


@dataclass(frozen=True)
class Scaffold:
    """What was found in a source, and the two texts that follow from it."""

    source: Source
    kernel: FoundKernel
    guess: Guess
    space: str
    reference: str


def scaffold(file: str, name: str, text: str, header: str, entry: str | None = None) -> Scaffold:
    """Read the source `text` of `file` and write a space called `name` for one of its kernels.

    Without an `entry` it is the first. `header` is the text of portable.h. Raises InputError for a source
    that cannot be tuned as it is.
    """
    words = {match[1] for match in DEFINITION.finditer(header)}
    source = read_kernels(file, text, words)
    kernels = {kernel.entry: kernel for kernel in source.kernels}
    if entry is not None and entry not in kernels:
        raise InputError(f"{file}: no kernel is called {entry!r}; it has {', '.join(kernels)}")
    kernel = source.kernels[0] if entry is None else kernels[entry]
    found = guess(kernel, source)
    return Scaffold(
        source,
        kernel,
        found,
        space_text(file, name, source, kernel, found),
        reference_text(file, kernel, found),
    )


__all__ = ["FoundKernel", "Guess", "Scaffold", "Source", "scaffold"]
