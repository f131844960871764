"""A sweep for files of frameworks: the sizes that an entry serves, and what is served before it."""

import json
import sys

import pytest

from autotune import InputError, tune_sweep
from autotune.evaluation.journal import read_journal
from autotune.frameworks import FORMATS
from autotune.frameworks.config_file import nearest, served
from autotune.frameworks.installed import InstalledConfigs
from autotune.tuning.winner_checks import WinnerChecks

TILE = {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 1}
ENTRY = TILE | {"num_warps": 8, "num_stages": 2}
KERNEL = """\
def moe(grid, block, x, y, n):
    y.view("int32")[:n] = 2 * x.view("int32")[:n]
    return 1.0 if (BLOCK_SIZE_M > 16) == (n > 32) else 2.0
"""
SPACE = """\
schema: 1
kernel: moe
dialect: python
source: moe.py
reference: reference.py
dtypes: [int32]
sizes:
  default: {M: 8, E: 8, N: 16}
parameters:
  BLOCK_SIZE_M: [16, 32]
  BLOCK_SIZE_N: [64]
  BLOCK_SIZE_K: [64]
  GROUP_SIZE_M: [1]
  num_warps: [4, 8]
  num_stages: [2]
default: {BLOCK_SIZE_M: 16, BLOCK_SIZE_N: 64, BLOCK_SIZE_K: 64, GROUP_SIZE_M: 1, num_warps: 4, num_stages: 2}
arguments:
  - {name: x, dtype: int32, shape: [M], role: in, fill: {integers: [-100, 100]}}
  - {name: y, dtype: int32, shape: [M], role: out}
  - {name: n, dtype: int32, value: M}
launch:
  - {entry: moe, grid: [1], block: [1], arguments: [x, y, n]}
"""


@pytest.fixture
def moe(folder, monkeypatch):
    """A folder with a space, next to an installed framework with a file for it."""
    (folder.path / "moe.py").write_text(KERNEL)
    (folder.path / "moe.yaml").write_text(SPACE)
    place = folder.path / "site/vllm" / FORMATS["vllm-moe"].folder
    place.mkdir(parents=True)
    stock = {8: ENTRY, 64: ENTRY | {"num_warps": 4, "SPLIT_K": 1}, 128: ENTRY | {"BLOCK_SIZE_M": 256}}
    (place / "E=8,N=16,device_name=Fake_GPU.json").write_text(json.dumps(stock))
    monkeypatch.syspath_prepend(str(folder.path / "site"))
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    return folder


def test_what_is_served_stays_where_nothing_is_faster_and_is_replaced_elsewhere(moe):
    command = ("search", "moe.yaml", "--device", "fake", "--format", "vllm-moe", "--sweep", "M=8,64,128")
    done = moe.run(*command)
    rows = [line.split("  ") for line in done.stdout.splitlines() if line.startswith("M=")]
    cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    assert [(row[0].split()[0], row[1], row[-1]) for row in cells] == [
        ("M=8", "1 to 36", "stays"),
        ("M=64", "37 to 96", "is replaced"),
        ("M=128", "97 and more", "-"),
    ]
    assert [row[-2] for row in cells] == ["1 x", "2 x", "-"]
    assert " now: M=128: " in done.stderr and "BLOCK_SIZE_M=256 is not one of 16, 32" in done.stderr
    assert len(list(moe.path.glob("runs/*"))) == 3  # nothing half-way
    record = json.loads(next(moe.path.glob("cache/*/moe.json")).read_text())
    assert not record.get("variants")
    by_tokens = {entry["sizes"]["M"]: entry for entry in record["entries"]}
    eight = by_tokens[8]
    assert ENTRY in [eight["config"], *eight["ties"]] and by_tokens[64]["config"]["BLOCK_SIZE_M"] == 32


def test_what_is_served_is_timed_however_short_the_time_is(moe):
    moe.run(
        "search", "moe.yaml", "--device", "fake", "--format", "vllm-moe", "--sweep", "M=8", "--time", "0.001"
    )
    (journal,) = moe.path.glob("runs/*")
    assert ENTRY in [dict(trial.config) for trial in read_journal(journal)[1]]


def test_what_wins_anywhere_is_checked_in_one_go_and_timed_once(moe, monkeypatch):
    new, check = [], WinnerChecks.check

    def noted(self, context, configs, *rest):
        new.append({*configs} - self.outcomes.keys())
        return check(self, context, configs, *rest)

    monkeypatch.setattr(WinnerChecks, "check", noted)
    moe.run("search", "moe.yaml", "--device", "fake", "--format", "vllm-moe", "--sweep", "M=8,64,128")
    assert len(new) == 4 and {config["BLOCK_SIZE_M"] for config in new[0]} == {16, 32}
    assert not any(new[1:])
    for journal in moe.path.glob("runs/*"):
        rows = [json.loads(line) for line in journal.read_text().splitlines() if '"finals"' in line]
        timed, ended = (row["finals"] for row in rows)
        assert timed == ended


def test_configurations_of_an_imported_file_are_tried_next_at_every_size(moe):
    other = moe.path / "E=64,N=512,device_name=NVIDIA_H100_80GB_HBM3.json"
    imported = ENTRY | {"BLOCK_SIZE_M": 32}
    other.write_text(json.dumps({"1": imported, "8": ENTRY | {"BLOCK_SIZE_M": 128}, "16": imported}))
    assert moe.run("import", other.name, "--kernel", "moe").returncode == 0
    moe.run("search", "moe.yaml", "--device", "fake", "--format", "vllm-moe", "--sweep", "M=8,64")
    default = ENTRY | {"num_warps": 4}
    for tokens, now in (("M8-", [ENTRY]), ("M64-", [])):  # at M = 64 the default serves now
        (journal,) = (one for one in moe.path.glob("runs/*") if tokens in one.name)
        tried = [dict(trial.config) for trial in read_journal(journal)[1]]
        assert tried[: 2 + len(now)] == [default, *now, imported]


def test_files_of_16_bits_are_for_the_space_of_16_bits(moe):
    file = "E=64,N=512,device_name=NVIDIA_H100_80GB_HBM3"
    for name in (f"{file}.json", f"{file},dtype=fp8_w8a8.json"):
        (moe.path / name).write_text(json.dumps({"1": ENTRY}))
    done = moe.run("import", f"{file}.json", f"{file},dtype=fp8_w8a8.json", "--json")
    assert [one["kernel"] for one in json.loads(done.stdout)] == ["vllm_moe_16bit", "vllm_moe"]


def test_in_python_it_is_an_argument(moe, monkeypatch):
    monkeypatch.chdir(moe.path)
    found = tune_sweep("moe.yaml", {"M": [8, 64]}, form="vllm-moe", device="fake")
    assert next(dict(config) for one in found.results for config in one.task.served_elsewhere) == ENTRY
    assert found.form is FORMATS["vllm-moe"] and not found.tables
    with pytest.raises(InputError, match="tune_sweep: form='vllm': expected one of vllm-moe, "):
        tune_sweep("moe.yaml", {"M": [8, 64]}, form="vllm")


def test_without_sizes_the_numbers_of_tokens_are_those_of_the_format(moe):
    found = moe.run("search", "moe.yaml", "--device", "fake", "--format", "vllm-moe", "--json")
    results = json.loads(found.stdout)["results"]
    assert len(results) == 18 and results[-1]["sizes"]["M"] == 4096


def test_the_nearest_key_serves_and_of_two_the_smaller():
    assert [nearest([8, 64, 128], tokens) for tokens in (1, 36, 37, 96, 97, 9999)] == [
        8,
        8,
        64,
        64,
        128,
        128,
    ]
    known = [8, 65, 128]
    by_key = {key: [value for value in range(1, 200) if nearest(known, value) == key] for key in known}
    assert served([65, 8, 8, 128]) == {
        8: (1, by_key[8][-1]),
        65: (by_key[65][0], by_key[65][-1]),
        128: (by_key[128][0], None),
    }
    assert served([5]) == {5: (1, None)}


def test_a_launcher_cuts_a_step_down_to_the_block_and_a_default_serves_without_a_file(monkeypatch, tmp_path):
    form, sizes = FORMATS["vllm-moe"], {"M": 30, "E": 8, "N": 16, "group_n": 128, "group_k": 128}
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "vllm", raising=False)
    place = tmp_path / "vllm" / form.folder
    place.mkdir(parents=True)
    name = form.name_of(sizes, "NVIDIA H200", "fp8_w8a8")
    assert InstalledConfigs(form, "NVIDIA H200").entry(sizes)[0] == "the default of vllm"
    (place / name).write_text("{")  # the framework fails, too
    assert InstalledConfigs(form, "NVIDIA H200").entry(sizes)[0] == "the default of vllm"
    (place / name).write_text(json.dumps({"24": ENTRY | {"BLOCK_SIZE_K": 256}, "64": ENTRY}))
    where, entry = InstalledConfigs(form, "NVIDIA H200").entry(sizes)
    assert where.endswith(name) and entry["BLOCK_SIZE_K"] == 128


def test_other_versions_of_triton_are_searched_newest_first(monkeypatch, tmp_path):
    form, sizes = FORMATS["sglang-moe"], {"M": 8, "E": 8, "N": 16}
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "sglang", raising=False)
    name = form.name_of(sizes, "NVIDIA H200", "")
    for version, tile in (("3_9_9", 32), ("3_10_0", 64)):
        place = tmp_path / "sglang" / form.folder / f"configs/triton_{version}"
        place.mkdir(parents=True)
        (place / name).write_text(json.dumps({"8": ENTRY | {"BLOCK_SIZE_M": tile}}))
    assert InstalledConfigs(form, "NVIDIA H200").entry(sizes)[1]["BLOCK_SIZE_M"] == 64


def test_a_space_without_the_sizes_of_the_format_is_refused(moe):
    done = moe.run("search", "double.yaml", "--device", "fake", "--format", "vllm-moe", "--sweep", "n=8,9")
    assert done.returncode == 2 and "M" in done.stderr
    done = moe.run("search", "moe.yaml", "--device", "fake", "--format", "vllm-w8a8", "--sweep", "M=8,9")
    assert done.returncode == 2 and "the space has no size K" in done.stderr
