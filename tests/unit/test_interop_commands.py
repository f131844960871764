"""`import` and `export`, T1 spaces, and Optuna studies."""

import gzip
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.errors import InputError
from autotune.interop import kernel_tuner, optuna_study, read_recording, read_t1
from autotune.space import bind, load_space, problem_of
from tests.recorded_files import CACHE, T4
from tests.space_example import GPU, write_space

T1 = {
    "General": {"FormatVersion": 1},
    "ConfigurationSpace": {
        "TuningParameters": [
            {"Name": "block_size_x", "Type": "int", "Values": "[16 * i for i in range(1, 5)] + [128]"},
            {"Name": "tile", "Type": "uint", "Values": "list(range(1, 4))"},
            {"Name": "scale", "Type": "float", "Values": "[1, 0.5]"},
            {"Name": "use_shmem", "Type": "bool", "Values": "[true, false]"},
            {"Name": "layout", "Type": "string", "Values": "['row', 'column']"},
        ],
        "Conditions": [
            {
                "Parameters": ["block_size_x", "tile"],
                "Expression": "32 <= block_size_x * tile && block_size_x*tile <= 128",
            },
            {"Parameters": ["use_shmem", "layout"], "Expression": "!use_shmem || layout != 'column'"},
        ],
    },
    "KernelSpecification": {"KernelName": "convolve", "Language": "CUDA"},
}


def write(folder, data):
    path = folder / "input.json"
    path.write_text(json.dumps(data))
    return path


def with_condition(text):
    section = T1["ConfigurationSpace"] | {"Conditions": [{"Parameters": [], "Expression": text}]}
    return T1 | {"ConfigurationSpace": section}


def with_values(kind, text):
    parameter = {"Name": "P", "Type": kind, "Values": text}
    return T1 | {"ConfigurationSpace": {"TuningParameters": [parameter]}}


def test_a_t1_space_is_enumerated_like_any_other(tmp_path):
    spec = read_t1(write(tmp_path, T1))
    space = bind(spec, GPU, problem_of(spec, GPU))
    expected = {
        (x, t, s, u, w)
        for x in (16, 32, 48, 64, 128)
        for t in (1, 2, 3)
        for s in (1.0, 0.5)
        for u in (True, False)
        for w in ("row", "column")
        if 32 <= x * t <= 128 and (not u or w != "column")
    }
    assert {tuple(config.values()) for config in space} == expected and len(space) == len(expected)
    assert spec.kernel == "convolve"


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("[1,2,4]", (1, 2, 4)),
        ("(8, 8, 16)", (8, 16)),
        ("range(0, 10, 5)", (0, 5)),
        ("[2**i for i in range(3)]", (1, 2, 4)),
        ("[i for i in [3, 5]]", (3, 5)),
    ],
)
def test_lists_of_values_are_translated(tmp_path, text, values):
    assert read_t1(write(tmp_path, with_values("int", text))).parameters[0].values == values


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (with_condition("ProblemSize[0] > 4"), "condition 'ProblemSize[0] > 4' cannot be translated"),
        (
            with_condition("tile < tiles"),
            "condition 'tile < tiles' cannot be translated: unknown name 'tiles'",
        ),
        (with_condition("tile = 3"), "condition 'tile = 3' cannot be translated"),
        (with_condition("open('x')"), "condition \"open('x')\" cannot be translated"),
        (
            with_values("int", "ProblemSize"),
            "parameter P: Values 'ProblemSize' cannot be translated; expected",
        ),
        (with_values("int", "range(10**9)"), "parameter P: Values 'range(10**9)' cannot be translated"),
        (with_values("int", "__import__('os').getcwd()"), "parameter P: Values"),
        (with_values("int", "[0.5]"), "parameter P: Values '[0.5]': expected values of type int"),
        (with_values("int", "[]"), "parameter P: Values '[]': expected values of type int"),
        (with_values("vector", "[1]"), "TuningParameters.P.Type: expected one of int, uint"),
        (T1 | {"ConfigurationSpace": {}}, "TuningParameters: expected a list"),
    ],
)
def test_what_cannot_be_translated_is_refused_by_name(tmp_path, data, message):
    path = write(tmp_path, data)
    with pytest.raises(InputError) as error:
        read_t1(path)
    assert str(error.value).startswith(f"{path}: ") and message in str(error.value)


def test_importing_a_t1_input_prints_the_sections_of_a_space_file(tmp_path, capsys):
    assert main(["import", str(write(tmp_path, T1))]) == 0
    rest = """\
source: reduce.cu
reference: reduce.py
sizes: {default: {n: 1024}}
arguments:
  - {name: x, dtype: int32, shape: [n], role: out}
launch:
  - {entry: convolve, grid: [1], block: [block_size_x], arguments: [x]}
"""
    spec = load_space(write_space(tmp_path, capsys.readouterr().out + rest))
    default = {"block_size_x": 16, "tile": 1, "scale": 1.0, "use_shmem": True, "layout": "row"}
    assert spec.kernel == "convolve" and spec.default == default
    assert [len(parameter.values) for parameter in spec.parameters] == [5, 3, 2, 2, 2]
    assert len(spec.constraints) == 2


def test_the_commands_of_the_page_work(tmp_path, monkeypatch, capsys):
    root = Path(__file__).parents[2]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "convolution").mkdir()
    for name in ("A100_T4.json.gz", "convolution/A4000_T4.json.gz", "convolution/W6600_T4.json.gz"):
        (tmp_path / name).write_bytes(gzip.compress(T4.read_bytes()))
    (tmp_path / "cache.json").write_bytes(CACHE.read_bytes())
    (tmp_path / "cache").symlink_to(root / "cache")
    write(tmp_path, T1)
    page = (root / "docs/interop.md").read_text()
    commands = [
        shlex.split(line.replace("runs/FILE", "runs/convolution"), comments=True)
        for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
        for line in block.splitlines()
    ]
    tried = [command for command in commands if command[1] != "adopt"]  # it needs a device and the kernel
    assert len(tried) >= 9
    for command in tried:
        printed = command.index(">") if ">" in command else len(command)
        assert main(command[1:printed]) == 0, (command, capsys.readouterr().err)


def test_imported_results_are_a_journal_that_show_and_replay_read(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["import", str(T4), str(CACHE), "--device", "NVIDIA A100"]) == 0
    first, second, _ = capsys.readouterr().out.splitlines()
    assert first.startswith(
        "convolution on NVIDIA A100: 39 results, 34 with a time; best 0.5536 ms with block_size_x="
    )
    assert second.endswith(
        "recorded in runs/convolution_kernel.nvidia-a100.problem_size_x4096-problem_size_y4096.imported.jsonl"
    )
    journal = "runs/convolution.nvidia-a100.imported.jsonl"
    assert main(["show", journal, "--limit", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["config"] == read_recording(T4).best.config
    assert main(["replay", journal, "--budget", "5", "--seeds", "1"]) == 0


def test_an_import_never_overwrites_other_results_unasked(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    command = ["import", str(T4), "--journal", "x.jsonl"]
    assert main(command) == main(command) == 0
    other = ["import", str(CACHE), "--journal", "x.jsonl", "--json"]
    capsys.readouterr()
    assert main(other) == 2
    assert "x.jsonl: holds other results; replace them with --fresh" in capsys.readouterr().err
    assert main([*other, "--fresh"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["kernel"] == "convolution_kernel"


@pytest.mark.parametrize("form", ["t4", "kernel-tuner", "journal"])
@pytest.mark.parametrize("name", ["out.json", "deep/out.json.gz"])
def test_what_is_exported_can_be_read_again(tmp_path, form, name, capsys):
    path = tmp_path / name
    assert main(["export", str(T4), "--format", form, "-o", str(path)]) == 0
    again = [(result.config, result.time_ms) for result in read_recording(path).results]
    assert again == [(result.config, result.time_ms) for result in read_recording(T4).results]


@pytest.mark.parametrize(
    ("form", "name", "kind"),
    [
        ("t4", "space.yaml", "a file of T4 results (.json)"),
        ("t4", "journal.jsonl", "a file of T4 results (.json)"),
        ("kernel-tuner", "space.yaml.gz", "a cache of Kernel Tuner (.json)"),
        ("journal", "results.json", "a journal (.jsonl)"),
        ("c-header", "kernel.cu", "a header (.h or .hpp)"),
    ],
)
def test_an_export_never_replaces_a_file_of_another_kind(tmp_path, capsys, form, name, kind):
    path = tmp_path / name
    path.write_text("mine")
    source = "reduce" if form == "c-header" else str(T4)
    assert main(["export", source, "--format", form, "-o", str(path)]) == 2
    assert f"{path}: exists and is not {kind}; choose another file with -o" in capsys.readouterr().err
    assert path.read_text() == "mine"


def test_an_export_replaces_a_file_of_its_kind(tmp_path):
    path = tmp_path / "t4.JSON"
    path.write_text("old")
    assert main(["export", str(T4), "--format", "t4", "-o", str(path)]) == 0
    assert len(read_recording(path).results) == 39


def test_a_cache_of_kernel_tuner_keeps_the_names_of_sizes(tmp_path):
    path = tmp_path / "cache.json"
    named = replace(read_recording(T4), sizes={"rows": 64, "columns": 8})
    path.write_text(kernel_tuner.write(named))
    assert read_recording(path).sizes == {"rows": 64, "columns": 8}
    assert json.loads(path.read_text())["problem_size"] == [64, 8]


@pytest.mark.parametrize(("make", "count"), [("{}/study.log", 39), ("sqlite:///{}/study.db", 3)])
def test_an_optuna_study_holds_every_result(tmp_path, make, count):
    import optuna

    recording, target = read_recording(T4), make.format(tmp_path)
    results = recording.results[:count]  # a database takes its time
    name = optuna_study.export(replace(recording, results=results), target)
    study = optuna.load_study(study_name=name, storage=optuna_study.storage(target))
    assert [trial.value for trial in study.trials] == [result.time_ms for result in results]
    assert [trial.params for trial in study.trials] == [result.config for result in results]
    assert [trial.user_attrs["status"] for trial in study.trials] == [r.status.value for r in results]
    assert study.best_value == min(result.time_ms for result in results if result.time_ms is not None)


def test_a_study_that_exists_is_left_alone(tmp_path, capsys):
    command = ["export", str(T4), "--format", "optuna", "-o", str(tmp_path / "study.log")]
    assert main(command) == 0
    assert "39 trials in the study 'convolution on A100' of" in capsys.readouterr().out
    assert main(command) == 2
    assert "has a study 'convolution on A100' already" in capsys.readouterr().err


@pytest.mark.parametrize("target", ["/nowhere/study.log", "sqlite:////nowhere/study.db", "odd://x"])
def test_a_storage_that_cannot_be_written_is_one_line(target, capsys):
    assert main(["export", str(T4), "--format", "optuna", "-o", target]) == 1
    assert f"{target}: cannot be written" in capsys.readouterr().err


def test_results_that_are_not_there_are_one_line(capsys):
    assert main(["export", "reduce", "--format", "t4", "-o", "x.json"]) == 2
    assert "reduce: no such file; --format t4 takes recorded results" in capsys.readouterr().err


def stored(folder, **changes):
    """What Kernel Tuner's own function writes for two devices and two sizes."""
    from kernel_tuner.integration import store_results

    path = folder / "stored.json"
    domains = {"A": [1, 2], "B": ["x", "y"]}
    for device, size, scale in (
        ("NVIDIA H200", 64, 1.0),
        ("NVIDIA H200", (64, 8), 2.0),
        ("AMD W6600", 64, 3.0),
    ):
        results = [{"A": a, "B": b, "time": scale * (1 + a / 1000)} for a in (1, 2) for b in "xy"]
        store_results(str(path), "k", "", domains, size, results, {"device_name": device})
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    return path


@pytest.mark.filterwarnings("ignore:The metaschema specified:DeprecationWarning")
def test_stored_results_become_a_journal_for_each_device_and_size(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    path = stored(tmp_path)
    assert main(["import", str(path), "--kernel", "mine"]) == 0
    assert capsys.readouterr().out.count("mine on ") == 3
    journal = read_recording(
        tmp_path / "runs/mine.nvidia-h200.problem_size_x64-problem_size_y8.imported.jsonl"
    )
    assert (journal.kernel, journal.device) == ("mine", "NVIDIA H200")
    assert [result.time_ms for result in journal.results] == [2.002, 2.002, 2.004, 2.004]
    assert main(["import", str(path), "--journal", "one.jsonl", "--fresh"]) == 2
    assert "--journal FILE takes the results of one device and problem" in capsys.readouterr().err
    with pytest.raises(InputError, match="holds results of 3 devices or sizes; use autotune import"):
        read_recording(path)


@pytest.mark.filterwarnings("ignore:The metaschema specified:DeprecationWarning")
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"objective": "energy"}, "objective: expected one of time, found 'energy'"),
        ({"data": []}, "data: expected an entry for each configuration"),
        (
            {"data": [{"tunable_parameters": {"A": 1, "B": "x"}}]},
            "data[0].time: expected a number, found 'None'",
        ),
    ],
)
def test_stored_results_that_cannot_be_read_are_refused(tmp_path, changes, message):
    with pytest.raises(InputError) as error:
        read_recording(stored(tmp_path, **changes))
    assert message in str(error.value)


@pytest.mark.parametrize("content", [bytes(range(256)) * 4, b"{}\n", b"[1, 2]\n", b"text\n"])
def test_a_file_of_something_else_takes_no_study_and_stays_as_it_is(tmp_path, capsys, content):
    target = tmp_path / "other"
    target.write_bytes(content)
    assert main(["export", str(T4), "--format", "optuna", "-o", str(target)]) == 2
    assert "holds no studies of Optuna; choose another file" in capsys.readouterr().err
    assert target.read_bytes() == content


def test_sizes_of_an_import_cannot_lead_out_of_its_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    data = json.loads(T4.read_text())
    data["metadata"] = data.get("metadata", {}) | {"sizes": {"/../../../outside": 3}}
    Path("t4.json").write_text(json.dumps(data))
    header = {"journal": 1, "kernel": "k", "device": "d", "sizes": "[('/../../outside', 3)]"}
    Path("j.jsonl").write_text(f"""{json.dumps(header).replace(": ", ":", 1)}
{{"trial": {{"config": {{"A": 1}}, "key": "k", "status": "compile_error"}}}}
""")
    assert main(["import", "t4.json"]) == 2
    assert "metadata.sizes: expected a name" in capsys.readouterr().err
    assert main(["import", "j.jsonl"]) == 0
    assert [path.name for path in Path("runs").iterdir()] == ["k.d.imported.jsonl"]


def test_an_import_replaces_a_link_and_not_what_it_leads_to(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main(["import", str(CACHE)]) == 0
    (journal,) = Path("runs").iterdir()
    journal.unlink()
    Path("outside").write_text("mine")
    journal.symlink_to(tmp_path / "outside")
    assert main(["import", str(CACHE), "--fresh"]) == 0
    assert Path("outside").read_text() == "mine" and not journal.is_symlink()


def test_a_small_file_that_unpacks_to_a_huge_one_is_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("autotune.interop.files.MAX_BYTES", 2**20)
    path = tmp_path / "bomb.json.gz"
    path.write_bytes(gzip.compress(bytes(2**21)))
    assert main(["import", str(path)]) == 2
    assert "holds more than 1 MiB" in capsys.readouterr().err
