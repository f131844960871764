"""Write a first space file for a kernel in Triton: from its parameters, decorators and launches."""

from __future__ import annotations

import ast
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from autotune.core.error_bounds import rtol_by_type
from autotune.core.launch_plan import RESERVED_NAMES
from autotune.core.records import Value
from autotune.errors import InputError
from autotune.scaffold.triton_guesses import TritonGuess
from autotune.scaffold.verify_sizes import verify_sizes
from autotune.scaffold.writing import empty_reference, quoted, scalar
from autotune.sources.files import files_around
from autotune.sources.triton import TritonKernel, read_triton
from autotune.sources.triton_host import SAME
from autotune.sources.triton_module import JIT, TritonModule, decorator_name, why_no_kernel

_TILED = re.compile(r"ceil_div\(\w+, \w+\)")
_CHECK = "  # check"
_OF_TRITON = (*JIT, "autotune", "heuristics")  # decorators
_MOST_READ = 5  # files that may use a helper


@dataclass(frozen=True)
class TritonScaffold:
    """What was found in a source for a first space."""

    file: str  # of the source
    name: str  # of the space
    guess: TritonGuess

    @property
    def space(self) -> str:
        """The text of the space file."""
        return _space(self.file, self.name, self.guess)

    @property
    def reference(self) -> str:
        """The text of the reference."""
        return _reference(self.file, self.guess)


def scaffold_triton(path: Path, name: str, entry: str | None = None) -> TritonScaffold:
    """Write a space for one of the kernels of a Python file; `name` is that of the space.

    Raises InputError if the file has no such kernel.
    """
    text = path.read_text(encoding="utf-8-sig")
    kernels = read_triton(text, path)
    if not kernels:
        raise InputError(why_no_kernel(text, path) or f"{path}: no kernel found: {_only_helpers(text, path)}")
    if entry is not None and entry not in kernels:
        raise InputError(
            f"{path}: no kernel under @triton.jit is called {entry!r}; it has {', '.join(kernels)}"
        )
    able = (name for name, one in kernels.items() if not _refusal(one))
    kernel = kernels[entry or next(able, next(iter(kernels)))]
    if reason := _refusal(kernel):
        place = TritonModule(text, path).kernels[kernel.entry].lineno
        raise InputError(f"{path}:{place}: {kernel.entry} cannot be tuned as it is: {reason}")
    return TritonScaffold(path.name, name, TritonGuess(kernel))


def _only_helpers(text: str, path: Path) -> str:
    """What to say of a file whose functions for the device are no kernels, and which file has one."""
    module = TritonModule(text, path)
    names = [*module.kernels]
    shown = f"{', '.join(names[:3])}{f' and {len(names) - 3} more' if names[3:] else ''}"
    said = (
        f"{shown} {'are helpers, each of which' if names[1:] else 'is a helper, which'} "
        "takes blocks of elements or accesses nothing through its parameters"
    )
    for function in module.kernels.values():
        others = (name for one in function.decorator_list if (name := decorator_name(one)) not in _OF_TRITON)
        if maker := next(others, ""):
            return f"{said}; @{maker} makes the kernel when the program runs: write that into a file"
    for node in ast.walk(module.tree):
        match node:
            case ast.Call(ast.Subscript(ast.Name(launched))) if found := module.function(launched):
                where = os.path.relpath(found[0].path, path.parent)
                return f"{said}; {launched}, which it launches, is in {where}: give that to autotune new"
    if user := _user(path, names):
        return f"{said}; {user} has a kernel that may use them: give that to autotune new"
    return f"{said}; give autotune new the file with the kernel that calls them"


def _user(path: Path, names: Sequence[str]) -> str:
    """The nearest file with kernels that imports from a file with helpers; empty if none is found."""
    here, left = path.resolve().parent, _MOST_READ
    files = [(os.path.relpath(one, here), one) for one in files_around(path) if one.suffix == ".py"]
    for name, file in sorted(files, key=lambda item: (item[0].count(os.sep), item[0])):
        if not left:
            break
        with suppress(OSError, UnicodeDecodeError, InputError):
            text = file.read_text(encoding="utf-8-sig")
            if f"{path.stem} import" in text and "jit" in text and any(one in text for one in names):
                module = TritonModule(text, file)
                imported = (one for one in module.statements if isinstance(one, ast.ImportFrom))
                opened = {module.file(one) for one in imported}
                left -= 1
                if path.resolve() in {one.resolve() for one in opened if one} and read_triton(text, file):
                    return name
    return ""


def _refusal(kernel: TritonKernel) -> str:
    """Why no space can be written for a kernel; empty if one can."""
    if names := ", ".join(sorted(kernel.found.descriptors)):
        return (
            f"the host makes tensor descriptors of {names}, and spaces pass arrays and numbers: take "
            "pointers, and make descriptors of them in the kernel, with tl.make_tensor_descriptor"
        )
    if tuples := kernel.found.tuples - {one.name for one in kernel.constants if one.has_default}:
        return (
            f"it takes tuples ({', '.join(sorted(tuples))}), and spaces pass arrays and numbers: make each "
            "item a parameter of its own"
        )
    constants = {constant.name for constant in kernel.constants}
    if reserved := sorted((constants & RESERVED_NAMES) - kernel.found.kinds):
        return f"the constant {', '.join(reserved)} has a name that spaces reserve; rename it"
    if not {"out", "inout"} & {*kernel.roles.values()}:
        if any(kind != "load" for kind, _ in kernel.found.accesses):
            return (
                "it stores through pointers that it loads, and spaces pass arrays and numbers: take one "
                "array, and where each part of it begins"
            )
        return "it stores nothing, so there is no result to compare: name the kernel that calls it"
    return ""


def _space(file: str, name: str, guess: TritonGuess) -> str:
    """The text of a space file; `file` names the source, `name` the space and its reference."""
    kernel, sizes, values = guess.kernel, guess.sizes, guess.values
    landmarks = guess.landmarks
    extents = ", ".join(f"{one}: {extent:_}" for one, extent in sizes.items())
    chosen = guess.default
    tiles = [tile for part in guess.grid for tile in _TILED.findall(part)]
    # a loop turns twice only at sizes beyond the tile that it steps by
    tiles += [f"ceil_div({one.bound}, {one.name})" for one in kernel.tiles.values() if one.is_looped]
    if tiles:  # what programs count one by one is then 3 to 5: more would take long to follow
        tiles += [f"ceil_div({one}, 2)" for one in guess.counted]
    free = [one for one in sizes if one not in guess.fixed]
    several = verify_sizes(free, tiles, ["1"], values, checked=kernel.found.has_mask) if free else ((),)
    checks = [{**sizes, **dict(zip(free, each, strict=True))} for each in several]
    unread = " ".join(kernel.unread.split())
    results = {one: guess.made.get(one, SAME) for one, role in kernel.roles.items() if role != "in"}
    rtol = rtol_by_type("1e-5") if SAME in results.values() else "1e-5"
    tolerance = "rtol: 1e-2, atol: 1e-2" if guess.element_type != "float32" else f"rtol: {rtol}, atol: 1e-6"
    lines = [
        f"# A first space for {file}, guessed from its text: check what comments ask.",
        "schema: 1",
        f"kernel: {name}",
        "dialect: triton",
        f"source: {file}",
        f"reference: {name}_reference.py",
        f"dtypes: [{guess.element_type}]  # what arrays hold, such as [float16, bfloat16]",
        "sizes:",
        f"  default: {{{extents}}}  # what do you tune for?",
        "verify_sizes:",
        *(f"  - {{{', '.join(f'{one}: {extent}' for one, extent in each.items())}}}" for each in checks),
        "",
        "parameters:",
        *(f"  {one}: [{_listed(listed)}]{_remark(one, guess)}" for one, listed in values.items()),
        *(["derived:"] if guess.derived else []),
        *(f"  {one}: {quoted(text)}" for one, text in guess.derived.items()),
        *(["constraints:"] if guess.limits or guess.asserted else []),
        *(f"  - {one}  # a block has to fit registers" for one in guess.limits),
        *(f"  - {quoted(one)}  # tl.static_assert" for one in guess.asserted),
        f"default: {{{_pairs(chosen, chosen)}}}",
        *(["landmarks:  # the configurations of @triton.autotune"] if landmarks else []),
        *([f"# the list of @triton.autotune was not read: {unread}"] if unread else []),
        *(f"  config_{number}: {{{_pairs(one, values)}}}" for number, one in enumerate(landmarks)),
        "",
        "arguments:",
        *(_argument(argument, guess) for argument in kernel.arguments),
        "",
        *_call(kernel.roles),
        "launch:",
        f"  - entry: {kernel.entry}",
        f"    grid: [{', '.join(map(quoted, guess.grid))}]"
        + ("  # programs: is every element covered?" if not guess.launched_grid else ""),
        f"    arguments: [{', '.join(kernel.arguments)}]",
        *([f"    constants: {{{', '.join(f'{one}: DTYPE' for one in guess.types)}}}"] if guess.types else []),
        "",
        *_rounding(results),
        f"verify: {{{tolerance}}}  # how far from the reference a right result may be",
        "",
    ]
    return "\n".join(lines)


def _remark(parameter: str, guess: TritonGuess) -> str:
    if parameter not in guess.unsure:
        return ""
    kernel = guess.kernel
    if parameter in kernel.found.kinds:
        return _CHECK + ": an element type of Triton"
    known = dict.fromkeys(kernel.found.choices.get(parameter, ()))
    if others := [_scalar(value) for value in known if value not in guess.values[parameter]]:
        return _CHECK + f": the source also knows {', '.join(others)}"
    return _CHECK + ": which values?"


def _rounding(results: Mapping[str, str]) -> list[str]:
    """A comment on the tolerance of outputs that may be quantised; `results` has their element types."""
    narrow = [name for name, dtype in results.items() if dtype in ("int8", "uint8")]
    if not narrow:
        return []
    each = ", ".join(f"{name}: {1 if name in narrow else '1e-6'}" for name in results)
    return [f"# if the kernel rounds {' and '.join(narrow)}, it may round the other way: atol: {{{each}}}"]


def _argument(name: str, guess: TritonGuess) -> str:
    kernel = guess.kernel
    role = kernel.roles.get(name)
    if role is not None:
        extents, is_sure = guess.shape(name)
        shape = ", ".join(map(quoted, extents))
        is_index, bound = name in kernel.index_arrays, guess.index_bound(name)
        dtype = guess.made.get(name, SAME)
        is_whole = "int" in dtype
        fill = "inputs" if bound else f"{{{'constant: 0' if is_whole else 'normal: [0, 1]'}}}"
        fill = "" if role == "out" else f", fill: {fill}"
        entry = f"{{name: {name}, dtype: {dtype}, shape: [{shape}], role: {role}{fill}}}"
        questions = {
            "its shape": not is_sure,
            f"indices below {bound}, by inputs() of the reference file; "
            "dtype: int64 if they are that": is_index and bound,
            "indices, and 0 is always in bounds: real ones have to fit every one of verify_sizes; "
            "dtype: int64 if they are that": is_index and not bound,
            "its element type": role == "out" and kernel.launches and name not in guess.made,
            "the source also takes None for it": name in kernel.found.flags,
        }
        asked = "; ".join(text for text, is_open in questions.items() if is_open)
        return f"  - {entry}" + (f"{_CHECK}: {asked}" if asked else "")
    if name in guess.sizes:
        return f"  - {{name: {name}, dtype: int32, value: {name}}}"
    if name in guess.strides:
        value, array = guess.strides[name]
        origin = "" if value == "1" else f"  # from the shape of {array}"
        return f"  - {{name: {name}, dtype: int32, value: {quoted(value)}}}{origin}"
    is_real = (guess.assumed.are_real or name in kernel.reals) and name not in kernel.whole_numbers
    value = "dtype: float32, value: 1.0" if is_real else "dtype: int32, value: 1"
    if name in kernel.host_defaults:
        number = kernel.host_defaults[name]
        dtype = "float32" if is_real or isinstance(number, float) else "int32"
        value = f"dtype: {dtype}, value: {scalar(number)}"
    return f"  - {{name: {name}, {value}}}{_CHECK}: its value"


def _call(roles: Mapping[str, str]) -> list[str]:
    """What a caller passes and gets, where the kernel only writes its results."""
    if not roles or "inout" in roles.values() or len({*roles.values()}) < 2:
        return []
    inputs, returns = (", ".join(array for array in roles if roles[array] == role) for role in ("in", "out"))
    return [f"call: {{inputs: [{inputs}], returns: [{returns}]}}", ""]


def _reference(file: str, guess: TritonGuess) -> str:
    roles = guess.kernel.roles
    inputs = [array for array in roles if roles[array] != "out"]
    results = [array for array in roles if roles[array] != "in"]
    text = empty_reference(file, guess.kernel.entry, inputs, guess.sizes, results)
    bounds = {name: bound for name in inputs if (bound := guess.index_bound(name))}
    return text + _inputs(bounds, guess) if bounds else text


def _inputs(bounds: Mapping[str, str], guess: TritonGuess) -> str:
    """The function that draws arrays of indices below sizes."""
    drawn = []
    for name, bound in bounds.items():
        extents = [extent if extent == "1" else f'sizes["{extent}"]' for extent in guess.extents[name]]
        shape = extents[0] if len(extents) == 1 else f"({', '.join(extents)})"
        drawn.append(f'        "{name}": rng.integers(0, sizes["{bound}"], {shape}),')
    lines = [
        *("", "", "def inputs(sizes, rng):"),
        '    """Indices, for every one of verify_sizes; add what real ones have, such as padding."""',
        *("    return {", *drawn, "    }"),
    ]
    return "\n".join(lines) + "\n"


def _scalar(value: Value) -> str:
    return scalar(value) or '""'


def _listed(values: Sequence[Value]) -> str:
    return ", ".join(map(_scalar, values))


def _pairs(values: Mapping[str, Value], names: Iterable[str]) -> str:
    return ", ".join(f"{name}: {_scalar(values[name])}" for name in names if name in values)
