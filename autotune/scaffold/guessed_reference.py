"""Write a kernel's reference where a formula in its source shows what it computes."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Mapping, Sequence

from autotune.scaffold.reading import FoundKernel, KernelArgument
from autotune.scaffold.roles import Role, scalar_value
from autotune.sources.facts import Facts, names_in

_FUNCTIONS = ("sqrt", "exp", "log", "sin", "cos", "fabs")
_SIGNS = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*"}


def reference_body(
    kernel: FoundKernel, facts: Facts, roles: Mapping[str, Role], sizes: Sequence[str]
) -> tuple[str, ...]:
    """A reference for a kernel that computes each result by one formula of elements at one index.

    Empty for any other kernel: no guess is better than a plausible wrong one.
    """
    written = [name for name, role in roles.items() if role not in (Role.IN, Role.LOCAL)]
    arrays = {variable_name(name) for name in roles}
    results = []
    for name in written:
        stores = [access for access in facts.of(name) if access.is_written]
        store = stores[0] if len(stores) == 1 else None
        if store is None or store.value is None or (facts.loops and roles[name] is not Role.OUT):
            return ()
        if isinstance(store.index, ast.Constant):  # of one element, and no array is known to have only one
            return ()
        sign = _SIGNS.get(type(store.operator), "") if store.operator else "="
        formula = _Translation(ast.unparse(store.index), kernel.arguments).of(store.value)
        if formula is None or not sign or store.vector:
            return ()
        text = ast.unparse(formula)
        changed = text if sign == "=" else f"{variable_name(name)} {sign} ({text})"
        if not arrays & names_in(ast.parse(changed)):  # a number has no shape
            return ()
        results.append(f'"{name}": {changed}')
    if not results:
        return ()
    used = {word for result in results for word in names_in(ast.parse(result.partition(": ")[2]))}
    lines = []
    for item in kernel.arguments:
        name = variable_name(item.name)
        if name not in used or (item.is_pointer and roles[item.name] is Role.OUT):
            continue
        if item.is_pointer:
            wide = "np.int64" if "int" in item.dtype else "np.float64"
            lines.append(f'{name} = inputs["{item.name}"].astype({wide})')
        else:
            value = scalar_value(item, kernel, facts, sizes)
            lines.append(f"{name} = " + (f'sizes["{value}"]' if value in sizes else value))
    return (*lines, f"return {{{', '.join(results)}}}")


class _Translation:
    """A C formula in numpy, of elements at one index, scalars and arithmetic."""

    def __init__(self, index: str, arguments: Sequence[KernelArgument]) -> None:
        self._index, self._known = index, {item.name: item for item in arguments}
        self._is_whole = any("int" in item.dtype for item in arguments if item.is_pointer)

    def of(self, node: ast.expr) -> ast.expr | None:
        """The formula; None if it has anything else."""
        match node:
            case ast.Constant(value=int() | float()):
                return node
            case ast.Name(id=name) if name in self._known:
                return None if self._known[name].is_pointer else ast.Name(variable_name(name))
            case ast.Subscript(value=ast.Name(id=name), slice=index) if name in self._known:
                is_element = self._known[name].width == 1 and ast.unparse(index) == self._index
                return ast.Name(variable_name(name)) if is_element else None
            case ast.BinOp(left, ast.Add() | ast.Sub() | ast.Mult() | ast.Div() as operator, right):
                first, second = self.of(left), self.of(right)
                if first is None or second is None or (self._is_whole and isinstance(operator, ast.Div)):
                    return None
                return ast.BinOp(first, operator, second)
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                inside = self.of(operand)
                return None if inside is None else ast.UnaryOp(sign, inside)
            case ast.Call(func=ast.Name(id=called), args=[argument]):
                function = called if called in _FUNCTIONS else called.removesuffix("f")
                inside = self.of(argument)
                if function not in _FUNCTIONS or inside is None:
                    return None
                name = {"fabs": "abs"}.get(function, function)
                return ast.Call(ast.Attribute(ast.Name("np"), name), [inside], [])
        return None


def variable_name(name: str) -> str:
    """An argument's name as that of a variable in Python."""
    return f"{name}_" if keyword.iskeyword(name) or name in ("np", "inputs", "sizes") else name
