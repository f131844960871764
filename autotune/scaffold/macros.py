"""Find the macros that a source leaves to its user, and what it says of their values."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

from autotune.sources.bare_code import WORD
from autotune.sources.branches import Branches, behind
from autotune.sources.dialects import BUILT_IN
from autotune.sources.kernel_source import KernelSource

_INTEGER = re.compile(r"\(?\s*(\d+)[uUlL]*\s*\)?")
_CONVENTION = re.compile(r"(?:block|tile|work|vector)_size(?:_[xyz])?|work_per_thread(?:_[xyz])?")


@dataclass(frozen=True)
class OpenMacro:
    """A macro that the source uses and leaves to its user."""

    name: str
    default: str | None  # its value if the user does not define it
    names: tuple[str, ...] = ()  # the undefined constants that it is compared with
    numbers: tuple[int, ...] = ()  # the numbers that it is compared with
    test: str = ""  # "if" its value, "defined" only whether it is, where the kernel needs it, "" not at all
    listed: tuple[int, ...] = ()  # the values for which there are types


def find_macros(
    source: KernelSource,
    branches: Branches,
    unknown: Collection[str],
    taken: Collection[str],
    undefined: Collection[str],
) -> Iterator[OpenMacro]:
    """Find macros that are undefined, or defined only as a default, in the order of their use.

    Names are `unknown` that nothing declares where a kernel is compiled.

    A switch, of which the source only asks whether it is defined, is none: it is off. Names that are `taken`
    mean something else, and `undefined` are words that a compiler does not know: their default, if any, comes
    after a use of them.
    """
    code = source.code
    defaults = {name: text.split("//")[0].strip() for name, text in code.defaults.items()}
    compared, conditions = _asked(source, branches)
    constants = {
        right
        for left, rights in compared.items()
        for right in rights
        if right.upper().startswith(f"{left}_".upper()) and right not in defaults
    }
    kept = {*defaults, *undefined}
    left_out = {*branches.constants - code.used, *branches.pragmas} - branches.defined
    unknown = {*WORD.findall(source.original)} & {*unknown}  # others are put together: VECTOR_##width
    asked = (branches.required, *(behind(values, branches) for _, values in branches.kernels))
    wanted = {name for values in asked for name, value in values.items() if value == ""}
    candidates = {
        *(name for name in unknown if name.isupper() or _CONVENTION.fullmatch(name)),
        *left_out,
        *(name for name, test in branches.tested.items() if test == "if"),
        *undefined,
        *defaults,
        *wanted,
    }
    excluded = {*taken, *constants, *source.declared_names, *source.types.declared}
    excluded |= (branches.defined | {name for name in code.macros if name not in defaults}) - kept
    places = _places(source.original, candidates)
    for name in sorted(candidates - excluded, key=lambda name: places.get(name, 0)):
        if BUILT_IN.fullmatch(name) or name.startswith("DTYPE"):
            continue
        rights = compared.get(name, [])
        names = tuple(
            dict.fromkeys(right for right in rights if right in constants and right not in branches.defined)
        )
        numbers = {int(number[1]) for right in rights if (number := _integer(code.meaning(right) or right))}
        is_flag = branches.tested.get(name) == "if" and name not in branches.reckoned
        test = "if" if is_flag or name in conditions else ""
        test = "defined" if name in wanted and not test else test
        default = None if name in undefined else defaults.get(name)
        values = _values_with_types(name, source)
        yield OpenMacro(name, default, names, tuple(sorted(numbers)), test, values)


def _values_with_types(name: str, source: KernelSource) -> tuple[int, ...]:
    """The numbers in place of a name at the end of a type, `VECTOR_##width`, for which macros are there."""
    types = {kind for function in source.device_functions for kind in function.types}
    stems = [kind.removesuffix(name) for kind in types if kind.endswith(f"_{name}")]
    ends = (
        macro.removeprefix(stem) for stem in stems for macro in source.code.macros if macro.startswith(stem)
    )
    return tuple(sorted(int(end) for end in ends if end.isdigit()))


def _asked(source: KernelSource, branches: Branches) -> tuple[dict[str, list[str]], set[str]]:
    """What names are compared with, and the names that stand alone as conditions."""
    compared = {name: [*rights] for name, rights in branches.compared.items()}
    alone: set[str] = set()
    for function in source.device_functions:
        for part in function.parts:
            tests: list[ast.expr] = []
            match part:
                case ast.Compare(left=ast.Name(id=left), ops=[ast.Eq() | ast.NotEq()], comparators=[right]):
                    compared.setdefault(left, []).append(ast.unparse(right))
                case ast.If(test=test) | ast.IfExp(test=test):
                    tests = [test]
                case ast.BoolOp(values=values):
                    tests = values
                case ast.UnaryOp(op=ast.Not(), operand=operand):
                    tests = [operand]
            alone |= {test.id for test in tests if isinstance(test, ast.Name)}
    return compared, alone


def _places(text: str, names: Collection[str]) -> Mapping[str, int]:
    """Where each name first stands in a text."""
    places: dict[str, int] = {}
    for word in WORD.finditer(text):
        if word[0] in names:
            places.setdefault(word[0], word.start())
    return places


def _integer(text: str) -> re.Match[str] | None:
    return _INTEGER.fullmatch(text.strip())
