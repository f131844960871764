"""Read from a source what a launch of its kernels needs: arguments, macros, and what their statements do."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from autotune.core.c_types import C_TYPES, SCALARS
from autotune.core.launch_plan import RESERVED_NAMES
from autotune.errors import InputError, KernelUnread
from autotune.scaffold.macros import OpenMacro, find_macros
from autotune.scaffold.templates import ReadTemplate, read_template
from autotune.scaffold.types import KnownTypes, Member
from autotune.sources.bare_code import WORD, without_comments
from autotune.sources.branches import Branches, kernels_of_branches, read_branches, readings_of_branches
from autotune.sources.dialects import CUDA, INTRODUCER, OPENCL, portable_macros
from autotune.sources.facts import Facts, facts
from autotune.sources.kernel_source import (
    Function,
    FunctionParameter,
    KernelSource,
    Variable,
    read_kernel_source,
)
from autotune.sources.launches import HostLaunch
from autotune.sources.type_layouts import STRUCT, UNKNOWN, VECTOR

_IMAGE = re.compile(r"image\d\w*_t")
_PLACEHOLDER = re.compile(  # of a template language; `= {{x}}` is C, and so is `a %b`
    r"\$\{[^{}\n]*\}|<%|\{%.*?%\}|\{\{(?<!=\{\{)(?<!= \{\{)\s*[A-Za-z_][\w.]*\s*\}\}|"
    r"%(?:(?<=void %)|(?<=global %)|(?<=local %)|(?<=const %)|(?<=[(,{;\[]%))[A-Z]\w+"
)
_HAS_BODY, _IS_DECLARED = re.compile(r"[^;{]*\{"), re.compile(r"[^;{#]*\)\s*;")
_AN_ARRAY = "take a pointer to its elements instead, for autotune passes arrays and numbers only"
_UNSUPPORTED = {
    "cudaTextureObject_t": f"is a texture; {_AN_ARRAY}",
    "cudaSurfaceObject_t": f"is a surface; {_AN_ARRAY}",
    "CUtensorMap": f"is a tensor map, which a program makes of an array; {_AN_ARRAY}",
    "sampler_t": f"is a sampler; {_AN_ARRAY}",
    "pipe": f"is a pipe; {_AN_ARRAY}",
}


@dataclass(frozen=True)
class Assumptions:
    """What is assumed of a source."""

    undefined: tuple[str, ...] = ()  # words that a compiler does not know: macros or types
    defined: tuple[tuple[str, str], ...] = ()  # macros that the user defines, with their values
    fixed: frozenset[str] = frozenset()  # macros that stay at their defaults, for the problem depends on them
    generic: str = "DTYPE"  # the type that an instance of a template gets
    is_small: bool = False  # the default has the least of every parameter's values
    is_large: bool = False  # numbers that the source leaves open are 16, not 1
    option: str = ""  # of the compiler, which the source needs
    is_roomy: bool = False  # arrays get more room than indices show, sizes are smaller, and indices 0


USUAL = Assumptions()


@dataclass(frozen=True)
class KernelArgument:
    """One argument of a kernel; `width` is 4 for float4."""

    name: str
    text: str
    dtype: str
    width: int
    is_pointer: bool
    is_const: bool
    type_name: str = ""
    shape: str = ""  # of an array whose declaration gives it
    symbol: str = ""  # the variable that it is, for it is no argument then
    is_local: bool = False  # local memory of OpenCL


@dataclass(frozen=True)
class Structure:
    """A structure that is passed by value: its numbers, and the arrays behind its pointers, are arguments."""

    text: str
    fields: tuple[tuple[str, str], ...]  # names and types
    members: Mapping[str, str]  # the arguments behind the fields, by the way to each: `p.at.x`


@dataclass(frozen=True)
class FoundKernel:
    """A kernel."""

    name: str  # in the source
    entry: str  # in a launch plan: with namespaces, template arguments and types where needed
    # of a launch, and variables that the kernel uses; in place of a structure what is in it
    arguments: tuple[KernelArgument, ...]
    structures: Mapping[str, Structure]  # those that are passed by value, by parameter
    template: tuple[ReadTemplate, ...]  # the numbers that its template takes
    types: Mapping[str, str]  # guesses for types that the source leaves to its user
    launch: HostLaunch | None  # the first by the host's code
    function: Function
    wanted: Mapping[str, str]  # what the conditions around it want of macros
    signature: str  # as overloads are told apart

    @property
    def passed(self) -> list[str]:
        """The names of what a launch passes."""
        return [parameter.name for parameter in self.function.parameters]

    @property
    def host_block(self) -> tuple[ast.expr, ...]:
        """The block of the host's launch; empty where the kernel's own counts, or any block will do."""
        is_open = len(self.function.block) < 3 and not reads(self.function, "blockDim")
        return self.launch.block if self.launch and is_open else ()

    @property
    def block(self) -> tuple[str, ...]:
        """The host's block, else the declared one: three extents, the number of threads alone, or none."""
        return tuple(map(ast.unparse, self.host_block)) or self.function.block

    @property
    def integers(self) -> list[str]:
        """The whole numbers that a launch passes, and that are wide enough for a size."""
        numbers = (item for item in self.arguments if not item.is_pointer)
        return [item.name for item in numbers if item.dtype.endswith(("int32", "int64"))]

    @cached_property
    def facts(self) -> Facts:
        """What its statements do."""
        source = self.function.source
        arrays = [item.name for item in self.arguments if item.is_pointer]
        functions = {
            function.name: ([item.name for item in function.parameters], function.body)
            for function in source.device_functions
            if not function.is_kernel
        }
        members = {path: name for one in self.structures.values() for path, name in one.members.items()}
        return facts(self.function.body, arrays, functions, members)


@dataclass(frozen=True)
class Source:
    """What was found in a source: at least one kernel, those of the source itself before those of headers.

    `host` is the program that launches the kernels. `refusals` say by name why kernels cannot be tuned as
    they are. `fixed` are the macros of the source itself, without headers, that stand for a number.
    """

    dialect: str
    kernels: tuple[FoundKernel, ...]
    macros: tuple[OpenMacro, ...]
    read: KernelSource
    branches: Branches
    host: KernelSource
    refusals: Mapping[str, str] = field(default_factory=dict)
    fixed: tuple[str, ...] = ()


def read_kernels(
    name: str, text: str, values: Mapping[str, str], assumed: Assumptions, host: str, own: str
) -> Source:
    """Read a source; `name` is for messages, `values` are those of its macros as far as they are chosen.

    `host` is the program that launches the kernels. Kernels of `own`, the source without headers, come first,
    and macros that only headers use are left to these. Raises InputError when there is no kernel, or one that
    no launch plan can call.
    """
    branches = read_branches(text)
    own_branches = branches if own == text else read_branches(own)
    try:
        source = read_kernel_source(text, values)
        program = read_kernel_source(host, {}, "cuda") if host else source
    except InputError as error:
        raise InputError(f"{name}: {error}") from None
    if any(variable.type.startswith("texture<") for variable in source.variables):
        raise InputError(f"{name}: has a texture reference, which CUDA 12 does not know; {_AN_ARRAY}")
    readings = [*readings_of_branches(source, values, branches)]
    kernels_and_wanted = [*kernels_of_branches(source, branches, readings)]
    for code in dict.fromkeys((source.code.text, *(one.source.code.text for one, _ in kernels_and_wanted))):
        if placeholder := _PLACEHOLDER.search(code):
            raise InputError(
                f"{name}: {placeholder[0]} is of a template language, which autotune does not know; write "
                "what it stands for in its place: a macro becomes a parameter"
            )
    readable: list[FoundKernel] = []
    refusals: dict[str, str] = {}
    meaning = KnownTypes.of(program).resolved
    launches = [replace(one, template=(*map(meaning, one.template),)) for one in program.launches]
    types = KnownTypes.of(source, assumed.generic)
    for function, wanted in kernels_and_wanted:
        if function.source is not types.source:
            types = KnownTypes.of(function.source, assumed.generic)
        try:
            readable.append(_kernel(name, function, types, launches, wanted))
        except InputError as error:
            said = str(error).removeprefix(f"{name}: ")
            refusals.setdefault(function.name, f"{name}:{_line(own, function.name)} {said}")
    if not readable:
        words = {*WORD.findall(own)}
        of_own = (text for kernel, text in refusals.items() if kernel in words)
        raise InputError(next(of_own, next(iter(refusals.values())))) if refusals else _why_none(name, own)
    types = KnownTypes.of(source, assumed.generic)
    stand_ins = _stand_ins(types, source, branches, assumed)
    of_headers = _words(source, branches) - {*assumed.undefined}
    of_headers -= _words(read_kernel_source(own, values), own_branches) if own != text else of_headers
    dialect = next(one.function.source.dialect for one in readable)
    kernels = sorted(
        (replace(kernel, types={**kernel.types, **stand_ins}) for kernel in _told_apart(readable, dialect)),
        key=lambda kernel: (kernel.name in of_headers, not kernel.arguments),
    )
    taken = {
        *(argument.name for kernel in kernels for argument in kernel.arguments),
        *(one.name for function in source.functions for one in function.template or ()),
        *(word for kernel in kernels for word in kernel.types),
        *source.prefixes,
        *(portable_macros() if dialect == "portable" else ()),
    }
    unknown = {name for one in (source, *(again for _, again in readings)) for name in one.unknown}
    macros = find_macros(source, branches, unknown, taken, assumed.undefined)
    chosen = tuple(macro for macro in macros if macro.name not in of_headers)
    fixed = (*_fixed(source, branches, own_branches),)
    return Source(dialect, (*kernels,), chosen, source, branches, program, refusals, fixed)


def _fixed(source: KernelSource, branches: Branches, own: Branches) -> Iterator[str]:
    """The macros that a source itself defines as numbers, and that its code or a condition reads."""
    for name in source.code.macros:
        is_read = name in source.code.used or name in branches.tested
        if is_read and name in own.defined and (source.code.meaning(name) or "").strip().isdigit():
            yield name


def _words(source: KernelSource, branches: Branches) -> frozenset[str]:
    """The words that a source uses, in any of its branches, and those that its conditions ask for."""
    return source.code.used | branches.tested.keys() | branches.constants | branches.pragmas


def _line(own: str, kernel: str) -> str:
    """The line that names a kernel first, as `12:`; empty where the source itself does not."""
    code = without_comments(own)
    named = re.search(rf"\b{re.escape(kernel)}\s*\(", code)
    return f"{code.count(chr(10), 0, named.start()) + 1}:" if named else ""


def _why_none(name: str, own: str) -> InputError:
    """What to say of a source without a kernel, or with one that was not understood."""
    code = without_comments(own)
    for after, refusal in ((_HAS_BODY, KernelUnread), (_IS_DECLARED, _only_declared)):
        found = (one for one in INTRODUCER.finditer(code) if after.match(code, one.end()))
        if begin := next(found, None):
            return refusal(name, code.count("\n", 0, begin.start()) + 1)
    return InputError(
        f"{name}: no kernel found; expected a function that starts with KERNEL (the portable dialect), "
        "__global__ (CUDA C++) or __kernel (OpenCL C)"
    )


def _only_declared(name: str, line: int) -> InputError:
    return InputError(f"{name}:{line}: a kernel is only declared here; name the file that has its body")


def _stand_ins(
    types: KnownTypes, source: KernelSource, branches: Branches, assumed: Assumptions
) -> dict[str, str]:
    """Types for those that the source leaves to its user; nothing for words before types of functions."""
    used = {name for function in source.device_functions for name in function.types}
    written = used & {*WORD.findall(source.original)}  # others are put together: VECTOR_##width
    capitals = sorted(name for name in written if name.isupper() and name not in branches.defined)
    provided = portable_macros() if source.dialect == "portable" else frozenset()
    parameters = {parameter.name for function in source.functions for parameter in function.template or ()}
    words = [word for word in (*assumed.undefined, *capitals) if word not in provided | parameters]
    stand_ins = {word: types.stand_in(word) for word in words if word != "DTYPE" and types.is_unknown(word)}
    open_aliases = ((name, word) for name, word in types.aliases.items() if name in used and word.isupper())
    stand_ins |= {word: types.stand_in(name) for name, word in open_aliases if types.is_open(word)}
    plain = {word: C_TYPES[SCALARS[word]] for word in assumed.undefined if SCALARS.get(word) in C_TYPES}
    short = source.dialect == OPENCL  # whose options have no spaces
    stand_ins |= {word: kind.replace("unsigned ", "u") if short else kind for word, kind in plain.items()}
    for name in sorted(used & branches.defined):  # a macro may have put it together: REAL##4
        vector = VECTOR.fullmatch(name)
        if vector and types.is_unknown(name) and vector[1].isupper() and vector[1] not in branches.defined:
            stand_ins.setdefault(vector[1], types.stand_in(name).rstrip("0123456789"))
    known = {*assumed.undefined, *filter(str.isupper, source.prefixes)}
    beside = {word: source.prefixes[word] for word in sorted(source.prefixes.keys() & known)}
    return stand_ins | beside


def _kernel(
    name: str,
    function: Function,
    types: KnownTypes,
    launches: Iterable[HostLaunch],
    wanted: Mapping[str, str],
) -> FoundKernel:
    source = function.source
    place = f"{name}: {function.name}"
    own = (
        [launch for launch in launches if launch.kernel == function.name] if source.dialect != OPENCL else []
    )
    if source.dialect == OPENCL and function.template:
        names = " and ".join(one.name for one in function.template)
        raise InputError(
            f"{place} is a template, which OpenCL C does not have; write a macro in place of {names}, which "
            "becomes a parameter"
        )
    template = read_template(place, function, own, types)
    given = {item.name: item.given for item in template if item.kind == "type"}
    given_types, types = types, replace(types, aliases={**types.aliases, **given})
    arguments, structures = _arguments(place, function, types)
    kinds_inside = {kind for one in structures.values() for _, kind in one.fields}
    if "DTYPE" in kinds_inside and types.generic == "DTYPE":  # no field of a space follows `dtypes`
        return _kernel(name, function, replace(given_types, generic="float"), own, wanted)
    kinds = dict.fromkeys(argument.type_name for argument in arguments if argument.dtype == UNKNOWN)
    called = function.name
    if source.dialect == "cuda":
        used = {
            one.name: one for one in source.variables if _is_used(one, function)
        }  # a header may declare it
        arguments += [_variable(place, variable, types) for variable in used.values()]
        called = "::".join((*function.namespace, called))
    if function.specialised or template:
        called += f"<{function.specialised or ', '.join(item.given for item in template)}>"
    replaced = any(argument.type_name == "size_t" and not argument.is_pointer for argument in arguments)
    return FoundKernel(
        function.name,
        called,
        tuple(
            argument if argument.dtype != UNKNOWN else _with_stand_in(argument, types)
            for argument in arguments
        ),
        structures,
        tuple(item for item in template if item.kind != "type"),
        {kind: types.stand_in(kind) for kind in kinds if kind not in source.types.declared}
        | ({"size_t": "ulong"} if replaced and source.dialect == "opencl" else {}),
        own[0] if own else None,
        function,
        wanted,
        ", ".join(
            WORD.sub(lambda word: given.get(word[0], word[0]), one.type_text) for one in function.parameters
        ),
    )


def _with_stand_in(argument: KernelArgument, types: KnownTypes) -> KernelArgument:
    """An argument whose type the user chooses, with the type that stands in."""
    dtype, width = types.layout(types.stand_in(argument.type_name))
    return replace(argument, dtype=dtype, width=width)


def reads(function: Function, name: str) -> bool:
    """True if a function reads a variable."""
    return any(isinstance(part, ast.Name) and part.id == name for part in function.parts)


def _told_apart(kernels: Sequence[FoundKernel], dialect: str) -> list[FoundKernel]:
    """Kernels of one name, or with that of another function, by their argument types."""
    first: dict[tuple[str, str], FoundKernel] = {}
    for kernel in kernels:
        first.setdefault((kernel.entry, kernel.signature if dialect == "cuda" else ""), kernel)
    entries = [entry for entry, _ in first]
    return [
        replace(kernel, entry=f"{entry}({types})")
        if entries.count(entry) > 1 or (dialect == "cuda" and _has_namesake(kernel))
        else kernel
        for (entry, types), kernel in first.items()
    ]


def _has_namesake(kernel: FoundKernel) -> bool:
    """True if a function that kernels call has the name of a kernel."""
    own = kernel.function
    return any(
        (other.name, other.namespace) == (own.name, own.namespace) and not other.is_kernel
        for other in own.source.functions
    )


def _variable(place: str, variable: Variable, types: KnownTypes) -> KernelArgument:
    """A `__constant__` array or number that a program fills before a launch."""
    dtype, width = types.layout(variable.type)
    if dtype == STRUCT and (why := types.obstacle(variable.type)).endswith("a pointer"):
        raise InputError(
            f"{place}: {variable.name} is a structure in constant memory that autotune cannot fill: {why}; "
            "pass what it points to as arguments of the kernel"
        )
    counts = [types.constant(extent) for extent in variable.extents]
    shape = " * ".join(
        f"{count}" if count else extent if extent.isidentifier() else f"({extent})"
        for count, extent in zip(counts, variable.extents, strict=True)
    )
    symbol = "::".join((*variable.namespace, variable.name))
    return KernelArgument(
        variable.name,
        variable.text,
        "float32" if dtype in (UNKNOWN, STRUCT) else dtype,
        width,
        is_pointer=True,
        is_const=True,
        shape=shape or "1",
        symbol=symbol,
    )


def _is_used(variable: Variable, function: Function) -> bool:
    """True if a kernel, or a function that it may call, uses a variable in constant memory."""
    if not variable.is_constant:
        return False
    return any(
        reads(other, variable.name)
        for other in function.source.device_functions
        if other is function or not other.is_kernel
    )


def _arguments(
    place: str, function: Function, types: KnownTypes
) -> tuple[list[KernelArgument], dict[str, Structure]]:
    """The arguments of a kernel, and the structures that are passed by value, which are taken apart.

    A part is called like its field where nothing else is, else like the way to it: `A.width` is `A_width`.
    """
    inside = {
        parameter.name: members
        for parameter in function.parameters
        if not (parameter.pointers or parameter.is_reference or parameter.is_function)
        if (members := types.members(parameter.type)) and len({*map(_field_name, members)}) == len(members)
    }
    names = Counter(_field_name(member) for members in inside.values() for member in members)
    names.update(f"{name}_{_field_name(member)}" for name, members in inside.items() for member in members)
    names.update(parameter.name for parameter in function.parameters)
    names.update((*function.declared, *RESERVED_NAMES))
    arguments: list[KernelArgument] = []
    structures: dict[str, Structure] = {}
    for parameter in function.parameters:
        _require_plain(place, parameter, types)
        members = inside.get(parameter.name, ())
        if not members:
            arguments.append(_argument(place, parameter, types))
            continue
        parts = []
        for member in members:
            short = _field_name(member)
            name = short if names[short] == 1 else f"{parameter.name}_{short}"
            parts.append(_part(place, name, f"{parameter.name}{member.path}", member, types))
        arguments += parts
        structures[parameter.name] = Structure(
            parameter.text,
            tuple((_field_name(member), member.dtype) for member in members),
            {f"{parameter.name}{one.path}": part.name for one, part in zip(members, parts, strict=True)},
        )
    return arguments, structures


def _field_name(member: Member) -> str:
    return "_".join(WORD.findall(member.path.replace("[", "_")))


def _part(place: str, name: str, path: str, member: Member, types: KnownTypes) -> KernelArgument:
    """The number, or the array behind the pointer, in a structure that is passed by value."""
    field = member.field
    if field is None:
        return KernelArgument(name, path, member.dtype, 1, is_pointer=False, is_const=True)
    if types.source.dialect != CUDA:
        raise InputError(
            f"{place}: {path} is a pointer in a structure that is passed by value, which OpenCL does not "
            "allow; pass it as an argument of its own"
        )
    text = f"{'const ' * field.is_const}{field.type} {'*' * field.pointers}{path}"
    array = FunctionParameter(name, text, field.type, field.pointers, field.is_const)
    _require_plain(place, array, types)
    return _argument(place, array, types)


def _require_plain(place: str, declared: FunctionParameter, types: KnownTypes) -> None:
    """Raise InputError for an image, for what is no array or number, and for what cannot be read."""
    name, kind = declared.name, declared.type
    if _IMAGE.fullmatch(kind):
        raise InputError(f"{place}: {name} is an image; {_AN_ARRAY}")
    if unsupported := _UNSUPPORTED.keys() & ({kind, *declared.text.split()} - {name}):
        raise InputError(f"{place}: {name} {_UNSUPPORTED[unsupported.pop()]}")
    if not name and not declared.pointers and kind.isidentifier() and types.is_open(kind):
        raise InputError(
            f"{place}: nothing defines {kind}, its parameters: write an #include of the file that "
            "does at the top"
        )
    if not name or declared.is_function or declared.pointers > 1 or declared.is_reference:
        raise InputError(
            f"{place}: {declared.text.strip()}: autotune passes plain arrays and numbers only; take one "
            "array, and the number of elements from one part of it to the next, instead"
        )


def _argument(place: str, declared: FunctionParameter, types: KnownTypes) -> KernelArgument:
    name, kind = declared.name, declared.type
    dtype, width = types.layout(kind)
    is_pointer = declared.pointers > 0
    is_made = "<" in kind and dtype == UNKNOWN
    if not kind or (dtype == UNKNOWN and not kind.isidentifier() and not is_made):
        raise InputError(
            f"{place}: the type {kind or 'missing'!r} of {name} is not known; expected a type of C, "
            "or DTYPE, which autotune defines"
        )
    if dtype == STRUCT or is_made or (width > 1 and not is_pointer):
        why = (
            f"{kind} is made from a template"
            if is_made
            else types.obstacle(kind, with_pointers=not is_pointer)
        ) or "it is passed by value, and is no plain list of a few numbers without gaps"
        raise InputError(
            f"{place}: {name} is a structure that autotune cannot make: {why}; pass its fields as arguments "
            "of their own, or a pointer to a structure without pointers"
        )
    return KernelArgument(
        name,
        declared.text,
        dtype,
        width,
        is_pointer,
        declared.is_const,
        type_name=kind,
        is_local=declared.is_shared,
    )
