"""Runs examples/frameworks on the CPU, in Triton's interpreter; prints relative differences.

The kernels are those of packages in PYTHONPATH; launches, arrays and inputs are those that a search makes.
"""

import ast
import importlib.util
import json
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

from autotune.compilers.source_text import read_source
from autotune.core.argument_values import arguments
from autotune.core.launch_plan import NO_ARRAY
from autotune.core.records import Config
from autotune.core.trials import Problem
from autotune.hardware.architectures import architecture
from autotune.problem.reference import load_function
from autotune.space import bind, load_space
from tests.contract.triton_interpreted import Tensor

FOLDER = Path(__file__).parents[2] / "examples" / "frameworks"
TILE = {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 16}
HIGHER = TILE | {"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 128, "GROUP_SIZE_M": 1}


def kernels_of(spec, folder):
    path = Path(folder) / f"{spec.kernel}.py"
    path.write_text(read_source(spec.source).text)
    specification = importlib.util.spec_from_file_location(spec.kernel, path)
    loaded = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(loaded)
    return loaded


def arrays_of(spec, passed, sizes):
    rng = np.random.default_rng(0)
    made = {}
    if any(item.fill and item.fill.kind == "inputs" for item in spec.arguments):
        made = load_function(spec.reference, "inputs", "a function")(sizes, rng, "zipf")
    types = {"float8_e4m3fn": ml_dtypes.float8_e4m3fn, "bfloat16": np.float16}
    for item in passed:
        dtype = types.get(item.dtype, item.dtype)
        if item.role == "in" and item.name not in made:
            fill = rng.standard_normal if item.dtype != "float32" else rng.random
            made[item.name] = fill(item.shape).astype(dtype)
        elif item.role == "out":
            made[item.name] = np.full(item.shape, np.nan, dtype)
    return made


def difference(name, sizes, tile, folder):
    """The largest difference from the reference, in parts of its largest element."""
    spec = load_space(FOLDER / f"{name}.yaml")
    device = architecture("sm_90").device
    space = bind(spec, device, Problem({**spec.sizes["default"], **sizes}, "float16", data="zipf"))
    config = Config({**spec.default, **tile})
    assert config in space, space.why_invalid(config)
    sizes = space.problem.sizes
    passed = {item.name: item for item in arguments(spec.arguments, space.values(config), "float16")}
    arrays, kernels = arrays_of(spec, passed.values(), sizes), kernels_of(spec, folder)

    def value(argument):
        if argument.value is not None:
            return argument.value
        if not argument.of:
            return Tensor(arrays[argument.name])
        whole = arrays[argument.of]
        return Tensor(whole[argument.offset_bytes // whole.itemsize :])

    for step in space.launches(config, {}):
        call = ast.parse(step.entry, mode="eval").body
        constants = {item.arg: ast.literal_eval(item.value) for item in call.keywords}
        names = iter(step.arguments)
        given = [None if one.value == NO_ARRAY else value(passed[next(names)]) for one in call.args]
        if "compute_type" in constants:
            constants["compute_type"] = getattr(kernels.tl, constants["compute_type"])
        getattr(kernels, call.func.id)[step.grid](*given, **constants)
    outputs = [item.name for item in passed.values() if item.role == "out"]
    every = {one: np.arange(arrays[one].size) for one in outputs}
    found = load_function(spec.reference, "reference", "a function")(arrays, sizes, every)
    return max(
        float(np.abs(found[one] - arrays[one].ravel()).max() / np.abs(found[one]).max()) for one in outputs
    )


def tiles(name):
    """Tiles that differ in all that a launch depends on."""
    # with others as low as this, SGLang's kernel of float8 needs an earlier Triton: it indexes a number
    higher = HIGHER | {"BLOCK_SIZE_N": 256} if name == "sglang_moe" else HIGHER
    return (TILE, higher, TILE | {"BLOCK_SIZE_M": 8}) if "moe" in name else (TILE, higher)


if __name__ == "__main__":
    gemm, moe = {"N": 48, "K": 192, "M": 17}, {"N": 48, "K": 192, "top_k": 2}
    cases = {
        "vllm_w8a8": [gemm, gemm | {"M": 1}],
        "sglang_w8a8": [gemm],
        "vllm_moe_16bit": [moe | {"M": 1, "E": 16}, moe | {"M": 19, "E": 4}],
        "sglang_moe_16bit": [moe | {"M": 1, "E": 16}, moe | {"M": 19, "E": 4}],
        "sglang_moe": [moe | {"M": 1, "E": 16}, moe | {"M": 3, "E": 3}, moe | {"M": 19, "E": 4}],
        "vllm_moe": [moe | {"M": 1, "E": 16}, moe | {"M": 3, "E": 3}, moe | {"M": 19, "E": 4}],
    }
    with tempfile.TemporaryDirectory() as folder:
        found = {
            f"{name} {sizes} {tile}": difference(name, sizes, tile, folder)
            for name in cases
            for sizes in cases[name]
            for tile in tiles(name)
        }
    sys.stdout.write(json.dumps(found))
