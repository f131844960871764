"""Write a first space file and reference for a kernel from its source alone."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from autotune.core.text import bare_code
from autotune.errors import InputError
from autotune.scaffold.guesses import Guess, guess
from autotune.scaffold.reading import FoundKernel, Source, read_kernels
from autotune.scaffold.writing import reference_text, space_text


@dataclass(frozen=True)
class Scaffold:
    """What was found in a source, with the texts of the space file and the reference."""

    source: Source
    kernel: FoundKernel
    guess: Guess
    space: str
    reference: str
    include_dirs: tuple[str, ...]


def scaffold(
    file: str,
    name: str,
    text: str,
    words: Collection[str],
    entry: str | None = None,
    undefined: Collection[str] = (),
    *,
    host: str = "",
    include_dirs: tuple[str, ...] = (),
    is_small: bool = False,
    is_roomy: bool = False,
    generic: str = "DTYPE",
) -> Scaffold:
    """Write a space for one of the kernels of a source.

    Args:
        file: Name of the source file.
        name: Name of the new space.
        text: Text of the source.
        words: The macros of portable.h.
        entry: Name of the kernel; by default the first one.
        undefined: Words that a compiler does not know: macros or types that the source leaves to its user.
        host: The program that launches the kernel, where there is one.
        include_dirs: Folders of headers, as the space file names them.
        is_small: Whether the default is to take few resources.
        is_roomy: Whether arrays get room to spare, for a kernel whose indices say little.
        generic: The type that an instance of a template gets.

    Raises:
        InputError: The source has no such kernel, or none that can be tuned as it is.
    """
    source = read_kernels(file, text, words, undefined, bare_code(host), generic)
    kernels = {kernel.entry: kernel for kernel in source.kernels}
    kernels |= {kernel.name: kernel for kernel in reversed(source.kernels)}
    if entry is not None and entry not in kernels:
        known = ", ".join(kernel.entry for kernel in source.kernels)
        raise InputError(f"{file}: no kernel is called {entry!r}; it has {known}")
    kernel = source.kernels[0] if entry is None else kernels[entry]
    found = guess(kernel, source, is_small=is_small, is_roomy=is_roomy)
    return Scaffold(
        source,
        kernel,
        found,
        space_text(file, name, source, kernel, found, include_dirs),
        reference_text(file, kernel, found),
        include_dirs,
    )


__all__ = ["FoundKernel", "Guess", "Scaffold", "Source", "scaffold"]
