"""Write a kernel's reference where a formula in its source shows what it computes."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence

from autotune.scaffold.macros import WORD
from autotune.scaffold.reading import FoundKernel, KernelArgument
from autotune.scaffold.roles import Role
from autotune.scaffold.scalar_values import scalar_value

_FUNCTIONS = ("sqrt", "exp", "log", "sin", "cos", "fabs")
_NUMBER = re.compile(r"(?<![\w.])(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)[fFuUlL]*")


def reference_body(kernel: FoundKernel, roles: Mapping[str, Role], sizes: Sequence[str]) -> tuple[str, ...]:
    """A reference for a kernel that computes each result by one formula of elements at one index.

    Empty for any other kernel: no guess is better than a plausible wrong one.
    """
    written = [name for name, role in roles.items() if role not in (Role.IN, Role.LOCAL)]
    loops = re.search(r"\b(?:for|while)\b", kernel.body) is not None
    arrays = {variable_name(name) for name in roles}
    results = []
    for name in written:
        stores = re.findall(rf"\b{name}\s*\[([^\[\]]+)\]\s*([-+*]?)=(?!=)\s*([^;]+);", kernel.body)
        if len(stores) != 1 or (loops and roles[name] is not Role.OUT):
            return ()
        index, operator, formula = stores[0]
        translated = _translated(formula, "".join(index.split()), kernel.arguments)
        changed = f"{variable_name(name)} {operator} ({translated})" if operator else translated
        if not translated or not arrays & set(WORD.findall(changed)):  # a number has no shape
            return ()
        results.append(f'"{name}": {changed}')
    if not results or len(results) != len({result.partition(":")[0] for result in results}):
        return ()
    used = set(WORD.findall(" ".join(results)))
    lines = []
    for item in kernel.arguments:
        name = variable_name(item.name)
        if name not in used or (item.is_pointer and roles[item.name] is Role.OUT):
            continue
        if item.is_pointer:
            wide = "np.int64" if "int" in item.dtype else "np.float64"
            lines.append(f'{name} = inputs["{item.name}"].astype({wide})')
        else:
            value = scalar_value(item, kernel, sizes)
            lines.append(f"{name} = " + (f'sizes["{value}"]' if value in sizes else value))
    return (*lines, f"return {{{', '.join(results)}}}")


def _translated(formula: str, index: str, arguments: Sequence[KernelArgument]) -> str:
    """A C formula in numpy; empty if it has anything but elements at `index`, scalars and arithmetic."""
    known = {item.name: item for item in arguments}
    whole = any("int" in item.dtype for item in arguments if item.is_pointer)

    def element(match: re.Match[str]) -> str:
        item = known.get(match[1])
        plain = item is not None and item.is_pointer and item.width == 1
        return f" {match[1]} " if plain and "".join(match[2].split()) == index else " ? "

    text = re.sub(r"\b([A-Za-z_]\w*)\s*\[([^\[\]]+)\]", element, _NUMBER.sub(r"\1", formula))
    if not re.fullmatch(r"[\w\s.+*/()-]+", text) or (whole and "/" in text):
        return ""
    called = set(re.findall(r"\b(\w+)\s*\(", text))
    for word in set(WORD.findall(text)):
        function = word.removesuffix("f") if word != "f" else word
        if word in known and word not in called:
            text = re.sub(rf"\b{word}\b", variable_name(word), text)
        elif function in _FUNCTIONS or word in _FUNCTIONS:
            name = {"fabs": "abs"}.get(function, function)
            text = re.sub(rf"\b{word}\b", f"np.{name}", text)
        else:
            return ""
    return " ".join(text.split())


def variable_name(name: str) -> str:
    """An argument's name as that of a variable in Python."""
    return f"{name}_" if keyword.iskeyword(name) or name in ("np", "inputs", "sizes") else name
