"""`autotune build` compiles what the cache serves; `load_kernel` takes it where there is no compiler."""

import json
import shutil
from dataclasses import replace

import pytest

from autotune import best_config, load_kernel
from autotune.compilers.binary_cache import decode
from autotune.compilers.source_text import packaged, read_source
from autotune.errors import CacheError, InputError
from autotune.hardware.architectures import architecture
from autotune.runtime.shipped import FOLDER, ShippedBinaries, binary_key, write_binary
from autotune.runtime.trust import Trust
from tests.conftest import ROOT, run_in_process

H100 = architecture("sm_90").device


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with matadd for the architecture of the shipped results, and another one."""
    pytest.importorskip("cuda.bindings")
    folder = tmp_path_factory.mktemp("built")
    done = run_in_process(folder, "build", "matadd", "-o", "tuned", "--architectures", "sm_90,sm_80")
    assert done.returncode == 0, done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["matadd", "sm_90"],
        ["matadd", "sm_80"],
    ]
    return folder / "tuned"


def key_of(best, name):
    source = read_source(packaged("kernels") / "matadd.cu")
    return binary_key(source, name, best.record.compiler, best.defines, best.options("cuda"))


@pytest.mark.parametrize("name", ["sm_80", "sm_90"])
def test_what_is_served_has_a_binary(built, name):
    best = best_config("matadd", architecture(name).device, rows=64, columns=64, cache=built)
    binary, compiler = ShippedBinaries("matadd", built, Trust(built)).find(key_of(best, name))
    assert binary.data.startswith(b"\x7fELF") and compiler.startswith("NVRTC ")
    assert ShippedBinaries("matadd", built, Trust(built)).find(key_of(best, "sm_120")) is None


def test_a_kernel_without_its_source_is_the_one_that_was_built(built, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("autotune.runtime.loaded_kernel.packaged", lambda folder: tmp_path / folder)
    source = load_kernel("matadd", cache=built, trusted=built).source
    assert source.sha256 == read_source(packaged("kernels") / "matadd.cu").sha256 and not source.text
    with pytest.raises(InputError, match="no source"):
        load_kernel("matadd")


def test_a_second_build_adds_architectures(built, tmp_path):
    shutil.copytree(built, tmp_path / "tuned")
    done = run_in_process(tmp_path, "build", "matadd", "-o", "tuned", "--architectures", "sm_89", "--json")
    (row,) = json.loads(done.stdout)
    assert row["architecture"] == "sm_89" and row["configurations"] >= 1
    manifest = json.loads((tmp_path / "tuned" / FOLDER / "matadd.json").read_text())
    assert set(manifest["compilers"]) == {"sm_80", "sm_89", "sm_90"}


def test_a_program_reads_whole_binaries_while_others_write_them(built, tmp_path):
    best = best_config("matadd", H100, rows=64, columns=64, cache=built)
    key = key_of(best, "sm_90")
    binary, _ = ShippedBinaries("matadd", built, Trust(built)).find(key)
    write_binary(tmp_path, key, binary)
    with (tmp_path / key.name).open("rb") as file:
        write_binary(tmp_path, key, replace(binary, log="another"))
        assert decode(file.read(), key.name) == binary
    assert decode((tmp_path / key.name).read_bytes(), key.name).log == "another"


def test_damage_is_said_or_passed_over(built, tmp_path):
    shutil.copytree(built, tmp_path / "tuned")
    folder = tmp_path / "tuned" / FOLDER
    best = best_config("matadd", H100, rows=64, columns=64, cache=built)
    path = folder / key_of(best, "sm_90").name
    path.write_bytes(path.read_bytes()[:-1])
    copied = tmp_path / "tuned"
    assert ShippedBinaries("matadd", copied, Trust(copied)).find(key_of(best, "sm_90")) is None
    path.unlink()
    path.symlink_to("/proc/self/mem")  # a file whose first byte cannot be read
    assert ShippedBinaries("matadd", copied, Trust(copied)).find(key_of(best, "sm_90")) is None
    for text in ("{", "[]", '{"schema": 2}', '{"schema": 1}', "[" * 100_000):
        (folder / "matadd.json").write_text(text)
        with pytest.raises(CacheError, match=r"matadd\.json: damaged"):
            ShippedBinaries("matadd", copied, Trust(copied))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("matadd", "--architectures", "sm_1"), "unknown architecture 'sm_1'"),
        (("matadd", "reduce", "--source", "x.cu"), "--source is for one kernel"),
        (("nothing",), "no results for a kernel 'nothing'"),
    ],
)
def test_wrong_input_is_one_line(tmp_path, words, message):
    done = run_in_process(tmp_path, "build", *words, "-o", "tuned")
    assert done.returncode != 0 and message in done.stderr and "Traceback" not in done.stderr
    assert not (tmp_path / "tuned").exists()


@pytest.mark.parametrize("options", [(), ("--architectures", "sm_90")])
@pytest.mark.parametrize(
    ("kernel", "source", "dialect"), [("sums", "sums.cl", "opencl"), ("double", "double.py", "python")]
)
def test_a_kernel_that_is_not_for_cuda_is_refused_before_anything_is_written(
    tmp_path, kernel, source, dialect, options
):
    golden = ROOT / "tests/golden/identity-1"
    words = (kernel, "--cache", golden / "cache", "--source", golden / source, *options)
    done = run_in_process(tmp_path, "build", *words, "-o", "tuned")
    assert done.returncode == 2 and not (tmp_path / "tuned").exists()
    assert (
        f"{source}: the kernel is written in dialect '{dialect}', not for CUDA; only binaries for NVIDIA "
        "GPUs are built: on other devices, load_kernel compiles the source\n" in done.stderr
    )


def test_what_does_not_compile_leaves_nothing_that_looks_built(tmp_path):
    (tmp_path / "matadd.cu").write_text("__global__ void matadd(")
    done = run_in_process(tmp_path, "build", "matadd", "--source", "matadd.cu", "-o", "tuned")
    assert done.returncode == 1 and not list(tmp_path.glob("tuned/**/*.json")), done.stderr


def test_a_file_in_the_place_of_the_folder_is_named(tmp_path):
    (tmp_path / "tuned").write_text("mine")
    done = run_in_process(tmp_path, "build", "matadd", "-o", "tuned")
    assert done.returncode == 2
    assert "autotune: tuned: is a file; expected a folder for the binaries" in done.stderr
    assert (tmp_path / "tuned").read_text() == "mine"
