"""Read language, kernels, arguments and macros from a kernel source.

Regular expressions instead of a compiler are enough for a first space file, which its user reviews.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from autotune.core.bare_code import bare_code
from autotune.core.brackets import closing, split_arguments
from autotune.core.c_types import C_TYPES, LOCAL_QUALIFIERS, QUALIFIERS, SCALARS
from autotune.errors import InputError
from autotune.scaffold.assumptions import Assumptions
from autotune.scaffold.host_launches import HostLaunch, host_launches
from autotune.scaffold.macros import (
    TEMPLATE,
    WORD,
    Macro,
    declared_constants,
    defined_meanings,
    expand_introducers,
    expand_qualifiers,
    find_macros,
    qualifiers,
    with_values,
)
from autotune.scaffold.templates import TemplateParameter, read_template, with_function_objects
from autotune.scaffold.types import STRUCT, UNKNOWN, KnownTypes, known_types, widest_meaning

# The keyword before a kernel, by dialect; the first dialect with a match is that of the source.
_INTRODUCERS = {
    "portable": re.compile(r"\bKERNEL\b"),
    "cuda": re.compile(r"\b__global__\b"),
    "opencl": re.compile(
        r"\b__kernel\b|\bkernel\b(?=\s+(?:void|__attribute__)\b)|\bvoid\s+kernel\b(?=\s+\w+\s*\()"
    ),
}
_ATTRIBUTE = re.compile(
    r"\b(KERNEL_BLOCK|KERNEL_RESIDENT_BLOCK|__launch_bounds__|__maxnreg__|__cluster_dims__|reqd_work_group_size|__attribute__)\s*\("
)
_ATTRIBUTES_IN_FRONT = re.compile(r"((?:__attribute__\s*\(\([^;{}]*\)\)\s*)+)\w+\s*\Z")
_SPECIALISED = re.compile(r"\b(\w++)\s*+<([^<>]*+)>\s*+\Z")
_DIRECTIVE = re.compile(r"^[ \t]*#(?![ \t]*pragma)[^\n]*$", re.MULTILINE)
_ENUM = re.compile(r"\benum\b[^;{]*\{([^}]*)\}")
_CONSTANT = re.compile(
    r"\b__constant__\s+((?:(?:static|const|unsigned|signed|long)\s+)*\w+)\s+(\w+)((?:\s*\[[^\]]*\])*)\s*;"
)
_IMAGE = re.compile(r"^image\dd_\w*t$")
_PLACEHOLDER = re.compile(  # of a template language; `= {{x}}` is C
    r"\$\{[^{}\n]*\}|<%|\{%.*?%\}|(?<!=)(?<!= )\{\{\s*[A-Za-z_][\w.]*\s*\}\}"
)
_TEXTURE = re.compile(r"^[ \t]*(?:static[ \t]+)?texture\s*<[^;()]*>\s*\w+\s*;", re.MULTILINE)
_EXPANDED = re.compile("|".join((*(item.pattern for item in _INTRODUCERS.values()), "__launch_bounds__")))
_QUALIFIERS = re.compile(rf"\b(?:{'|'.join((QUALIFIERS | LOCAL_QUALIFIERS) - {'const'})})\b")
_WORDS_BESIDE_A_TYPE = ("const", "struct", "std", "typename")
_CONSTANT_MEMORY = frozenset(("__constant", "constant", "CONSTANT"))
_AN_ARRAY = "take a pointer to its elements instead, for autotune passes arrays and numbers only"
_UNSUPPORTED = {
    "image_t": f"is an image; {_AN_ARRAY}",
    "cudaTextureObject_t": f"is a texture; {_AN_ARRAY}",
    "cudaSurfaceObject_t": f"is a surface; {_AN_ARRAY}",
    "sampler_t": f"is a sampler; {_AN_ARRAY}",
}


@dataclass(frozen=True)
class KernelArgument:
    """One argument of a kernel; `width` is 4 for float4."""

    name: str
    text: str
    dtype: str
    width: int
    is_pointer: bool
    is_const: bool
    type_text: str = ""  # as overloads are told apart
    type_name: str = ""
    shape: str = ""  # of an array whose declaration gives it
    symbol: str = ""  # the variable that it is, for it is no argument then
    is_local: bool = False  # local memory of OpenCL
    fields: tuple[tuple[str, str], ...] = ()  # names and types, of a structure that is passed by value


@dataclass(frozen=True)
class FoundKernel:
    """A kernel.

    Attributes:
        name: Its name in the source.
        entry: What a launch plan calls it: with namespaces, template arguments and types where it needs them.
        arguments: Those that a launch passes, and variables of the source that the kernel uses.
        block: Three extents, or one if only the number of threads is declared, or none. The host's if the
            kernel declares none and does not ask for its extents.
        body: The text between its braces.
        template: The numbers that its template takes.
        types: Guesses for types that the source leaves to its user.
        launch: The first launch by the host's code.
        place: Where it begins in the source's text.
    """

    name: str
    entry: str
    arguments: tuple[KernelArgument, ...]
    block: tuple[str, ...]
    body: str
    template: tuple[TemplateParameter, ...]
    types: Mapping[str, str]
    launch: HostLaunch | None
    place: int = 0


@dataclass(frozen=True)
class Source:
    """What was found in a source: at least one kernel, in the order of the text.

    `text` is without comments and strings, `code` also without preprocessor directives other than pragmas;
    `definitions` are the macros that it defines. `refusals` say which kernels cannot be tuned as they are,
    and why.
    """

    dialect: str
    kernels: tuple[FoundKernel, ...]
    macros: tuple[Macro, ...]
    text: str
    code: str
    definitions: Mapping[str, str]
    refusals: tuple[str, ...] = ()

    @property
    def constants(self) -> Mapping[str, str]:
        """What macros and declared constants stand for."""
        return {**declared_constants(self.code), **self.definitions}


def read_kernels(
    name: str, text: str, dialect_words: Iterable[str], assumed: Assumptions, host: str, own: str
) -> Source:
    """Read a source; `dialect_words` are the macros of portable.h, `name` is for messages.

    `host` is the program that launches the kernels. Kernels of `own`, the source without headers, come first,
    and macros that only headers use are left to these. Raises InputError when there is no kernel, or one that
    no launch plan can call.
    """
    code = bare_code(text)
    if placeholder := _PLACEHOLDER.search(code):
        raise InputError(
            f"{name}: {placeholder[0]} is of a template language, which autotune does not know; write a "
            "macro in its place, which becomes a parameter"
        )
    meanings = defined_meanings(code)
    definitions = {name: widest_meaning(texts) for name, texts in meanings.items()}
    plain = expand_qualifiers(meanings, _DIRECTIVE.sub("", code))
    plain = expand_introducers(code, plain, _EXPANDED, definitions)
    first = next((dialect for dialect, words in _INTRODUCERS.items() if words.search(plain)), "")
    types = replace(known_types(plain, definitions, is_opencl=first == "opencl"), generic=assumed.generic)
    if _TEXTURE.search(plain):
        raise InputError(f"{name}: has a texture reference, which CUDA 12 does not know; {_AN_ARRAY}")
    dialect, found, refusals = _first_kernels(name, plain, types, host)
    templates = {word for part in TEMPLATE.findall(plain) for word in WORD.findall(part)}
    provided = set(dialect_words) if dialect == "portable" else set()
    capitals = {word for word in WORD.findall(plain) if word.isupper()}
    capitals -= definitions.keys() | templates | provided
    declared = [word for word in (*assumed.undefined, *sorted(capitals)) if types.is_unknown(word)]
    stand_ins = {word: types.stand_in(word) for word in declared}
    stand_ins |= {word: C_TYPES[SCALARS[word]] for word in assumed.undefined if SCALARS.get(word) in C_TYPES}
    stand_ins |= dict.fromkeys(qualifiers(plain, {*assumed.undefined, *capitals} - stand_ins.keys()), "")
    kernels = tuple(
        replace(kernel, types={**kernel.types, **stand_ins}, place=_place(kernel.name, code))
        for kernel in _told_apart(found, has_overloads=dialect == "cuda")
    )
    taken = {
        *(argument.name for kernel in kernels for argument in kernel.arguments),
        *templates,
        *(word for part in _ENUM.findall(plain) for word in WORD.findall(part)),
        *(word for kernel in kernels for word in kernel.types),
        *types.structures,
        *types.declared,
        *provided,
    }
    of_headers = {*WORD.findall(code)} - {*WORD.findall(own), *assumed.undefined}
    kernels = tuple(sorted(kernels, key=lambda kernel: kernel.name in of_headers))
    found_macros = find_macros(text, code, plain, taken, assumed.undefined)
    macros = tuple(macro for macro in found_macros if macro.name not in of_headers)
    return Source(dialect, kernels, macros, code, plain, definitions, refusals)


def _first_kernels(
    name: str, plain: str, types: KnownTypes, host: str
) -> tuple[str, list[FoundKernel], tuple[str, ...]]:
    """The first dialect that a source has kernels of, these kernels, and why others cannot be tuned."""
    for dialect, introducer in _INTRODUCERS.items():
        found, refusals = [], []
        for start in (match.end() for match in introducer.finditer(plain)):
            try:
                kernel = _kernel(name, plain, start, dialect, types, host)
            except InputError as error:
                refusals.append(str(error))
            else:
                found += [kernel] if kernel else []
        if found:
            return dialect, found, tuple(refusals)
        if refusals:
            raise InputError(refusals[0])
    raise InputError(
        f"{name}: no kernel found; expected a function that starts with KERNEL (the portable dialect), "
        "__global__ (CUDA C++) or __kernel (OpenCL C)"
    )


def _kernel(
    name: str, plain: str, start: int, dialect: str, types: KnownTypes, host: str
) -> FoundKernel | None:
    """The kernel whose introducer ends at `start`; None for a declaration without body."""
    end = re.compile("[{;]").search(plain, start)
    if end is None or end[0] == ";":
        return None
    in_front = _ATTRIBUTES_IN_FRONT.search(plain[:start])
    signature, block = _without_attributes((in_front[1] if in_front else "") + plain[start : end.start()])
    opening = signature.find("(")
    instance = _SPECIALISED.search(signature[: max(0, opening)])
    words = WORD.findall(signature[: instance.end(1) if instance else opening])
    if opening < 0 or not words:
        raise InputError(f"{name}: cannot read the kernel that begins {signature.strip()[:40]!r}")
    called, before = words[-1], plain[:start].rstrip()
    launches = host_launches(called, host) if dialect == "cuda" else []
    template = read_template(f"{name}: {called}", before, launches, types) if dialect == "cuda" else ()
    inside = _expanded_lists(signature[opening + 1 : closing(signature, opening)], types)
    listed = _alternatives_removed(text for text in split_arguments(inside) if text != "void")
    body = plain[end.end() : closing(plain, end.start())]
    template = with_function_objects(f"{name}: {called}", template, listed, body, launches, types)
    types = types.with_parameters(
        {item.name: item.given.partition("<")[0] for item in template if item.kind == "type"}
    )
    arguments = [_argument(f"{name}: {called}", text, types) for text in listed]
    kinds = dict.fromkeys(argument.type_name for argument in arguments if argument.dtype == UNKNOWN)
    if dialect == "cuda":
        arguments += [item for item in _variables(plain, types) if _is_used(item.name, body, plain)]
        called = "::".join((*_namespaces(plain, start), called))
    entry = called
    if template or instance:
        entry += f"<{instance[2] if instance else ', '.join(item.given for item in template)}>"
    return FoundKernel(
        words[-1],
        entry,
        tuple(
            argument if argument.dtype != UNKNOWN else _with_stand_in(argument, types)
            for argument in arguments
        ),
        block or (launches[0].block if launches and "blockDim" not in body else ()),
        body,
        tuple(item for item in template if item.kind != "type"),
        {kind: types.stand_in(kind) for kind in kinds if kind not in types.declared}
        | _replaced_types(dialect, arguments),
        launch=launches[0] if launches else None,
    )


def _with_stand_in(argument: KernelArgument, types: KnownTypes) -> KernelArgument:
    """An argument whose type the user chooses, with the type that stands in."""
    dtype, width = types.layout(types.stand_in(argument.type_name))
    return replace(argument, dtype=dtype, width=width)


def _expanded_lists(arguments: str, types: KnownTypes) -> str:
    """Arguments with the macros written out that stand for several of them, or for a pointer's type."""
    lists = {name: text for name, text in types.definitions.items() if re.search(r",|\*[\s\w]*\Z", text)}
    return with_values(arguments, lists)


def _replaced_types(dialect: str, arguments: Iterable[KernelArgument]) -> dict[str, str]:
    """Types that kernels of OpenCL must not take, although some compilers accept them."""
    has_size = any(argument.type_name == "size_t" and not argument.is_pointer for argument in arguments)
    return {"size_t": "ulong"} if dialect == "opencl" and has_size else {}


def _alternatives_removed(arguments: Iterable[str]) -> list[str]:
    """Arguments of which one has several declarations under conditions: the first that can be passed."""
    found: dict[str, str] = {}
    for text in arguments:
        words = WORD.findall(text.partition("[")[0])
        name = words[-1] if words else text
        if name not in found or _unsupported(WORD.findall(found[name])):
            found[name] = text
    return list(found.values())


def _unsupported(words: Iterable[str]) -> str:
    """Why an argument cannot be passed that is declared with some words; empty if it can."""
    plain = (_IMAGE.sub("image_t", word) for word in words)
    return next((_UNSUPPORTED[word] for word in plain if word in _UNSUPPORTED), "")


def _told_apart(kernels: Sequence[FoundKernel], *, has_overloads: bool) -> tuple[FoundKernel, ...]:
    """Kernels of one name by their argument types; alternatives under conditions are one kernel."""
    first: dict[tuple[str, str], FoundKernel] = {}
    for kernel in kernels:
        types = ", ".join(item.type_text for item in kernel.arguments if has_overloads and not item.symbol)
        known = first.setdefault((kernel.entry, types), kernel)
        if known is not kernel:
            first[kernel.entry, types] = replace(known, body=f"{known.body}\n{kernel.body}")
    entries = [entry for entry, _ in first]
    return tuple(
        replace(kernel, entry=f"{entry}({types})") if entries.count(entry) > 1 else kernel
        for (entry, types), kernel in first.items()
    )


def _place(kernel: str, code: str) -> int:
    """Where a kernel's first definition stands in a source; 0 if a macro writes its name."""
    found = re.search(rf"\b{kernel}\s*\((?:[^;{{}}()]|\([^;{{}}()]*\))*\)\s*\{{", code)
    return found.start() if found else 0


def _namespaces(plain: str, end: int) -> list[str]:
    """The names of the namespaces that are open at a place."""
    stack: list[str] = []
    begin = 0
    for brace in re.compile("[{};]").finditer(plain, 0, end):
        if brace[0] == "{":
            match = re.search(r"\bnamespace\b\s*([\w:]*)\s*$", plain[begin : brace.start()])
            stack.append(match[1] if match else "")
        elif brace[0] == "}" and stack:
            stack.pop()
        begin = brace.end()
    return [name for name in stack if name]


def _variables(plain: str, types: KnownTypes) -> Iterator[KernelArgument]:
    """The `__constant__` arrays and numbers that a program fills before a launch."""
    for match in _CONSTANT.finditer(plain):
        argument = _argument("", f"const {match[1]} *{match[2]}", types)
        extents = [part.strip() for part in re.findall(r"\[([^\]]*)\]", match[3] or "")]
        shape = " * ".join(types.number(extent) for extent in extents) or "1"
        symbol = "::".join((*_namespaces(plain, match.start()), match[2]))
        yield replace(argument, text=" ".join(match[0].split()), shape=shape, symbol=symbol)


def _is_used(name: str, body: str, plain: str) -> bool:
    """Whether a kernel, or a function that it may call, uses a variable."""
    return re.search(rf"\b{name}\b", body) is not None or len(re.findall(rf"\b{name}\b", plain)) > 1


def _without_attributes(signature: str) -> tuple[str, tuple[str, ...]]:
    """Split a signature into the part without attributes and the block that an attribute declares."""
    block: tuple[str, ...] = ()
    while (match := _ATTRIBUTE.search(signature)) is not None:
        last = closing(signature, match.end() - 1)
        inside = signature[match.end() : last]
        if match[1] == "__attribute__":
            if (nested := _ATTRIBUTE.search(inside)) is not None:
                block = split_arguments(inside[nested.end() : closing(inside, nested.end() - 1)])
        elif match[1] in ("__maxnreg__", "__cluster_dims__"):
            pass
        elif match[1] == "__launch_bounds__":
            block = split_arguments(inside)[:1]
        else:
            block = split_arguments(inside)[:3]
        signature = signature[: match.start()] + signature[last + 1 :]
    return signature, block


def _argument(place: str, text: str, types: KnownTypes) -> KernelArgument:
    declared = text.partition("=")[0]
    before, bracket, _ = declared.partition("[")
    words = WORD.findall(before)
    if reason := _unsupported(words):
        raise InputError(f"{place}: {words[-1]} {reason}")
    if not words or "(" in declared or declared.count("*") > 1 or "&" in declared:
        raise InputError(
            f"{place}: {text.strip()}: autotune passes plain arrays and numbers only; take one array, and "
            "the number of elements from one part of it to the next, instead"
        )
    name, qualifiers = words[-1], set(words[:-1])
    type_text = " ".join(_QUALIFIERS.sub(" ", before.rpartition(name)[0]).split())
    kind = " ".join(word for word in WORD.findall(type_text) if word not in _WORDS_BESIDE_A_TYPE)
    kind = "int" if "enum" in kind.split() else kind
    dtype, width = types.layout(kind)
    is_pointer = "*" in declared or bracket != ""
    if not kind or (dtype == UNKNOWN and not kind.isidentifier()):
        raise InputError(
            f"{place}: the type {kind or 'missing'!r} of {name} is not known; expected a type of C, "
            "or DTYPE, which autotune defines"
        )
    fields = () if is_pointer else types.fields_of(kind)
    if dtype == STRUCT or (width > 1 and not is_pointer and not fields):
        raise InputError(
            f"{place}: {name} is a structure of unknown layout, or one with pointers or many numbers that is "
            "passed by value; pass its fields as arguments of their own, or a pointer to one without pointers"
        )
    is_const = re.search(r"\bconst\b", declared.partition("*")[0]) is not None
    return KernelArgument(
        name,
        " ".join(text.split()),
        dtype,
        width,
        is_pointer,
        is_const or not _CONSTANT_MEMORY.isdisjoint(qualifiers),
        type_text=type_text + (" *" if bracket else ""),
        type_name=kind,
        is_local=not LOCAL_QUALIFIERS.isdisjoint(qualifiers),
        fields=fields,
    )
