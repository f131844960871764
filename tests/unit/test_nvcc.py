"""Compiling with nvcc, a script in its place: what it is asked for, and that it always ends."""

import os
from pathlib import Path

import pytest

from autotune.compilers.known_compilers import cuda_compiler
from autotune.core.trials import Failure
from autotune.devices import Address
from autotune.errors import CompileError, SetupError
from autotune.evaluation.compiler_pool import CompilerPool, compiler_setting, cuda_setting
from tests.conftest import LIMIT_S, wait_until
from tests.space_example import GPU

SCRIPT = """\
#!/bin/sh
if [ "$1" = --version ]; then echo "release 1.0, V1.0.7"; exit; fi
{body}
"""


@pytest.fixture
def nvcc(tmp_path, monkeypatch):
    """Put a script in the place of nvcc; its body runs for each compilation, in the compiler's folder."""

    def install(body):
        (tmp_path / "nvcc").write_text(SCRIPT.format(body=body))
        (tmp_path / "nvcc").chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
        return cuda_compiler("sm_90", "nvcc")

    return install


def test_one_source_is_compiled_and_linked_with_the_device_runtime(nvcc):
    compiler = nvcc('echo "$@" > kernel.cubin; cat kernel.cu >> kernel.cubin; echo "a warning" >&2')
    binary = compiler.compile("the source", ("--maxrregcount=32",))
    said, _, source = binary.data.decode().partition("\n")
    expected = "--gpu-architecture=sm_90 --std=c++17 -rdc=true -dlink -cubin --maxrregcount=32"
    assert said == f"{expected} -o kernel.cubin kernel.cu -lcudadevrt"
    assert (source, binary.log, binary.registers) == ("the source", "a warning", None)
    assert binary.compile_ms > 0 and len(binary.sha256) == 64


def test_a_compiler_is_known_by_version_and_options(nvcc):
    compiler = nvcc("")
    assert compiler.name == "nvcc 1.0.7"
    assert (
        compiler.identity
        == "release 1.0, V1.0.7 --gpu-architecture=sm_90 --std=c++17 -rdc=true -dlink -cubin"
    )


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("echo 'kernel.cu(3): error: no such name' >&2; exit 2", "kernel.cu(3): error"),
        ("exit 3", "exit code 3"),
        (
            "echo 'kernel.cu:1:10: fatal error: curand.h: No such file or directory'; exit 1",
            "pip install nvidia-curand",
        ),
    ],
)
def test_a_source_that_is_refused_raises_the_log(nvcc, body, message):
    compiler = nvcc(body)
    with pytest.raises(CompileError) as error:
        compiler.compile("", ())
    assert message in str(error.value)


def test_a_compilation_that_is_killed_leaves_no_process_and_no_file(nvcc, tmp_path, temporary):
    pid, files = tmp_path / "pid", tmp_path / "files"
    mine = f"(pwd; mktemp) > {files}; echo $$ > {pid}"
    nvcc(f"echo > kernel.cubin; if grep endless kernel.cu; then {mine}; sleep 600 & wait; fi")
    pool = CompilerPool(cuda_setting("sm_90", "nvcc"), size=1, timeout_s=LIMIT_S)
    try:
        endless = pool.compile_source("endless", ())
        wait_until(lambda: endless.done() or (pid.exists() and pid.read_text().strip()))
    finally:
        pool.close()
    assert isinstance(endless.result(), Failure)
    process = f"/proc/{pid.read_text().strip()}"
    wait_until(lambda: not os.path.exists(process))  # noqa: PTH110 - the process, not a file
    left = [Path(file) for file in files.read_text().split()]
    assert len(left) == 2 and all(file.is_relative_to(temporary) for file in left)
    wait_until(lambda: not any(file.exists() for file in left))


def test_without_nvcc_a_space_that_asks_for_it_is_refused_before_anything_starts(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("autotune.compilers.nvidia_tools._in_package", lambda name: None)
    monkeypatch.setattr("autotune.compilers.nvidia_tools._USUAL_PLACES", ())
    with pytest.raises(SetupError, match=r"nvcc was not found.*install the CUDA toolkit"):
        compiler_setting(Address("cuda", 0), GPU, "nvcc")
    compiler_setting(Address("opencl", 0), GPU, "nvcc")  # has its own compiler
