"""A package imports from lower layers only, and no two modules import each other."""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Lowest first; packages of one layer do not import each other. CONTRIBUTING.md has the same table.
LAYERS = (
    ("errors",),
    ("core",),
    ("hardware", "processes"),
    ("sources",),
    ("serving", "space", "compilers", "scaffold"),
    ("recording",),
    ("cuda",),
    ("devices",),
    ("problem",),
    ("evaluation", "runtime", "searchers"),
    ("cluster", "checks"),
    ("tuning", "interop", "frameworks", "testing", "torch", "triton"),
    ("plans", "diagnosis", "strength"),
    ("analysis",),
    ("report", "drafting"),
    ("cli",),
    ("api",),
    ("kernel_tuner",),
    ("__main__",),
)
STANDARD_LIBRARY_ONLY = ("errors", "core", "hardware", "serving")
# The package itself only names what it loads on first use; whoever imports it imports nothing more.
FACADE = "__init__"


def modules(package: Path) -> dict[str, Path]:
    """Every module by its name inside the package; a package is called by its folder's name."""
    names = {
        ".".join(file.relative_to(package).with_suffix("").parts): file for file in package.rglob("*.py")
    }
    return {name.removesuffix(".__init__"): file for name, file in names.items()}


@cache
def tree_of(file: Path) -> ast.Module:
    """A module, parsed once for all tests."""
    return ast.parse(file.read_text(encoding="utf-8"))


def imports(name: str, file: Path, known: set[str], *, late: bool = True) -> Iterator[tuple[int, str]]:
    """Line and module of every import from the package; `late`: those inside functions, too."""
    package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    tree = tree_of(file)
    for node in ast.walk(tree) if late else tree.body:
        if isinstance(node, ast.Import):
            targets = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = ["autotune", *package][: len(package) + 2 - node.level] if node.level else []
            base = ".".join([*parents, *filter(None, [node.module])])
            targets = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for target in targets:
            inside = target.removeprefix("autotune.")
            if inside != target:
                yield node.lineno, inside if inside in known else inside.rpartition(".")[0] or FACADE


def layer(name: str) -> int | None:
    """The layer of a module's package."""
    package = name.partition(".")[0]
    return next((number for number, group in enumerate(LAYERS) if package in group), None)


def violations(package: Path) -> list[str]:
    """What is wrong, a line each."""
    known = modules(package)
    wrong = []
    for name, file in sorted(known.items()):
        if name == FACADE:
            continue
        own = layer(name)
        if own is None:
            wrong.append(f"{name} is in no layer")
            continue
        for line, target in imports(name, file, set(known)):
            if target == FACADE or target.partition(".")[0] == name.partition(".")[0]:
                continue
            other = layer(target)
            if other is None or other >= own:
                wrong.append(f"{name}:{line} imports {target}, which is in no lower layer")
    return wrong


def test_packages_import_from_lower_layers_only():
    assert violations(ROOT / "autotune") == []


def test_modules_do_not_import_each_other():
    known = modules(ROOT / "autotune")
    graph = {
        name: {target for _, target in imports(name, file, set(known))} - {name, FACADE}
        for name, file in known.items()
        if name != FACADE
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_two_public_classes_have_the_same_name():
    names = [
        node.name
        for path in (ROOT / "autotune").rglob("*.py")
        for node in tree_of(path).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert [name for name, count in Counter(names).items() if count > 1] == []


def test_the_package_has_three_files_in_its_root():
    assert {file.name for file in (ROOT / "autotune").glob("*.py")} == {
        "__init__.py",
        "__main__.py",
        "errors.py",
    }


def test_contributing_has_the_same_layers():
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    table = text.partition("## Layers")[2].partition("\n## ")[0]
    rows = [
        re.findall(r"`(\w+)`", line.split("|")[1]) for line in table.splitlines() if line.startswith("| `")
    ]
    assert rows == [list(group) for group in LAYERS if group != ("__main__",)]


@pytest.mark.parametrize("package", STANDARD_LIBRARY_ONLY)
def test_what_production_code_loads_needs_the_standard_library_only(package):
    import sys

    for name, file in modules(ROOT / "autotune").items():
        if name.partition(".")[0] != package:
            continue
        for node in ast.walk(tree_of(file)):
            if isinstance(node, ast.Import):
                roots = {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and not node.level:
                roots = {(node.module or "").partition(".")[0]}
            else:
                continue
            assert roots <= {"autotune", *sys.stdlib_module_names}, f"{name}:{node.lineno}"


@pytest.mark.parametrize(
    ("file", "text", "wrong"),
    [
        ("core/a.py", "from autotune.tuning.tuner import search", "core.a:1 imports tuning.tuner, which"),
        ("core/a.py", "from autotune import tuning", "core.a:1 imports tuning, which"),
        ("core/a.py", "import autotune.tuning.tuner", "core.a:1 imports tuning.tuner, which"),
        ("core/a.py", "from ..tuning.tuner import search", "core.a:1 imports tuning.tuner, which"),
        (
            "hardware/a.py",
            "from autotune.processes import child",
            "hardware.a:1 imports processes.child, which",
        ),
        (
            "errors.py",
            "if TYPE_CHECKING:\n    from autotune.core.a import A",
            "errors:2 imports core.a, which",
        ),
        (
            "core/a.py",
            "def late():\n    from autotune.tuning import tuner",
            "core.a:2 imports tuning.tuner, which",
        ),
        ("stray.py", "", "stray is in no layer"),
        ("tuning/b.py", "from autotune.tuning.tuner import search", None),
        ("tuning/b.py", "from . import tuner", None),
        ("tuning/b.py", "from autotune.core.a import A", None),
        ("tuning/b.py", "from autotune import __version__", None),
    ],
)
def test_an_import_from_above_is_found(tmp_path, file, text, wrong):
    for name in (
        "core/__init__.py",
        "core/a.py",
        "processes/child.py",
        "tuning/__init__.py",
        "tuning/tuner.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    found = violations(tmp_path)
    assert [line.startswith(wrong or "") for line in found] == ([True] if wrong else [])
