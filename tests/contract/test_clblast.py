"""Results for CLBlast are written, merged and refused; with a source tree, its own database.py reads them."""

import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from math import prod
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.compilers.source_text import read_source
from autotune.core.records import ArgumentSpec, Config, Entry, KernelRecord, LaunchSpec, Parameter
from autotune.hardware.architectures import architecture
from autotune.serving.cache import store
from autotune.space import bind, load_space, problem_of
from tests.cache_example import PROVENANCE

ROOT = Path(__file__).parents[2]
TREE = os.environ.get("CLBLAST_ROOT", "")
needs_tree = pytest.mark.skipif(not TREE, reason="CLBLAST_ROOT names no source tree of CLBlast")
CPU = replace(
    architecture("sm_90").device,
    backend="opencl",
    kind="cpu",
    name="pthread-AMD EPYC",
    vendor="GenuineIntel",
    slug="cpu-epyc",
)
BEST, DEFAULT = Config({"VW": 8, "WGS": 256, "WPT": 1}), Config({"VW": 1, "WGS": 64, "WPT": 1})
NAME = "clblast_xaxpy_32_cpu-epyc.json"


def cached(
    folder, *sizes, device=CPU, entry="XaxpyFastest", config=BEST, default=DEFAULT, alpha="2", data=("",)
):
    """A cache with results of CLBlast's sum of vectors."""
    entries = [
        Entry(
            {"n": n},
            "float32",
            config,
            0.1,
            (0.09, 0.11),
            0.2,
            (),
            PROVENANCE,
            ((config, 0.09), (default, 0.2)),
            data=name,
        )
        for n in sizes
        for name in data
    ]
    record = KernelRecord(
        kernel="clblast_xaxpy",
        dtypes=("float32",),
        parameters=tuple(Parameter(name, tuple({config[name], default[name]})) for name in config),
        constraints=(),
        derived={},
        compiler_options={},
        arguments=(
            ArgumentSpec("n", "int32", "scalar", (), "n"),
            ArgumentSpec("alpha", "DTYPE", "scalar", (), alpha),
            ArgumentSpec("y", "DTYPE", "inout", ("n",)),
        ),
        launch=(LaunchSpec(entry, ("1",), ("64",), ("n", "alpha", "y")),),
        default=default,
        entries=tuple(entries),
    )
    store(folder / "cache", device, record)


@pytest.fixture
def export(tmp_path, capsys):
    def run(*words):
        words = ["export", "clblast_xaxpy", "--format", "clblast", "-o", str(tmp_path / "out"), *words]
        code = main([*words, "--cache", str(tmp_path / "cache")])
        out, err = capsys.readouterr()
        return code, out + err

    return run


def test_a_result_is_chosen_by_the_content_of_its_inputs(tmp_path, export):
    cached(tmp_path, 262144, data=("ones", "drawn"))
    assert export("--data", "ones")[0] == 0
    origin = json.loads((tmp_path / "out" / NAME.replace(".json", ".provenance")).read_text())
    assert [one["data"] for one in origin["entries"].values()] == ["ones"]
    code, said = export("--data", "sorted")
    assert code == 2 and "clblast_xaxpy: has no result for --data sorted" in said


def test_a_file_says_what_was_tuned_on_what_and_the_best_comes_first(tmp_path, export):
    cached(tmp_path, 262144)
    assert export()[0] == 0
    found = json.loads((tmp_path / "out" / NAME).read_text())
    assert (found["kernel_family"], found["precision"], found["arg_n"]) == ("xaxpy", "32", "262144")
    assert (found["arg_alpha"], found["best_parameters"]) == ("2.00", "VW=8 WGS=256 WPT=1")
    assert (found["clblast_device_vendor"], found["clblast_device_type"]) == ("Intel", "CPU")
    assert found["clblast_device_name"] == "AMD EPYC" and found["device"] == "pthread-AMD EPYC"
    assert [one["parameters"]["VW"] for one in found["results"]] == [8, 1]
    assert [one["time"] for one in found["results"]] == [0.1, 0.2]  # none is shorter than the best
    assert {one["kernel"] for one in found["results"]} == {"XaxpyFastest"}


def test_only_results_end_in_json(tmp_path, export):
    cached(tmp_path, 64)
    export()
    assert [one.name for one in (tmp_path / "out").glob("*.json")] == [NAME]
    assert json.loads((tmp_path / "out" / NAME).with_suffix(".provenance").read_text())["kernel"]


def test_a_file_that_is_there_keeps_its_other_results(tmp_path, export):
    cached(tmp_path, 64)
    export()
    path = tmp_path / "out" / NAME
    found = json.loads(path.read_text())
    other = {
        "kernel": "XaxpyFastest",
        "time": 0.3,
        "parameters": {"VW": 2, "WGS": 64, "WPT": 1, "PRECISION": 32},
    }
    path.write_text(json.dumps({**found, "results": [{**found["results"][0], "time": 9.0}, other]}))
    code, said = export()
    assert code == 0 and "as they were" in said
    results = json.loads(path.read_text())["results"]
    assert results[-1] == other and len(results) == 3 and results[0]["time"] == 0.1


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"arg_n": "128"}, "has arg_n '128', and the result has '64'"),
        ({"clblast_device_name": "other"}, "write to another folder"),
        ({"results": [{"kernel": "Xdot", "time": 1, "parameters": {}}]}, "CLBlast would not read it"),
        ({"results": 5}, "CLBlast would not read it"),
    ],
)
def test_a_file_of_other_results_is_not_replaced(tmp_path, export, change, reason):
    cached(tmp_path, 64)
    export()
    path = tmp_path / "out" / NAME
    path.write_text(text := json.dumps(json.loads(path.read_text()) | change))
    code, said = export()
    assert code == 2 and reason in said and path.read_text() == text


def test_of_several_sizes_that_of_clblasts_tuner_counts(tmp_path, export):
    cached(tmp_path, 64, 128)
    code, said = export()
    assert code == 2 and "results of several sizes" in said and "n=4194304" in said
    cached(tmp_path, 64, 4_194_304)
    assert export()[0] == 0
    assert json.loads((tmp_path / "out" / NAME).read_text())["arg_n"] == "4194304"


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"entry": "axpy"}, "expected one launch, of a kernel of CLBlast: Xgemm, XaxpyFastest"),
        ({"config": Config({**BEST, "X": 1}), "default": Config({**DEFAULT, "X": 0})}, "differing: X"),
        ({"alpha": "n"}, "expected a number for the argument alpha"),
        ({"device": replace(CPU, backend="cuda")}, "CLBlast runs OpenCL"),
        (
            {"device": replace(CPU, kind="gpu", vendor="Advanced Micro Devices, Inc.", name="gfx900")},
            "give CLBlast's name of this GPU with --device-name",
        ),
    ],
)
def test_what_clblast_could_not_use_is_refused(tmp_path, export, options, reason):
    cached(tmp_path, 64, **options)
    code, said = export()
    assert code == 2 and reason in said and not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("vendor", "name", "options", "found"),
    [
        ("NVIDIA Corporation", "NVIDIA H200", (), ("NVIDIA", "SM9.0", "NVIDIA H200")),
        (
            "Advanced Micro Devices, Inc.",
            "gfx900:xnack-",
            ("--device-name", "Radeon RX Vega"),
            ("AMD", "Vega", "Radeon RX Vega"),
        ),
    ],
)
def test_gpus_are_named_as_clblast_names_them(tmp_path, export, vendor, name, options, found):
    cached(tmp_path, 64, device=replace(CPU, kind="gpu", vendor=vendor, name=name, slug="gpu"))
    code, said = export(*options)
    assert code == 0, said
    content = json.loads((tmp_path / "out" / "clblast_xaxpy_32_gpu.json").read_text())
    names = ("vendor", "architecture", "name")
    assert tuple(content[f"clblast_device_{one}"] for one in names) == found


@needs_tree
@pytest.mark.parametrize(
    ("name", "valid", "combinations"),
    [("xgemm_1", 578, 26_244), ("xgemm_2", 120_800, 663_552), ("xaxpy", 96, 96)],
)
def test_the_spaces_have_the_configurations_of_clblasts_tuner(name, valid, combinations):
    spec = load_space(ROOT / "examples" / "clblast" / f"{name}.yaml")
    device = replace(CPU, max_threads_per_block=2048, shared_bytes_per_block=2**20)
    space = bind(spec, device, problem_of(spec, device))
    assert (len(space), prod(len(one.values) for one in spec.parameters)) == (valid, combinations)
    assert 'R"' not in read_source(spec.source, spec.include_dirs).text


@needs_tree
def test_clblasts_own_script_takes_the_results(tmp_path, export):
    cached(tmp_path, 4_194_304)
    assert export()[0] == 0
    tree = tmp_path / "tree"
    shutil.copytree(TREE, tree)
    (tree / "scripts/database/database.json").write_text('{"sections": []}')
    done = subprocess.run(
        [sys.executable, tree / "scripts/database/database.py", tmp_path / "out", tree],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0 and "with 2 new items" in done.stdout and "All done" in done.stdout, done
    header = (tree / "src/database/kernels/xaxpy/xaxpy_32.hpp").read_text()
    assert re.search(r'Name\{"AMD EPYC +"\}, Params\{ 8, 256, 1,', header)


def test_without_a_source_tree_the_space_says_what_to_set(monkeypatch, capsys):
    monkeypatch.delenv("CLBLAST_ROOT", raising=False)
    assert main(["space", str(ROOT / "examples/clblast/xaxpy.yaml")]) == 2
    assert "set the environment variable CLBLAST_ROOT to a folder" in capsys.readouterr().err
