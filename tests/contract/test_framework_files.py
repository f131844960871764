"""Every format of frameworks' files: written, read back, merged, installed, put back, and refused."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.core.records import ArgumentSpec, Config, Entry, KernelRecord, LaunchSpec, Parameter
from autotune.frameworks import FORMATS, format_of
from autotune.frameworks.config_file import load
from autotune.frameworks.lint import BESIDE
from autotune.hardware.architectures import architecture
from autotune.serving.cache import store
from tests.cache_example import DEVICE, PROVENANCE

NAMES = ("BLOCK_SIZE_M", "BLOCK_SIZE_N", "BLOCK_SIZE_K", "GROUP_SIZE_M", "num_warps", "num_stages")
DEFAULT = Config(dict(zip(NAMES, (64, 64, 64, 32, 4, 2), strict=True)))
BEST = Config({**DEFAULT, "BLOCK_SIZE_M": 16, "num_warps": 8})
H200 = replace(architecture("sm_90").device, name="NVIDIA H200", slug="nvidia-h200")
TRITON = replace(PROVENANCE, compiler="Triton 3.6.0")
each_format = pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)


def tuned(form, tokens, config=BEST, ties=(), *, blocks=True):
    sizes = dict.fromkeys(form.sizes, 256) | {"M": tokens}
    sizes |= {"group_n": 128, "group_k": 128} if blocks else {}
    return Entry(sizes, "bfloat16", config, 0.1, (0.09, 0.11), 0.2, tuple(ties), TRITON)


def cached(folder, form, *entries, device=H200, parameters=DEFAULT):
    """A cache with results of a kernel."""
    arguments = (ArgumentSpec("y", "DTYPE", "out", ("M",)),)
    values = {name: {value, *(one.config[name] for one in entries)} for name, value in parameters.items()}
    record = KernelRecord(
        kernel="product",
        dtypes=("bfloat16",),
        parameters=tuple(Parameter(name, tuple(sorted(found))) for name, found in values.items()),
        constraints=(),
        derived={},
        compiler_options={},
        arguments=arguments,
        launch=(LaunchSpec("product", ("1",), ("32",), ("y",)),),
        default=parameters,
        entries=entries,
    )
    store(folder / "cache", device, record)


@pytest.fixture
def export(tmp_path, capsys):
    def run(form, *words):
        words = words or ("-o", str(tmp_path / "out"))
        code = main(["export", "product", "--format", form.name, "--cache", str(tmp_path / "cache"), *words])
        out, err = capsys.readouterr()
        return code, out + err

    return run


def only_file(folder):
    (path,) = (one for one in folder.rglob("*device_name*.json") if not one.name.endswith(BESIDE))
    return path


def installed(folder, form, monkeypatch):
    """A package of the framework's name that says so if somebody imports it."""
    package = folder / "site" / form.package
    (package / form.folder).mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit('was imported')")
    monkeypatch.syspath_prepend(str(folder / "site"))
    monkeypatch.delitem(sys.modules, form.package, raising=False)
    return package / form.folder


@each_format
def test_what_is_written_is_read_back(form, tmp_path, export):
    cached(tmp_path, form, tuned(form, 1), tuned(form, 512, DEFAULT))
    code, said = export(form)
    assert code == 0 and "tuned M = 1, 512" in said
    path = only_file(tmp_path / "out")
    assert form.unasked(path.name) == "" and format_of(path) is form
    assert load(form, path).entries == {1: dict(BEST), 512: dict(DEFAULT)}
    beside = json.loads(path.with_name(path.stem + BESIDE).read_text())
    assert beside["kernel"] == "product" and beside["entries"]["1"]["time_ms"] == 0.1
    keys = list(json.loads(path.read_text()))
    assert keys == (["triton_version"] if form.heads else []) + ["1", "512"]
    assert "triton_3_6_0" in str(path) if form.subfolder else path.parent == tmp_path / "out"


@each_format
def test_a_file_that_is_there_keeps_its_other_entries_and_their_fields(form, tmp_path, export):
    cached(tmp_path, form, tuned(form, 8))
    export(form)
    path = only_file(tmp_path / "out")
    amd = {**DEFAULT, "waves_per_eu": 2, "matrix_instr_nonkdim": 16, "kpack": 2}
    path.write_text(json.dumps({"16": amd, "8": dict(DEFAULT)}))
    code, said = export(form)
    assert code == 0 and "left M = 16 as they were" in said
    assert json.loads(path.read_text()) == {"8": dict(BEST), "16": amd}


@each_format
def test_a_known_configuration_stays_unless_it_is_measurably_slower(form, tmp_path, export):
    there = Config({**DEFAULT, "num_stages": 3})
    cached(tmp_path, form, tuned(form, 1, ties=[DEFAULT, there]), tuned(form, 2, ties=[DEFAULT]))
    path = tmp_path / "out" / form.subfolder.format(version="3_6_0")
    path.mkdir(parents=True)
    sizes = dict.fromkeys(form.sizes, 256) | {"group_n": 128, "group_k": 128}
    path /= form.name_of(sizes, "NVIDIA H200", "fp8_w8a8")
    path.write_text(json.dumps({"1": dict(there), "2": dict(BEST)}))
    code, said = export(form)
    assert code == 0 and "M = 1, 2 keep what was served before" in said
    assert load(form, path).entries == {1: dict(there), 2: dict(DEFAULT)}


@each_format
def test_what_the_installed_framework_serves_stays_unless_it_is_measurably_slower(
    form, tmp_path, export, monkeypatch
):
    there = Config({**DEFAULT, "num_stages": 3})
    cached(tmp_path, form, tuned(form, 1, ties=[there]), tuned(form, 512))
    folder = installed(tmp_path, form, monkeypatch) / form.subfolder.format(version="3_6_0")
    folder.mkdir(parents=True, exist_ok=True)
    sizes = dict.fromkeys(form.sizes, 256) | {"group_n": 128, "group_k": 128}
    (folder / form.name_of(sizes, "NVIDIA H200", "fp8_w8a8")).write_text(json.dumps({"4": dict(there)}))
    code, said = export(form)
    assert code == 0 and "M = 1 keep what was served before" in said
    assert load(form, only_file(tmp_path / "out")).entries == {1: dict(there), 512: dict(BEST)}


@each_format
def test_what_the_reader_would_not_accept_is_refused_and_nothing_is_written(form, tmp_path, export):
    wrong = Config({**BEST, "BLOCK_SIZE_N": 96})
    cached(tmp_path, form, tuned(form, 1), tuned(form, 2, wrong))
    code, said = export(form)
    assert code == 2 and "M = 2: BLOCK_SIZE_N=96 is no power of two" in said
    assert not (tmp_path / "out").exists()


@each_format
def test_a_parameter_that_the_framework_does_not_know_is_refused(form, tmp_path, export):
    own = Config({**BEST, "GROUP_M": 8})
    cached(tmp_path, form, tuned(form, 1, own), parameters=own)
    code, said = export(form)
    assert code == 2 and "knows no parameter GROUP_M; did you mean GROUP_SIZE_M?" in said


@each_format
def test_a_damaged_file_is_not_replaced(form, tmp_path, export):
    cached(tmp_path, form, tuned(form, 1))
    export(form)
    path = only_file(tmp_path / "out")
    for text in ("{", "[]", '{"version": {}}', '{"1": {"BLOCK_SIZE_M": 16}}', '{"1": 5}', "{}"):
        path.write_text(text)
        code, said = export(form)
        assert code == 2 and f"{form.package} would not read it" in said, text
        assert path.read_text() == text


@each_format
def test_an_installed_package_is_written_to_only_if_asked_and_can_be_put_back(
    form, tmp_path, export, monkeypatch
):
    folder = installed(tmp_path, form, monkeypatch)
    cached(tmp_path, form, tuned(form, 1))
    code, said = export(form, "-o", str(folder))
    assert code == 2 and "to write there and keep its files, give --install" in said
    assert export(form, "--install")[0] == 0
    path = only_file(folder)
    path.unlink()
    assert export(form, "--restore")[0] == 0  # there was none
    assert [one for one in folder.rglob("*") if one.is_file()] == []
    old = json.dumps({"4": dict(DEFAULT)})
    path.write_text(old)
    for _ in range(2):
        assert export(form, "--install")[0] == 0
    assert set(load(form, path).entries) == {1, 4}
    assert export(form, "--restore")[0] == 0 and path.read_text() == old
    code, said = export(form, "--restore")
    assert code == 2 and "no export of product has replaced a file here" in said


@each_format
def test_a_device_of_another_backend_needs_the_frameworks_name(form, tmp_path, export):
    cached(tmp_path, form, tuned(form, 1), device=DEVICE)
    code, said = export(form)
    assert code == 2 and "name of this device with --device-name" in said
    assert export(form, "-o", str(tmp_path / "out"), "--device-name", "AMD Instinct MI300X")[0] == 0
    assert "device_name=AMD_Instinct_MI300X," in only_file(tmp_path / "out").name


@each_format
def test_the_configurations_of_a_file_become_a_journal(form, tmp_path, export, monkeypatch, capsys):
    cached(tmp_path, form, tuned(form, 1), tuned(form, 2), tuned(form, 64, DEFAULT))
    export(form)
    monkeypatch.chdir(tmp_path)
    assert main(["import", str(only_file(tmp_path / "out")), "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["results"], found["timed"], found["device"]) == (2, 0, "NVIDIA H200")
    assert Path(found["journal"]).is_file() and found["kernel"] == form.name.replace("-", "_")


def test_names_are_those_that_look_ups_ask_for():
    block, plain = {"E": 8, "N": 64, "K": 7, "group_n": 128, "group_k": 128}, {"E": 8, "N": 64}
    name = {key: form.name_of for key, form in FORMATS.items()}
    assert (
        name["vllm-moe"](block, "NVIDIA H200 NVL", "fp8_w8a8")
        == "E=8,N=64,device_name=NVIDIA_H200,dtype=fp8_w8a8,block_shape=[128,128].json"
    )
    assert name["vllm-moe"](plain, "NVIDIA H20", "") == "E=8,N=64,device_name=NVIDIA_H20.json"
    assert (
        name["sglang-moe"](block, "NVIDIA H200 NVL", "fp8_w8a8")
        == "E=8,N=64,device_name=NVIDIA_H200_NVL,dtype=fp8_w8a8,block_shape=[128, 128].json"
    )
    assert (
        name["vllm-w8a8"](block, "AMD Instinct/X  1", "fp8_w8a8")
        == "N=64,K=7,device_name=AMD_Instinct_X_1,dtype=fp8_w8a8,block_shape=[128,128].json"
    )
