"""Calls a kernel under `tuned` on the CPU, in Triton's interpreter.

A program of its own, because the interpreter is chosen when Triton is imported.
"""

import tempfile
from pathlib import Path

import numpy as np

from autotune.compilers.triton_modules import executed
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


if __name__ == "__main__":
    softmax, n = load_space(ROOT / "spaces/triton_softmax.yaml"), 70
    x = np.random.default_rng(0).standard_normal((3, n)).astype(np.float16)
    y = np.full_like(x, np.nan)
    config = Config({"ROWS": 1, "BLOCK": 1024, "num_warps": 8, "num_stages": 1})
    entry = Entry({"m": 3, "n": n}, "float16", config, 1.0, (0.9, 1.1), 2.0, (), PROVENANCE)
    with tempfile.TemporaryDirectory() as cache:
        store(Path(cache), architecture("sm_90").device, record_of(softmax, "", entry))
        kernel = executed(softmax.source.read_text()).softmax
        tuned("triton_softmax", cache=Path(cache))(kernel)[(3,)](Tensor(x), Tensor(y), 3, n)
    expected = np.exp(x.astype(np.float64))
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.abs(y - expected).max() < 0.002, y  # NaN is not less, either
