"""What a user's reference file tells before it is run."""

from __future__ import annotations

import ast
import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autotune.core.own_modules import own_modules
from autotune.core.syntax import parse_module
from autotune.problem.sampling import INDICES

BASELINE = "baseline_"  # prefix of functions that a kernel is compared with
_ON_DEVICE = {"cupy", "torch", "jax", "cuda", "tensorflow", "pycuda", "pyopencl"}  # packages


@dataclass(frozen=True)
class ReferenceFile:
    """A reference file; it need not exist, nor be valid, which is reported when it runs."""

    path: Path

    @cached_property
    def sha256(self) -> str:
        """A hash of the file and of the user's modules that it imports; raises OSError.

        It is different each time if these modules cannot be known.
        """
        content = self.path.read_bytes()
        modules = own_modules(content.decode(errors="replace"), self.path)
        more = os.urandom(16).hex() if modules.hidden else modules.digest
        return hashlib.sha256(content + more.encode()).hexdigest()

    @cached_property
    def _tree(self) -> ast.Module:
        try:
            return parse_module(self.path.read_text(errors="replace"))
        except (OSError, SyntaxError):
            return ast.Module([], [])

    @property
    def may_return_samples(self) -> bool:
        """True if `reference` has a parameter `indices`, and if nothing is known of it."""
        functions = [node for node in ast.walk(self._tree) if isinstance(node, ast.FunctionDef)]
        named = [node for node in functions if node.name == "reference"]
        return not named or any(argument.arg == INDICES for node in named for argument in node.args.args)

    @property
    def inputs_line(self) -> int | None:
        """The line of the function that makes inputs; None if there is none."""
        functions = (node for node in self._tree.body if isinstance(node, ast.FunctionDef))
        return next((node.lineno for node in functions if node.name == "inputs"), None)

    @property
    def may_use_device(self) -> bool:
        """True if it imports a package that computes on devices, other than for its baselines."""
        statements: list[ast.AST] = [*self._tree.body]
        packages: set[str] = set()
        while statements:
            node = statements.pop()
            if isinstance(node, ast.Import):
                packages |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                packages.add((node.module or "").partition(".")[0])
            elif not (isinstance(node, ast.FunctionDef) and node.name.startswith(BASELINE)):
                statements += ast.iter_child_nodes(node)
        return not _ON_DEVICE.isdisjoint(packages)
