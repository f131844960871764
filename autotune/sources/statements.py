"""Functions in C as statements of Python's syntax tree, for what interprets kernels.

C's dialects read alike then: `get_group_id(0)` is `blockIdx.x`. Every loop is a `Loop`.
Casts of numbers are left out, `*p` is `p[0]`, and each variable has a name of its own.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tree_sitter import Node

from autotune.core.c_types import SCALARS
from autotune.sources.tree import SourceTree, descendants, field

POINTER_CAST, ADDRESS, LAUNCH, UNREADABLE = "pointer_cast", "address_of", "launch", "unreadable"
_INDEXES = {"get_local_id": "threadIdx", "get_group_id": "blockIdx", "get_local_size": "blockDim"} | {
    "get_num_groups": "gridDim"
}
_PRODUCTS = ("mul24", "__mul24", "__umul24", "umul24")
_BINARY: dict[str, ast.operator] = {
    **{"+": ast.Add(), "-": ast.Sub(), "*": ast.Mult(), "/": ast.Div(), "%": ast.Mod()},
    **{"<<": ast.LShift(), ">>": ast.RShift(), "&": ast.BitAnd(), "|": ast.BitOr(), "^": ast.BitXor()},
}
_ALSO_BINARY = ("+", "-", "*", "&")  # of the operators with one operand
_COMPARED: dict[str, ast.cmpop] = {
    **{"<": ast.Lt(), "<=": ast.LtE(), ">": ast.Gt(), ">=": ast.GtE(), "==": ast.Eq(), "!=": ast.NotEq()}
}
_UNARY: dict[str, ast.unaryop] = {"-": ast.USub(), "!": ast.Not(), "~": ast.Invert(), "+": ast.UAdd()}
_NUMBER = re.compile(r"([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|\d+)[uUlLzZ]*")
_FLOAT = re.compile(r"([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)[fFlLhH]*")
_IDLE = frozenset((  # what does nothing where it stands
    "comment", "type_definition", "alias_declaration", "using_declaration", "goto_statement",
    "struct_specifier", "function_definition", "attribute_specifier",
))  # fmt: skip
_LITERALS = {"true": True, "false": False, "null": None} | dict.fromkeys(
    ("string_literal", "char_literal", "concatenated_string", "raw_string_literal"), ""
)
_CASTS = ("static_cast", "const_cast", "reinterpret_cast", "__builtin_bit_cast")


@dataclass(frozen=True)
class Declared:
    """How a variable is declared."""

    type: str  # its type without qualifiers and asterisks
    extents: tuple[ast.expr, ...] = ()  # of an array
    is_pointer: bool = False
    is_shared: bool = False  # it is in the memory of a block
    is_dynamic: bool = False  # the launch gives it its size


class Loop(ast.stmt):
    """A loop: `before` runs ahead of each test, `step` after each turn; `is_late` if a turn comes first."""

    _fields = ("before", "test", "body", "step")

    def __init__(
        self,
        before: list[ast.stmt],
        test: ast.expr,
        body: list[ast.stmt],
        step: list[ast.stmt],
        *,
        is_late: bool = False,
    ) -> None:
        super().__init__()
        self.before, self.test, self.body, self.step, self.is_late = before, test, body, step, is_late


@lru_cache(maxsize=1024)  # a loop within another one is met at each turn of that
def changed_by(loop: ast.stmt) -> tuple[tuple[ast.Name, bool], ...]:
    """The variables that a loop changes; True comes with those that it passes, perhaps by reference."""
    changed: list[tuple[ast.Name, bool]] = []
    for part in ast.walk(loop):
        match part:
            case (
                ast.Assign([ast.Name() as name])
                | ast.AugAssign(ast.Name() as name)
                | ast.AnnAssign(ast.Name() as name)
            ):
                changed.append((name, False))
            case ast.Expr(value=value):
                calls = (one for one in ast.walk(value) if isinstance(one, ast.Call))
                given = (given for call in calls for given in call.args)
                changed += [(one, True) for one in given if isinstance(one, ast.Name)]
    return tuple(changed)


def declarators(node: Node | None) -> Iterator[Node]:
    """A declarator and those in it, from the outermost."""
    while node is not None:
        yield node
        inner = field(node, "declarator")
        if inner is None and node.type in ("parenthesized_declarator", "reference_declarator"):
            inner = next(
                (child for child in node.named_children if child.type not in ("ERROR", "comment")), None
            )
        node = inner


def declarator_name(node: Node | None) -> Node | None:
    """The innermost part of a declarator: what is declared."""
    parts = [*declarators(node)]
    return parts[-1] if parts else None


class Statements:
    """Turns the body of one function into statements."""

    def __init__(self, tree: SourceTree, known: Collection[str]) -> None:
        self._tree, self._known = tree, known
        self.unknown: dict[str, int] = {}  # names that nothing declares, in the order of their use
        self.types: dict[str, int] = {}  # of declarations and casts, by name, in this order, too
        self._scopes: list[dict[str, str]] = [{}]
        self._taken: dict[str, int] = {}
        self._before: list[ast.stmt] = []

    def declare(self, names: Iterable[str]) -> None:
        """Declare the parameters of the function, and of its template."""
        for name in names:
            self._declared(name)

    def of(self, body: Node) -> list[ast.stmt]:
        """The statements of a body."""
        return self._block([body])

    def expression(self, node: Node | None) -> ast.expr:
        """An expression."""
        if node is None:
            return ast.Constant(value=0)
        if node.type in _LITERALS:
            return ast.Constant(value=_LITERALS[node.type])
        convert = getattr(self, f"_{node.type}", None)
        if convert is None:
            return _call(UNREADABLE, *map(self.expression, node.named_children))
        converted: ast.expr = convert(node)
        return converted

    # statements

    def _block(self, nodes: Iterable[Node]) -> list[ast.stmt]:
        self._scopes.append({})
        statements: list[ast.stmt] = []
        for node in nodes:
            statements += self._statement(node)
        self._scopes.pop()
        return statements

    def _part(self, node: Node, name: str) -> list[ast.stmt]:
        """The statements in a field of a node."""
        inside = field(node, name)
        return [] if inside is None else self._block([inside])

    def _statement(self, node: Node) -> list[ast.stmt]:
        outer, self._before = self._before, []
        try:
            after = self._converted(node)
        except RecursionError:
            after = [ast.Expr(ast.Name(UNREADABLE))]
        statements = [*self._before, *after]
        self._before = outer
        for statement in statements:
            statement.lineno = getattr(statement, "lineno", node.start_byte)
        return statements

    def _converted(self, node: Node) -> list[ast.stmt]:
        match node.type:
            case "compound_statement" | "ERROR":
                return self._block(node.named_children)
            case "declaration":
                return [*self._declaration(node)]
            case "expression_statement":
                return self._effects(node.named_children)
            case "if_statement":
                test = self.expression(field(node, "condition"))
                otherwise = field(node, "alternative")
                body = self._part(node, "consequence")
                return [ast.If(test, body, self._block(otherwise.named_children) if otherwise else [])]
            case "for_statement":
                return self._for(node)
            case "while_statement" | "do_statement":
                before, test = self._tested(field(node, "condition"))
                body = self._part(node, "body")
                return [Loop(before, test, body, [], is_late=node.type == "do_statement")]
            case "for_range_loop":
                self._scopes.append({})
                iterated = self.expression(field(node, "right"))
                name = self._declared(self._tree.of(declarator_name(field(node, "declarator"))))
                element = _variable(name, Declared(""), _call(UNREADABLE, iterated))
                body = self._part(node, "body")
                self._scopes.pop()
                return [Loop([element], iterated, body, [])]
            case "switch_statement":
                subject = self.expression(field(node, "condition"))
                cases = field(node, "body")
                return [self._case(subject, child) for child in (cases.named_children if cases else ())]
            case "return_statement":
                values = [self.expression(child) for child in node.named_children]
                return [ast.Return(values[0] if values else None)]
            case "break_statement":
                return [ast.Break()]
            case "continue_statement":
                return [ast.Continue()]
            case "static_assert_declaration":
                return [ast.Assert(self.expression(field(node, "condition")))]
            case "labeled_statement":
                return self._block(node.named_children[1:])
            case "case_statement" | "attributed_statement":
                return self._block(node.named_children)
        return [] if node.type in _IDLE else self._effects([node])

    def _case(self, subject: ast.expr, node: Node) -> ast.stmt:
        value = field(node, "value")
        test: ast.expr = ast.Constant(True)
        if value is not None:
            test = ast.Compare(subject, [ast.Eq()], [self.expression(value)])
        inside = [
            child for child in node.named_children if value is None or child.start_byte != value.start_byte
        ]
        return ast.If(test, self._block(inside), [], lineno=node.start_byte)

    def _for(self, node: Node) -> list[ast.stmt]:
        self._scopes.append({})
        begin, condition, step = (field(node, name) for name in ("initializer", "condition", "update"))
        statements = [] if begin is None else self._statement(begin)
        before, test = self._tested(condition)
        body = self._part(node, "body")
        loop = Loop(before, test, body, [] if step is None else self._statement(step))
        self._scopes.pop()
        return [*statements, loop]

    def _tested(self, condition: Node | None) -> tuple[list[ast.stmt], ast.expr]:
        """The effects of a condition, and what it is then."""
        outer, self._before = self._before, []
        test = self.expression(condition) if condition else ast.Constant(value=True)
        before, self._before = self._before, outer
        return before, test

    def _declaration(self, node: Node) -> Iterator[ast.stmt]:
        words = {
            self._tree.of(child) for child in node.children if child.type.endswith(("qualifier", "specifier"))
        }
        words |= {child.type for child in node.children}
        kind = type_name(self._tree, field(node, "type"))
        if kind in ("", "using") or "typedef" in words:
            return
        self._note_type(field(node, "type"))
        for declared in node.children_by_field_name("declarator"):
            parts = [*declarators(declared)]
            if parts[0].type == "function_declarator":
                yield self._constructed(kind, parts)
                continue
            value = field(parts[0], "value") if parts[0].type == "init_declarator" else None
            given = self.expression(value) if value is not None else None
            if isinstance(given, ast.Tuple):  # of a constructor
                given = _call(kind, *given.elts)
            elif isinstance(given, ast.List) and kind in SCALARS and len(parts) == 2 and given.elts:
                given = given.elts[0]
            extents = [
                self.expression(field(part, "size")) for part in parts if part.type == "array_declarator"
            ]
            has_open = any(part.type == "array_declarator" and field(part, "size") is None for part in parts)
            is_pointer = any(part.type == "pointer_declarator" for part in parts)
            name = self._declared(self._tree.of(parts[-1]))
            is_shared = "__shared__" in words
            is_dynamic = is_shared and has_open and "extern" in words
            yield _variable(
                name, Declared(kind, (*reversed(extents),), is_pointer, is_shared, is_dynamic), given
            )

    def _constructed(self, kind: str, parts: Sequence[Node]) -> ast.stmt:
        """`dim3 grid(n, 2)`, which reads like a function's declaration."""
        name = self._declared(self._tree.of(parts[-1]))
        inside = field(parts[0], "parameters")
        given = (ast.Name(self._tree.of(child)) for child in (inside.named_children if inside else ()))
        return _variable(name, Declared(kind), _call(kind, *given))

    def _effects(self, nodes: Iterable[Node]) -> list[ast.stmt]:
        """What expressions that stand as statements do."""
        statements: list[ast.stmt] = []
        for node in nodes:
            if node.type == "comma_expression":
                statements += self._effects(node.named_children)
            elif node.type in ("assignment_expression", "update_expression"):
                self.expression(node)  # which puts its statement before this one
            elif node.type == "parenthesized_expression":
                statements += self._effects(node.named_children)
            else:
                statements.append(ast.Expr(self.expression(node)))
            statements, self._before = [*self._before, *statements] if self._before else statements, []
        return statements

    def _note_type(self, node: Node | None) -> None:
        if node is not None and node.type == "type_identifier":
            self.types.setdefault(self._tree.of(node), node.start_byte)

    def _declared(self, name: str) -> str:
        count = self._taken[name] = self._taken.get(name, 0) + 1
        own = name if count == 1 else f"{name}__{count}"
        self._scopes[-1][name] = own
        return own

    # expressions

    def _identifier(self, node: Node) -> ast.expr:
        name = self._tree.of(node)
        for scope in reversed(self._scopes):
            if name in scope:
                return ast.Name(scope[name])
        if name not in self._known:
            self.unknown.setdefault(name, node.start_byte)
        return ast.Name(name)

    def _qualified_identifier(self, node: Node) -> ast.expr:
        name = field(node, "name")
        return ast.Name(self._tree.of(name).partition("<")[0]) if name else ast.Name(UNREADABLE)

    def _template_function(self, node: Node) -> ast.expr:
        return ast.Name(self._tree.of(field(node, "name")))

    def _field_identifier(self, node: Node) -> ast.expr:
        return ast.Name(self._tree.of(node))

    _type_identifier = _primitive_type = _sized_type_specifier = _this = _field_identifier

    def _number_literal(self, node: Node) -> ast.expr:
        text = self._tree.of(node).replace("'", "")
        if whole := _NUMBER.fullmatch(text):
            is_octal = re.fullmatch("0[0-7]+", whole[2]) is not None
            base = 8 if is_octal else 10 if whole[2].isdigit() else 0
            return ast.Constant(value=int(whole[1] + whole[2], base))
        real = _FLOAT.fullmatch(text)
        return ast.Constant(value=float(real[1]) if real else 0.0)

    def _parenthesized_expression(self, node: Node) -> ast.expr:
        inside = [child for child in node.named_children if child.type != "comment"]
        return self.expression(inside[-1]) if inside else ast.Constant(value=0)

    def _condition_clause(self, node: Node) -> ast.expr:
        begin = field(node, "initializer")
        if begin is not None:
            self._before += self._statement(begin)
        value = field(node, "value")
        if value is not None and value.type == "declaration":
            self._before += self._statement(value)
            return ast.Name(self._tree.of(declarator_name(field(value, "declarator"))))
        return self.expression(value)

    def _binary_expression(self, node: Node) -> ast.expr:
        left, right = self.expression(field(node, "left")), self.expression(field(node, "right"))
        sign = self._tree.of(field(node, "operator"))
        if sign in _BINARY:
            return ast.BinOp(left, _BINARY[sign], right)
        if sign in _COMPARED:
            return ast.Compare(left, [_COMPARED[sign]], [right])
        if sign in ("&&", "and", "||", "or"):
            return ast.BoolOp(ast.And() if sign in ("&&", "and") else ast.Or(), [left, right])
        return _call(UNREADABLE, left, right)

    def _unary_expression(self, node: Node) -> ast.expr:
        sign, value = self._tree.of(field(node, "operator")), self.expression(field(node, "argument"))
        if sign == "-" and isinstance(value, ast.Constant) and isinstance(value.value, int | float):
            return ast.Constant(value=-value.value)
        return ast.UnaryOp(_UNARY[sign], value) if sign in _UNARY else _call(UNREADABLE, value)

    def _pointer_expression(self, node: Node) -> ast.expr:
        value = self.expression(field(node, "argument"))
        if self._tree.of(field(node, "operator")) == "&":
            return _call(ADDRESS, value)
        return ast.Subscript(value, ast.Constant(value=0))

    def _assignment_expression(self, node: Node) -> ast.expr:
        target = self.expression(field(node, "left"))
        sign, value = self._tree.of(field(node, "operator")), self.expression(field(node, "right"))
        if sign == "=":
            self._before.append(ast.Assign([target], value, lineno=node.start_byte))
        else:
            operator = _BINARY.get(sign[:-1], ast.BitOr())
            self._before.append(ast.AugAssign(target, operator, value, lineno=node.start_byte))  # type: ignore[arg-type]
        return target

    def _update_expression(self, node: Node) -> ast.expr:
        target = self.expression(field(node, "argument"))
        sign = self._tree.of(field(node, "operator"))
        step = ast.Add() if sign == "++" else ast.Sub()
        self._before.append(ast.AugAssign(target, step, ast.Constant(value=1), lineno=node.start_byte))  # type: ignore[arg-type]
        return target

    def _conditional_expression(self, node: Node) -> ast.expr:
        test, body, otherwise = (
            self.expression(field(node, name)) for name in ("condition", "consequence", "alternative")
        )
        return ast.IfExp(test, body, otherwise)

    def _subscript_expression(self, node: Node) -> ast.expr:
        inside = field(node, "indices")
        index = self.expression(inside.named_children[0] if inside and inside.named_children else None)
        return ast.Subscript(self.expression(field(node, "argument")), index)

    def _field_expression(self, node: Node) -> ast.expr:
        return ast.Attribute(self.expression(field(node, "argument")), self._tree.of(field(node, "field")))

    def _cast_expression(self, node: Node) -> ast.expr:
        kind, value = field(node, "type"), field(node, "value")
        sign, factors = self._tree.of(field(value, "operator")), self._factors(kind)
        if sign not in _ALSO_BINARY or not factors:
            return self._cast(kind, self.expression(value))
        first, *others = map(self._identifier, factors)
        for factor in others:
            first = ast.BinOp(first, ast.Mult(), factor)
        return ast.BinOp(first, _BINARY[sign], self.expression(field(value, "argument")))

    def _factors(self, kind: Node | None) -> list[Node]:
        """What is multiplied in a cast that is none: `(N) * x`, `(N * (M)) - 1`; empty for a type."""
        inside = [*descendants(kind)] if kind is not None else []
        words = [part for part in inside if part.type == "type_identifier"]
        is_product = any(part.type == "abstract_function_declarator" for part in inside)
        name = self._tree.of(kind)
        is_number = self._is_declared(name) or name.isupper()
        return words if is_product or (len(inside) == 2 and is_number) else []

    def _cast(self, kind: Node | None, value: ast.expr) -> ast.expr:
        text = self._tree.of(kind)
        self._note_type(field(kind, "type"))
        if "*" not in text:
            return self._number_cast(type_name(self._tree, field(kind, "type") or kind), value)
        name = type_name(self._tree, field(kind, "type"))
        return _call(POINTER_CAST, ast.Constant(value=name), value)

    def _number_cast(self, kind: str, value: ast.expr) -> ast.expr:
        return value

    def _sizeof_expression(self, node: Node) -> ast.expr:
        self._note_type(field(field(node, "type"), "type"))
        return _call("sizeof", ast.Constant(value=self._tree.of(node)[6:].strip("() ")))

    def _initializer_list(self, node: Node) -> ast.expr:
        return ast.List([self.expression(child) for child in node.named_children])

    def _argument_list(self, node: Node) -> ast.expr:
        return ast.Tuple([self.expression(child) for child in node.named_children])

    def _compound_literal_expression(self, node: Node) -> ast.expr:
        value = self.expression(field(node, "value"))
        given = value.elts if isinstance(value, ast.List) else [value]
        return _call(self._tree.of(field(node, "type")), *given)

    def _unknown_type(self, brackets: Node) -> str:
        """The name in brackets that nothing declares: before others it is a type, `(KIND)(-x)`."""
        name = self._tree.of(brackets.named_children[0]) if brackets.named_child_count == 1 else ""
        return name if name.isidentifier() and not self._is_declared(name) else ""

    def _is_declared(self, name: str) -> bool:
        return name in self._known or any(name in scope for scope in self._scopes)

    def _call_expression(self, node: Node) -> ast.expr:
        function, inside = field(node, "function"), field(node, "arguments")
        given = [
            self.expression(child)
            for child in (inside.named_children if inside else ())
            if child.type != "comment"
        ]
        if function is None:
            return _call(UNREADABLE, *given)
        if function.type == "template_function" and self._tree.of(field(function, "name")) in _CASTS:
            kinds = field(function, "arguments")
            kind = kinds.named_children[0] if kinds and kinds.named_children else None
            return self._cast(kind, given[0]) if given else ast.Name(UNREADABLE)
        scope = field(function, "scope") if function.type == "qualified_identifier" else None
        if scope is not None and self._is_declared(self._tree.of(scope)):
            owner, member = self._tree.of(scope), self._tree.of(field(function, "name"))
            called: ast.expr = ast.Attribute(ast.Name(owner), member)
        elif function.type == "identifier":
            called = ast.Name(self._tree.of(function))
        elif function.type == "parenthesized_expression" and (name := self._unknown_type(function)):
            self.types.setdefault(name, node.start_byte)
            called = ast.Name(name)
        else:
            called = self.expression(function)
        if configuration := [child for child in node.children if child.type == "kernel_call_syntax"]:
            extents = [self.expression(child) for child in configuration[0].named_children]
            return _launch(called, given, extents, self._template_arguments(function))
        if self._tree.of(function) == "hipLaunchKernelGGL" and len(given) >= 5:
            first = inside.named_children[0] if inside else function
            return _launch(given[0], given[5:], given[1:5], self._template_arguments(first))
        if not isinstance(called, ast.Name):
            return ast.Call(called, given, [])
        is_cast = len(given) == 1 and called.id in SCALARS
        return self._number_cast(called.id, given[0]) if is_cast else _index_call(called.id, given)

    def _template_arguments(self, function: Node) -> list[str]:
        """The template arguments of what is called."""
        lists = [node for node in descendants(function) if node.type == "template_argument_list"]
        return [self._tree.of(child) for child in lists[-1].named_children] if lists else []

    def _lambda_expression(self, node: Node) -> ast.expr:
        return ast.Name(UNREADABLE)


class HostStatements(Statements):
    """Reads functions without a name as well; the statements of one count where it is written."""

    def _lambda_expression(self, node: Node) -> ast.expr:
        self._scopes.append({})
        inside = field(field(node, "declarator"), "parameters")
        parameters = inside.named_children if inside else ()
        taken = (declarator_name(field(one, "declarator")) for one in parameters)
        names = [self._declared(self._tree.of(one)) for one in taken if one is not None]
        body = self._part(node, "body")
        self._scopes.pop()
        match body:
            case [ast.Return(value=ast.expr() as value)]:
                own = ast.arguments([], [ast.arg(name) for name in names], None, [], [], None, [])
                return ast.Lambda(own, value)
        self._before += body
        return ast.Name(UNREADABLE)


def _call(name: str, *given: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(name), [*given], [])


def _variable(name: str, declared: Declared, value: ast.expr | None) -> ast.stmt:
    return ast.AnnAssign(ast.Name(name), ast.Constant(value=declared), value, 1)  # type: ignore[arg-type]


def is_zero(node: ast.expr) -> bool:
    """True for the number 0."""
    return isinstance(node, ast.Constant) and node.value == 0


def _launch(
    kernel: ast.expr, given: list[ast.expr], configuration: list[ast.expr], template: list[str]
) -> ast.expr:
    """The launch of a kernel."""
    texts: list[ast.expr] = [ast.Constant(value=text) for text in template]
    call = ast.Call(kernel, given, [])
    return _call(LAUNCH, call, ast.Tuple(configuration), ast.Tuple(texts))


def _index_call(name: str, given: list[ast.expr]) -> ast.expr:
    """A call, with the functions that ask for a place in the grid as members of CUDA's variables."""
    if name in _PRODUCTS and len(given) == 2:
        return ast.BinOp(given[0], ast.Mult(), given[1])
    match given:
        case [ast.Constant(value=int(axis))] if 0 <= axis < 3:
            letter = "xyz"[axis]
            if name in _INDEXES:
                return ast.Attribute(ast.Name(_INDEXES[name]), letter)
            if name in ("get_global_id", "get_global_size"):
                thread, block, threads, blocks = (
                    ast.Attribute(ast.Name(word), letter) for word in _INDEXES.values()
                )
                if name == "get_global_size":
                    return ast.BinOp(blocks, ast.Mult(), threads)
                return ast.BinOp(ast.BinOp(block, ast.Mult(), threads), ast.Add(), thread)
    return _call(name, *given)


def type_name(tree: SourceTree, node: Node | None) -> str:
    """A type's name without `struct`, or its place, such as `union@7`; empty without one."""
    if node is None:
        return ""
    if node.type in ("struct_specifier", "class_specifier", "union_specifier"):
        place = f"{node.type.partition('_')[0]}@{node.start_byte}" if field(node, "body") else ""
        return tree.of(field(node, "name")) or place
    if node.type == "enum_specifier":
        return "int"
    if node.type == "qualified_identifier":
        return tree.of(node).removeprefix("std::").removeprefix("::")
    return tree.of(node)


def parsed_expression(text: str) -> ast.expr | None:
    """An expression in C; None for a text that is none."""
    tree = SourceTree(f"int _ = ({text});")
    declared = tree.root.named_children[0] if tree.root.named_children else None
    value = field(field(declared, "declarator"), "value")
    return None if value is None or tree.root.has_error else Statements(tree, ()).expression(value)
