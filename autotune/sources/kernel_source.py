"""What a kernel's source has: functions with their parameters and types, macros and launches by its host.

A source is read for given values of its macros, so what is found is what a compiler gets. A parser reads;
what is here only takes over what its tree says.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tree_sitter import Node

from autotune.errors import InputError
from autotune.sources.dialects import CUDA, OPENCL, PINNED, PORTABLE, dialect_of, with_own_words, words_of
from autotune.sources.expansion import TooLong
from autotune.sources.launches import HostLaunch, launches
from autotune.sources.open_words import open_words
from autotune.sources.preprocessed import Preprocessed, preprocessed
from autotune.sources.statements import (
    Declared,
    HostStatements,
    Statements,
    declarator_name,
    declarators,
    type_name,
)
from autotune.sources.tree import SourceTree, descendants, field
from autotune.sources.type_table import TypeTable, read_types

_SCOPES = ("linkage_specification", "declaration_list", "ERROR")
_NAMES = ("identifier", "field_identifier")  # of functions
_QUALIFIERS = re.compile(r"(?<=[(,])[\s\w]*\Z")
_PREFIXES = 3  # readings in which words beside types are found
_KNOWN = frozenset(  # variables of the languages
    ("threadIdx", "blockIdx", "blockDim", "gridDim", "warpSize", "NULL", "nullptr", "INFINITY", "NAN", "this")
)


@dataclass(frozen=True)
class FunctionParameter:
    """A parameter of a function."""

    name: str  # empty without one
    text: str  # how the source declares it
    type: str  # its type without qualifiers and asterisks
    pointers: int = 0  # how often it has to be followed to reach a value of the type
    is_const: bool = False  # of the value
    is_reference: bool = False
    is_function: bool = False  # a pointer to a function
    is_shared: bool = False  # it points to the memory of a block
    type_text: str = ""  # as overloads are told apart by


@dataclass(frozen=True)
class TemplateParameter:
    """A parameter of a template: `type` is empty for one that stands for a type."""

    name: str
    text: str
    type: str = ""
    default: str = ""
    is_plain: bool = True  # neither a pack nor a template


@dataclass(frozen=True)
class Variable:
    """A variable of the whole source: `extents` are those of an array."""

    name: str
    namespace: tuple[str, ...]
    text: str
    type: str
    extents: tuple[str, ...]
    is_constant: bool  # in the memory for constants
    value: ast.expr | None  # of a plain one that never changes: `constexpr int BINS = 256`


@dataclass(frozen=True)
class Function:
    """A function that the source defines."""

    name: str
    namespace: tuple[str, ...]
    parameters: tuple[FunctionParameter, ...]
    template: tuple[TemplateParameter, ...] | None  # None for one without
    specialised: str  # the template arguments that it is written for; empty without
    is_kernel: bool
    is_of_host: bool  # no device can call it
    block: tuple[str, ...]  # the extents of the block that it declares, or the number of threads alone
    place: int  # where its name stands in the source
    source: KernelSource
    node: Node  # its definition in the tree of the source

    @cached_property
    def body(self) -> tuple[ast.stmt, ...]:
        """Its statements."""
        return self._statements[0]

    @cached_property
    def parts(self) -> tuple[ast.AST, ...]:
        """All that its statements consist of."""
        return tuple(part for statement in self.body for part in ast.walk(statement))

    @cached_property
    def declared(self) -> Mapping[str, Declared]:
        """How its variables are declared."""
        found: dict[str, Declared] = {}
        for part in self.parts:
            match part:
                case ast.AnnAssign(ast.Name(name), ast.Constant(Declared() as own)):
                    found[name] = own
        return found

    @cached_property
    def called(self) -> Mapping[str, int]:
        """The functions that it calls by name, with the number of arguments."""
        calls = (part for part in self.parts if isinstance(part, ast.Call))
        return {call.func.id: len(call.args) for call in calls if isinstance(call.func, ast.Name)}

    @property
    def without_words(self) -> Mapping[str, ast.expr]:
        """What a program's main function is given without words on its command line: a count of 1."""
        is_main = self.name == "main" and self.parameters
        return {self.parameters[0].name: ast.Constant(1)} if is_main else {}

    def variables_of(self, kind: str) -> set[str]:
        """Its parameters and variables of a type."""
        own = {parameter.name for parameter in self.parameters if parameter.type == kind}
        return own | {name for name, variable in self.declared.items() if variable.type == kind}

    @property
    def unknown(self) -> Mapping[str, int]:
        """Names that nothing declares, with a place of each."""
        return self._statements[1].unknown

    @property
    def types(self) -> Mapping[str, int]:
        """The names of types in its body and its parameters."""
        own = {
            parameter.type: self.node.start_byte
            for parameter in self.parameters
            if parameter.type.isidentifier()
        }
        return {**own, **self._statements[1].types}

    @property
    def is_conditional(self) -> bool:
        """True if a directive stands among its parameters."""
        inside = next((node for node in descendants(self.node) if node.type == "parameter_list"), None)
        if inside is None:
            return False
        places = self.source.code.place(inside.start_byte), self.source.code.place(inside.end_byte - 1)
        return re.search(r"\n[ \t]*#", self.source.original[slice(*places)]) is not None

    @property
    def defaults(self) -> Mapping[str, str]:
        """The defaults of what its template takes."""
        return {parameter.name: parameter.default for parameter in self.template or () if parameter.default}

    @property
    def has_error(self) -> bool:
        """True if the parser did not understand all of it."""
        return self.node.has_error

    @cached_property
    def _statements(self) -> tuple[tuple[ast.stmt, ...], Statements]:
        return self.read_by(Statements)

    def read_by(self, reader: type[Statements]) -> tuple[tuple[ast.stmt, ...], Statements]:
        """Its statements as a reader finds them, and that reader."""
        reading = reader(self.source.tree, self.source.declared_names)
        reading.declare(parameter.name for parameter in self.template or ())
        reading.declare(parameter.name for parameter in self.parameters)
        body = field(self.node, "body")
        return ((*reading.of(body),) if body else (), reading)


@dataclass(frozen=True)
class KernelSource:
    """What a source has for given values of its macros."""

    dialect: str  # portable, cuda or opencl; empty without a kernel
    original: str
    code: Preprocessed  # the text after the preprocessor
    tree: SourceTree
    # what undefined words beside types and names stand for
    prefixes: Mapping[str, str]

    @cached_property
    def functions(self) -> tuple[Function, ...]:
        """The functions that it defines, in the order of the text."""
        return tuple(
            function
            for node, namespace, template in _outer(self.tree, self.tree.root)
            for function in _function(self, node, namespace, template)
        )

    @cached_property
    def device_functions(self) -> tuple[Function, ...]:
        """Those that a device can call, kernels among them."""
        return tuple(function for function in self.functions if not function.is_of_host)

    @property
    def kernels(self) -> tuple[Function, ...]:
        """Those that can be launched."""
        return tuple(function for function in self.functions if function.is_kernel)

    @cached_property
    def types(self) -> TypeTable:
        """The types that it declares."""
        return read_types(self.tree)

    @cached_property
    def variables(self) -> tuple[Variable, ...]:
        """The variables outside of functions."""
        return (*_variables(self.tree),)

    @cached_property
    def constants(self) -> Mapping[str, ast.expr]:
        """What constants outside of functions stand for."""
        return {variable.name: variable.value for variable in self.variables if variable.value is not None}

    @cached_property
    def launches(self) -> tuple[HostLaunch, ...]:
        """The launches by its host, in the order of the text; a program is given no words."""
        if "<<<" not in self.tree.text and "LaunchKernel" not in self.tree.text:
            return ()
        own = (*self.functions, *_members(self))
        hosts = [
            (function, function.read_by(HostStatements)[0]) for function in own if not function.is_kernel
        ]
        functions = {host.name: ([item.name for item in host.parameters], body) for host, body in hosts}
        several_launches = (
            launches(body, host.defaults, host.without_words, functions) for host, body in hosts
        )
        return tuple(launch for several in several_launches for launch in several)

    @cached_property
    def declared_names(self) -> frozenset[str]:
        """The names that mean something in every function."""
        names = (
            self.tree.of(declarator_name(declared))
            for node, _, _ in _outer(self.tree, self.tree.root)
            if node.type == "declaration"
            for declared in node.children_by_field_name("declarator")
        )
        functions = (function.name for function in self.functions)
        return frozenset((*_KNOWN, *functions, *self.types.enumerators, *names))

    @cached_property
    def unknown(self) -> Mapping[str, int]:
        """Names of the device's functions that nothing declares, and where each stands in the source."""
        places: dict[str, int] = {}
        for function in self.device_functions:
            for name, place in (*function.unknown.items(), *_of_signature(self, function)):
                places.setdefault(name, self.code.place(place))
        for name, place in _of_variables(self):
            places.setdefault(name, self.code.place(place))
        return dict(sorted(places.items(), key=lambda item: item[1]))

    def written(self, begin: int, end: int) -> str:
        """A part of the code as the source has it, with words before it that stand for nothing."""
        first, last = self.code.place(begin), self.code.place(end - 1) + 1
        before = _QUALIFIERS.search(self.original, max(0, first - 80), first)
        return " ".join(self.original[before.start() if before else first : last].split())


def read_kernel_source(text: str, values: Mapping[str, str] | None = None, dialect: str = "") -> KernelSource:
    """Read a source for given values of its macros; a dialect that is empty is found out.

    A word that nothing defines and that stands beside a type or a name is taken for what a macro of the host
    may be there. Raises InputError for a source that cannot be read
    in the time that is allowed, or whose macros grow without end.
    """
    values = values or {}
    try:
        plain = None if dialect else preprocessed(text, values, words_of(CUDA))
        dialect = dialect or dialect_of(plain.text if plain else "")
        own = with_own_words(text) if dialect == OPENCL else text
        pinned = PINNED if dialect == PORTABLE else ()
        prefixes: dict[str, str] = {}
        for _ in range(_PREFIXES):
            words = words_of(dialect) + "".join(
                f"#define {word} {meaning}\n" for word, meaning in sorted(prefixes.items())
            )
            is_plain = words == words_of(CUDA)
            code = plain if plain and is_plain else preprocessed(own, values, words, pinned)
            source = KernelSource(dialect, text, code, SourceTree(code.text), prefixes)
            outer = [node for node, _, _ in _outer(source.tree, source.tree.root)]
            more = open_words(source.tree, outer, dialect)
            if prefixes.keys() | values.keys() >= more.keys():
                break
            prefixes = {**more, **prefixes}
    except TooLong as error:
        raise InputError(str(error)) from None
    except RecursionError:
        raise InputError("its macros are nested too deeply") from None
    return source


def _outer(
    tree: SourceTree, scope: Node, namespace: tuple[str, ...] = (), template: Node | None = None
) -> Iterator[tuple[Node, tuple[str, ...], Node | None]]:
    """What stands outside of functions, with the namespaces around it and what its template takes."""
    for node in scope.named_children:
        if node.type in ("function_definition", "declaration"):
            yield node, namespace, template
        elif node.type == "namespace_definition":
            name = tree.of(field(node, "name"))
            inner = (*namespace, *(part.strip() for part in name.split("::") if part.strip()))
            yield from _outer(tree, node, inner)
        elif node.type == "template_declaration":
            yield from _outer(tree, node, namespace, field(node, "parameters"))
        elif node.type in _SCOPES:
            yield from _outer(tree, node, namespace)


def _members(source: KernelSource) -> Iterator[Function]:
    """The functions of the host that stand in a class, or are defined for one."""
    known = {one.node.id for one in source.functions}
    for node in descendants(source.tree.root):
        if node.type == "function_definition" and node.id not in known:
            found = _function(source, node, (), None, (*_NAMES, "qualified_identifier", "operator_name"))
            yield from (one for one in found if one.is_of_host)


def _function(
    source: KernelSource,
    node: Node,
    namespace: tuple[str, ...],
    template: Node | None,
    names: Collection[str] = _NAMES,
) -> Iterator[Function]:
    """The function of a definition; nothing for what the parser only takes for one."""
    tree, body = source.tree, field(node, "body")
    parts = [*declarators(field(node, "declarator"))]
    functions = [part for part in parts if part.type == "function_declarator"]
    if len(functions) != 1 or body is None:  # of two, one is a macro around the name
        return
    (function,) = functions
    name = field(function, "declarator")
    given = ""
    if name is not None and name.type == "template_function":
        given = tree.of(field(name, "arguments"))[1:-1].strip()
        name = field(name, "name")
    if name is None or name.type not in names:
        return
    head = [one for one in _heads(node) if one.end_byte <= body.start_byte]
    words = {one.type for one in head} | {tree.of(one) for one in head if one.child_count == 0}
    is_kernel = "__global__" in words
    inside = field(function, "parameters")
    yield Function(
        tree.of(name),
        namespace,
        tuple(_parameters(source, inside)) if inside else (),
        None if template is None else (*_template(tree, template),),
        given,
        is_kernel,
        source.dialect != OPENCL and not is_kernel and words.isdisjoint(("__device__", "constexpr")),
        _block(tree, head),
        source.code.place(name.start_byte),
        source,
        node,
    )


def _heads(node: Node) -> Iterator[Node]:
    """The parts of a definition before its body."""
    left = [child for child in node.children if child.type != "compound_statement"]
    while left:
        part = left.pop()
        yield part
        if part.type not in ("parameter_list", "argument_list", "call_expression"):
            left += part.children


def _block(tree: SourceTree, head: Sequence[Node]) -> tuple[str, ...]:
    """The block that attributes declare."""
    for node in head:
        if node.type == "launch_bounds":
            return tuple(tree.of(child) for child in node.named_children[:1])
        if node.type == "attribute_specifier":
            for call in descendants(node):
                if (
                    call.type == "call_expression"
                    and tree.of(field(call, "function")) == "reqd_work_group_size"
                ):
                    inside = field(call, "arguments")
                    return tuple(tree.of(child) for child in (inside.named_children if inside else ()))[:3]
    return ()


def _parameters(source: KernelSource, inside: Node) -> Iterator[FunctionParameter]:
    """The parameters in a list."""
    tree = source.tree
    for node in inside.named_children:
        if node.type not in ("parameter_declaration", "optional_parameter_declaration"):
            if node.type not in ("comment", "ERROR"):
                yield FunctionParameter("", tree.of(node), tree.of(node), is_function=True)
            continue
        kind = field(node, "type")
        parts = [*declarators(field(node, "declarator"))]
        if kind is None or (not parts and tree.of(kind) == "void"):
            continue
        named = parts[-1] if parts and parts[-1].type.endswith("identifier") else None
        pointers = sum(part.type in ("pointer_declarator", "abstract_pointer_declarator") for part in parts)
        arrays = sum(part.type in ("array_declarator", "abstract_array_declarator") for part in parts)
        own = {tree.of(child) for child in node.children if child.type == "type_qualifier"}
        name = tree.of(named)
        text = source.written(node.start_byte, node.end_byte)
        typed = tree.of(kind) if kind.type != "enum_specifier" else "int"
        yield FunctionParameter(
            name,
            text if name in text else tree.of(node),
            type_name(tree, kind),
            pointers + (arrays > 0),
            "const" in own,
            any("reference" in part.type for part in parts),
            any("function_declarator" in part.type for part in parts),
            "__shared__" in own,
            " ".join(filter(None, ("const" * ("const" in own), typed, "*" * (pointers + (arrays > 0))))),
        )


def _template(tree: SourceTree, node: Node) -> Iterator[TemplateParameter]:
    """The parameters of a template."""
    for child in node.named_children:
        if child.type in ("type_parameter_declaration", "optional_type_parameter_declaration"):
            named = field(child, "name") or child.named_children[0]
            yield TemplateParameter(tree.of(named), tree.of(child), "", tree.of(field(child, "default_type")))
        elif child.type in ("parameter_declaration", "optional_parameter_declaration"):
            kind = tree.of(field(child, "type"))
            name = declarator_name(field(child, "declarator"))
            default = tree.of(field(child, "default_value"))
            is_plain = name is not None and field(child, "declarator") == name
            yield TemplateParameter(tree.of(name), tree.of(child), kind, default, is_plain)
        elif child.type != "comment":
            yield TemplateParameter("", tree.of(child), "", "", is_plain=False)


def _variables(tree: SourceTree) -> Iterator[Variable]:
    for node, around, _ in _outer(tree, tree.root):
        words = {tree.of(child) for child in node.children if child.type.endswith(("qualifier", "specifier"))}
        for declared in node.children_by_field_name("declarator"):
            parts = [*declarators(declared)]
            if node.type == "declaration" and not any("function" in part.type for part in parts):
                extents = [tree.of(field(part, "size")) for part in parts if part.type == "array_declarator"]
                is_fixed = field(declared, "declarator") == parts[-1] and words & {"const", "constexpr"}
                value = field(declared, "value") if is_fixed else None
                yield Variable(
                    tree.of(parts[-1]),
                    around,
                    tree.of(node),
                    type_name(tree, field(node, "type")),
                    (*reversed(extents),),
                    "__constant__" in words,
                    Statements(tree, ()).expression(value) if value is not None else None,
                )


def _of_signature(source: KernelSource, function: Function) -> Iterator[tuple[str, int]]:
    """The names in the attributes of a function, such as the threads of its block."""
    own = [parameter.name for parameter in function.template or ()]
    for text in function.block:
        reading = SourceTree(text)
        for node in descendants(reading.root):
            name = reading.of(node) if node.type in ("identifier", "type_identifier") else ""
            if name and name not in own and name not in source.declared_names:
                yield name, function.node.start_byte


def _of_variables(source: KernelSource) -> Iterator[tuple[str, int]]:
    """The names in the values and extents of variables outside of functions."""
    for node, _, _ in _outer(source.tree, source.tree.root):
        reading = Statements(source.tree, source.declared_names)
        for declared in node.children_by_field_name("declarator"):
            for one in declarators(declared):
                for part in (field(one, "value"), field(one, "size")):
                    if part is not None:
                        reading.expression(part)
        yield from reading.unknown.items()
