"""The checks that pre-commit runs, so that CI runs the same."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    "command",
    [("ruff", "check", "."), ("ruff", "format", "--check", "."), ("mypy",)],
    ids=lambda command: " ".join(command),
)
def test_the_tree_is_clean_for(command):
    done = subprocess.run([sys.executable, "-m", *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_files_and_functions_stay_readable():
    """No file is longer than 400 lines, and no function's body, without its docstring, than 60."""
    import ast

    long = []
    for file in sorted((ROOT / "autotune").rglob("*.py")):
        text = file.read_text()
        if text.count("\n") > 400:
            long.append(f"{file.name}: {text.count(chr(10))} lines")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                first = node.body[1 if ast.get_docstring(node) and len(node.body) > 1 else 0]
                lines = node.end_lineno - first.lineno + 1
                if lines > 60:
                    long.append(f"{file.name}: the body of {node.name} has {lines} lines")
    assert not long


def test_every_package_is_installed():
    import tomllib

    listed = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    there = {
        ".".join(file.parent.relative_to(ROOT).parts) for file in (ROOT / "autotune").rglob("__init__.py")
    }
    assert there == {name for name in listed if not name.startswith("autotune.data.")}
