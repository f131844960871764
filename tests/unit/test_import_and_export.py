"""`import` and `export`, and Optuna studies."""

import gzip
import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from autotune.cli import main
from autotune.interop import kernel_tuner, optuna_study, read_recording
from tests.recorded_files import CACHE, T4


def test_the_commands_of_the_page_work(tmp_path, monkeypatch, capsys):
    root = Path(__file__).parents[2]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "convolution").mkdir()
    for name in ("A100_T4.json.gz", "convolution/A4000_T4.json.gz", "convolution/W6600_T4.json.gz"):
        (tmp_path / name).write_bytes(gzip.compress(T4.read_bytes()))
    (tmp_path / "cache.json").write_bytes(CACHE.read_bytes())
    (tmp_path / "cache").symlink_to(root / "cache")
    page = (root / "docs/interop.md").read_text()
    commands = [
        shlex.split(line.replace("runs/FILE", "runs/convolution"), comments=True)
        for block in re.findall(r"```sh\n(.*?)```", page, re.DOTALL)
        for line in block.splitlines()
    ]
    tried = [command for command in commands if "adopt" not in command]  # it needs a device and the kernel
    assert len(tried) >= 8
    for command in tried:
        assert main(command[1:]) == 0, (command, capsys.readouterr().err)


def test_imported_results_are_a_journal_that_show_reads(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["import", str(T4), str(CACHE), "--device", "NVIDIA A100"]) == 0
    first, second, _ = capsys.readouterr().out.splitlines()
    assert first.startswith(
        "convolution on NVIDIA A100: 39 results, 34 with a time; best 0.5536 ms with block_size_x="
    )
    assert second.endswith("recorded in runs/convolution_kernel.nvidia-a100.x4096-y4096.imported.jsonl")
    journal = "runs/convolution.nvidia-a100.imported.jsonl"
    assert main(["show", journal, "--limit", "1", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["config"] == read_recording(T4).best.config


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
    again = [(result.config, result.time_ms) for result in read_recording(path).trials]
    assert again == [(result.config, result.time_ms) for result in read_recording(T4).trials]


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
    assert len(read_recording(path).trials) == 39


def test_a_cache_of_kernel_tuner_keeps_the_names_of_sizes(tmp_path):
    path = tmp_path / "cache.json"
    named = replace(read_recording(T4), sizes={"rows": 64, "columns": 8})
    path.write_text(kernel_tuner.write(named))
    assert read_recording(path).sizes == {"rows": 64, "columns": 8}
    assert json.loads(path.read_text())["problem_size"] == [64, 8]


def test_an_optuna_study_holds_every_result(tmp_path):
    import optuna

    recording, path = read_recording(T4), tmp_path / "study.log"
    results = recording.trials
    name = optuna_study.export(recording, path)
    study = optuna.load_study(study_name=name, storage=optuna_study.storage(path))
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


def test_a_storage_that_cannot_be_written_is_one_line(capsys):
    assert main(["export", str(T4), "--format", "optuna", "-o", "/nowhere/study.log"]) == 1
    assert "/nowhere/study.log: cannot be written: No such file or directory" in capsys.readouterr().err


def test_results_that_are_not_there_are_one_line(capsys):
    assert main(["export", "reduce.json", "--format", "t4", "-o", "x.json"]) == 2
    assert "reduce.json: no such file; --format t4 takes recorded results" in capsys.readouterr().err


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
