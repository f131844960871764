"""A binary that the cache has is found without loading the compiler."""

import json
import sys
from pathlib import Path

import pytest

from autotune.compilers.base import triton_name
from autotune.compilers.known_compilers import LazyCompiler

SOURCE = 'extern "C" __global__ void fill(int *x) { *x = 7; }'


@pytest.fixture
def home(tmp_path, monkeypatch) -> Path:
    """A cache folder of the user's, in which a first process has compiled."""
    pytest.importorskip("cuda.bindings")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = LazyCompiler("sm_90", "")
    assert not first.compile(SOURCE, ()).cached and is_opened(first)
    return tmp_path / "autotune/compilers"


def is_opened(compiler: LazyCompiler) -> bool:
    return "_compiler" in vars(compiler)


def test_the_second_process_loads_no_compiler_for_a_known_source(home):
    second = LazyCompiler("sm_90", "")
    assert second.compile(SOURCE, ()).cached and second.name.startswith("NVRTC ")
    assert not is_opened(second)
    assert not second.compile(SOURCE.replace("7", "8"), ()).cached
    assert is_opened(second)
    assert second.name == second._compiler.name and second._known.identity == second._compiler.identity


@pytest.mark.parametrize("damage", ["{", '{"identity": 3}', "[]"])
def test_what_is_damaged_is_not_used(home, damage):
    (file,) = home.iterdir()
    file.write_text(damage)
    compiler = LazyCompiler("sm_90", "")
    assert compiler.compile(SOURCE, ()).cached and is_opened(compiler)
    assert json.loads(file.read_text())["identity"] == compiler._compiler.identity


def test_a_compiler_whose_files_changed_is_asked_again(home):
    (file,) = home.iterdir()
    known = json.loads(file.read_text())
    assert any("nvrtc" in path for path in known["files"])
    known["files"] = {path: [size, time + 1] for path, (size, time) in known["files"].items()}
    file.write_text(json.dumps(known | {"identity": "of an older version"}))
    compiler = LazyCompiler("sm_90", "")
    assert compiler.compile(SOURCE, ()).cached and is_opened(compiler)


def test_a_version_that_is_no_literal_is_asked_of_the_module(tmp_path, monkeypatch):
    (tmp_path / "triton").mkdir()
    (tmp_path / "triton/__init__.py").write_text('__version__ = ".".join("341")\n')
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "triton", raising=False)
    assert triton_name() == "Triton 3.4.1"
    del sys.modules["triton"]
