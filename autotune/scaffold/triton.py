"""Write a first space file for a kernel in Triton: from its parameters, decorators and launches."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from autotune.core.expressions import parse, unknown_names
from autotune.core.launch_plan import TRITON_OPTIONS
from autotune.core.records import Value
from autotune.core.triton_source import TritonParameter, decorator_name, kernels
from autotune.errors import ExpressionError, InputError
from autotune.scaffold.triton_host import configs, grids, translated
from autotune.scaffold.verify_sizes import verify_sizes
from autotune.scaffold.writing import empty_reference, quoted, scalar

_FLOATS = re.compile(r"eps|alpha|beta|scale|slope|factor|momentum|^p$|^lr$", re.IGNORECASE)
_TILED = re.compile(r"ceil_div\(\w+, \w+\)")
_TILES = re.compile(r"BLOCK|TILE|GROUP|ROWS|SIZE|UNROLL")
_TILE_VALUES: tuple[Value, ...] = (32, 64, 128, 256)
_LONG_VALUES: tuple[Value, ...] = (256, 512, 1024, 2048, 4096)
_DEFAULTS: Mapping[str, Value] = {"num_warps": 4, "num_stages": 3, "num_ctas": 1, "maxnreg": 255}
_CHECK = "  # check"


@dataclass
class TritonScaffold:
    """What was found in a source, with the texts of the space file and the reference."""

    entry: str
    space: str = ""
    reference: str = ""
    roles: dict[str, str] = field(default_factory=dict)  # of arrays
    parameters: dict[str, tuple[Value, ...]] = field(default_factory=dict)
    configs: list[dict[str, Value]] = field(default_factory=list)  # of @triton.autotune


def scaffold_triton(path: Path, name: str, entry: str | None = None) -> TritonScaffold:
    """Write a space for one of the kernels of a Python file; `name` is that of the space.

    Raises InputError if the file has no such kernel.
    """
    text = path.read_text(encoding="utf-8")
    known = kernels(text, path)
    tree = ast.parse(text)
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef) and one.name in known}
    if entry is not None and entry not in known:
        raise InputError(
            f"{path}: no function under @triton.jit is called {entry!r}; it has {', '.join(known)}"
        )
    chosen = entry or _first(functions, tree)
    return _Writer(path, name, tree, functions[chosen], known[chosen]).made


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


class _Writer:
    """Guesses the parts of a space, in the order in which they need each other."""

    def __init__(
        self,
        path: Path,
        name: str,
        tree: ast.Module,
        function: ast.FunctionDef,
        parameters: Sequence[TritonParameter],
    ) -> None:
        self._function, self._parameters = function, parameters
        self._code = ast.unparse(function)
        self.made = TritonScaffold(function.name)
        self.made.roles = self._roles()
        self.made.configs = configs(path, function)
        self._derived = self._heuristics()
        self._numbers = [
            one.name for one in parameters if not one.is_constant and one.name not in self.made.roles
        ]
        self._sizes = {
            one: 4096 for one in self._numbers if "stride" not in one.lower() and not _FLOATS.search(one)
        }
        self._values()
        if len(self._sizes) == 1:
            self._sizes = dict.fromkeys(self._sizes, 2**24)
        self._sizes = self._sizes or {"n": 2**20}
        self._derived = {one: text for one, text in self._derived.items() if self._is_known(text)}
        self._grid, self._is_guessed = self._launch(tree)
        self.made.space = self._space(path.name, name)
        self.made.reference = self._reference(path.name)

    def _roles(self) -> dict[str, str]:
        """The parameters that loads and stores start from: in, out or inout, in the order of the function."""
        started = {one.name for one in self._parameters if not one.is_constant}
        assigned: dict[str, ast.expr] = {}
        found: dict[str, set[str]] = {}
        for node in ast.walk(self._function):
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                assigned.setdefault(node.targets[0].id, node.value)
        for node in ast.walk(self._function):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args):
                continue
            what = node.func.attr
            if what in ("load", "store", "make_block_ptr", "make_tensor_descriptor") or what.startswith(
                "atomic"
            ):
                # `descriptor.load(places)`, or `tl.load(pointer)`
                base = _base(node.func.value, started, assigned, 8) or _base(
                    node.args[0], started, assigned, 8
                )
                kinds = {"load": {"in"}, "store": {"out"}}.get(
                    what, {"in", "out"} if "atomic" in what else set()
                )
                if base is not None:
                    found.setdefault(base, set()).update(kinds)
        names = [one.name for one in self._parameters if one.name in found]
        return {name: "inout" if len(found[name]) > 1 else next(iter(found[name]), "in") for name in names}

    def _heuristics(self) -> dict[str, str]:
        """The rules of `@triton.heuristics` as expressions."""
        found = {}
        for one in self._function.decorator_list:
            if decorator_name(one) == "heuristics" and isinstance(one, ast.Call):
                table = one.args[0] if one.args else one.keywords[0].value
                for key, rule in (
                    zip(table.keys, table.values, strict=True) if isinstance(table, ast.Dict) else ()
                ):
                    if isinstance(key, ast.Constant) and isinstance(rule, ast.Lambda):
                        found[str(key.value)] = translated(rule.body, rule.args.args[0].arg)
        return found

    def _values(self) -> None:
        """Values for each constant and option: those of the configurations, else usual ones."""
        made, values = self.made, self.made.parameters
        tuned = list(dict.fromkeys(name for config in made.configs for name in config))
        for one in self._parameters:
            if not one.is_constant or one.name in self._derived:
                continue
            if one.name in tuned:
                values[one.name] = _distinct(config.get(one.name) for config in made.configs)
            elif _TILES.search(one.name):
                values[one.name] = _TILE_VALUES if "dot(" in self._code else _LONG_VALUES
            elif re.search(rf"\bif (not )?{one.name}\b(?! *[<>=])", self._code):
                values[one.name] = (False,)
            elif not one.has_default:
                self._sizes[one.name] = 128
        for name in TRITON_OPTIONS:
            if any(name in config for config in made.configs):
                values[name] = _distinct(config.get(name, _DEFAULTS[name]) for config in made.configs)
        if not made.configs:
            values["num_warps"] = (1, 2, 4, 8)
            if "for " in self._code:
                values["num_stages"] = (1, 2, 3, 4)

    def _is_known(self, text: str) -> bool:
        names = {*self._sizes, *self.made.parameters, *self._derived}
        try:
            return not unknown_names(parse(text), names)
        except ExpressionError:
            return False

    def _launch(self, tree: ast.Module) -> tuple[list[str], bool]:
        """The grid of a launch in the same file, else one that is guessed, and whether it is."""
        for grid in grids(tree, self.made.entry):
            if all(map(self._is_known, grid)):
                return grid, False
        tiles = [name for name in self.made.parameters if "BLOCK" in name] or [*self.made.parameters][:1]
        sizes = list(self._sizes)
        axes = max(1, len({*re.findall(r"program_id\((?:axis=)?(\d)\)", self._code)}))
        pairs = zip(sizes[:axes], tiles[:axes], strict=False)
        return [f"ceil_div({size}, {tile})" for size, tile in pairs] or ["1"], True

    def _shape(self, array: str) -> tuple[str, bool]:
        """The shape of an array by the names of its strides, else of its size, and whether it is sure."""
        dims = [dim for number in self._numbers for dim in _stride_dims(number, array)]
        found = [next((size for size in self._sizes if size.lower() == dim), None) for dim in dims]
        if found and all(found):
            return ", ".join(map(str, found)), True
        return " * ".join(self._sizes), len(self._sizes) == 1

    def _stride(self, name: str) -> tuple[str, bool]:
        """The value of a stride: the product of the extents behind its own."""
        for array in self.made.roles:
            if dims := _stride_dims(name, array):
                extents = self._shape(array)[0].split(", ")
                places = [place for place, size in enumerate(extents) if size.lower() == dims[0]]
                if places:
                    return " * ".join(extents[places[0] + 1 :]) or "1", True
        return list(self._sizes)[-1] if len(self._sizes) > 1 else "1", False

    def _space(self, file: str, name: str) -> str:
        made = self.made
        landmarks = [
            _pairs({**dict(made.configs[0]), **_DEFAULTS, **config}, made.parameters)
            for config in made.configs
        ]
        half = "dot(" in self._code
        sizes = ", ".join(f"{size}: {extent:_}" for size, extent in self._sizes.items())
        default = made.configs[0] if made.configs else {}
        chosen = {one: default.get(one, _middle(one, values)) for one, values in made.parameters.items()}
        tiles = [tile for part in self._grid for tile in _TILED.findall(part)]
        checks = verify_sizes(list(self._sizes), tiles, ["1"], made.parameters, checked="mask" in self._code)
        lines = [
            f"# A first space for {file}, guessed from its text: check what comments ask.",
            "schema: 1",
            f"kernel: {name}",
            "dialect: triton",
            f"source: {file}",
            f"reference: {name}_reference.py",
            f"dtypes: [{'float16' if half else 'float32'}]  # what arrays hold, such as [float16, bfloat16]",
            "sizes:",
            f"  default: {{{sizes}}}  # what do you tune for?",
            "verify_sizes:",
            *(
                f"  - {{{', '.join(f'{one}: {n}' for one, n in zip(self._sizes, each, strict=True))}}}"
                for each in checks
            ),
            "",
            "parameters:",
            *(f"  {one}: [{_listed(values)}]{self._remark(one)}" for one, values in made.parameters.items()),
            *(["derived:"] if self._derived else []),
            *(f"  {one}: {quoted(text)}" for one, text in self._derived.items()),
            f"default: {{{_pairs(chosen, chosen)}}}",
            *(["landmarks:  # the configurations of @triton.autotune"] if made.configs else []),
            *(f"  config_{number}: {{{pairs}}}" for number, pairs in enumerate(landmarks)),
            "",
            "arguments:",
            *(self._argument(one.name) for one in self._parameters if not one.is_constant),
            "",
            *self._call(),
            "launch:",
            f"  - entry: {made.entry}",
            f"    grid: [{', '.join(map(quoted, self._grid))}]"
            + ("  # programs: is every element covered?" if self._is_guessed else ""),
            f"    arguments: [{', '.join(one.name for one in self._parameters if not one.is_constant)}]",
            "",
            f"verify: {{{'rtol: 1e-2, atol: 1e-2' if half else 'rtol: 1e-5, atol: 1e-6'}}}"
            "  # how far from the reference a right result may be",
            "",
        ]
        return "\n".join(lines)

    def _remark(self, parameter: str) -> str:
        if any(parameter in config for config in self.made.configs):
            return ""
        return "" if parameter in TRITON_OPTIONS else _CHECK + ": which values?"

    def _argument(self, name: str) -> str:
        role = self.made.roles.get(name)
        if role is not None:
            shape, is_sure = self._shape(name)
            fill = "" if role == "out" else ", fill: {normal: [0, 1]}"
            entry = f"{{name: {name}, dtype: DTYPE, shape: [{shape}], role: {role}{fill}}}"
            return f"  - {entry}" + ("" if is_sure else _CHECK + ": its shape")
        if name in self._sizes:
            return f"  - {{name: {name}, dtype: int32, value: {name}}}"
        if "stride" in name.lower():
            value, is_sure = self._stride(name)
            return f"  - {{name: {name}, dtype: int32, value: {value}}}" + ("" if is_sure else _CHECK)
        return f"  - {{name: {name}, dtype: float32, value: 1.0}}" + _CHECK + ": its value"

    def _call(self) -> list[str]:
        roles = self.made.roles
        if not roles or "inout" in roles.values() or len({*roles.values()}) < 2:
            return []
        inputs, returns = (", ".join(one for one in roles if roles[one] == role) for role in ("in", "out"))
        return [f"call: {{inputs: [{inputs}], returns: [{returns}]}}", ""]

    def _reference(self, file: str) -> str:
        roles = self.made.roles
        inputs = [one for one in roles if roles[one] != "out"]
        results = [one for one in roles if roles[one] != "in"]
        return empty_reference(file, self.made.entry, inputs, self._sizes, results)


def _base(node: ast.expr, known: set[str], assigned: Mapping[str, ast.expr], depth: int) -> str | None:
    """The parameter that an address starts from."""
    if isinstance(node, ast.Name):
        if node.id in known:
            return node.id
        return _base(assigned[node.id], known, assigned, depth - 1) if node.id in assigned and depth else None
    if isinstance(node, ast.BinOp):
        return _base(node.left, known, assigned, depth) or _base(node.right, known, assigned, depth)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        inside = node.args[0] if node.args else node.func.value
        return _base(node.func.value, known, assigned, depth) or _base(inside, known, assigned, depth)
    return None


def _stride_dims(number: str, array: str) -> list[str]:
    """The dimension of an array that a stride such as `stride_am` is of; none for another array's."""
    match = re.fullmatch(r"stride_([a-z]+)([a-z])", number.lower())
    short = re.sub(r"_?ptr$", "", array.lower())
    return [match[2]] if match and match[1] in (short, short[:1]) else []


def _distinct(values: Iterable[Value | None]) -> tuple[Value, ...]:
    return tuple(
        sorted({value for value in values if value is not None}, key=lambda value: (str(type(value)), value))
    )


def _middle(name: str, values: Sequence[Value]) -> Value:
    default = _DEFAULTS.get(name)
    return default if default in values and default is not None else values[(len(values) - 1) // 2]


def _listed(values: Sequence[Value]) -> str:
    return ", ".join(map(scalar, values))


def _pairs(values: Mapping[str, Value], names: Iterable[str]) -> str:
    return ", ".join(f"{name}: {scalar(values[name])}" for name in names if name in values)
