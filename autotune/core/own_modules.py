"""Finds the user's own files that a Python file imports: its results depend on them."""

from __future__ import annotations

import ast
import hashlib
import importlib.util
import sys
import sysconfig
from collections.abc import Iterator
from functools import cache
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from typing import NamedTuple

from autotune.core.syntax import parse_module

_LOADERS = {"importlib", "runpy", "imp"}  # modules that import names known only to the running program
_CALLS = {"__import__", "exec"}


class OwnModules(NamedTuple):
    """The files that a file imports; `hidden` describes imports that cannot be known."""

    files: tuple[Path, ...]
    hidden: str

    @property
    def digest(self) -> str:
        """A hash of the files' contents, empty without files."""
        contents = [hashlib.sha256(_content(path)).digest() for path in self.files]
        return hashlib.sha256(b"".join(contents)).hexdigest() if contents else ""


def own_modules(text: str, path: Path) -> OwnModules:
    """The modules that the text of a Python file imports, directly or through other modules.

    They are looked for in the file's folder and on Python's path. A file with a syntax error imports nothing.
    """
    walk = _Walk((str(path.absolute().parent), *sys.path))
    walk.read(text, path.name, None)
    return OwnModules(tuple(sorted(walk.files)), walk.hidden)


class _Walk:
    """Follows imports from file to file, without running any."""

    def __init__(self, folders: tuple[str, ...]) -> None:
        self.files: set[Path] = set()
        self.hidden = ""
        self._folders = folders

    def read(self, text: str, name: str, package: ModuleSpec | None) -> None:
        """Add the imports of a text; `package` is the base of relative imports."""
        try:
            tree = parse_module(text)
        except SyntaxError:  # reported when it runs
            return
        nodes = list(ast.walk(tree))
        is_moved = any(isinstance(item, ast.Attribute) and ast.unparse(item) == "sys.path" for item in nodes)
        for node in nodes:
            if isinstance(node, ast.Name) and node.id in _CALLS:
                self._hide(f"{name}:{node.lineno}: {node.id}")
            for imported in _imported(node, package):
                if imported.partition(".")[0] in _LOADERS:
                    self._hide(f"{name}: import {imported}")
                is_found = self._follow(imported)
                if is_moved and not is_found:  # it may be in a folder that is known only at run time
                    self._hide(f"{name}: import {imported}")

    def _hide(self, place: str) -> None:
        self.hidden = self.hidden or place

    def _follow(self, module: str) -> bool:
        """Read a module and its packages; True if the first of them is found."""
        spec, is_found = None, False
        for end, _ in enumerate(parts := module.split("."), 1):
            folders = self._folders if spec is None else spec.submodule_search_locations
            if folders is None:
                break
            inner = _spec(".".join(parts[:end]), tuple(folders))
            if inner is None:
                break
            spec, is_found = inner, True
            if spec.origin is not None and not _is_installed(spec.origin):
                self._read_file(Path(spec.origin), spec)
        return is_found

    def _read_file(self, path: Path, spec: ModuleSpec) -> None:
        if path in self.files or not path.is_file():
            return
        self.files.add(path)
        if path.suffix == ".py":
            is_package = spec.submodule_search_locations is not None
            package = spec if is_package else ModuleSpec(spec.name.rpartition(".")[0], None)
            self.read(_content(path).decode(errors="replace"), path.name, package)


def _imported(node: ast.AST, package: ModuleSpec | None) -> Iterator[str]:
    """The modules that a statement imports; a name imported from one may be a module as well."""
    if isinstance(node, ast.Import):
        yield from (item.name for item in node.names)
    elif isinstance(node, ast.ImportFrom):
        base = node.module or ""
        if node.level:
            if package is None:
                return
            parts = package.name.split(".")
            kept = parts[: len(parts) - node.level + 1]
            base = ".".join(filter(None, (*kept, base)))
        yield from (f"{base}.{item.name}" if item.name != "*" else base for item in node.names)


def _spec(module: str, folders: tuple[str, ...]) -> ModuleSpec | None:
    """Find a module as Python does, without running its package."""
    try:
        # the last name only: with the whole one, Python asks the parent package, which fails for folders
        # without __init__.py
        spec = PathFinder.find_spec(module.rpartition(".")[2], folders)
        if spec is not None:
            spec.name = module
        elif "." not in module:  # such as a package that is installed from its sources
            spec = importlib.util.find_spec(module)
    except (ImportError, ValueError, AttributeError):
        return None
    return spec


def _is_installed(origin: str) -> bool:
    """True if a file belongs to Python, an installed package or autotune, whose versions are known."""
    path = Path(origin)
    if origin in ("built-in", "frozen") or {"site-packages", "dist-packages"} & {*path.parts}:
        return True
    return any(path.is_relative_to(folder) for folder in _installed_folders())


@cache
def _installed_folders() -> tuple[Path, ...]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    return (*(Path(sysconfig.get_path(name)) for name in names), Path(__file__).parents[1])


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
