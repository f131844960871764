"""What the branches of a source's conditions ask for, those that are left out included."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from operator import ge, gt, le, lt

from autotune.sources.bare_code import WORD
from autotune.sources.dialects import BUILT_IN, INTRODUCER
from autotune.sources.facts import names_in
from autotune.sources.kernel_source import Function, KernelSource, read_kernel_source
from autotune.sources.macros import definition
from autotune.sources.preprocessor import (
    DEFINED,
    IfCondition,
    SourceLine,
    compiled_lines,
    condition_guard,
    words_tested,
)
from autotune.sources.statements import parsed_expression

_CONSTANT = re.compile(r"(?<![\w.#])(?<!->)(?<!::)(?<!## )[A-Z][A-Z0-9_]*\b(?!\s*(?:\(|##|::))")
_STRING = re.compile(r"""\"(?:\\.|[^\"\\\n])*+\"|'(?:\\.|[^'\\\n])*+'""")
_DECLARED = re.compile(r"\b(?!return\b|case\b|else\b|goto\b)[A-Za-z_]\w*[\s*&]+\Z")
_READINGS = 8  # of kernels under conditions
_UNIQUE = "1000003"  # the value of a name, which no other has
_UNROLLED = re.compile(r"(?<!\w)(?!unroll\b)[A-Za-z_]\w*")  # the number of steps, by any name
_ORDERS = {ast.Lt: lt, ast.LtE: le, ast.Gt: gt, ast.GtE: ge}
_NEAR = 300  # letters from the word that begins a kernel to its name


@dataclass
class Branches:
    """What conditions ask for.

    Tests around a default or an `#error` do not count. A kernel below `#if LAYOUT == 1` wants that it is 1;
    an empty text stands for what only has to be defined.
    """

    tested: dict[str, str] = field(default_factory=dict)  # "if" for its value, "ifdef" for no more
    reckoned: set[str] = field(default_factory=set)  # numbers, for they are reckoned with or ordered
    compared: dict[str, list[str]] = field(default_factory=dict)  # what each name is compared with
    defined: set[str] = field(default_factory=set)  # in some branch
    brought: dict[str, Mapping[str, str]] = field(default_factory=dict)  # by conditions
    constants: set[str] = field(default_factory=set)  # names in capitals that code uses as values
    pragmas: set[str] = field(default_factory=set)  # also numbers of steps to unroll, by any name
    kernels: list[tuple[int, Mapping[str, str]]] = field(default_factory=list)  # places, and what each wants
    required: dict[str, str] = field(default_factory=dict)  # so that no `#error` is met


def read_branches(text: str) -> Branches:
    """Read the conditions of a source."""
    branches = Branches()
    declared: set[str] = set()
    lines = [*compiled_lines(text)]
    for line, following in zip(lines, (*lines[1:], None), strict=True):
        name, rest = line.directive, line.rest
        if not name:
            branches.constants.update(_constants(rest, declared))
            if line.condition and (kernel := INTRODUCER.search(rest)):
                branches.kernels.append((line.place + kernel.start(), wanted_by(line.condition)))
        elif name in ("if", "ifdef", "ifndef", "elif"):
            _test(branches, name, rest, following)
        elif name == "define" and (defined := definition(rest)):
            word, macro = defined
            (body,) = macro.bodies
            branches.defined.add(word)
            branches.brought.setdefault(word, wanted_by(line.condition))
            branches.constants.update({*_constants(body, declared)} - {*macro.parameters})
        elif name == "undef" and not (
            line.condition or rest.strip() in branches.tested.keys() | branches.constants
        ):
            branches.defined.add(rest.strip())  # as nothing, whatever a host says
        elif name == "error" and line.condition:
            branches.required |= _against(line.condition)
        elif name == "pragma" and "OPENCL" not in rest:
            branches.pragmas.update((_UNROLLED if rest.startswith("unroll") else _CONSTANT).findall(rest))
    branches.constants -= declared
    return branches


def _constants(line: str, declared: set[str]) -> Iterator[str]:
    """The names in capitals that a line uses; those that it declares are added to `declared`."""
    line = _STRING.sub(" ", line)
    for word in _CONSTANT.finditer(line):
        if _DECLARED.search(line, max(0, word.start() - 40), word.start()):
            declared.add(word[0])
        else:
            yield word[0]


def _test(branches: Branches, name: str, rest: str, following: SourceLine | None) -> None:
    """Note what a condition asks for."""
    guarded = condition_guard(name, rest)
    if guarded and following and following.directive in ("define", "error"):
        defined = definition(following.rest)
        if following.directive == "error" or (defined and defined[0] == guarded):
            return
    valued = words_tested(rest) if name in ("if", "elif") else set()
    condition = parsed_expression(DEFINED.sub("0", rest)) if valued else None
    for part in ast.walk(condition) if condition is not None else ():
        match part:
            case ast.Compare(
                ast.Name(left), [ast.Eq() | ast.NotEq()], [ast.Name() | ast.Constant() as right]
            ):
                branches.compared.setdefault(left, []).append(ast.unparse(right))
            case ast.Compare(ast.Name(), [ast.Gt() | ast.LtE()], [ast.Constant(0)]):  # as a flag may be
                pass
            case ast.Compare(_, [ast.Lt() | ast.LtE() | ast.Gt() | ast.GtE()]) | ast.BinOp():
                branches.reckoned |= names_in(part)
    for word in WORD.findall(rest):
        if word in valued:
            branches.tested[word] = "if"
        elif word != "defined":
            branches.tested.setdefault(word, "ifdef")


def wanted_by(inner: IfCondition | None) -> Mapping[str, str]:
    """What conditions want of macros; the outermost counts."""
    wanted: dict[str, str] = {}
    while inner is not None:
        wanted, inner = wanted | _wants(_asked(inner)), inner.outer
    return wanted


def _against(inner: IfCondition) -> dict[str, str]:
    """What keeps a branch from being compiled: the first of those before it, or that its condition fails."""
    first = inner
    while first.before is not None:
        first = first.before
    return _wants(_asked(first), is_met=first is not inner)


def _asked(inner: IfCondition) -> ast.expr | None:
    """The condition of a branch as an expression; None for one that cannot be read, and for `#else`."""
    name, rest = inner.directive, DEFINED.sub(r"defined(\1\2)", inner.rest)
    given = {"ifdef": f"defined({rest})", "ifndef": f"!defined({rest})", "if": rest, "elif": rest}
    return parsed_expression(given.get(name, ""))


def _wants(condition: ast.expr | None, *, is_met: bool = True) -> dict[str, str]:
    """What a condition, or its failure, takes of macros by the first way; an empty text is to be defined."""
    match condition:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return _wants(operand, is_met=not is_met)
        case ast.BoolOp(op=sign, values=parts):
            needed = parts[:1] if isinstance(sign, ast.Or) == is_met else reversed(parts)
            wanted = (_wants(part, is_met=is_met) for part in needed)
            return {name: value for each in wanted for name, value in each.items()}
        case ast.Compare(
            ast.Name(name), [ast.Eq() | ast.NotEq() as sign], [ast.Name() | ast.Constant() as value]
        ):
            return {name: ast.unparse(value)} if isinstance(sign, ast.Eq) == is_met else {}
        case ast.Compare(ast.Name(name), [sign], [ast.Constant(int(number))]) if type(sign) in _ORDERS:
            compares = _ORDERS[type(sign)]
            near = (0, number - 1, number, number + 1)  # 0 is the value of what nothing defines
            fitting = next(one for one in near if compares(one, number) == is_met)
            return {name: str(fitting)} if fitting and not BUILT_IN.fullmatch(name) else {}
        case ast.Call(func=ast.Name("defined"), args=[ast.Name(name)]) if is_met:
            return {name: ""}
        case ast.Name(name) if is_met:
            return {name: "1"}
    return {}


def readings_of_branches(
    source: KernelSource, values: Mapping[str, str], branches: Branches
) -> Iterator[tuple[Mapping[str, str], KernelSource]]:
    """The source as other values of its macros select kernels, with what the conditions around these want."""
    wanted = (behind(asked, branches) for _, asked in branches.kernels)
    conditions = list(dict.fromkeys(tuple(one.items()) for one in wanted))
    for condition in conditions[:_READINGS]:
        given = {}
        for name, value in condition:
            is_name = value.isidentifier()
            given[name] = values.get(value, _UNIQUE) if is_name else value or "1"
            given |= {value: given[name]} if is_name else {}
        if not values.items() >= given.items():
            yield dict(condition), read_kernel_source(source.original, {**values, **given}, source.dialect)


def kernels_of_branches(
    source: KernelSource,
    branches: Branches,
    readings: Iterable[tuple[Mapping[str, str], KernelSource]],
) -> Iterator[tuple[Function, Mapping[str, str]]]:
    """The kernels of a source in the text's order, and those of its other readings.

    Each comes with what the conditions around it want.
    """
    wanted = {place: behind(asked, branches) for place, asked in branches.kernels}
    known = {kernel.place for kernel in source.kernels}
    kernels = [(kernel, _around(kernel.place, wanted)) for kernel in source.kernels]
    names = {kernel.name for kernel in source.kernels}
    for condition, again in readings:
        for one in again.kernels:
            if one.place not in known and one.name not in names:
                known.add(one.place)
                names.add(one.name)
                kernels.append((one, _around(one.place, wanted) or condition))
    for one, own in sorted(kernels, key=lambda item: item[0].place):
        yield one, {**branches.required, **own}


def behind(wanted: Mapping[str, str], branches: Branches) -> Mapping[str, str]:
    """What conditions want, with what brings a macro that the source itself defines in the place of that."""
    brought: dict[str, str] = {}
    for name, value in wanted.items():
        brought |= branches.brought.get(name, {name: value}) if not value else {name: value}
    return brought


def _around(place: int, wanted: Mapping[int, Mapping[str, str]]) -> Mapping[str, str]:
    """What the conditions around a kernel want, which begins before its name."""
    before = [begin for begin in wanted if begin <= place]
    return wanted[max(before)] if before and place - max(before) < _NEAR else {}
