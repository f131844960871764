"""Find names that mean different things in a space and its source."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping

from autotune.core.c_types import C_TYPES, SCALARS
from autotune.core.expressions import parse
from autotune.core.launch_plan import DTYPE_MACROS, constant_expressions, macro_name
from autotune.core.records import Config, Parameter
from autotune.core.text import nearest
from autotune.errors import SpaceError
from autotune.sources.branches import Branches, read_branches
from autotune.sources.dialects import BUILT_IN, portable_macros
from autotune.sources.kernel_source import KernelSource
from autotune.sources.macro_reach import Unseen, unseen_macros
from autotune.sources.macros import definition
from autotune.sources.preprocessor import compiled_lines
from autotune.space.configurations import PARTS, TROUBLES
from autotune.space.findings import Finding
from autotune.space.misspelt import is_slip, misspelt_names
from autotune.space.parameters import unlisted_value
from autotune.space.signatures import read_default
from autotune.space.source_places import place_at, source_place
from autotune.space.space import ValidSpace
from autotune.space.spec import SpaceSpec
from autotune.space.yaml_document import located

_WORD = re.compile(r"\b[A-Za-z_]\w*")
_DEFINITION = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)", re.MULTILINE)
_ASKED = "WARPS"  # what a source may define in front of portable.h


def unknown_macros(space: ValidSpace, source: str, code: str, read: KernelSource | None) -> Iterator[Finding]:
    """Undefined macros whose value is tested, look like a named value of a parameter, or resemble a macro.

    If a source only asks whether a macro is defined, it is a switch that is off.
    """
    is_python = space.spec.source.suffix == ".py"
    constants = {
        parameter.name: [
            macro_name(parameter.name, name) for name in parameter.values if isinstance(name, str)
        ]
        for parameter in space.parameters
    }
    branches = Branches() if is_python else read_branches(source)
    defined = {*DTYPE_MACROS, *PARTS, *TROUBLES, *branches.defined}
    defined.update(constants, *constants.values())
    used = {*_WORD.findall(code)}
    prefixes = tuple(f"{name}_".upper() for name, names in constants.items() if names)
    named = {word for word in used if prefixes and word.startswith(prefixes)}
    free = set() if read is None else {*read.unknown, *(branches.constants - read.code.used)}
    misspelt = {word for word in (*free, *branches.tested) if any(is_slip(word, name) for name in defined)}
    valued = {word for word, test in branches.tested.items() if test == "if"}
    named &= used if read is None else {*free, *branches.tested}
    unknown = [
        word
        for word in sorted({*valued, *named, *misspelt})
        if word not in defined and word.isupper() and not BUILT_IN.fullmatch(word)
    ]
    unused = [parameter.name for parameter in space.parameters if parameter.name not in used]
    is_pair = len(unused) == len(unknown) == 1
    meant = f"; did you mean {unused[0]}, which the source does not use? otherwise" if is_pair else ";"
    values = {*constants, *(name for names in constants.values() for name in names)}
    for word in unknown:
        place = source_place(space, source, word)
        is_own = place.startswith(f"{space.spec.source}:")
        if not is_own and not any(is_slip(word, name) for name in values):  # a header asks for many things
            continue
        mend = nearest(word, defined) or (
            f"{meant} add `{word}: [0, 1]` to `parameters` and `{word}: 0` to `default` in "
            f"{space.spec.path.name}, or write `#define {word} 1` in the source"
        )
        yield Finding("unknown_macro", word, f"nothing defines it{mend}", place)


def undeclared_names(
    space: ValidSpace, source: str, read: KernelSource, told: Collection[str]
) -> Iterator[Finding]:
    """Undeclared names, except slips, and variables whose name is a macro of the space."""
    macros = {parameter.name for parameter in space.parameters}
    for name, meant in dict(misspelt_names(read, macros)).items():
        if name in told:
            continue
        place = source_place(space, source, name)
        yield Finding("unknown_name", name, f"nothing declares it; did you mean {meant}?", place)
    for function in read.device_functions:
        for name in sorted(macros.intersection(function.declared)):
            detail = (
                f"the space defines a macro of this name, which replaces this variable of {function.name}; "
                "remove the variable, or give it another name"
            )
            place = source_place(space, source, name, after=function.name)
            yield Finding("hidden_variable", name, detail, place)


def reserved_words(space: ValidSpace) -> Iterator[Finding]:
    """Macros of a source in the portable dialect that replace words of portable.h behind its include."""
    path, is_portable = space.spec.source, False
    if not path.is_file():  # a text or a function in Python
        return
    text = path.read_text(encoding="utf-8-sig", errors="replace")
    for line in compiled_lines(text):
        is_portable |= line.directive == "include" and line.rest.startswith('"portable')
        macro = definition(line.rest) if is_portable and line.directive == "define" else None
        if macro is not None and macro[0] in {_ASKED, *portable_macros()}:
            detail = f"portable.h defines {macro[0]}, and its other words use it: choose another name"
            place = text.count("\n", 0, line.place) + 1
            yield Finding("reserved_word", macro[0], detail, f"{path}:{place}")


def unused_parameters(space: ValidSpace, code: str) -> Iterator[Finding]:
    """Parameters that nothing but constraints reads."""
    if space.spec.functions.source:  # it defines every parameter
        code = _DEFINITION.sub("", code)
    used = set(_WORD.findall(code)).union(
        *(parse(text).names for text in _expressions(space.spec)),
        *(_WORD.findall(step.entry) for step in space.spec.launch),  # template arguments
    )
    for parameter in space.parameters:
        if parameter.name not in used and not _is_read_by_functions(space, parameter):
            places = "the source, the launch plan, an argument, an option or a derived name"
            mend = (
                f"use it in {space.spec.source.name}{_test_of(parameter)}, or remove it from `parameters`"
                f"{_also_named(space.spec, parameter.name)}"
                if len(space.parameters) > 1
                else f"use it in {space.spec.source.name}{_test_of(parameter)}; a space needs one parameter"
            )
            if space.spec.functions.source:  # there is no file to name
                mend = f"use it, or remove it{nearest(parameter.name, _WORD.findall(code))}"
            detail = f"declared, but not used in {places}; {mend}"
            place = located(space.spec.path, f"parameters.{parameter.name}")
            yield Finding("unused_parameter", parameter.name, detail, place)


def _is_read_by_functions(space: ValidSpace, parameter: Parameter) -> bool:
    """Whether the functions of a space may read a parameter: its value changes what they compute."""
    functions = space.spec.functions
    if not functions.source and not functions.values:
        return False
    changed = (Config({**space.spec.default, parameter.name: value}) for value in parameter.values)
    configs = [config for config in changed if config in space]
    own = re.compile(rf"#define {parameter.name} .*|constexpr int {parameter.name} = .*")
    computed = {
        (
            own.sub("", functions.source(config)) if functions.source else "",
            *(function(config) for function in functions.values.values()),
        )
        for config in configs
    }
    return len(configs) < 2 or len(computed) > 1


def _also_named(spec: SpaceSpec, name: str) -> str:
    """Where else a space names a parameter that its kernel does not use, as a part of a message."""
    lines = [f"{spec.path}:{item.line}" for item in spec.constraints if name in parse(item.text).names]
    default = f"`default` ({located(spec.path, f'default.{name}')})"
    return (
        f", {default} and the constraints that name it ({', '.join(lines)})" if lines else f" and {default}"
    )


def _test_of(parameter: Parameter) -> str:
    """How a source tests a parameter with names for values, as a part of a message."""
    value = parameter.values[0]
    return (
        f", as in `#if {parameter.name} == {macro_name(parameter.name, value)}`"
        if isinstance(value, str)
        else ""
    )


def unlisted_values(space: ValidSpace) -> Iterator[Finding]:
    """Comparisons of a parameter with a text or number that is not among its values."""
    lines = {constraint.text: constraint.line for constraint in space.spec.constraints}
    for text in (*lines, *_expressions(space.spec)):
        if detail := unlisted_value(text, space.parameters):
            place = f"{space.spec.path}:{lines[text]}" if text in lines else str(space.spec.path)
            yield Finding("unlisted_value", text, detail.removeprefix("; "), place)


def _expressions(spec: SpaceSpec) -> list[str]:
    """The expressions of the launch plan, arguments, options and derived names."""
    expressions = [*spec.derived.values(), *spec.device.values()]
    for options in spec.compiler_options.values():
        expressions += options.values()
    for step in spec.launch:
        optional = (step.repeat, step.cooperative, step.programmatic)
        expressions += (*step.grid, *step.block, step.shared_bytes, step.when, *step.cluster)
        expressions += (*filter(None, optional), *constant_expressions(step).values())
    for argument in spec.arguments:
        expressions += (*argument.shape, argument.value or "0")
    return expressions


def unseen_parameters(space: ValidSpace, source: str) -> Iterator[Finding]:
    """Parameters whose values do not reach the source as intended.

    Nothing that is compiled depends on one that the source defines anew or only tests for being defined: a
    search would compare what does not differ. With types as values, nothing compiles. Each is an error of
    the space.
    """
    if space.spec.source.suffix == ".py" or space.spec.functions.source is not None:
        return  # the latter has the values of each configuration in it
    several = {parameter.name: len(parameter.values) > 1 for parameter in space.parameters}
    for name, (why, at) in unseen_macros(source, several.keys()).items():
        place = place_at(space.spec.source, source, at)
        if why is Unseen.REDEFINED:
            is_own = place.startswith(f"{space.spec.source}:")
            mend = (
                f"put it between `#ifndef {name}` and `#endif`, or remove it"
                if is_own
                else "rename the parameter"
            )
            detail = f"this `#define` replaces the values of the parameter; {mend}"
            yield Finding("redefined_parameter", name, detail, place)
        elif several[name]:
            detail = (
                "each value of the parameter defines this macro, so all values compile to the same; "
                f"write `#if {name}`, or remove it from `parameters`"
            )
            yield Finding("only_defined_parameter", name, detail, place)
    if kinds := {
        one.name: one for one in space.parameters if {*one.values} <= SCALARS.keys() | C_TYPES.keys()
    }:
        yield from _parameters_of_types(space, source, kinds)


def _parameters_of_types(space: ValidSpace, source: str, kinds: Mapping[str, Parameter]) -> Iterator[Finding]:
    """Those of the parameters whose values are `kinds` of elements which the source uses as a type."""
    read = read_default(space, source)
    functions = read.functions if read else ()
    used = {name for one in functions if not one.is_of_host for name in one.types}
    used -= {one.name for function in functions for one in function.template or ()}  # which are no macros
    for name, parameter in kinds.items():
        if name in used:
            first = macro_name(name, str(parameter.values[0]))
            dtypes = ", ".join(dict.fromkeys(SCALARS.get(str(one), str(one)) for one in parameter.values))
            detail = (
                f"the source uses {name} as a type, but words of a parameter are numbers: {first} is 1; "
                f"remove it from `parameters` and `default`, and write `dtypes: [{dtypes}]`, `#define {name} "
                f"DTYPE` in {space.spec.source.name} and `dtype: DTYPE` for arguments of this type"
            )
            yield Finding("type_parameter", name, detail, located(space.spec.path, f"parameters.{name}"))


def require_seen(space: ValidSpace, source: str) -> None:
    """Raise SpaceError for a parameter whose values the source does not see."""
    for finding in unseen_parameters(space, source):
        raise SpaceError(str(finding))
