"""Python's parser, safe in several threads.

Before 3.11.8 and 3.12.2, all threads share one counter of a syntax tree's depth: if two build a tree at the
same time, one gets a SystemError (https://github.com/python/cpython/issues/106905). A lock would not help,
because numpy and users' code also build trees.
"""

from __future__ import annotations

import _ast as ast  # the nodes' classes; the module ast takes longer to import than a look-up takes
from typing import Any

from autotune.core.retried import retried


def parse_module(text: str) -> ast.Module:
    """The syntax tree of a Python file; raises SyntaxError for any other text."""
    tree: ast.Module = _tree(text, "exec")
    return tree


def parse_expression(text: str) -> ast.expr:
    """The syntax tree of an expression; spaces around it are ignored. Raises SyntaxError."""
    tree: ast.Expression = _tree(text.strip(), "eval")
    return tree.body


def _tree(text: str, mode: str) -> Any:
    try:
        return retried(lambda: compile(text, "<source>", mode, ast.PyCF_ONLY_AST), SystemError)
    except (MemoryError, RecursionError):  # of the parser's stack
        raise SyntaxError("nested too deeply") from None
    except ValueError as error:  # a letter that Python does not take
        raise SyntaxError(str(error)) from None
