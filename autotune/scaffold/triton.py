"""Write a first space file for a kernel in Triton: from its parameters, decorators and launches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from autotune.core.launch_plan import TRITON_OPTIONS
from autotune.core.records import Value
from autotune.core.syntax import parse_module
from autotune.core.triton_source import decorator_name, kernels
from autotune.errors import InputError
from autotune.scaffold.triton_guesses import DEFAULTS, TritonGuess, guess_triton
from autotune.scaffold.triton_reading import TritonKernel, grids, read_kernel
from autotune.scaffold.verify_sizes import verify_sizes
from autotune.scaffold.writing import empty_reference, quoted, scalar

_TILED = re.compile(r"ceil_div\(\w+, \w+\)")
_CHECK = "  # check"


@dataclass(frozen=True)
class TritonScaffold:
    """What was found in a source, with the texts of the space file and the reference."""

    kernel: TritonKernel
    guess: TritonGuess
    space: str
    reference: str


def scaffold_triton(path: Path, name: str, entry: str | None = None) -> TritonScaffold:
    """Write a space for one of the kernels of a Python file; `name` is that of the space.

    Raises InputError if the file has no such kernel.
    """
    text = path.read_text(encoding="utf-8")
    known = kernels(text, path)
    tree = parse_module(text)
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name in known}
    if entry is not None and entry not in known:
        raise InputError(
            f"{path}: no function under @triton.jit is called {entry!r}; it has {', '.join(known)}"
        )
    chosen = entry or _first(functions, tree)
    kernel = read_kernel(path, functions[chosen], known[chosen])
    guess = guess_triton(kernel, tree)
    return TritonScaffold(kernel, guess, _space(path.name, name, guess), _reference(path.name, guess))


def _first(functions: Mapping[str, ast.FunctionDef], tree: ast.Module) -> str:
    """The first kernel that is tuned, else launched, else defined and not called by others."""
    tuned = (
        name
        for name, one in functions.items()
        if any(decorator_name(item) == "autotune" for item in one.decorator_list)
    )
    launched = (name for name in functions if grids(tree, name))
    called = {
        node.func.id
        for one in functions.values()
        for node in ast.walk(one)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
    }
    whole = (name for name in functions if name not in called)
    return next(tuned, None) or next(launched, None) or next(whole, None) or next(iter(functions))


def _space(file: str, name: str, guess: TritonGuess) -> str:
    """The text of a space file; `file` names the source, `name` the space and its reference."""
    kernel, sizes, values = guess.kernel, guess.sizes, guess.values
    landmarks = [_pairs({**kernel.configs[0], **DEFAULTS, **config}, values) for config in kernel.configs]
    extents = ", ".join(f"{one}: {extent:_}" for one, extent in sizes.items())
    half = "dot(" in kernel.code
    default = kernel.configs[0] if kernel.configs else {}
    chosen = {one: default.get(one, _middle(one, listed)) for one, listed in values.items()}
    tiles = [tile for part in guess.grid for tile in _TILED.findall(part)]
    checks = verify_sizes(list(sizes), tiles, ["1"], values, checked="mask" in kernel.code)
    unread = " ".join(kernel.unread.split())
    lines = [
        f"# A first space for {file}, guessed from its text: check what comments ask.",
        "schema: 1",
        f"kernel: {name}",
        "dialect: triton",
        f"source: {file}",
        f"reference: {name}_reference.py",
        f"dtypes: [{'float16' if half else 'float32'}]  # what arrays hold, such as [float16, bfloat16]",
        "sizes:",
        f"  default: {{{extents}}}  # what do you tune for?",
        "verify_sizes:",
        *(
            f"  - {{{', '.join(f'{one}: {n}' for one, n in zip(sizes, each, strict=True))}}}"
            for each in checks
        ),
        "",
        "parameters:",
        *(f"  {one}: [{_listed(listed)}]{_remark(one, kernel)}" for one, listed in values.items()),
        *(["derived:"] if guess.derived else []),
        *(f"  {one}: {quoted(text)}" for one, text in guess.derived.items()),
        f"default: {{{_pairs(chosen, chosen)}}}",
        *(["landmarks:  # the configurations of @triton.autotune"] if kernel.configs else []),
        *([f"# the list of @triton.autotune was not read: {unread}"] if unread else []),
        *(f"  config_{number}: {{{pairs}}}" for number, pairs in enumerate(landmarks)),
        "",
        "arguments:",
        *(_argument(one, guess) for one in kernel.arguments),
        "",
        *_call(kernel.roles),
        "launch:",
        f"  - entry: {kernel.entry}",
        f"    grid: [{', '.join(map(quoted, guess.grid))}]"
        + ("  # programs: is every element covered?" if guess.is_grid_guessed else ""),
        f"    arguments: [{', '.join(kernel.arguments)}]",
        "",
        f"verify: {{{'rtol: 1e-2, atol: 1e-2' if half else 'rtol: 1e-5, atol: 1e-6'}}}"
        "  # how far from the reference a right result may be",
        "",
    ]
    return "\n".join(lines)


def _remark(parameter: str, kernel: TritonKernel) -> str:
    is_known = parameter in TRITON_OPTIONS or any(parameter in config for config in kernel.configs)
    return "" if is_known else _CHECK + ": which values?"


def _argument(name: str, guess: TritonGuess) -> str:
    role = guess.kernel.roles.get(name)
    if role is not None:
        shape, is_sure = guess.shape(name)
        fill = "" if role == "out" else ", fill: {normal: [0, 1]}"
        entry = f"{{name: {name}, dtype: DTYPE, shape: [{shape}], role: {role}{fill}}}"
        return f"  - {entry}" + ("" if is_sure else _CHECK + ": its shape")
    if name in guess.sizes:
        return f"  - {{name: {name}, dtype: int32, value: {name}}}"
    if "stride" in name.lower():
        value, is_sure = guess.stride(name)
        return f"  - {{name: {name}, dtype: int32, value: {value}}}" + ("" if is_sure else _CHECK)
    return f"  - {{name: {name}, dtype: float32, value: 1.0}}" + _CHECK + ": its value"


def _call(roles: Mapping[str, str]) -> list[str]:
    """What a caller passes and gets, where the kernel only writes its results."""
    if not roles or "inout" in roles.values() or len({*roles.values()}) < 2:
        return []
    inputs, returns = (", ".join(one for one in roles if roles[one] == role) for role in ("in", "out"))
    return [f"call: {{inputs: [{inputs}], returns: [{returns}]}}", ""]


def _reference(file: str, guess: TritonGuess) -> str:
    roles = guess.kernel.roles
    inputs = [one for one in roles if roles[one] != "out"]
    results = [one for one in roles if roles[one] != "in"]
    return empty_reference(file, guess.kernel.entry, inputs, guess.sizes, results)


def _middle(name: str, values: Sequence[Value]) -> Value:
    default = DEFAULTS.get(name)
    return default if default in values and default is not None else values[(len(values) - 1) // 2]


def _listed(values: Sequence[Value]) -> str:
    return ", ".join(map(scalar, values))


def _pairs(values: Mapping[str, Value], names: Iterable[str]) -> str:
    return ", ".join(f"{name}: {scalar(values[name])}" for name in names if name in values)
