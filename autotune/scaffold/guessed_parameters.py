"""Guess the values of tunable macros from their names and from how a source uses them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from autotune.core.records import Value
from autotune.scaffold.macros import OpenMacro
from autotune.scaffold.templates import ReadTemplate
from autotune.sources.facts import Facts, names_in, substituted
from autotune.sources.statements import parsed_expression
from autotune.sources.type_layouts import assumed_bytes
from autotune.sources.whole_numbers import number_of

_AXIS = re.compile(r"(?:_?(?P<axis>[xyz])|_?(?P<number>[012]))?$", re.IGNORECASE)
BLOCK = re.compile(
    r"(block(_?(size|dim))?|work_?group(_?size)?|wg(_?size)?|local_?size|threads?(_per_block)?|tpb)_?[xyz012]?|"
    r"b(dim|lk|s)?_?[xyz]",
    re.IGNORECASE,
)
_WORK = re.compile(r".*per_.*|wpt_?[xyz]?|.*coarsen.*|.*unroll.*", re.IGNORECASE)
_VECTOR = re.compile(r"vec.*", re.IGNORECASE)
_MAX_THREADS = 1024  # of a block
TILE = re.compile(r"tile(_?(size|dim|width))?(_?[xyz])?", re.IGNORECASE)
_DOUBLED, _PLENTY = 64, 1 << 20  # doublings of all parameters together; a number that is not too small
_ANY = "nothing says what it may be: list its values"
_ASKED = "a condition asks for it: a flag, or a number?"
_FLAG = re.compile(r"(use|has|enable|with|is|do)_.*", re.IGNORECASE)


@dataclass(frozen=True)
class GuessedParameter:
    """A tunable macro with its values and its default."""

    name: str
    values: tuple[Value, ...]
    default: Value
    remark: str = ""


def template_macro(item: ReadTemplate) -> OpenMacro:
    """A number that a template takes, for its values are guessed as a macro's are."""
    if item.kind == "bool":
        return OpenMacro(item.name, str(int(item.default == "true")), numbers=(0, 1), test="if")
    return OpenMacro(item.name, item.default if item.default.isdigit() else None)


def parameter_of(macro: OpenMacro, axes: Sequence[str]) -> GuessedParameter:
    """The values that a macro's name and its use suggest, which is a guess."""
    parameter = _suggested(macro, axes)
    is_flag = set(parameter.values) <= {False, True}
    return parameter if parameter.remark or is_flag else replace(parameter, remark="values guessed")


def _suggested(macro: OpenMacro, axes: Sequence[str]) -> GuessedParameter:
    guessed = partial(GuessedParameter, macro.name)
    if macro.names:
        prefix = len(macro.name) + 1
        choices = tuple(name[prefix:].lower() for name in macro.names)
        if len(choices) == 1:
            return guessed((*choices, "other"), choices[0], "`other` is the #else: name it")
        return guessed(choices, choices[0], "is there one more that only an #else stands for?")
    if macro.numbers == (0, 1) and macro.test == "if" and macro.default in ("0", "1"):
        return guessed((False, True), macro.default == "1")
    is_count = macro.default in ("0", "1") and max(macro.numbers, default=0) > 1
    if macro.test == "if" and macro.default and (len(macro.numbers) > 1 or is_count):
        values = tuple(sorted({*macro.numbers, int(macro.default)}))
        return guessed(values, int(macro.default), "the numbers it is compared with")
    if macro.listed:
        default = int(macro.default or macro.listed[0])
        return guessed(macro.listed, default, "the values for which the source has types")
    if macro.default is not None:
        return _around(macro.name, int(macro.default), axes, is_tested=macro.test != "")
    if macro.numbers and max(macro.numbers) > 1:
        values = macro.numbers if len(macro.numbers) > 1 else (1, *macro.numbers)
        return guessed(values, values[0], "the numbers it is compared with")
    if macro.test == "defined":
        return guessed((True,), True, "the kernel is compiled with it only")
    if macro.numbers or _FLAG.fullmatch(macro.name):
        return guessed((False, True), False)
    if BLOCK.fullmatch(macro.name):
        return threads_parameter(macro.name, axes)
    if TILE.fullmatch(macro.name):
        values, default = ((4, 8), 4) if len(axes) == 3 else ((8, 16, 32), 16)  # of a block's edge, too
        return guessed(values, default)
    if _WORK.fullmatch(macro.name):
        return guessed((1, 2, 4, 8), 1)
    if _VECTOR.fullmatch(macro.name):
        return guessed((1, 2, 4), 1)
    if macro.test == "if":
        return guessed((False, True), False, _ASKED)
    return guessed((1,), 1, _ANY)


def with_elements(
    parameters: Sequence[GuessedParameter],
    functions: Iterable[Facts],
    open_names: Collection[str],
    bytes_of: Callable[[str], int | None],
) -> list[GuessedParameter]:
    """Parameters so large that arrays have elements, that nothing is divided by 0, and that asserted is true.

    Only those of `open_names` change, and none if no numbers are found for that.
    """

    def sized(part: ast.expr) -> ast.expr:
        match part:
            case ast.Call(ast.Name("sizeof"), [ast.Constant(str(kind))]):
                return ast.Constant(bytes_of(kind) or assumed_bytes(kind))
        return part

    numbers = {item.name: int(item.default) for item in parameters if not isinstance(item.default, str)}
    able = numbers.keys() & open_names
    written: dict[str, ast.expr] = {}
    for read in functions if able else ():
        needed = [part for variable in read.declared.values() for part in variable.extents]
        needed += [
            part.right
            for part in read.expressions
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.Div | ast.Mod)
        ]
        needed += read.asserted
        whole = [substituted(read.written_out(one), sized) for one in needed]
        written |= {ast.unparse(one): one for one in whole if able & names_in(one)}
    asked = [one for one in written.values() if _is_of(one, numbers)]

    def empty(**changed: int) -> list[ast.expr]:
        known = {name: ast.Constant(number) for name, number in (numbers | changed).items()}
        return [node for node in asked if not number_of(node, known)]

    for _ in range(_DOUBLED):
        if not (left := empty()):
            break
        names = sorted(able & names_in(left[0])) or [""]
        best = min(names, key=lambda name: (len(empty(**{name: _PLENTY})), numbers.get(name, 0) > 1))
        numbers[best] = 2 * numbers.get(best, 0) or 1
    if empty():
        return [*parameters]
    return [
        replace(item, values=_from(numbers[item.name], item.values), default=numbers[item.name])
        if item.name in able and numbers[item.name] != item.default
        else item
        for item in parameters
    ]


def _from(least: int, values: Sequence[Value]) -> tuple[Value, ...]:
    """A number, and those of a list that are larger."""
    return (least, *(value for value in values[1:] if not isinstance(value, str) and value > least))


def _is_of(node: ast.expr, names: Collection[str]) -> bool:
    """True if an expression is reckoned of names and whole numbers alone."""
    match node:
        case (
            ast.BinOp(left=left, right=right)
            | ast.Compare(left, [_], [right])
            | ast.BoolOp(values=[left, right])
        ):
            return _is_of(left, names) and _is_of(right, names)
        case ast.Name(id=name):
            return name in names
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def _around(name: str, default: int, axes: Sequence[str], *, is_tested: bool) -> GuessedParameter:
    """The default of the source, among what its name suggests and what is usual up to twice the default."""
    usual = _suggested(OpenMacro(name, None), axes).values
    if len(usual) == 1 and default > _MAX_THREADS:
        return GuessedParameter(name, (default,), default, "a size of the problem? list values to tune it")
    if len(usual) == 1 and default < 2:
        usual = (1, 2, 4) if default and not is_tested else (0, 1)
    elif usual[0] == 1 and default >= int(usual[-1]):
        is_power = default & (default - 1) == 0
        powers = [2**exponent for exponent in range((2 * default).bit_length())]
        named = usual if len(usual) > 1 else ()
        usual = (*named, *(powers if is_power else (default // 2, default * 2)))
    elif BLOCK.fullmatch(name) and len(axes) == 1:
        usual = (*usual, _MAX_THREADS)
    if usual == (False, True) and default in (0, 1):  # which 0 and 1 equal, too
        return GuessedParameter(name, (False, True), bool(default))
    values = sorted({int(value) for value in (*usual, default)} - ({0} if default else set()))
    return GuessedParameter(name, tuple(values), default)


def threads_parameter(name: str, axes: Sequence[str], remark: str = "") -> GuessedParameter:
    """Threads along one axis of a block, or along all of them if the name has no axis."""
    if len(axes) == 1:
        return GuessedParameter(name, (32, 64, 128, 256, 512), 128, remark)
    axis = axis_of(name)
    if axis is None:
        values, default = ((8, 16, 32), 16) if len(axes) == 2 else ((4, 8), 4)
        return GuessedParameter(name, values, default, remark)
    domain = {"x": (8, 16, 32, 64), "y": (1, 2, 4, 8, 16), "z": (1, 2, 4)}[axis]
    return GuessedParameter(name, domain, {"x": 32, "y": 4, "z": 1}[axis], remark)


def within_a_block(parameter: GuessedParameter, block: Sequence[str]) -> GuessedParameter:
    """A parameter without values that no block has; the largest left replaces such a default."""
    parts = map(parsed_expression, (extent.replace("//", "/") for extent in block))
    own = [part for part in parts if part is not None and names_in(part) == {parameter.name}]
    fitting = tuple(
        value
        for value in parameter.values
        if all((number_of(part, {parameter.name: ast.Constant(value)}) or 0) <= _MAX_THREADS for part in own)
    )
    if fitting == parameter.values:
        return parameter
    remark = f"no block has more than {_MAX_THREADS:,} threads"
    if parameter.default in fitting:
        return replace(parameter, values=fitting, remark=parameter.remark or remark)
    if int(parameter.default) > _MAX_THREADS:  # no guess of ours
        remark += f", and the source has {int(parameter.default):,}: does `block` below fit it?"
    return GuessedParameter(
        parameter.name, fitting or (_MAX_THREADS,), max(fitting or (_MAX_THREADS,)), remark
    )


def axis_of(name: str) -> str | None:
    """The axis that a macro's name ends in, as x, y or z; None if it names none."""
    match = _AXIS.search(name)
    if match is None or match.group() in ("", name):
        return None
    return (match["axis"] or "xyz"[int(match["number"])]).lower()


def least_value(parameter: GuessedParameter) -> Value:
    """The smallest value, which takes the fewest resources; the default if the values are words."""
    numbers = [value for value in parameter.values if not isinstance(value, str)]
    return min(numbers) if numbers else parameter.default
