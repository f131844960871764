"""Write a first space file and reference for a kernel from its source alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from types import MappingProxyType

from autotune.core.launch_plan import macros as values_of_macros
from autotune.core.records import Parameter, Value
from autotune.errors import InputError
from autotune.scaffold.guessed_launch import GuessedLaunch
from autotune.scaffold.guesses import Guess, guess
from autotune.scaffold.macros import OpenMacro
from autotune.scaffold.reading import USUAL, Assumptions, FoundKernel, Source, read_kernels
from autotune.scaffold.types import KnownTypes
from autotune.scaffold.writing import reference_text, space_text
from autotune.sources.bare_code import WORD
from autotune.sources.kernel_source import read_kernel_source
from autotune.sources.macros import words_behind

_TRIED = 4  # values of a macro, for the types that they choose


@dataclass(frozen=True)
class Scaffold:
    """What was found in a source for a first space."""

    file: str  # of the source
    name: str  # of the space
    guess: Guess
    include_dirs: tuple[str, ...] = ()  # folders of headers, as the space file names them
    option: str = ""  # of the compiler, which the source needs
    compiler: str = ""  # that the source needs, in place of the usual one
    complaint: str = ""  # a compiler's, of the default; empty without any

    @property
    def space(self) -> str:
        """The text of the space file."""
        return space_text(self.file, self.name, self.guess, self.include_dirs, self.option, self.compiler)

    @property
    def reference(self) -> str:
        """The text of the reference."""
        return reference_text(self.file, self.guess)

    @property
    def source(self) -> Source:
        """What the source has."""
        return self.guess.launch.source

    @property
    def kernel(self) -> FoundKernel:
        """The kernel that the space is for."""
        return self.guess.launch.kernel


def scaffold(
    file: str,
    name: str,
    text: str,
    entry: str | None = None,
    assumed: Assumptions = USUAL,
    *,
    own: str = "",
    host: str = "",
    include_dirs: tuple[str, ...] = (),
) -> Scaffold:
    """Guess a space for one of the kernels of a source, by default the first one that can be tuned as it is.

    The text has headers; `own` is that without them, where it is another one. `host` is the program that
    launches the kernel, where there is one. Raises InputError where the source has no such kernel.
    """
    guess_for = partial(_guessed, file, text, host, own or text)
    guessed = guess_for(assumed, entry)
    chosen = {item.name for item in guessed.launch.parameters}
    if asked := chosen & _asked_of(guessed.launch.source):
        if of_types := frozenset(_choosing_types(guessed.launch, asked)):
            assumed = replace(assumed, fixed=of_types)
            guessed = guess(guessed.launch.kernel, guessed.launch.source, assumed)
        launch = guessed.launch
        with suppress(InputError):  # in the branches that its defaults select, it cannot be tuned
            config = _values(launch, launch.default)
            guessed = guess_for(assumed, launch.kernel.name, config, launch.source.macros)
    return Scaffold(file, name, guessed, include_dirs, assumed.option)


def _asked_of(source: Source) -> set[str]:
    """The names that conditions of a source ask for, and those in what these stand for."""
    return words_behind((*source.branches.tested, *source.branches.required), source.read.code.macros)


def _choosing_types(launch: GuessedLaunch, asked: Collection[str]) -> Iterator[str]:
    """The parameters that choose between element types of the kernel's arrays, which no space can follow.

    Vectors of one type are no other type: the arrays stay as they are.
    """
    source, kernel = launch.source, launch.kernel
    words = {word for item in kernel.arguments for word in WORD.findall(item.text)}
    if words.isdisjoint(source.read.types.aliases.keys() | source.branches.defined):
        return

    def types(config: Mapping[str, Value]) -> list[str]:
        read = read_kernel_source(source.read.original, _values(launch, config), source.dialect)
        function = next((one for one in read.kernels if one.name == kernel.name), None)
        return [KnownTypes.of(read).layout(item.type)[0] for item in function.parameters] if function else []

    own = types(launch.default)
    for item in launch.parameters:
        others = (types({**launch.default, item.name: value}) for value in item.values[:_TRIED])
        if item.name in asked and any(other and other != own for other in others):
            yield item.name


def _values(launch: GuessedLaunch, config: Mapping[str, Value]) -> dict[str, str]:
    """The macros of a configuration; what DTYPE is may differ."""
    parameters = [Parameter(item.name, item.values) for item in launch.parameters]
    macros = values_of_macros(parameters, config, "float32")
    return {name: str(value) for name, value in macros.items() if not name.startswith("DTYPE")}


def _guessed(
    file: str,
    text: str,
    host: str,
    own: str,
    assumed: Assumptions,
    entry: str | None,
    values: Mapping[str, str] = MappingProxyType({}),
    known: tuple[OpenMacro, ...] | None = None,
) -> Guess:
    """What is guessed for a kernel of a source that is read for some values of its macros."""
    defined = "".join(f"#define {macro} {value}\n" for macro, value in assumed.defined)
    source = read_kernels(file, defined + text, values, assumed, host, own)
    if known is not None:
        types = {word for kernel in source.kernels for word in kernel.types}  # that only these branches show
        source = replace(source, macros=tuple(macro for macro in known if macro.name not in types))
    kernels = {kernel.entry: kernel for kernel in source.kernels}
    kernels |= {kernel.name: kernel for kernel in reversed(source.kernels)}
    if entry is not None and entry not in kernels:
        if entry in source.refusals:
            raise InputError(source.refusals[entry])
        names = ", ".join(kernel.entry for kernel in source.kernels)
        raise InputError(f"{file}: no kernel is called {entry!r}; it has {names}")
    kernel = source.kernels[0] if entry is None else kernels[entry]
    kernel = replace(kernel, types={**dict(assumed.defined), **kernel.types})
    return guess(kernel, source, assumed)


__all__ = ["Assumptions", "FoundKernel", "Guess", "Scaffold", "Source", "scaffold"]
