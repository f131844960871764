"""The arguments of launches against the parameters that the kernels have in the source.

The source is read as the default configuration compiles it. A kernel is judged only where its parameters
are the same for every configuration: no preprocessor directive between the brackets. Of several definitions
of one name, as overloads are, one that fits is enough.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import zip_longest

from autotune.core.c_types import SCALARS, element_bytes, is_floating, struct_fields
from autotune.core.launch_plan import TRITON
from autotune.core.records import ArgumentSpec, Config
from autotune.core.syntax import parse_module
from autotune.core.text import count_text, hint
from autotune.errors import InputError
from autotune.sources.bare_code import without_comments
from autotune.sources.branches import kernels_of_branches, read_branches, readings_of_branches
from autotune.sources.kernel_source import Function, FunctionParameter, KernelSource, read_kernel_source
from autotune.sources.type_table import split_arguments
from autotune.space.findings import Finding
from autotune.space.source_places import source_place
from autotune.space.space import ValidSpace
from autotune.space.yaml_document import located

_KERNEL = {"portable": "KERNEL", "cuda": "__global__ void", "opencl": "__kernel void"}
_ANY = ("void", "char", "unsigned char")  # pointers to these take every array
_ALIASES = 8  # of types, one after the other
_PLACE = re.compile(r"^#line[^\n]*", re.MULTILINE)  # a file may be called as the kernel
_IMAGE = re.compile(r"(?:image\w+|sampler)_t")


def mismatches(space: ValidSpace, text: str, source: KernelSource | None) -> Iterator[Finding]:
    """What of the launch plan does not fit the kernels of the source: at most one for each entry.

    `source` is what was read of a text in C. A subject is a place in the space file, such as
    `launch[0].arguments`, or a parameter of the space whose macro replaces one of the kernel.
    """
    if space.spec.dialect == TRITON:  # whose launches are checked when the space is read
        return
    functions = () if source is None else source.functions
    names = {function.name for function in functions}
    if source is not None and not {own_name(step.entry) for step in space.spec.launch} <= names:
        branches = read_branches(source.original)
        readings = readings_of_branches(source, space_macros(space, space.spec.default), branches)
        others = kernels_of_branches(source, branches, readings)
        functions = (*functions, *(function for function, _ in others if function.name not in names))
    for entry in dict.fromkeys(step.entry for step in space.spec.launch):
        if mismatch := _mismatch(space, text, functions, entry):
            subject, detail = mismatch
            is_macro = any(subject == parameter.name for parameter in space.parameters)
            place = (
                source_place(space, text, subject, after=own_name(entry))
                if is_macro
                else located(space.spec.path, subject)
            )
            yield Finding("signature", subject, detail, place)


def read_default(space: ValidSpace, source: str) -> KernelSource | None:
    """What the default configuration compiles of a source in C; None where it cannot be read in time."""
    try:
        return read_kernel_source(source, space_macros(space, space.spec.default), space.spec.dialect)
    except InputError:
        return None


def space_macros(space: ValidSpace, config: Config) -> dict[str, str]:
    """The macros that compile a configuration, as texts: those of the space, and of compiler options."""
    dialects = sorted(space.spec.compiler_options, key=lambda dialect: dialect == space.device.backend)
    options = (option for dialect in dialects for option in space.options(config, dialect))
    given = (option[2:].partition("=") for option in options if option.startswith("-D"))
    macros = {name: value or "1" for name, _, value in given}  # the device's own count last
    return macros | {name: str(value) for name, value in space.macros(config).items()}


def _mismatch(
    space: ValidSpace, text: str, functions: Sequence[Function], entry: str
) -> tuple[str, str] | None:
    """What in the launches of an entry does not fit, and how; None if all does."""
    if space.spec.source.suffix == ".py":
        definitions = _python_definitions(text, entry)
    elif reason := _no_kernel(space, text, functions, entry):
        number = [step.entry for step in space.spec.launch].index(entry)
        return f"launch[{number}].entry", reason
    else:
        definitions = _definitions(functions, entry)
    misfits = [_misfit(space, entry, parameters) for parameters in definitions]
    return None if None in misfits else next(iter(misfits), None)  # one of several overloads is meant


def _no_kernel(space: ValidSpace, text: str, functions: Sequence[Function], entry: str) -> str:
    """Why a source in C has no such kernel; empty if it has, or nothing shows that it has not."""
    name = own_name(entry)
    kernels = [function.name for function in functions if function.is_kernel]
    own = [function for function in functions if function.name == name]
    is_own = "::" not in entry  # a namespace may be one of a library
    code = _PLACE.sub("", without_comments(text))
    if is_own and kernels and not own and not re.search(rf"\b{name}\b", code):
        return f"the source has no kernel {name}{hint(name, kernels)}"
    if own and name not in kernels and not own[0].source.prefixes:
        return (
            f"{name} is a plain function of {space.spec.source.name}, which cannot be launched; write "
            f"{_KERNEL[space.spec.dialect]} instead of its `void`"
        )
    return ""


def _misfit(space: ValidSpace, entry: str, parameters: Sequence[FunctionParameter]) -> tuple[str, str] | None:
    """What in the launches of a kernel does not fit one definition of it, and how; None if all does."""
    arguments = {argument.name: argument for argument in space.spec.arguments}
    numbers = [number for number, step in enumerate(space.spec.launch) if step.entry == entry]
    plans = [[arguments[name] for name in space.spec.launch[number].arguments] for number in numbers]
    name = own_name(entry)
    is_python = space.spec.source.suffix == ".py"
    if not is_python and (hidden := _hidden(space, name, parameters, plans[0])):
        return hidden
    orders = [_wrong_order(name, parameters, passed) for passed in plans]
    reasons = [_wrong_count(name, parameters, passed, arguments) for passed in plans]
    if all(orders):  # a second launch may swap two arrays
        reasons = orders
    for number, reason in zip(numbers, reasons, strict=True):
        if reason:
            return f"launch[{number}].arguments", reason
    if is_python:
        return None
    types = [_wrong_types(space, name, parameters, passed) for passed in plans]
    return next(filter(None, types), None)


def own_name(entry: str) -> str:
    """The name of a kernel without its namespace and template arguments."""
    return re.split(r"[<(]", entry)[0].strip().rpartition("::")[2]


def _hidden(
    space: ValidSpace, entry: str, parameters: Sequence[FunctionParameter], passed: Sequence[ArgumentSpec]
) -> tuple[str, str] | None:
    """A name in the source that a macro of the space replaces."""
    macros = {parameter.name for parameter in space.parameters}
    for number, item in enumerate(parameters):
        if item.name in macros:
            given = passed[number].name if number < len(passed) else f"{item.name.lower()}_"
            return item.name, (
                f"the space defines a macro of this name, which replaces {item.text}, parameter "
                f"{number + 1} of {entry}; give this parameter another name, such as {given}"
            )
    return None


def _wrong_count(
    entry: str,
    parameters: Sequence[FunctionParameter],
    passed: Sequence[ArgumentSpec],
    declared: Collection[str],
) -> str | None:
    if len(parameters) == len(passed):
        return None
    names, given = [item.name for item in parameters], [item.name for item in passed]
    has_names = bool({*names} & {*given})  # else the places count: arguments may be called something else
    missing = ", ".join([name for name in names if name not in given] if has_names else names[len(given) :])
    unknown = ", ".join([name for name in given if name not in names] if has_names else given[len(names) :])
    parts = [f"{missing} is missing" if missing else "", f"{unknown} is not expected" if unknown else ""]
    counts = f"{count_text(len(names), 'parameter')} and {count_text(len(given), 'argument')}"
    mend = f"; write [{', '.join(names)}]" if {*names} <= {*declared} else ""
    return ", ".join(filter(None, (f"{_both_lists(entry, parameters, passed)}: {counts}", *parts))) + mend


def _wrong_order(
    entry: str, parameters: Sequence[FunctionParameter], passed: Sequence[ArgumentSpec]
) -> str | None:
    names, given = [item.name for item in parameters], [item.name for item in passed]
    is_other = sorted(names) == sorted(given) and names != given
    return f"{_both_lists(entry, parameters, passed)}; write [{', '.join(names)}]" if is_other else None


def _both_lists(entry: str, parameters: Sequence[FunctionParameter], passed: Sequence[ArgumentSpec]) -> str:
    names, given = (", ".join(item.name for item in items) for items in (parameters, passed))
    return f"{entry} takes ({names}) in the source, but the launch plan passes ({given})"


def _wrong_types(
    space: ValidSpace, entry: str, parameters: Sequence[FunctionParameter], passed: Sequence[ArgumentSpec]
) -> tuple[str, str] | None:
    for number, (parameter, argument) in enumerate(zip(parameters, passed, strict=True), 1):
        dtype = space.problem.dtype if argument.dtype == "DTYPE" else argument.dtype
        if (wrong := _wrong_type(parameter, argument, dtype, space.problem.dtype)) is not None:
            known = SCALARS.get(parameter.type)
            is_alike = known and (parameter.pointers > 0) == (argument.value is None)
            names = [declared.name for declared in space.spec.arguments]
            mend = f"; write dtype: {known}" if is_alike else ""
            return f"arguments[{names.index(argument.name)}].dtype", (
                f"parameter {number} of {entry} is {parameter.text} in the source, "
                f"but the launch plan passes {wrong}{mend}"
            )
    return None


def _wrong_type(parameter: FunctionParameter, argument: ArgumentSpec, dtype: str, problem: str) -> str | None:
    """What an argument is, if the parameter cannot take it; None if it can, or its type is not known."""
    is_array = argument.value is None
    shown = f"the array {argument.name} of {dtype}" if is_array else f"the number {argument.name} of {dtype}"
    known = SCALARS.get(parameter.type)
    if (parameter.pointers > 0) != is_array:
        return shown if known is not None or parameter.pointers else None
    if known is None or (is_array and parameter.type in _ANY):
        return None
    wanted = problem if known == "DTYPE" else known
    if struct_fields(dtype):
        return shown
    fits = element_bytes(wanted) == element_bytes(dtype) and is_floating(wanted) == is_floating(dtype)
    return None if fits and (wanted == "bfloat16") == (dtype == "bfloat16") else shown


def _definitions(functions: Sequence[Function], entry: str) -> list[list[FunctionParameter]]:
    """The parameters of each kernel that an entry may mean; none if one of them cannot be read."""
    given = arguments_of_template(entry)
    definitions = []
    own = [function for function in functions if function.name == own_name(entry)]
    for function in [function for function in own if function.is_kernel] or own:
        if (given is not None) != (function.template is not None or bool(function.specialised)):
            continue
        bound = dict(zip_longest((item.name for item in function.template or ()), given or (), fillvalue=""))
        definitions.append(_parameters(function, bound))
    return [] if None in definitions else [parameters for parameters in definitions if parameters is not None]


def arguments_of_template(entry: str) -> tuple[str, ...] | None:
    """What an entry gives a template; None without angle brackets."""
    if "<" not in entry:
        return None
    return (*split_arguments(entry.partition("<")[2].rpartition(">")[0]),)


def _parameters(function: Function, bound: Mapping[str, str]) -> list[FunctionParameter] | None:
    """The parameters of a kernel with what their types stand for; None if they cannot be compared.

    `bound` has the template's arguments by its parameters, empty for one that is not given.
    """
    if function.is_conditional:
        return None
    parameters = []
    aliases = function.source.types.aliases
    for item in function.parameters:
        is_other = item.is_function or item.is_reference or item.is_shared or _IMAGE.fullmatch(item.type)
        if not item.name or is_other:
            return None
        # a class template is of no known type
        kind = "" if "<" in item.type else bound.get(item.type, item.type)
        for _ in range(_ALIASES):
            kind = aliases.get(kind, kind)
        given = f" with {item.type} = {kind}" if item.type in bound and kind else ""
        parameters.append(replace(item, type=kind, text=f"`{item.text}`{given}"))
    return parameters


def _python_definitions(code: str, entry: str) -> list[list[FunctionParameter]]:
    """The parameters of a function of a Python source after grid and block; none if they cannot be read."""
    try:
        tree = parse_module(code)
    except SyntaxError:
        return []
    return [
        [FunctionParameter(argument.arg, argument.arg, "") for argument in node.args.args[2:]]
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name == entry and node.args.vararg is None
    ][:1]
