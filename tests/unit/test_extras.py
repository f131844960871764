"""What needs a package says in one line which extra brings it; reading results needs none."""

import ast
import re
import subprocess
import sys
import tomllib

import pytest

from autotune.core.extras import EXTRAS, missing_extra
from autotune.errors import MissingExtra
from autotune.searchers import _ENGINES as ENGINES
from tests.conftest import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
DISTRIBUTIONS = {
    **{"yaml": "pyyaml", "cuda": "cuda-bindings", "pynvml": "nvidia-ml-py", "sklearn": "scikit-learn"},
    "dask": "distributed",
}
# of users' programs, and what Optuna brings
ELSEWHERE = {"IPython", "alembic", "colorlog", "cupy", "numba", "pandas", "pytest", "sqlalchemy", "torch"}
BARE = """
import sys
sys.path.insert(0, {root!r})
class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {modules!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
sys.meta_path.insert(0, Blocked())
"""
ALL = sorted({module for modules in EXTRAS.values() for module in modules})


def run_bare(code, *words, lacking=ALL):
    """Run Python code, with words as its arguments, without these packages: else those of all extras."""
    source = BARE.format(root=str(ROOT), modules=lacking) + code
    return subprocess.run(
        [sys.executable, "-c", source, *words], capture_output=True, text=True, timeout=60, cwd=ROOT
    )


COMMAND = "from autotune.__main__ import main; sys.exit(main())"


def imported(path):
    """The top modules that a file imports."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]


def test_every_package_that_is_imported_has_an_extra():
    found = {name for path in (ROOT / "autotune").rglob("*.py") for name in imported(path)}
    assert found - sys.stdlib_module_names - {"autotune"} - set(ALL) <= ELSEWHERE


@pytest.mark.parametrize("extra", EXTRAS)
def test_every_extra_installs_the_packages_that_it_is_said_to_bring(extra):
    named = {
        re.split(r"[<>=; \[]", line)[0].replace("-", "_") for line in PROJECT["optional-dependencies"][extra]
    }
    for module in EXTRAS[extra]:
        assert DISTRIBUTIONS.get(module, module).replace("-", "_") in named, module


def test_every_sampler_of_optuna_but_that_of_pytorch_comes_with_its_extra():
    named = " ".join(PROJECT["optional-dependencies"]["optuna"])
    needed = {package for _, package in ENGINES["optuna"].packages.values()}
    assert {package for package in needed if package not in named} == {"torch"}


@pytest.mark.parametrize("extra", ["report", "kernel-tuner", "optuna", "cluster"])
def test_an_extra_of_searches_brings_what_searches(extra):
    assert f"{PROJECT['name']}[search]" in PROJECT["optional-dependencies"][extra]


def test_what_loads_kernels_is_part_of_what_searches():
    extras = PROJECT["optional-dependencies"]
    assert set(extras["load"]) <= set(extras["search"]) and not PROJECT["dependencies"]


def test_without_any_package_results_are_read():
    asked = ("--device", "NVIDIA H200", "--size", "n=134217728")
    done = run_bare(COMMAND, "best", "reduce", *asked)
    assert (done.returncode, done.stderr) == (0, "") and "BLOCK_SIZE=768" in done.stdout
    code = "import autotune; print(autotune.best_config('reduce', 'NVIDIA H200', n=2**27)['BLOCK_SIZE'])"
    assert run_bare(code).stdout == "768\n"


@pytest.mark.parametrize(
    "command", ["search spaces/reduce.yaml", "list", "compare reduce", "new kernels/leak.cu"]
)
def test_a_command_that_needs_a_package_says_how_to_get_it_in_one_line(command):
    done = run_bare(COMMAND, *command.split())
    assert done.returncode == 1
    assert re.fullmatch(
        r"autotune: \w+ is not installed; it comes with: pip install '.\[search\]'.*\n", done.stderr
    )


@pytest.mark.parametrize(
    ("code", "lacking", "extra"),
    [
        ("from autotune import tune", ALL, "search"),
        ("from autotune import load_kernel", ALL, "load"),
        ("import autotune.triton", ALL, "load"),
        ("import autotune.testing", ALL, "search"),
        ("import autotune.kernel_tuner", ALL, "kernel-tuner"),
        ("import autotune.kernel_tuner", ["rich"], "search"),
        ("sys.modules['torch'] = sys\n    import autotune.torch", ALL, "load"),
    ],
)
def test_a_program_is_told_as_well(code, lacking, extra):
    done = run_bare(
        f"import autotune\ntry:\n    {code}\nexcept autotune.AutotuneError as error:\n    print(error)",
        lacking=lacking,
    )
    assert f"pip install '.[{extra}]'" in done.stdout, done.stderr


def test_a_module_of_nobody_is_no_extra():
    assert missing_extra(ModuleNotFoundError("No module named 'mine'", name="mine")) is None
    found = missing_extra(ModuleNotFoundError("No module named 'scipy.linalg'", name="scipy.linalg"))
    assert isinstance(found, MissingExtra) and "[search]" in str(found)
