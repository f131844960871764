"""Guess which arrays a kernel reads and writes and, where a formula shows it, what it computes."""

from __future__ import annotations

import keyword
import re
from collections.abc import Mapping, Sequence
from enum import Enum

from autotune.core.brackets import closing
from autotune.scaffold.macros import WORD
from autotune.scaffold.reading import FoundKernel, KernelArgument

_FUNCTIONS = ("sqrt", "exp", "log", "sin", "cos", "fabs")
_OFFSET = re.compile(r"(?i)offset|shift|start|begin|first|border|base")
_SHIFT = re.compile(r"(?:<<|>>)\s*(\w+|\([^()]*\))")
_NUMBER = re.compile(r"(?<![\w.])(\d+\.?\d*(?:[eE][+-]?\d+)?|\.\d+)[fFuUlL]*")
_NO_AXIS = r"(?<!\.)(?<!_INDEX\()(?<!_EXTENT\()"  # threadIdx.x and THREAD_INDEX(x) read no array x
_MEMBER = r"\.\w+(?:\[[^\[\]]*\])?"
_CHANGED = re.compile(rf"(?:{_MEMBER})*\s*(?:(?:[-+*/%&|^]|<<|>>)=|\+\+|--)|(?:{_MEMBER})+\s*=(?!=)")


class Role(Enum):
    """The role of an array; SUM is an `inout` array that atomics add to, LOCAL is local memory."""

    IN = "in"
    OUT = "out"
    INOUT = "inout"
    SUM = "sum"
    LOCAL = "local"


def role_of(argument: KernelArgument, body: str) -> Role:
    """The role that the uses of a pointer suggest; INOUT where they are ambiguous."""
    if argument.is_local:
        return Role.LOCAL
    if argument.is_const:
        return Role.IN
    reads = writes = escapes = sums = 0
    for match in re.finditer(rf"{_NO_AXIS}\b{argument.name}\b", body):
        before, after = body[: match.start()].rstrip(), body[match.end() :].lstrip()
        if re.search(r"(?i)atomic_?add\w*\s*\(\s*&?$", before):
            sums += 1
        elif after.startswith("[") and not before.endswith("&"):
            rest = after[closing(after, 0) + 1 :].lstrip()
            written = re.match(r"=(?!=)", rest) is not None
            changed = _CHANGED.match(rest) is not None
            writes += written or changed
            reads += not written
        elif before.endswith("*") and re.match(r"=(?!=)", after):
            writes += 1
        else:
            escapes += 1
    if sums and not (reads or writes or escapes):
        return Role.SUM
    if writes and not (reads or escapes or sums):
        return Role.OUT
    return Role.IN if reads and not (writes or escapes or sums) else Role.INOUT


def is_offset(name: str, body: str) -> bool:
    """Whether a number is called like one that an index begins with, or says by how many bits to shift."""
    shifts = WORD.findall(" ".join(_SHIFT.findall(body)))
    return _OFFSET.search(name) is not None or name in shifts


def scalar_value(argument: KernelArgument, kernel: FoundKernel, sizes: Sequence[str]) -> str:
    """The value of a scalar argument in the space file: a size, 0 for an offset, else 1.

    Floats are 2, 3 and so on: a kernel that swaps two equal ones would pass.
    """
    if argument.name in sizes:
        return argument.name
    if "int" not in argument.dtype:
        floats = [item.name for item in kernel.arguments if not (item.is_pointer or "int" in item.dtype)]
        return str(2 + floats.index(argument.name))
    integers = [item.name for item in kernel.arguments if not item.is_pointer and "int" in item.dtype]
    if is_offset(argument.name, kernel.body):
        return "0"
    stands_for_n = argument.name == integers[0] and sizes[0] not in integers
    return sizes[0] if stands_for_n else "1"


def reference_body(kernel: FoundKernel, roles: Mapping[str, Role], sizes: Sequence[str]) -> tuple[str, ...]:
    """A reference for a kernel that computes each result by one formula of elements at one index.

    Empty for any other kernel: no guess is better than a plausible wrong one.
    """
    written = [name for name, role in roles.items() if role not in (Role.IN, Role.LOCAL)]
    loops = re.search(r"\b(?:for|while)\b", kernel.body) is not None
    results = []
    for name in written:
        stores = re.findall(rf"\b{name}\s*\[([^\[\]]+)\]\s*([-+*]?)=(?!=)\s*([^;]+);", kernel.body)
        if len(stores) != 1 or (loops and roles[name] is not Role.OUT):
            return ()
        index, operator, formula = stores[0]
        translated = _translated(formula, "".join(index.split()), kernel.arguments)
        if not translated:
            return ()
        changed = f"{variable_name(name)} {operator} ({translated})" if operator else translated
        results.append(f'"{name}": {changed}')
    if not results or len(results) != len({result.partition(":")[0] for result in results}):
        return ()
    used = set(WORD.findall(" ".join(results)))
    lines = []
    for item in kernel.arguments:
        if variable_name(item.name) not in used or (item.is_pointer and roles[item.name] is Role.OUT):
            continue
        wide = "np.int64" if "int" in item.dtype else "np.float64"
        value = "" if item.is_pointer else scalar_value(item, kernel, sizes)
        lines.append(
            f'{variable_name(item.name)} = inputs["{item.name}"].astype({wide})'
            if item.is_pointer
            else f"{variable_name(item.name)} = " + (f'sizes["{value}"]' if value in sizes else value)
        )
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
    for word in set(WORD.findall(text)):
        function = word.removesuffix("f") if word != "f" else word
        if word in known:
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
