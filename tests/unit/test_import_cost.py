"""What a program that only loads a configuration has to import."""

import subprocess
import sys
import tomllib

import pytest

import autotune
from autotune.core.version import __version__
from autotune.serving import cache
from tests.cache_example import DEVICE, entry, record

HEAVY = {
    "ast",
    "cuda",
    "dataclasses",
    "hashlib",
    "inspect",
    "kernel_tuner",
    "multiprocessing",
    "numpy",
    "optuna",
    "pathlib",
    "pycuda",
    "pyopencl",
    "rich",
    "subprocess",
    "tempfile",
    "yaml",
}


def modules_after(program: str, root) -> set[str]:
    """What a new process has imported by the end of a program, without site's own doings."""
    done = subprocess.run(
        [sys.executable, "-S", "-c", f"import sys\n{program}\nprint(*sys.modules)"],
        cwd=root,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stdout.split())


def test_importing_the_package_imports_nothing_else(root):
    before = modules_after("", root)
    assert modules_after("import autotune", root) - before == {"autotune"}


@pytest.mark.parametrize("n", [64, 65])
def test_a_look_up_imports_the_standard_library_only_and_little_of_it(root, tmp_path, n):
    cache.store(tmp_path, DEVICE, record(entry(64), entry(1024)))
    program = f"""\
from autotune import best_config
best = best_config("reduce", "Example GPU 100", n={n}, cache={str(tmp_path)!r})
best.defines, best.flags, best.launch(n={n})
"""
    loaded = modules_after(program, root)
    assert "autotune.serving.lookup" in loaded
    assert not loaded & (HEAVY | {"autotune.sources.bare_code"})
    assert {name.split(".")[0] for name in loaded} <= sys.stdlib_module_names | {
        "__main__",
        "autotune",
        "org",
    }


def test_a_kernel_is_loaded_without_a_parser(root):
    program = "import site; site.main(); from autotune import load_kernel; load_kernel('matadd')"
    loaded = modules_after(program, root)
    assert "autotune.compilers.source_text" in loaded
    assert not loaded & {"tree_sitter", "statistics", "autotune.sources.triton_module"}


def test_the_version_is_the_distribution_s(root):
    project = tomllib.loads((root / "pyproject.toml").read_text())
    assert project["project"]["dynamic"] == ["version"]
    assert project["tool"]["setuptools"]["dynamic"]["version"]["attr"] == "autotune.core.version.__version__"
    assert autotune.__version__ == __version__


def test_a_search_shows_that_it_starts_before_it_loads_numpy(root):
    program = "import autotune.cli.search, autotune.cli.progress"
    assert not modules_after(f"import site; site.main(); {program}", root) & {"numpy", "yaml", "optuna"}


@pytest.mark.parametrize("module", ["evaluation.device_samples", "checks.large_run"])
def test_a_device_process_reads_neither_space_files_nor_sources(root, module):
    loaded = modules_after(f"import site; site.main(); import autotune.{module}", root)
    assert not {name for name in loaded if name.startswith(("autotune.space", "autotune.sources", "yaml"))}


def test_the_first_proposals_of_a_search_load_no_models(root):
    program = """\
import site; site.main()
from pathlib import Path
from autotune.searchers import make_searcher
from autotune.space import bind, load_space, problem_of
from tests.space_example import GPU
spec = load_space(Path("spaces/reduce.yaml"))
searcher = make_searcher("surrogate")
first = searcher.opening(bind(spec, GPU, problem_of(spec, GPU, {})), seed=0)
assert first
"""
    models = {"scipy.linalg", "scipy.optimize", "scipy.special"}
    assert not modules_after(program, root) & models
    assert models <= modules_after(f"{program}searcher.get_ready()", root)


def test_distributions_are_not_asked_for_engines_of_our_own(root):
    program = "import site; site.main(); from autotune.searchers import make_searcher"
    before = modules_after(program, root)
    loaded = modules_after(f"{program}; make_searcher('exhaustive')", root) - before
    assert "autotune.searchers.whole_space" in loaded and "importlib.metadata" not in loaded
