"""A module imports from lower layers only."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "autotune"
# Lowest first. A name stands for the module and for everything inside it, the longest that fits counting.
# Within a group nobody imports anybody, unless both are of one package.
LAYERS = (
    ("errors", "model"),
    ("trials",),
    ("process", "pareto", "arithmetic", "suggestions", "scratch"),
    ("expressions", "child", "sources", "jobs", "journal", "device_names"),
    ("plan", "occupancy", "carry_over"),
    ("cache_format",),
    ("cache",),
    ("best", "cuda_driver", "wanted", "shelf"),
    ("tiers", "device_objects", "holdings"),
    ("foreign",),
    ("loader", "compare", "merge"),
    ("merge_files",),
    ("space", "scaffold", "devices.comparison"),
    ("devices.base", "interop"),
    ("devices",),
    ("launchers",),
    ("kernel",),
    ("problem", "binary_cache"),
    ("compiling", "workspace", "candidates"),
    ("targets",),
    ("verify", "measure", "records", "memory"),
    ("bench",),
    ("worker", "sanitizer"),
    ("evaluator", "searchers", "finals"),
    ("priors",),
    ("rig", "replay", "importance", "contrasts", "imported"),
    ("session", "efficiency", "feasible"),
    ("backlog", "adopt"),
    ("report", "progress"),
    ("cli",),
    ("__main__",),
)
# The package itself only names what it loads on first use; whoever imports it imports nothing more.
FACADE = "__init__"


def modules(package: Path) -> dict[str, Path]:
    """Every module by its name inside the package; a package is called by its folder's name."""
    names = {
        ".".join(file.relative_to(package).with_suffix("").parts): file for file in package.rglob("*.py")
    }
    return {name.removesuffix(".__init__"): file for name, file in names.items()}


def imports(name: str, file: Path, known: set[str]) -> Iterator[tuple[int, str]]:
    """Line and module of every import from the package, wherever it stands in the file."""
    package = name.split(".") if file.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
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
    """The group a module belongs to, by the longest name that fits."""
    fitting = [
        (len(prefix), number)
        for number, group in enumerate(LAYERS)
        for prefix in group
        if name == prefix or name.startswith(f"{prefix}.")
    ]
    return max(fitting)[1] if fitting else None


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
            other = layer(target)
            same_package = other == own and name.split(".")[0] == target.split(".")[0]
            if target != FACADE and not same_package and (other is None or other >= own):
                wrong.append(f"{name}:{line} imports {target}, which is no lower layer")
    return wrong


def test_modules_import_from_lower_layers_only():
    assert violations(PACKAGE) == []


@pytest.mark.parametrize(
    ("file", "text", "wrong"),
    [
        (
            "loader.py",
            "from autotune.session import search",
            "loader:1 imports session, which is no lower layer",
        ),
        ("loader.py", "from autotune import worker", "loader:1 imports worker, which is no lower layer"),
        ("loader.py", "import autotune.worker", "loader:1 imports worker, which is no lower layer"),
        ("loader.py", "from .worker import Worker", "loader:1 imports worker, which is no lower layer"),
        ("loader.py", "from . import worker", "loader:1 imports worker, which is no lower layer"),
        (
            "devices/fake.py",
            "from ..worker import W",
            "devices.fake:1 imports worker, which is no lower layer",
        ),
        (
            "devices/base.py",
            "from autotune.devices import fake",
            "devices.base:1 imports devices.fake, which is",
        ),
        ("verify.py", "from autotune.measure import x", "verify:1 imports measure, which is no lower layer"),
        (
            "errors.py",
            "if TYPE_CHECKING:\n    from autotune.model import Value",
            "errors:2 imports model, which is",
        ),
        ("model.py", "def late():\n    from autotune.errors import A", "model:2 imports errors, which is no"),
        ("stray.py", "", "stray is in no layer"),
        ("devices/fake.py", "from autotune.devices.base import Device", None),
        ("devices/fake.py", "from . import base", None),
        ("searchers/random.py", "from autotune.searchers.base import Searcher", None),
        ("session.py", "from autotune import __version__", None),
    ],
)
def test_an_import_from_above_is_found(tmp_path, file, text, wrong):
    for name in ("worker.py", "measure.py", "devices/__init__.py", "devices/base.py", "devices/fake.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / file).parent.mkdir(exist_ok=True)
    (tmp_path / file).write_text(text)
    found = violations(tmp_path)
    assert [line.startswith(wrong or "") for line in found] == ([True] if wrong else [])
