"""`autotune record` runs a program and lists what it asked for."""

import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

from autotune.errors import InputError
from autotune.recording.tunings import read_recorded
from autotune.serving.miss_log import CacheMiss, read_misses

ROOT = Path(__file__).parents[2]


def test_a_program_without_triton_runs_as_it_is(folder):
    program = "import sys; assert 'triton' not in sys.modules; print(*sys.argv[1:])"
    done = folder.run("record", "--", sys.executable, "-c", program, "--flag")
    assert done.returncode == 0, done.stderr
    assert "no kernel under @triton.autotune was tuned" in done.stdout
    assert not (folder.path / "recorded.json").exists()


def test_the_environments_own_start_up_file_runs_too(folder, monkeypatch):
    (folder.path / "own").mkdir()
    (folder.path / "own" / "sitecustomize.py").write_text("import builtins\nbuiltins.own = 7\n")
    monkeypatch.setenv("PYTHONPATH", f"{folder.path / 'own'}:{':'.join(filter(None, sys.path))}")
    assert folder.run("record", "--", sys.executable, "-c", "assert own == 7").returncode == 0


def test_the_failure_of_a_program_is_the_commands(folder):
    done = folder.run("record", "--", sys.executable, "-c", "raise SystemExit(3)")
    assert done.returncode == 1 and "ended with exit code 3" in done.stderr
    done = folder.run("record", "--", "no-such-program")
    assert done.returncode == 2 and "no-such-program: cannot be run: No such file or directory" in done.stderr


def test_a_damaged_file_is_found_before_the_program_runs(folder):
    (folder.path / "recorded.json").write_text("{")
    done = folder.run("record", "--", sys.executable, "-c", "open('ran', 'w')")
    assert done.returncode == 2 and "is no file of `autotune record`" in done.stderr
    assert not (folder.path / "ran").exists()


def test_what_a_program_does_not_find_in_the_cache_is_requested(folder):
    program = """
import autotune
try:
    autotune.best_config("double", "h200", n=3)
except autotune.NoConfig:
    pass
"""
    done = folder.run("record", "--", sys.executable, "-c", program)
    assert (
        done.returncode == 0
        and "1 request without an exact result; tune: autotune search --wanted" in done.stderr
    )
    assert read_misses(folder.path / "cache") == [CacheMiss("double", "h200", None, {"n": 3})]


def test_a_block_of_a_program_is_recorded_and_nothing_after_it(tmp_path):
    if "triton" not in metadata.packages_distributions():  # other tests put a stand-in among the modules
        pytest.skip("needs Triton")
    program = """
import sys
import autotune
from tests import autotuned_program
sys.argv[1:] = ["1000"]
with autotune.record("own.json"):
    autotuned_program.main()
sys.argv[1:] = ["4096"]
autotuned_program.main()
"""
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TRITON_CACHE_DIR": str(tmp_path / "triton")}
    subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, check=True, stdout=subprocess.DEVNULL
    )
    assert {one.scalars["n"] for one in read_recorded(tmp_path / "own.json")} == {1000}


def test_a_missing_file_names_the_command_that_writes_it(tmp_path):
    with pytest.raises(InputError, match=r"no such file; `autotune record -- PROGRAM` writes"):
        read_recorded(tmp_path / "recorded.json")
