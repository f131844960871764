"""`lint-configs`: what is wrong with files of configurations, by the file alone."""

import json

import pytest

from autotune.cli import main
from autotune.frameworks.config_file import TOKENS
from autotune.frameworks.lint import Kind

GOOD = {
    "BLOCK_SIZE_M": 16,
    "BLOCK_SIZE_N": 64,
    "BLOCK_SIZE_K": 128,
    "GROUP_SIZE_M": 1,
    "num_warps": 4,
    "num_stages": 3,
}
VLLM = "N=512,K=7168,device_name=NVIDIA_L40S,dtype=fp8_w8a8,block_shape=[128,128].json"
SGLANG = VLLM.replace("[128,128]", "[128, 128]")
MOE = "E=8,N=4096,device_name=NVIDIA_H100_80GB_HBM3.json"


@pytest.fixture
def lint(tmp_path, capsys):
    """The findings about a file, by kind, and the exit code."""

    def run(name, entries, *words, folder="vllm"):
        path = tmp_path / folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(entries if isinstance(entries, str) else json.dumps(entries))
        code = main(["lint-configs", str(path), "--json", *words])
        found = json.loads(capsys.readouterr().out)
        return code, {Kind(one["kind"]): one["finding"] for one in found}

    return run


def entries(tokens=TOKENS, **changed):
    return {str(one): GOOD | changed for one in tokens}


@pytest.mark.parametrize(("name", "folder"), [(VLLM, "vllm"), (SGLANG, "sglang")])
def test_a_complete_file_has_no_finding(lint, name, folder):
    assert lint(name, entries(), folder=folder) == (0, {})


def test_missing_numbers_of_tokens_are_listed(lint):
    _, found = lint(VLLM, entries([1, 4096]))
    assert "no entry for M = 2, 4, 8, 16" in found[Kind.INCOMPLETE]


def test_a_file_of_the_last_worker_is_recognised(lint):
    _, found = lint(VLLM, entries([2048, 3072, 4096]))
    assert "the last worker of a tuning on several GPUs has replaced the file" in found[Kind.INCOMPLETE]


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"BLOCK_SIZE_K": 256}, "BLOCK_SIZE_K=256 does not divide the block of 128: results are wrong"),
        ({"BLOCK_SIZE_N": 48}, "BLOCK_SIZE_N=48 is no power of two"),
        ({"num_warps": 6}, "num_warps=6 is not 1, 2, 4, 8, 16 or 32"),
        ({"BLOCK_SIZE_M": 256, "num_stages": 5}, "need at least 163,840 bytes of shared memory"),
    ],
)
def test_an_entry_that_cannot_run_is_broken(lint, changed, said):
    code, found = lint(VLLM, entries() | entries([8, 16], **changed))
    assert code == 1 and found[Kind.BROKEN].startswith("M = 8, 16: ") and said in found[Kind.BROKEN]


def test_tiles_of_16_bits_need_twice_the_shared_memory(lint):
    tile = {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 128, "num_stages": 5}
    assert "262,144 bytes" in lint(MOE, entries(**tile))[1][Kind.BROKEN]
    float8 = MOE.replace(".json", ",dtype=fp8_w8a8.json")
    assert Kind.BROKEN not in lint(float8, entries(**tile))[1]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1]", "expected an object"),
        ("{", "Expecting property name"),
        ('{"triton_version": "3.6.0"}', "expected a number of tokens as the key, found 'triton_version'"),
        ('{"1": null}', "1: expected an object"),
        ('{"1": {"BLOCK_SIZE_M": 16}}', "1.BLOCK_SIZE_N: expected a whole number"),
        ('{"1": {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": -1}}', "1.BLOCK_SIZE_N: expected a whole number"),
        (json.dumps({"1": GOOD | {"num_stages": "3"}}), "1.num_stages: expected a whole number"),
        (json.dumps({"1": GOOD | {"num_warps": None}}), "1.num_warps: expected a number"),
        ("{}", "expected an entry"),
        ("[" * 100_000, "nested too deeply"),
    ],
)
def test_what_the_framework_cannot_read_is_broken(lint, text, said):
    code, found = lint(VLLM, text)
    assert code == 1 and said in found[Kind.BROKEN]


def test_only_vllms_moe_files_may_state_tritons_version(lint):
    stated = {"triton_version": "3.6.0", **entries()}
    assert Kind.BROKEN not in lint(MOE, stated)[1]
    assert "found 'triton_version'" in lint(MOE, stated, folder="sglang")[1][Kind.BROKEN]


@pytest.mark.parametrize(
    ("name", "folder", "said"),
    [
        (VLLM.replace("fp8", "int8"), "vllm", "no look-up asks for dtype=int8_w8a8 with a block_shape"),
        (SGLANG, "vllm", f"no look-up asks for this name, but for {VLLM}"),
        (VLLM, "sglang", f"but for {SGLANG}"),
        (MOE.replace(".json", ",dtype=bf16.json"), "vllm", "no look-up asks for dtype=bf16"),
        (
            "E=8,N=64,device_name=NVIDIA_H200_NVL.json",
            "vllm",
            "but for E=8,N=64,device_name=NVIDIA_H200.json",
        ),
        (VLLM.replace("L40S", "H200"), "vllm", "takes DeepGEMM or CUTLASS"),
        (MOE.replace("H100_80GB_HBM3", "B200"), "vllm", "takes FlashInfer or DeepGEMM on this GPU"),
    ],
)
def test_a_file_that_is_not_read_is_named(lint, name, folder, said):
    assert said in lint(name, entries(), folder=folder)[1][Kind.UNREAD]


def test_a_default_that_the_frameworks_tuner_cannot_find_is_named(lint):
    blocks = MOE.replace(".json", ",dtype=fp8_w8a8,block_shape=[128,128].json")
    _, found = lint(blocks, entries(BLOCK_SIZE_N=128))
    assert found[Kind.UNTRIED].startswith("M = 1, 2, 4, 8: vllm's tuner does not try vllm's default, so")
    assert Kind.UNTRIED not in lint(blocks, entries(BLOCK_SIZE_N=64))[1]  # no file of that tuner


def test_files_of_other_kinds_are_named_and_not_checked(lint):
    for name in (MOE.replace(".json", ",backend=flydsl.json"), "E=1,N=2,device_name=.json"):
        assert Kind.OTHER in lint(name, {"1": {"tile_m": 16}})[1]


def test_a_folder_is_checked_with_its_subfolders_and_summed_up(tmp_path, capsys):
    for number, name in enumerate((VLLM, MOE)):
        path = tmp_path / f"vllm/{number}" / name
        path.parent.mkdir(parents=True)
        path.write_text(json.dumps(entries()))
        path.with_name(name.replace(".json", ".provenance.json")).write_text("{")
    assert main(["lint-configs", str(tmp_path)]) == 0
    assert capsys.readouterr().out == "2 files: 2 without a finding\n"
    assert main(["lint-configs", str(tmp_path / "nothing")]) == 2
    assert "no file, or a folder without files such as E=8" in capsys.readouterr().err
