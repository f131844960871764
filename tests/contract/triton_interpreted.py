"""Runs the Triton kernels on the CPU, in Triton's interpreter, and prints how far they are from numpy.

A program of its own, because the interpreter is chosen when Triton is imported.
"""

import importlib.util
import json
import sys
import tempfile
from pathlib import Path

import ml_dtypes
import numpy as np

from autotune.core.records import Config, Entry
from autotune.hardware.architectures import architecture
from autotune.serving.cache import store
from autotune.space import load_space
from autotune.triton import tuned
from autotune.tuning.cache_entry import record_of
from tests.cache_example import PROVENANCE

ROOT = Path(__file__).parents[2]


class Storage:
    """The memory of an array, as the interpreter copies it to the host and back."""

    def __init__(self, array):
        self._array = array

    def data_ptr(self):
        return self._array.ctypes.data

    def cpu(self):
        return self

    def copy_(self, other):
        assert other._array is self._array


class Tensor:
    """An array of numpy with what the interpreter asks of a tensor; all of them share one memory."""

    device = "cpu"

    def __init__(self, array):
        self._array = array
        self.dtype, self.shape = f"torch.{array.dtype.name}", array.shape
        self.data_ptr = Storage(array).data_ptr

    def untyped_storage(self):
        return Storage(self._array)

    def new_empty(self, *_, **__):
        return Tensor(self._array)

    def set_(self, *_):
        pass

    def storage_offset(self):
        return 0

    def size(self):
        return self._array.shape

    def stride(self):
        return tuple(step // self._array.itemsize for step in self._array.strides)


def module(name):
    spec = importlib.util.spec_from_file_location(name, ROOT / "kernels" / f"{name}.py")
    loaded = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(loaded)
    return loaded


def half(*shape):
    return np.random.default_rng(len(shape)).standard_normal(shape).astype(np.float16)


def difference(name, inputs, sizes, outputs):
    indices = {output: np.arange(array.size) for output, array in outputs.items()}
    found = module(name).reference(inputs, sizes, indices)
    return max(float(np.abs(found[one] - array.ravel()).max()) for one, array in outputs.items())


def matmul(m, n, k, **constants):
    a, b, c = half(m, k), half(k, n), np.full((m, n), np.nan, np.float16)
    programs = -(-m // constants["BLOCK_M"]) * -(-n // constants["BLOCK_N"])
    kernel = module("triton_matmul").matmul
    kernel[(programs,)](*map(Tensor, (a, b, c)), m, n, k, EVEN_K=k % constants["BLOCK_K"] == 0, **constants)
    return difference("half_matmul", {"a": a, "b": b}, {"m": m, "n": n, "k": k}, {"c": c})


def matmul_float8(m, n, k, **constants):
    a, b = (half(*shape).astype(ml_dtypes.float8_e4m3fn) for shape in ((m, k), (n, k)))
    c, programs = (
        np.full((m, n), np.nan, np.float16),
        -(-m // constants["BLOCK_M"]) * -(-n // constants["BLOCK_N"]),
    )
    kernel = module("triton_matmul_float8").matmul
    kernel[(programs,)](*map(Tensor, (a, b, c)), m, n, k, EVEN_K=k % constants["BLOCK_K"] == 0, **constants)
    return difference("float8_matmul", {"a": a, "b": b}, {"m": m, "n": n, "k": k}, {"c": c})


def matmul_persistent(m, n, k, programs, **constants):
    a, b, c = half(m, k), half(k, n), np.full((m, n), np.nan, np.float16)
    kernel = module("triton_matmul").matmul_persistent
    kernel[(programs,)](*map(Tensor, (a, b, c)), m, n, k, SPECIALIZED=False, **constants)
    return difference("half_matmul", {"a": a, "b": b}, {"m": m, "n": n, "k": k}, {"c": c})


def softmax(m, n, **constants):
    x, y = half(m, n), np.full((m, n), np.nan, np.float16)
    kernel = module("triton_softmax").softmax
    kernel[(-(-m // constants["ROWS"]),)](
        Tensor(x), Tensor(y), m, n, ONE_STEP=constants["BLOCK"] >= n, **constants
    )
    return difference("softmax", {"x": x}, {"m": m, "n": n}, {"y": y})


def softmax_as_tuned(m, n):
    x, y, device = half(m, n), np.full((m, n), np.nan, np.float16), architecture("sm_90").device
    config = Config({"ROWS": 1, "BLOCK": 1024, "num_warps": 8, "num_stages": 1})
    entry = Entry({"m": m, "n": n}, "float16", config, 1.0, (0.9, 1.1), 2.0, (), PROVENANCE)
    with tempfile.TemporaryDirectory() as cache:
        store(Path(cache), device, record_of(load_space(ROOT / "spaces/triton_softmax.yaml"), "", entry))
        kernel = tuned("triton_softmax", cache=Path(cache))(module("triton_softmax").softmax)
        kernel[(m,)](Tensor(x), Tensor(y), m, n)
    return difference("softmax", {"x": x}, {"m": m, "n": n}, {"y": y})


def layer_norm(m, n, **constants):
    inputs = {"x": half(m, n), "weight": half(n), "bias": half(n)}
    outputs = {"y": np.full((m, n), np.nan, np.float16)}
    outputs |= {name: np.full(m, np.nan, np.float32) for name in ("means", "scales")}
    arrays = map(Tensor, (*inputs.values(), *outputs.values()))
    kernel, is_one = module("triton_layer_norm").layer_norm, constants["BLOCK"] >= n
    kernel[(-(-m // constants["ROWS"]),)](*arrays, m, n, 1e-5, ONE_STEP=is_one, **constants)
    return difference("layer_norm", inputs, {"m": m, "n": n}, outputs)


def attention(heads, n, d, entry="attention", **constants):
    inputs, out = {name: half(heads, n, d) for name in "qkv"}, np.full((heads, n, d), np.nan, np.float16)
    arrays, grid = map(Tensor, (*inputs.values(), out)), (-(-n // constants["BLOCK_M"]), heads)
    is_even = n % constants["BLOCK_N"] == 0
    kernel = getattr(module("triton_attention"), entry)
    kernel[grid](*arrays, n, d**-0.5, HEAD_DIM=d, EVEN_N=is_even, **constants)
    return difference("attention", inputs, {"heads": heads, "n": n, "d": d}, {"out": out})


def reduce(n, programs, **constants):
    x, partials, total = (
        half(n).astype(np.float32),
        np.full(programs, np.nan, np.float32),
        np.empty(1, np.float32),
    )
    kernels = module("triton_reduce")
    kernels.partial_sums[(programs,)](Tensor(x), Tensor(partials), n, **constants)
    kernels.sum_partials[(1,)](Tensor(partials), Tensor(total), programs, COUNT=8)
    return abs(float(total[0]) - float(x.sum(dtype=np.float64)))


if __name__ == "__main__":
    found = {
        "matmul": matmul(33, 40, 20, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, GROUP_M=2),
        "matmul, whole tiles": matmul(32, 32, 32, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, GROUP_M=1),
        "matmul, float8": matmul_float8(33, 40, 20, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, GROUP_M=2),
        "matmul, persistent": matmul_persistent(33, 40, 24, 3, BLOCK_M=16, BLOCK_N=16, BLOCK_K=16, GROUP_M=2),
        "softmax, one step": softmax(3, 30, ROWS=2, BLOCK=32),
        "softmax, two passes": softmax(3, 70, ROWS=2, BLOCK=32),
        "softmax, as tuned": softmax_as_tuned(3, 70),
        "layer norm, one step": layer_norm(3, 30, ROWS=2, BLOCK=32),
        "layer norm, three passes": layer_norm(3, 70, ROWS=2, BLOCK=32),
        "attention": attention(2, 40, 16, BLOCK_M=16, BLOCK_N=16),
        "attention, whole blocks": attention(1, 32, 16, BLOCK_M=16, BLOCK_N=16),
        "attention by tensors": attention(2, 40, 16, "attention_by_tensors", BLOCK_M=16, BLOCK_N=16),
        "reduce": reduce(1000, 5, BLOCK=64, UNROLL=2),
    }
    json.dump(found, sys.stdout)
