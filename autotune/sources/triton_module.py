"""Read a Python file with kernels in Triton without importing it: the statements that count, and their text.

A file with a kernel often imports a framework, and runs benchmarks when it is imported. So only the functions
under `@triton.jit`, and what they use, are handed to the compiler. Only their text is hashed.
"""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy, deepcopy
from functools import cache, cached_property
from pathlib import Path
from typing import Any, TypeGuard

from autotune.core.syntax import parse_module
from autotune.errors import InputError
from autotune.sources.triton_values import NotRead, Reader, bound_names

JIT = ("jit", "constexpr_function")  # decorators that make functions for the device
LOOP_RANGES = ("range", "static_range")
# Functions of which the first argument is what counts.
RESHAPING = frozenset((
    "multiple_of", "max_contiguous", "max_constancy", "broadcast_to", "expand_dims", "advance", "reshape",
    "view", "trans", "permute", "ravel",
))  # fmt: skip
_KEPT = ("do_not_specialize", "do_not_specialize_on_alignment", "noinline")  # arguments of `jit`
_OWN = {"triton": "import triton", "tl": "import triton.language as tl"}  # whoever hands them on
_LIBDEVICE = "triton_libdevice"
_MAX_FILES = 200


def is_triton(text: str) -> bool:
    """True if a text in Python has a function under `@triton.jit`."""
    if "jit" not in text:
        return False
    try:
        tree = _parsed(text)
    except SyntaxError:
        return False
    names = _jit_names(tree)
    return any(isinstance(part, ast.FunctionDef) and is_jit(part, names) for part in ast.walk(tree))


def why_no_kernel(text: str, path: Path) -> str:
    """Why a file in Python has no kernel that is read: `FILE:12: the reason`; empty if unknown."""
    tree = _parsed(text)
    names = _jit_names(tree)
    for outer in ast.walk(tree):
        if isinstance(outer, ast.ClassDef | ast.FunctionDef):
            for inner in outer.body:
                if (
                    isinstance(inner, ast.FunctionDef)
                    and is_jit(inner, names)
                    and "jit" in map(decorator_name, inner.decorator_list)
                ):
                    move = "move it to the top level of a file"
                    return f"{path}:{inner.lineno}: {inner.name} is inside of {outer.name}: {move}"
    functions = (one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef))
    for function in (one for one in functions if not is_jit(one, names)):
        for decorator in function.decorator_list:
            if decorator_name(decorator) in ("jit", "kernel", "prim_func"):
                called = ast.unparse(getattr(decorator, "func", decorator))
                only = "and autotune reads @triton.jit only"
                return f"{path}:{function.lineno}: {function.name} is under @{called}, {only}"
    return ""


def _parsed(text: str) -> ast.Module:
    """A file's tree; a call that takes a function's place, as `f = triton.jit(f)` does, is its decorator."""
    tree = parse_module(text)
    functions = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    for statement in list(tree.body):
        match statement:
            case ast.Assign([ast.Name(name)], ast.Call(made, [ast.Name(given)], [])) if (
                name == given and name in functions
            ):
                functions[name].decorator_list.insert(0, made)
                tree.body.remove(statement)
    return tree


def triton_part(text: str, path: Path, folders: Sequence[Path] = ()) -> str:
    """The functions for the device in a text in Python, and all that these use.

    Functions that are imported from other files of the project, or of `folders`, are put in their place.
    Decorators such as `@triton.autotune` are left out. Frameworks that only hand Triton on are not imported.
    Raises InputError for a text that is not Python.
    """
    module = TritonModule(text, path, folders)
    try:
        return _of_kernels(module, module.kernels)
    except RecursionError:
        raise InputError(f"{path}: nested too deeply to be read") from None


def kernel_part(text: str, path: Path, entry: str) -> str:
    """The same for one function and what it uses; empty where it is no function for the device."""
    module = TritonModule(text, path)
    return _of_kernels(module, [entry]) if entry in module.kernels else ""


def _of_kernels(module: TritonModule, names: Collection[str]) -> str:
    """What functions need, whose names may later stand for something of the host, such as their launch."""
    bound = {*names}
    module.statements = [
        statement
        for statement in module.statements
        if bound.isdisjoint(bound_names(statement))
        or (isinstance(statement, ast.FunctionDef) and is_jit(statement, module.jit_names))
    ]
    return Extract(module).of(names)


def decorator_name(node: ast.expr) -> str:
    """The last word of a decorator: `jit` of `@triton.jit` and of `@triton.jit(debug=True)`."""
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


class TritonModule:
    """A file as a list of statements: conditions are decided, and the parts that run are in their place.

    A condition that depends on what is not known here counts as true. Of a `try`, the body counts if what it
    imports is there.
    """

    def __init__(
        self,
        text: str,
        path: Path,
        folders: Sequence[Path] = (),
        known: dict[Path, TritonModule] | None = None,
    ) -> None:
        """Read a text; raises InputError if it is not Python."""
        try:
            tree = _parsed(text)
        except SyntaxError as error:
            raise InputError(f"{path}:{error.lineno}: not Python: {error.msg}") from None
        except ValueError as error:
            raise InputError(f"{path}: not Python: {error}") from None
        self.tree, self.path, self._folders = tree, path, folders
        self._lines = text.splitlines()
        self._known = {} if known is None else known
        self._known[path.resolve()] = self
        self.jit_names = _jit_names(tree)
        self.statements: list[ast.stmt] = []
        self._values: dict[str, Any] = {}
        self._called: dict[ast.expr, tuple[TritonModule, ast.FunctionDef] | None] = {}
        self.reader = Reader(self.value)
        for statement in self._flat(tree.body):
            self.statements.append(statement)  # the conditions that follow read it
        self._values.clear()

    @cached_property
    def _changed(self) -> set[str]:
        """The lists that the file changes after they are made."""
        lists = set()
        for node in ast.walk(self.tree):
            match node:
                case ast.Attribute(ast.Name(name), "append" | "extend" | "insert" | "remove"):
                    lists.add(name)
        return lists

    def open_needed(self) -> list[TritonModule]:
        """Read the files that the functions for the device need; returns this file, then these."""
        _of_kernels(self, self.kernels)
        return [*self._known.values()]

    @property
    def kernels(self) -> dict[str, ast.FunctionDef]:
        """Every function under `@triton.jit`, by name."""
        return {
            statement.name: statement
            for statement in self.statements
            if isinstance(statement, ast.FunctionDef) and is_jit(statement, self.jit_names)
        }

    def value(self, name: str) -> Any:
        """The value of a name of the file, or of one that it imports; raises NotRead."""
        if name not in self._values:
            self._values[name] = NotRead(f"{name} depends on itself")
            try:
                self._values[name] = self._worked_out(name)
            except NotRead as error:
                self._values[name] = error
        if isinstance(known := self._values[name], NotRead):
            raise NotRead(str(known))
        return known

    def constant(self, name: str, unknown: Any) -> Any:
        """The number, text or None that a name stands for; `unknown` if it is no such value."""
        try:
            value = self.value(name)
        except NotRead:
            return unknown
        return value if isinstance(value, int | float | str | None) else unknown

    def _worked_out(self, name: str) -> Any:
        binding = [statement for statement in self.statements if name in bound_names(statement)]
        if not binding:
            raise NotRead(name)
        if name in self._changed:
            raise NotRead(f"{name} is changed after it is made")
        scope: dict[str, Any] = {}
        for one in binding:
            if isinstance(one, ast.ImportFrom) and (item := _imported(one, name)) is not None:
                other = self.imported(one, item.name)
                own = self.reader.imported
                scope[name] = other.value(item.name) if other else own(one.module or "", item.name)
            elif isinstance(one, ast.Import):
                module = next((item.name for item in one.names if item.asname == name), name)
                scope[name] = self.reader.imported(module, "")
            else:
                self.reader.run([one], scope)
        if name not in scope:
            raise NotRead(name)
        return scope[name]

    def defined(self, name: str, *kinds: type[ast.AST]) -> tuple[TritonModule, ast.AST] | None:
        """What a name stands for, of these kinds, and the file that defines it; None for anything else."""
        for statement in reversed(self.statements):
            match statement:
                case ast.FunctionDef(name=called) if called == name:
                    return (self, statement) if isinstance(statement, kinds) else None
                case ast.Assign([ast.Name(called)], value) | ast.AnnAssign(ast.Name(called), _, value) if (
                    called == name and isinstance(value, kinds)
                ):
                    return self, value
                case ast.ImportFrom() if (item := _imported(statement, name)) is not None:
                    module = self.imported(statement, item.name)
                    return module.defined(item.name, *kinds) if module is not None else None
        return None

    def function(self, name: str) -> tuple[TritonModule, ast.FunctionDef] | None:
        """A function for the device by the name that it has here, and its file; None if there is none."""
        match self.defined(name, ast.FunctionDef):
            case module, ast.FunctionDef() as function if is_jit(function, module.jit_names):
                return module, function
        return None

    def function_of(self, base: str, name: str) -> tuple[TritonModule, ast.FunctionDef] | None:
        """The same for `base.name`, where `base` is a module of the project."""
        for statement in self.statements:
            if isinstance(statement, ast.ImportFrom) and (item := _imported(statement, base)) is not None:
                module = (
                    self.submodule(statement, item.name)
                    if self.imported(statement, item.name) is None
                    else None
                )
                return module.function(name) if module is not None else None
        return None

    def called(self, node: ast.expr) -> tuple[TritonModule, ast.FunctionDef] | None:
        """The function for the device that a call names, and its file."""
        if node not in self._called:  # as it is for every call of Triton's own
            found = None
            match node:
                case ast.Name(name):
                    found = self.function(name)
                case ast.Attribute(ast.Name(base), name):
                    found = self.function_of(base, name)
            self._called[node] = found
        return self._called[node]

    def text(self, node: ast.stmt) -> str:
        """A statement as the file has it; a function for the device without what is for the host."""
        if isinstance(node, ast.FunctionDef) and is_jit(node, self.jit_names):
            bare = self.bare(node)
            names = _triton_names(self.tree)
            if any(_is_moved(part, names) for part in ast.walk(bare)):
                bare = deepcopy(bare)
                for part in [part for part in ast.walk(bare) if _is_moved(part, names)]:
                    part.value = ast.Name(_LIBDEVICE)
                return f"from triton.language.extra import libdevice as {_LIBDEVICE}\n{ast.unparse(bare)}\n"
            is_other = ast.dump(bare.args) != ast.dump(node.args) or bare.returns is not node.returns
            if node.col_offset or is_other:
                return ast.unparse(bare) + "\n"
            head = "".join(f"@{ast.unparse(one)}\n" for one in bare.decorator_list)
            return head + "\n".join(self._lines[node.lineno - 1 : node.end_lineno]) + "\n"
        if node.col_offset:
            return ast.unparse(node) + "\n"
        first = node.lineno
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.decorator_list:
            first = node.decorator_list[0].lineno
        return "\n".join(self._lines[first - 1 : node.end_lineno]) + "\n"

    def _is_own(self, annotation: ast.expr) -> bool:
        names = {part.id for part in ast.walk(annotation) if isinstance(part, ast.Name)}
        return names <= {*_OWN, *_triton_names(self.tree), "int", "float", "bool", "constexpr", "None"}

    def bare(self, node: ast.FunctionDef) -> ast.FunctionDef:
        """A function for the device without what is for the host."""
        bare = copy(node)
        bare.args = deepcopy(node.args)
        bare.decorator_list = [
            _plain(decorator) for decorator in bare.decorator_list if decorator_name(decorator) in JIT
        ]
        if bare.returns is not None and not self._is_own(bare.returns):
            bare.returns = None
        for one in [*bare.args.posonlyargs, *bare.args.args, *bare.args.kwonlyargs]:
            if one.annotation is not None and not self._is_own(one.annotation):
                one.annotation = None
        return bare

    def imported(self, node: ast.ImportFrom, name: str) -> TritonModule | None:
        """The file that a name is imported from; None for a package that is not read."""
        path = self.file(node)
        if path is None:
            return None
        module = self._open(path)
        return module if module is not None and name in module.names else None

    def submodule(self, node: ast.ImportFrom, name: str) -> TritonModule | None:
        """The file that an imported name stands for: a module of a package."""
        path = self.file(node, name)
        return None if path is None else self._open(path)

    @cached_property
    def attributes(self) -> dict[str, set[str]]:
        """What its functions for the device, and its own names, use of each name, such as a module's."""
        used: dict[str, set[str]] = {}
        for kernel in (
            *self.kernels.values(),
            *(statement for statement in self.statements if isinstance(statement, ast.Assign)),
        ):
            for node in ast.walk(kernel):
                match node:
                    case ast.Attribute(ast.Name(base), attribute):
                        used.setdefault(base, set()).add(attribute)
        return used

    @property
    def names(self) -> set[str]:
        """The names that the file defines."""
        return {name for statement in self.statements for name in bound_names(statement)}

    def _open(self, path: Path) -> TritonModule | None:
        key = path.resolve()
        if key not in self._known and len(self._known) < _MAX_FILES:
            try:
                TritonModule(path.read_text(encoding="utf-8-sig"), path, self._folders, self._known)
            except (InputError, OSError, UnicodeDecodeError):
                return None
        return self._known.get(key)

    def file(self, node: ast.ImportFrom, *inner: str) -> Path | None:
        """The file of a project that a statement imports from; None for a package that is not read."""
        parts = [*(node.module.split(".") if node.module else ()), *inner]
        if node.level:
            base = self.path.absolute().parent
            for _ in range(node.level - 1):
                base = base.parent
            folders = [base]
        else:
            folders = [*self._roots(parts[0]), *self._folders, *_installed(parts[0])]
        for folder in folders:
            place = folder.joinpath(*parts)
            for path in (place / "__init__.py", place.with_suffix(".py") if parts else place):
                if path.is_file():
                    return path
        return None

    def _roots(self, package: str) -> list[Path]:
        """The folder of the file, and that of the package which the file is part of."""
        parents = list(self.path.resolve().parents)
        return [self.path.parent, *(parent.parent for parent in parents if parent.name == package)]

    def _flat(self, body: Iterable[ast.stmt]) -> Iterator[ast.stmt]:
        for statement in body:
            match statement:
                case ast.If(condition, then, otherwise):
                    yield from self._flat(then if self._holds(condition) else otherwise)
                case ast.Try(inside, handlers, otherwise, finally_):
                    can_run = all(map(self._is_there, inside))
                    chosen = [*inside, *otherwise] if can_run or not handlers else handlers[0].body
                    yield from self._flat([*chosen, *finally_])
                case ast.ImportFrom(_, [ast.alias("*")]) if (module := self._star(statement)) is not None:
                    names = [ast.alias(name) for name in sorted(module.names) if not name.startswith("_")]
                    yield ast.copy_location(
                        ast.ImportFrom(statement.module, names, statement.level), statement
                    )
                case _:
                    yield statement

    def _star(self, node: ast.ImportFrom) -> TritonModule | None:
        path = self.file(node)
        return None if path is None or path.resolve() in self._known else self._open(path)

    def _holds(self, condition: ast.expr) -> bool:
        match condition:
            case ast.Name("TYPE_CHECKING") | ast.Attribute(_, "TYPE_CHECKING"):
                return False
            case ast.Compare(ast.Name("__name__")):
                return False
        return self.reader.holds(condition)

    def _is_there(self, node: ast.stmt) -> bool:
        """Whether an import can succeed."""
        if isinstance(node, ast.Import):
            return all(_has_module(item.name) for item in node.names)
        if not isinstance(node, ast.ImportFrom):
            return True
        if all(item.name in _OWN for item in node.names) or self.file(node) is not None:
            return True
        if not node.module and all(self.file(node, item.name) is not None for item in node.names):
            return True
        return node.level == 0 and _has_module(node.module or "")


class Extract:
    """Picks statements by the names that they define, each once, across files."""

    def __init__(
        self,
        module: TritonModule,
        done: set[tuple[Path, str]] | None = None,
        attributes: Mapping[str, Collection[str]] | None = None,
    ) -> None:
        """Take a file, what was picked before, and what others use of names that stand for modules."""
        self._module = module
        self._done = set() if done is None else done
        self._used = attributes or {}

    def of(self, names: Iterable[str]) -> str:
        """The statements that define names, and all that these use, in the order of the file."""
        module = self._module
        used = {name for name in names if (module.path, name) not in self._done}
        needed = set(used)
        while needed:
            read = {
                name
                for statement in module.statements
                if needed & bound_names(statement)
                for name in self._read(statement)
            }
            needed = read - used
            used |= read
        used = {one for one in used if (module.path, one) not in self._done}
        self._done |= {(module.path, one) for one in used}
        chosen = (statement for statement in module.statements if used & bound_names(statement))
        return "".join(self._text(one, used & bound_names(one)) for one in chosen)

    def _text(self, node: ast.stmt, names: set[str]) -> str:
        if isinstance(node, ast.ImportFrom):
            return "".join(
                self._import(node, item) for item in node.names if (item.asname or item.name) in names
            )
        if isinstance(node, ast.Import):
            kept = [name for name in node.names if (name.asname or name.name.partition(".")[0]) in names]
            return ast.unparse(ast.Import(kept)) + "\n"
        return self._constant(node) or self._module.text(node)

    def _import(self, node: ast.ImportFrom, item: ast.alias) -> str:
        """The import of one name: as it is, or what the name stands for."""
        name, called = item.name, item.asname or item.name
        is_tritons = (node.module or "").partition(".")[0] == "triton" and not node.level
        if name in _libdevice() and (
            node.module == "triton.language.math" or not (is_tritons or self._module.file(node))
        ):
            return f"from triton.language.extra.libdevice import {name} as {called}\n"
        if not is_tritons and self._is_libdevice(node, item):
            return f"from triton.language.extra import libdevice as {called}\n"
        if is_tritons:
            return ast.unparse(ast.ImportFrom(node.module, [item], 0)) + "\n"
        if name in _OWN:
            return f"import {'triton' if name == 'triton' else 'triton.language'} as {called}\n"
        if (other := self._module.imported(node, name)) is not None:
            inlined = Extract(other, self._done, {name: self._attributes(called)}).of([name])
            return inlined + (f"{called} = {name}\n" if called != name else "")
        if (other := self._module.submodule(node, name)) is not None:
            wanted = sorted(self._attributes(called) & other.names)
            inlined = Extract(other, self._done).of(wanted)
            held = "".join(f"{called}.{one} = {one}\n" for one in wanted)
            return f"{inlined}{called} = type(__import__('sys'))({called!r})\n{held}"
        return ast.unparse(ast.ImportFrom(node.module, [item], node.level)) + "\n"

    def _is_libdevice(self, node: ast.ImportFrom, item: ast.alias) -> bool:
        """Whether a name stands for libdevice, of whatever vendor: nothing else is used of it."""
        used = self._attributes(item.asname or item.name)
        return bool(used) and used <= _libdevice() and self._module.submodule(node, item.name) is None

    def _attributes(self, name: str) -> set[str]:
        """What functions for the device use of a name that stands for a module."""
        return {*self._used.get(name, ()), *self._module.attributes.get(name, ())}

    def _constant(self, node: ast.stmt) -> str:
        """A constant of the file by its value, where its expression needs more than Triton; else empty."""
        match node:
            case ast.Assign([ast.Name(name)], value):
                annotation = None
            case ast.AnnAssign(ast.Name(name), annotation, ast.expr() as value):
                pass
            case _:
                return ""
        inner, wrapper = value, "" if annotation is None else ast.unparse(annotation)
        match value:
            case ast.IfExp(condition, then, otherwise):
                chosen = then if self._module.reader.holds(condition) else otherwise
                return f"{name} = {ast.unparse(chosen)}\n"
            case ast.Call(called, [one], []) if ast.unparse(called).endswith("constexpr"):
                inner, wrapper = one, ast.unparse(called)
        wrapper = wrapper if "constexpr" in wrapper else ""
        reads = {part.id for part in ast.walk(inner) if isinstance(part, ast.Name)}
        if reads <= {*_OWN, "int", "float", "bool"}:
            return ""
        try:
            value_there = self._module.reader.read(inner)
        except NotRead:
            return ""
        if not isinstance(value_there, int | float | str):
            return ""
        return f"{name} = {wrapper}({value_there!r})\n" if wrapper else f"{name} = {value_there!r}\n"

    def _read(self, node: ast.stmt) -> set[str]:
        """The names that a statement reads; of a function for the device, only what the device needs."""
        module = self._module
        part: ast.AST = node
        if isinstance(node, ast.FunctionDef) and is_jit(node, module.jit_names):
            part = module.bare(node)
        elif text := self._constant(node):
            part = parse_module(text)
        names = [one for one in ast.walk(part) if isinstance(one, ast.Name)]
        read = {name.id for name in names if isinstance(name.ctx, ast.Load)}
        if isinstance(part, ast.FunctionDef):  # its own variables hide names of the file
            read -= {name.id for name in names if isinstance(name.ctx, ast.Store)}
            read -= {one.arg for one in ast.walk(part) if isinstance(one, ast.arg)}
        return read


def is_jit(node: ast.FunctionDef, names: Iterable[str]) -> bool:
    """Whether a function is one for the device; `names` are those that stand for Triton or its `jit`."""
    return any(_is_jit_decorator(decorator, names) for decorator in node.decorator_list)


def _is_jit_decorator(node: ast.expr, names: Iterable[str]) -> bool:
    match node.func if isinstance(node, ast.Call) else node:
        case ast.Attribute(base, "jit" | "constexpr_function"):
            return ast.unparse(base).partition(".")[0] in names
        case ast.Name(name):
            return f"@{name}" in names
    return False


def _jit_names(tree: ast.Module) -> frozenset[str]:
    """The names that stand for Triton in a file, and those of its `jit` with a sign before."""
    own = {
        f"@{item.asname or item.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("triton")
        for item in node.names
        if item.name in JIT and "gluon" not in (node.module or "")
    }
    return frozenset({"triton", *_triton_names(tree), *own})


@cache
def _triton_names(tree: ast.Module) -> frozenset[str]:
    """The names that stand for Triton, or a part of it, in a file."""
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [item for item in node.names if item.name.partition(".")[0] == "triton"]
            found |= {item.asname or "triton" for item in names}
        elif isinstance(node, ast.ImportFrom):
            is_own = (node.module or "").partition(".")[0] == "triton" and not node.level
            found |= {
                item.asname or item.name
                for item in node.names
                if (is_own and item.name not in JIT and item.name != "gluon") or item.name in _OWN
            }
    return frozenset(found)


def _is_moved(node: ast.AST, names: Collection[str]) -> TypeGuard[ast.Attribute]:
    """Whether a name is that of a function in older versions of Triton, which libdevice has now."""
    match node:
        case ast.Attribute(ast.Attribute(ast.Name(base), "libdevice" | "math" as module), name):
            is_there = module == "math" and name in _functions("math.py")
            return base in names and name in _libdevice() and not is_there
    return False


def _plain(node: ast.expr) -> ast.expr:
    """A decorator without arguments that are for the host."""
    match node:
        case ast.Call(function, [], named):
            kept = [keyword for keyword in named if keyword.arg in _KEPT]
            return ast.Call(function, [], kept) if kept else function
    return node


def _imported(node: ast.ImportFrom, name: str) -> ast.alias | None:
    """The item of an import that a name stands for."""
    return next((item for item in node.names if (item.asname or item.name) == name), None)


@cache
def _installed(package: str) -> tuple[Path, ...]:
    """The folder of an installed package whose files can be read; nothing for Python's and Triton's own."""
    if package in sys.stdlib_module_names or package in ("triton", "torch", "numpy"):
        return ()
    spec = _spec(package)
    places = list(spec.submodule_search_locations or ()) if spec is not None else []
    return tuple(Path(place).parent for place in places)


def _libdevice() -> frozenset[str]:
    """The names of the functions of Triton's libdevice."""
    return _functions("extra", "libdevice.py")


@cache
def _functions(*place: str) -> frozenset[str]:
    """The names of the functions of a file of Triton's language; none without Triton."""
    spec = _spec("triton")
    for folder in spec.submodule_search_locations or () if spec is not None else ():
        path = Path(folder, "language", *place)
        if path.is_file():
            tree = parse_module(path.read_text(encoding="utf-8"))
            return frozenset(node.name for node in tree.body if isinstance(node, ast.FunctionDef))
    return frozenset()


def _has_module(name: str) -> bool:
    """Whether a module is installed, which is not imported for that."""
    first, *inner = name.split(".")
    spec = _spec(first)
    if spec is None or not inner or spec.submodule_search_locations is None:
        return spec is not None
    places = [Path(location).joinpath(*inner) for location in spec.submodule_search_locations]
    return any(place.is_dir() or place.with_suffix(".py").is_file() for place in places) or first != "triton"


@cache
def _spec(name: str) -> Any:
    try:
        return importlib.util.find_spec(name)
    except (ImportError, ValueError):
        return None
