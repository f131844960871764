"""The arguments of launches against the parameters that the kernels have in the source.

A kernel is judged only where its parameters can be read without a compiler: one definition, no preprocessor
directive between the brackets, no template.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from autotune.core.c_types import SCALARS, element_bytes, is_floating, struct_fields
from autotune.core.json_values import is_name
from autotune.core.launch_plan import TRITON
from autotune.core.records import ArgumentSpec
from autotune.core.text import count_text, hint
from autotune.space.space import Space

_DEFINE = re.compile(r"^[ \t]*#[ \t]*define\b[^\n]*$", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+\w+(?:\(([^)\n]*)\))?(.*)$", re.MULTILINE)
_PASTED = re.compile(r"(\w+)\s*##\s*(?=(\w+))")
_INTRODUCED = re.compile(r"\b(?:KERNEL|__global__|__kernel|kernel)\b[^;{}]*$")
_WORD = re.compile(r"[A-Za-z_]\w*")
_QUALIFIERS = frozenset(
    (
        *("const", "volatile", "restrict", "__restrict__", "__restrict", "RESTRICT", "register", "struct"),
        *("__global", "global", "GLOBAL", "__constant", "constant", "CONSTANT", "__private", "private"),
        "__grid_constant__",
    )
)
_ANY = ("void", "char", "unsigned char")  # pointers to these take every array
_NOT_ENTRIES = ("__local", "local", "image2d_t", "sampler_t")


@dataclass(frozen=True)
class _Parameter:
    """One parameter of a kernel; `kind` is its type without qualifiers."""

    name: str
    text: str
    kind: str
    is_pointer: bool


def mismatches(space: Space, code: str) -> Iterator[tuple[str, str, str]]:
    """What in the launch plan does not fit a kernel's parameters, how, and the kernel: once for each entry.

    What does not fit is a place in the space file, such as `launch[0].arguments`, or a parameter of the space
    whose macro replaces one of the kernel.

    Args:
        space: The bound space.
        code: The source without comments and strings.
    """
    if space.spec.dialect == TRITON:  # checked when the space is read
        return
    arguments = {argument.name: argument for argument in space.spec.arguments}
    for entry in dict.fromkeys(step.entry for step in space.spec.launch):
        numbers = [number for number, step in enumerate(space.spec.launch) if step.entry == entry]
        plans = [[arguments[name] for name in space.spec.launch[number].arguments] for number in numbers]
        is_python = space.spec.source.suffix == ".py"
        parameters = _python_parameters(code, entry) if is_python else _parameters(code, entry)
        is_missing = is_name(entry) and not is_python and not re.search(rf"\b{entry}\b", code)
        if is_missing and not _may_be_pasted(entry, code):
            if kernels := list(_kernels(code)):
                yield (
                    f"launch[{numbers[0]}].entry",
                    f"the source has no kernel {entry}{hint(entry, kernels)}",
                    entry,
                )
            continue
        if parameters is None:
            continue
        if not is_python and (hidden := _hidden(space, entry, parameters, plans[0])):
            yield *hidden, entry
            continue
        orders = [_wrong_order(entry, parameters, passed) for passed in plans]
        found = [_wrong_count(entry, parameters, passed, arguments) for passed in plans]
        if all(orders):  # a second launch may swap two arrays
            found = orders
        if wrong := [(number, what) for number, what in zip(numbers, found, strict=True) if what]:
            number, what = wrong[0]
            yield f"launch[{number}].arguments", what, entry
        elif not is_python:
            types = [_wrong_types(space, entry, parameters, passed) for passed in plans]
            yield from [(*one, entry) for one in types if one][:1]


def _hidden(
    space: Space, entry: str, parameters: Sequence[_Parameter], passed: Sequence[ArgumentSpec]
) -> tuple[str, str] | None:
    """A name in the source that a macro of the space replaces."""
    macros = {parameter.name for parameter in space.parameters}
    for number, item in enumerate(parameters):
        if item.name in macros:
            given = passed[number].name if number < len(passed) else f"{item.name.lower()}_"
            return item.name, (
                f"the space defines a macro of this name, which replaces `{item.text}`, parameter "
                f"{number + 1} of {entry}; give this parameter another name, such as {given}"
            )
    return None


def _wrong_count(
    entry: str, parameters: Sequence[_Parameter], passed: Sequence[ArgumentSpec], declared: Collection[str]
) -> str | None:
    if len(parameters) == len(passed):
        return None
    names, given = [item.name for item in parameters], [item.name for item in passed]
    missing = ", ".join(name for name in names if name not in given)
    unknown = ", ".join(name for name in given if name not in names)
    parts = [f"{missing} is missing" if missing else "", f"{unknown} is too much" if unknown else ""]
    counts = f"{count_text(len(names), 'parameter')} and {count_text(len(given), 'argument')}"
    mend = f"; write [{', '.join(names)}]" if {*names} <= {*declared} else ""
    return ", ".join(filter(None, (f"{_lists(entry, parameters, passed)}: {counts}", *parts))) + mend


def _wrong_order(entry: str, parameters: Sequence[_Parameter], passed: Sequence[ArgumentSpec]) -> str | None:
    names, given = [item.name for item in parameters], [item.name for item in passed]
    is_other = sorted(names) == sorted(given) and names != given
    return f"{_lists(entry, parameters, passed)}; write [{', '.join(names)}]" if is_other else None


def _lists(entry: str, parameters: Sequence[_Parameter], passed: Sequence[ArgumentSpec]) -> str:
    names, given = (", ".join(item.name for item in items) for items in (parameters, passed))
    return f"{entry} takes ({names}) in the source, but the launch plan passes ({given})"


def _wrong_types(
    space: Space, entry: str, parameters: Sequence[_Parameter], passed: Sequence[ArgumentSpec]
) -> tuple[str, str] | None:
    for number, (parameter, argument) in enumerate(zip(parameters, passed, strict=True), 1):
        dtype = space.problem.dtype if argument.dtype == "DTYPE" else argument.dtype
        if (wrong := _wrong_type(parameter, argument, dtype, space.problem.dtype)) is not None:
            known = SCALARS.get(parameter.kind)
            is_alike = known and parameter.is_pointer == (argument.value is None)
            names = [one.name for one in space.spec.arguments]
            mend = f"; write dtype: {known}" if is_alike else ""
            return f"arguments[{names.index(argument.name)}].dtype", (
                f"parameter {number} of {entry} is `{parameter.text}` in the source, but the launch plan "
                f"passes {wrong}{mend}"
            )
    return None


def _wrong_type(parameter: _Parameter, argument: ArgumentSpec, dtype: str, problem: str) -> str | None:
    """What an argument is, if the parameter cannot take it; None if it can, or its type is not known."""
    is_array = argument.value is None
    what = f"the array {argument.name} of {dtype}" if is_array else f"the number {argument.name} of {dtype}"
    known = SCALARS.get(parameter.kind)
    if parameter.is_pointer != is_array:
        is_plain = parameter.is_pointer or known is not None
        return what if is_plain else None
    if known is None or (is_array and parameter.kind in _ANY):
        return None
    wanted = problem if known == "DTYPE" else known
    if struct_fields(dtype):
        return what
    fits = element_bytes(wanted) == element_bytes(dtype) and is_floating(wanted) == is_floating(dtype)
    return None if fits and (wanted == "bfloat16") == (dtype == "bfloat16") else what


def _parameters(code: str, entry: str) -> list[_Parameter] | None:
    """The parameters of a kernel in C; None if they cannot be read."""
    if not is_name(entry):
        return None
    code = _DEFINE.sub("", code)
    lists = []
    for match in re.finditer(rf"[\w)]\s+{entry}\s*\(", code):
        inside, rest = _bracketed(code, match.end())
        if re.match(r"\s*\{", rest):
            lists.append((code[: match.start()], inside))
    if len(lists) != 1 or "#" in lists[0][1]:
        return None
    before, inside = lists[0]
    if re.search(r"\btemplate\s*<[^;{}]*$", before):
        return None
    texts = [" ".join(text.split()) for text in inside.split(",")]
    if texts in ([""], ["void"]):
        return []
    parameters = [_parameter(text) for text in texts]
    return None if None in parameters else [item for item in parameters if item is not None]


def _may_be_pasted(entry: str, code: str) -> bool:
    """Whether a macro may make a kernel's name: of its own parameters, or of parts of the name."""
    return any(
        all(part in entry or part in _WORD.findall(parameters) for part in parts)
        for parameters, body in _MACRO.findall(code)
        for parts in _PASTED.findall(body)
    )


def _kernels(code: str) -> Iterator[str]:
    """The names of the kernels that a source in C defines without a macro for the whole."""
    code = _DEFINE.sub("", code)
    for match in re.finditer(r"\b(\w+)\s*\(", code):
        _, rest = _bracketed(code, match.end())
        if rest.lstrip().startswith("{") and _INTRODUCED.search(code[: match.start()]):
            yield match[1]


def _bracketed(code: str, start: int) -> tuple[str, str]:
    """The text up to the bracket that closes an open one, and the text after it."""
    depth = 1
    for position in range(start, len(code)):
        depth += (code[position] == "(") - (code[position] == ")")
        if depth == 0:
            return code[start:position], code[position + 1 :]
    return code[start:], ""


def _parameter(text: str) -> _Parameter | None:
    """One parameter; None for a text that is not a type and a name, such as a macro."""
    words = [word for word in _WORD.findall(text) if word not in _QUALIFIERS]
    if len(words) < 2 or any(letter in text for letter in "()<>:&") or set(words) & {*_NOT_ENTRIES}:
        return None
    return _Parameter(words[-1], text, " ".join(words[:-1]), "*" in text or "[" in text)


def _python_parameters(code: str, entry: str) -> list[_Parameter] | None:
    """The parameters of a function of a Python source after grid and block; None if they cannot be read."""
    try:
        tree = ast.parse(code)
    except SyntaxError:
        return None
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry and node.args.vararg is None:
            return [_Parameter(one.arg, one.arg, "", is_pointer=False) for one in node.args.args[2:]]
    return None
