"""Look-ups and kernels of vLLM and SGLang with files and spaces of autotune: `.ci/frameworks` has them."""

import ast
import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

from autotune.cli import main
from autotune.compilers.source_text import read_source
from autotune.compilers.triton_binary import unpack
from autotune.core.launch_plan import TRITON, symbol_names
from autotune.frameworks import FORMATS
from autotune.frameworks.config_file import TOKENS, Shape, load
from autotune.frameworks.lint import Kind, files_of, lint, summary
from autotune.hardware.architectures import architecture
from autotune.space import bind, load_space, problem_of
from tests.contract.test_framework_files import BEST, cached, tuned

VARIABLE = "AUTOTUNE_FRAMEWORKS"  # the folder with both packages
pytestmark = pytest.mark.skipif(VARIABLE not in os.environ, reason=f"{VARIABLE} names no folder of packages")
SITE = Path(os.environ.get(VARIABLE, ""))
PAGE = Path(__file__).parents[2] / "docs/measured-times.md"
EXAMPLES = Path(__file__).parents[2] / "examples/frameworks"
GPU = "NVIDIA H200"
READERS = {  # of each format: the file of the look-up, and its name
    "vllm-moe": ("vllm/model_executor/layers/fused_moe/fused_moe.py", "get_moe_configs"),
    "sglang-moe": (
        "sglang/srt/layers/moe/moe_runner/triton_utils/fused_moe_triton_config.py",
        "get_moe_configs",
    ),
    "vllm-w8a8": (
        "vllm/model_executor/layers/quantization/utils/fp8_utils.py",
        "get_w8a8_block_fp8_configs",
    ),
    "sglang-w8a8": ("sglang/kernels/ops/gemm/fp8_kernel.py", "get_w8a8_block_fp8_configs"),
}
each_format = pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)


def ignore(*words, **options):
    """In place of a logger."""


def functions_of(path, stands_in=Path("x.py")):
    """The functions of a framework's file, which says that it is `stands_in`, without what it imports."""
    tree = ast.parse((SITE / path).read_text())
    logger = SimpleNamespace(**dict.fromkeys(("info", "warning", "info_once", "warning_once"), ignore))
    no_determinism = SimpleNamespace(deterministic=SimpleNamespace(enable_deterministic_inference=False))
    names = {
        "__file__": str(stands_in),
        "cache": functools.cache,
        "functools": functools,
        "json": json,
        "os": os,
        "re": re,
        "logger": logger,
        "log_info_on_rank0": ignore,
        "envs": SimpleNamespace(
            VLLM_BATCH_INVARIANT=False, VLLM_TUNED_CONFIG_FOLDER=str(stands_in.parent / "configs")
        ),
        "current_platform": SimpleNamespace(is_rocm=lambda: False),
        "get_exec": lambda: no_determinism,
        "get_device_name": lambda: GPU,
        "torch": SimpleNamespace(_dynamo=SimpleNamespace(is_compiling=lambda: False)),
        "triton": SimpleNamespace(__version__="3.6.0"),
        "_is_cuda": True,
        "_is_hip": False,
        "_use_low_smem_fp8_default": lambda: False,
    }
    wanted = {one for _, one in READERS.values()} | {"get_config_file_name", "get_default_config"}
    wanted |= {"get_device_name_as_file_name"}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name in wanted:
            code = ast.Module([ast.ImportFrom("__future__", [ast.alias("annotations")], 0), node], [])
            exec(compile(ast.fix_missing_locations(code), str(path), "exec"), names)
    return names


def vllms_device(monkeypatch):
    """vLLM's own spelling of a device's name, on a platform that has one."""
    platforms = ModuleType("vllm.platforms")
    platforms.current_platform = SimpleNamespace(get_device_name=lambda _: GPU)
    monkeypatch.setitem(sys.modules, "vllm", ModuleType("vllm"))
    monkeypatch.setitem(sys.modules, "vllm.platforms", platforms)
    return functions_of("vllm/utils/platform_utils.py")["get_device_name_as_file_name"]


@pytest.mark.parametrize(
    ("form", "blocks"),
    [(form, blocks) for form in FORMATS.values() for blocks in (True, False) if blocks or form.asked],
    ids=lambda one: getattr(one, "name", "blocks" if one else "plain"),
)
def test_the_look_up_takes_what_is_written(form, blocks, tmp_path, monkeypatch):
    one = tuned(form, 16, blocks=blocks)
    cached(tmp_path, form, one)
    folder = tmp_path if form.subfolder else tmp_path / "configs"
    words = [
        "export",
        "product",
        "--format",
        form.name,
        "--cache",
        str(tmp_path / "cache"),
        "-o",
        str(folder),
    ]
    assert main(words) == 0
    file, name = READERS[form.name]
    look_up = functions_of(file, tmp_path / "x.py")
    look_up["get_device_name_as_file_name"] = vllms_device(monkeypatch)
    first, second = (one.sizes[size] for size in form.sizes)
    rest = (128, 128) if blocks else ()
    if form.sizes[0] == "E":
        found = look_up[name](first, second, "fp8_w8a8" if blocks else None, *rest)
    else:
        found = look_up[name](first, second, *rest)
    assert found == {16: dict(BEST)}


@each_format
def test_each_of_their_files_is_read_or_named(form):
    files = files_of(SITE / form.package / form.folder)
    findings = [*lint(files)]
    named = {one.path for one in findings if one.kind in (Kind.OTHER, Kind.BROKEN)}
    for path in files:
        if path not in named:
            assert form.shape(path.name) and load(form, path).entries
    numbers = re.search(rf"\| {re.escape(count_of[form.name])}: {len(files)} \|(.*)\|", PAGE.read_text())
    assert numbers, f"{form.name}: {len(files)} files"
    columns = [kind.value for kind in Kind] + ["without a finding"]
    said = dict(zip(columns, map(int, numbers[1].split("|")), strict=True))
    counted = {
        word: int(number) for number, word in re.findall(r"(\d+) ([a-z ]+)", summary(len(files), findings))
    }
    assert said == dict.fromkeys(columns, 0) | {word: counted[word] for word in columns if word in counted}


count_of = {
    "vllm-moe": "vLLM 0.33.0, MoE",
    "vllm-w8a8": "vLLM 0.33.0, products",
    "sglang-moe": "SGLang 0.5.23, MoE",
    "sglang-w8a8": "SGLang 0.5.23, products",
}


@pytest.mark.parametrize("block", [(128, 128), None], ids=["blocks", "plain"])
@pytest.mark.parametrize("name", ["vllm-moe", "sglang-moe"])
def test_defaults_are_those_of_the_framework(name, block):
    form = FORMATS[name]
    default = functions_of(READERS[name][0])["get_default_config"]
    for quantization in ("", "fp8_w8a8") if block or name == "vllm-moe" else ("",):
        if block and not quantization:
            continue
        sizes = {"E": 64, "N": 256} | ({"group_n": 128, "group_k": 128} if block else {})
        for tokens in (*TOKENS, 65, 8193):
            dtype, shape = quantization or None, list(block) if block else None
            marlin = (False,) if name == "sglang-moe" else ()
            theirs = default(tokens, 64, 256, 7168, 8, dtype, *marlin, shape)
            theirs = {"num_warps": 4, "num_stages": 3} | theirs
            theirs.pop("SPLIT_K", None)
            assert form.default(Shape(sizes, "NVIDIA_H200", quantization), tokens) == theirs, tokens


@pytest.mark.parametrize("name", sorted(path.stem for path in EXAMPLES.glob("*.yaml")))
def test_the_spaces_compile_for_sm_90(name, monkeypatch):
    from autotune.compilers.known_compilers import cuda_compiler  # needs Triton

    monkeypatch.syspath_prepend(str(SITE))
    spec, device = load_space(EXAMPLES / f"{name}.yaml"), architecture("sm_90").device
    launches = bind(spec, device, problem_of(spec, device)).launches(spec.default, spec.verify_sizes[0])
    source = read_source(spec.source)
    binary = cuda_compiler("sm_90", TRITON).compile(source.text, (), symbol_names(launches, ()))
    assert not source.hidden and unpack(binary).keys() == {step.entry for step in launches}


def test_the_spaces_agree_with_their_references_in_tritons_interpreter():
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(EXAMPLES.parents[1]), *sys.path, str(SITE)])
    program = Path(__file__).with_name("framework_spaces_interpreted.py")
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert len(found) == 36
    assert {case: error for case, error in found.items() if not error < 0.001} == {}
