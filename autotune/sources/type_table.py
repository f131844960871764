"""The types that a source declares: aliases, structures and enumerations."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tree_sitter import Node

from autotune.sources.statements import declarator_name, declarators, type_name
from autotune.sources.tree import SourceTree, descendants, field

_ODD = ("alignas", "attribute", "bitfield")  # parts of a field that moves others
_STRUCTURES = ("struct_specifier", "class_specifier", "union_specifier")


@dataclass(frozen=True)
class StructField:
    """A field of a structure: its type, its name and the extents of an array."""

    type: str
    name: str  # empty for a structure in it without a name
    extents: tuple[str, ...]
    pointers: int = 0  # how often it has to be followed to reach a value of the type
    is_const: bool = False  # of the value


@dataclass(frozen=True)
class StructureType:
    """A structure, class or union; `is_plain` unless it has a base or something that cannot be read."""

    name: str
    fields: tuple[StructField, ...]
    is_union: bool
    is_packed: bool
    is_plain: bool
    alignment: tuple[str, ...]
    members: frozenset[str]  # the functions that it has
    template: tuple[str, ...] = ()

    def instance(self, given: Sequence[str]) -> StructureType | None:
        """The structure that a template makes of types and numbers; None for a template with a pack."""
        words: dict[str, str] = {}

        def written(text: str) -> str:
            return re.sub(r"\b[A-Za-z_]\w*", lambda word: words.get(word[0], word[0]), text)

        for number, text in enumerate(self.template):
            declared, _, default = text.partition("=")
            value = given[number] if number < len(given) else written(default.strip())
            if "..." in declared or not value:
                return None
            words[declared.split()[-1]] = value

        fields = tuple(
            replace(member, type=written(member.type), extents=tuple(map(written, member.extents)))
            for member in self.fields
        )
        return replace(self, fields=fields, template=())


@dataclass(frozen=True)
class TypeTable:
    """The types of a source."""

    aliases: Mapping[str, str]  # what names of types stand for
    structures: Mapping[str, StructureType]
    enumerations: frozenset[str]
    enumerators: frozenset[str]  # the constants of all enumerations
    declared: frozenset[str]  # the names of types, also of those in functions and of templates


def read_types(tree: SourceTree) -> TypeTable:
    """Read the types that a tree declares."""
    aliases: dict[str, str] = {}
    structures: dict[str, StructureType] = {}
    enumerations: set[str] = set()
    enumerators: set[str] = set()
    declared: set[str] = set()
    for node in descendants(tree.root):
        if node.type == "type_definition":
            for declarator in node.children_by_field_name("declarator"):
                parts = [*declarators(declarator)]
                name = tree.of(parts[-1])
                declared.add(name)
                kind = field(node, "type")
                if kind is not None and kind.type in _STRUCTURES and field(kind, "body") is not None:
                    structures[name] = _structure(tree, kind, name, node)
                elif len(parts) == 1:
                    aliases[name] = type_name(tree, kind)
                    if kind is not None and kind.type == "enum_specifier":
                        enumerations.add(name)
        elif node.type == "alias_declaration":
            name = tree.of(field(node, "name"))
            declared.add(name)
            kind = field(field(node, "type"), "type")
            if field(field(node, "type"), "declarator") is None:
                aliases[name] = type_name(tree, kind)
        elif node.type in _STRUCTURES and field(node, "body") is not None:
            name = type_name(tree, node)
            declared.add(name)
            own = _structure(tree, node, name, node)
            is_other = name in structures and structures[name].fields != own.fields  # of another namespace
            structures[name] = replace(structures.get(name, own), is_plain=own.is_plain and not is_other)
        elif node.type == "enum_specifier":
            body = field(node, "body")
            inside = body.named_children if body else ()
            enumerators |= {tree.of(field(one, "name")) for one in inside if one.type == "enumerator"}
            if field(node, "name") is not None:
                name = tree.of(field(node, "name"))
                declared.add(name)
                aliases.setdefault(name, tree.of(field(node, "base")) or "int")
                enumerations.add(name)
        elif node.type in ("type_parameter_declaration", "optional_type_parameter_declaration"):
            declared.update(tree.of(child) for child in node.named_children[:1])
    return TypeTable(
        aliases, structures, frozenset(enumerations), frozenset(enumerators), frozenset(declared)
    )


def split_arguments(text: str) -> list[str]:
    """What a template is given, without the brackets around it."""
    given, depth = [""], 0
    for letter in text:
        depth += (letter in "<([") - (letter in ">)]")
        if letter == "," and depth == 0:
            given.append("")
        else:
            given[-1] += letter
    return [part.strip() for part in given]


def _structure(tree: SourceTree, node: Node, name: str, whole: Node) -> StructureType:
    body = field(node, "body")
    inside = body.named_children if body else []
    fields = [member for child in inside for member in _fields(tree, child)]
    members = {
        tree.of(field(function, "declarator"))
        for child in inside
        for function in descendants(child)
        if function.type == "function_declarator"
    }
    head = [
        child
        for child in (*node.children, *whole.children)
        if child.type.startswith(("attribute", "alignas"))
    ]
    attributes = [one for part in head for one in descendants(part)]
    words = {tree.of(attribute) for attribute in attributes if attribute.type == "identifier"}
    numbers = tuple(tree.of(attribute) for attribute in attributes if attribute.type == "number_literal")
    is_virtual = any(one.type == "virtual" for child in inside for one in child.children)
    is_plain = not (is_virtual or any(child.type == "base_class_clause" for child in node.children))
    template = _template_of(tree, node)
    return StructureType(
        name,
        tuple(member for member in fields if member is not None),
        node.type == "union_specifier",
        bool(words & {"packed", "__packed__"}),
        is_plain
        and None not in fields
        and not any(one.type == "alignas_qualifier" and not numbers for one in head),
        numbers,
        frozenset(members),
        template,
    )


def _template_of(tree: SourceTree, node: Node) -> tuple[str, ...]:
    parent = node.parent
    if parent is None or parent.type != "template_declaration":
        return ()
    inside = field(parent, "parameters")
    return tuple(tree.of(child) for child in (inside.named_children if inside else ()))


def _fields(tree: SourceTree, node: Node) -> Iterator[StructField | None]:
    """The fields of a declaration; None for one that cannot be read."""
    words = {tree.of(child) for child in node.children if child.type.endswith(("qualifier", "specifier"))}
    kind = field(node, "type")
    if node.type not in ("field_declaration", "ERROR") or words & {"static", "constexpr"}:
        return
    beside = [one for child in node.children if child != kind for one in descendants(child)]
    if node.is_error or any(one.is_error or one.type.startswith(_ODD) for one in beside):
        yield None
        return
    named = node.children_by_field_name("declarator")
    inside = field(kind, "body") if kind is not None and kind.type in _STRUCTURES else None
    if inside is not None and not named:
        yield StructField(type_name(tree, kind), "", ())
        return
    for declared in named:
        parts = [*declarators(declared)]
        if any("function" in part.type for part in parts):
            if "pointer" in parts[-2].type:  # to a function
                yield None
            continue
        kinds = [part.type for part in parts]
        if "array_declarator" in kinds and "pointer_declarator" in kinds[kinds.index("array_declarator") :]:
            yield None  # a pointer to an array
            continue
        extents = [tree.of(field(part, "size")) for part in parts if part.type == "array_declarator"]
        yield StructField(
            type_name(tree, kind),
            tree.of(declarator_name(declared)),
            (*reversed(extents),),
            sum("pointer" in part.type or "reference" in part.type for part in parts),
            "const" in words,
        )
