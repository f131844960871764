"""The arguments of launches against the parameters that the kernels have in the source.

A kernel is judged only where its parameters can be read without a compiler: no preprocessor directive and no
macro between the brackets. Of several definitions of one name, as overloads are, one that fits is enough.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import NamedTuple

from autotune.core.brackets import PAIRS, closing, split_arguments
from autotune.core.c_types import (
    LOCAL_QUALIFIERS,
    QUALIFIERS,
    SCALARS,
    element_bytes,
    is_floating,
    struct_fields,
)
from autotune.core.launch_plan import TRITON
from autotune.core.records import ArgumentSpec
from autotune.core.syntax import parse_module
from autotune.core.text import count_text, hint
from autotune.space.space import Space

_DEFINE = re.compile(r"^[ \t]*#[ \t]*define\b[^\n]*$", re.MULTILINE)
_MACRO = re.compile(r"^[ \t]*#[ \t]*define[ \t]+\w+(?:\(([^)\n]*)\))?(.*)$", re.MULTILINE)
_PASTED = re.compile(r"\b(\w++)\s*+##\s*+(?=(\w+))")
_INTRODUCED = re.compile(r"\b(?:KERNEL|__global__|__kernel|kernel)\b[^;{}]*$")
_WORD = re.compile(r"[A-Za-z_]\w*")
_KERNEL = {"portable": "KERNEL", "cuda": "__global__ void", "opencl": "__kernel void"}
# a function without a word that makes it a kernel, after the end of what comes before it
_PLAIN = (
    r"(?:\A|[;}}]|^[ \t]*#[^\n]*$)\s*(?:extern\s+)?(?:(?:KERNEL_BLOCK|__launch_bounds__)\([^()]*\)\s*)?"
    r"void\s+{name}\s*\([^;{{}}]*\{{"
)
_BESIDE_A_TYPE = QUALIFIERS | {"struct", "std"}
_ANY = ("void", "char", "unsigned char")  # pointers to these take every array
_PAIRS = f"{PAIRS}<>"
_NOT_ENTRIES = LOCAL_QUALIFIERS | {"image2d_t", "sampler_t"}


@dataclass(frozen=True)
class _Parameter:
    """One parameter of a kernel.

    `kind` is its type without qualifiers. `bound` says what the entry gives for a type of the template, such
    as ` with T = float`.
    """

    name: str
    text: str
    kind: str
    is_pointer: bool
    bound: str = ""


class Mismatch(NamedTuple):
    """What of a launch plan does not fit a kernel.

    `subject` is a place in the space file, such as `launch[0].arguments`, or a parameter of the space whose
    macro replaces one of the kernel.
    """

    subject: str
    detail: str
    kernel: str


def mismatches(space: Space, code: str) -> Iterator[Mismatch]:
    """What of the launch plan does not fit the kernels of the source: at most one for each entry.

    Args:
        space: The bound space.
        code: The source without comments and strings.
    """
    if space.spec.dialect != TRITON:  # whose launches are checked when the space is read
        entries = dict.fromkeys(step.entry for step in space.spec.launch)
        yield from filter(None, (_mismatch(space, code, entry) for entry in entries))


def _mismatch(space: Space, code: str, entry: str) -> Mismatch | None:
    name = _own_name(entry)
    if space.spec.source.suffix == ".py":
        definitions = _python_definitions(code, entry)
    elif what := _no_kernel(space, code, entry):
        number = [step.entry for step in space.spec.launch].index(entry)
        return Mismatch(f"launch[{number}].entry", what, name)
    else:
        definitions = _definitions(code, entry)
    found = [_misfit(space, entry, parameters) for parameters in definitions]
    if None in found:  # one of several overloads is meant
        return None
    return next((Mismatch(*one, name) for one in found if one), None)


def _no_kernel(space: Space, code: str, entry: str) -> str:
    """Why a source in C has no such kernel; empty if it has, or nothing shows that it has not."""
    name = _own_name(entry)
    is_own = "::" not in entry  # a namespace may be one of a library
    if is_own and not re.search(rf"\b{name}\b", code) and not _may_be_pasted(name, code):
        kernels = list(_kernels(code))
        return f"the source has no kernel {name}{hint(name, kernels)}" if kernels else ""
    if re.search(_PLAIN.format(name=name), code, re.MULTILINE) and name not in _kernels(code):
        return (
            f"{name} is a plain function of {space.spec.source.name}, which cannot be launched; write "
            f"{_KERNEL[space.spec.dialect]} for its `void`"
        )
    return ""


def _misfit(space: Space, entry: str, parameters: Sequence[_Parameter]) -> tuple[str, str] | None:
    """What in the launches of a kernel does not fit one definition of it, and how; None if all does."""
    arguments = {argument.name: argument for argument in space.spec.arguments}
    numbers = [number for number, step in enumerate(space.spec.launch) if step.entry == entry]
    plans = [[arguments[name] for name in space.spec.launch[number].arguments] for number in numbers]
    name = _own_name(entry)
    is_python = space.spec.source.suffix == ".py"
    if not is_python and (hidden := _hidden(space, name, parameters, plans[0])):
        return hidden
    orders = [_wrong_order(name, parameters, passed) for passed in plans]
    found = [_wrong_count(name, parameters, passed, arguments) for passed in plans]
    if all(orders):  # a second launch may swap two arrays
        found = orders
    for number, what in zip(numbers, found, strict=True):
        if what:
            return f"launch[{number}].arguments", what
    if is_python:
        return None
    types = [_wrong_types(space, name, parameters, passed) for passed in plans]
    return next(filter(None, types), None)


def _own_name(entry: str) -> str:
    """The name of a kernel without its namespace and template arguments."""
    return re.split(r"[<(]", entry)[0].strip().rpartition("::")[2]


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
    has_names = bool({*names} & {*given})  # else the places count: arguments may be called something else
    missing = ", ".join([name for name in names if name not in given] if has_names else names[len(given) :])
    unknown = ", ".join([name for name in given if name not in names] if has_names else given[len(names) :])
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
                f"parameter {number} of {entry} is `{parameter.text}`{parameter.bound} in the source, "
                f"but the launch plan passes {wrong}{mend}"
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


def _definitions(code: str, entry: str) -> list[list[_Parameter]]:
    """The parameters of each definition in C that an entry may mean; none if one of them cannot be read."""
    code = _DEFINE.sub("", code)
    is_template = "<" in entry
    given = split_arguments(entry.partition("<")[2].rpartition(">")[0], _PAIRS)
    found, kernels = [], []
    for match in re.finditer(rf"[\w)]\s+{_own_name(entry)}\s*\(", code):
        end = closing(code, match.end() - 1, "()")
        template = re.search(r"\btemplate\s*(<[^;{}]*)$", code[: match.start()])
        if not re.match(r"\s*\{", code[end + 1 :]) or is_template != bool(template):
            continue
        declared = split_arguments(template[1][1 : closing(template[1], 0, "<>")], _PAIRS) if template else ()
        bound = dict(zip_longest(map(_declared_name, declared), given[: len(declared)], fillvalue=""))
        found.append(_parameters(code[match.end() : end], bound))
        if _INTRODUCED.search(code[: match.start() + 1]):
            kernels.append(found[-1])
    chosen = kernels or found  # a function of the host may have the kernel's name
    return [] if None in chosen else [one for one in chosen if one is not None]


def _parameters(inside: str, bound: Mapping[str, str]) -> list[_Parameter] | None:
    """The parameters in a kernel's brackets; None if they cannot be read.

    Args:
        inside: What is between the brackets.
        bound: The arguments of the template by its parameters; empty for an argument that is not given.
    """
    texts = split_arguments(inside, _PAIRS)
    if texts in ((), ("void",)):
        return []
    parameters = [_parameter(text, bound) for text in texts]
    known = [one for one in parameters if one is not None]
    return known if "#" not in inside and len(known) == len(parameters) else None


def _declared_name(text: str) -> str:
    """The name that a parameter declares, of a template or a kernel; empty without one."""
    words: list[str] = _WORD.findall(text.partition("=")[0])
    return words[-1] if words else ""


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
        rest = code[closing(code, match.end() - 1, "()") + 1 :]
        if rest.lstrip().startswith("{") and _INTRODUCED.search(code[: match.start()]):
            yield match[1]


def _parameter(text: str, bound: Mapping[str, str]) -> _Parameter | None:
    """One parameter; None for a text that is not a type and a name, such as a macro.

    `bound` is that of `_parameters`.
    """
    declared = text.partition("=")[0]
    outer = re.sub(r"<.*>", "", declared)
    words = [word for word in _WORD.findall(outer) if word not in _BESIDE_A_TYPE]
    if len(words) < 2 or any(letter in outer for letter in "()<>&.") or set(words) & _NOT_ENTRIES:
        return None
    written = " ".join(words[:-1])
    kind = bound.get(written, written) if outer == declared else ""  # a class template is of no known type
    given = f" with {written} = {kind}" if kind not in ("", written) else ""
    return _Parameter(words[-1], text, kind, "*" in outer or "[" in outer, given)


def _python_definitions(code: str, entry: str) -> list[list[_Parameter]]:
    """The parameters of a function of a Python source after grid and block; none if they cannot be read."""
    try:
        tree = parse_module(code)
    except SyntaxError:
        return []
    return [
        [_Parameter(one.arg, one.arg, "", is_pointer=False) for one in node.args.args[2:]]
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == entry and node.args.vararg is None
    ][:1]
