"""Which calls of tensors PyTorch recognises, with a stand-in for its check, which needs no GPU."""

import ctypes
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from autotune.hardware.cuda_driver import PointerQuestion
from autotune.runtime import packages
from autotune.runtime.packages import Recogniser, call_key
from autotune.runtime.torch_tensors import GuardingReader


class Tensors:
    """A package whose readings and checks are counted; a tensor's signature is its shape."""

    def __init__(self) -> None:
        self.readings = self.checks = 0

    def read(self, arrays, stream):
        self.readings += 1
        handles = [0 if array is None else array.data_ptr() for array in arrays]
        return call_key(stream or 7, hash(tuple(array and array.shape for array in arrays)), handles), handles

    def guards(self, *arrays, **_):
        """As PyTorch's: it knows types and shapes, and accepts no tensor twice."""
        self.checks += 1
        shapes = [array.shape for array in arrays]

        def check(*others):
            is_known = [getattr(array, "shape", None) for array in others] == shapes
            return is_known and len({*map(id, others)}) == len(others)

        return SimpleNamespace(check=check)

    def current_stream(self, array):
        return lambda: 7


def tensor(address, shape=(4,)):
    return SimpleNamespace(shape=shape, requires_grad=False, data_ptr=lambda: address)


X, Y, SKEW, WIDE = tensor(256), tensor(512), tensor(516), tensor(768, (8,))


@pytest.mark.parametrize(
    ("arrays", "readings", "checks"),
    [((X, Y), 2, 1), ((X, SKEW), 2, 1), ((X, X), 6, 0), ((X, None), 6, 0)],
    ids=["usual", "not aligned", "a tensor twice", "an absent one"],
)
def test_a_check_is_made_once_and_only_for_arrays_that_it_can_accept(arrays, readings, checks):
    package, recognisers = Tensors(), dict[int, Recogniser]()
    read = GuardingReader(package, recognisers).read
    found = [read(arrays, None) for _ in range(6)]
    assert found == [Tensors().read(arrays, None)] * 6
    assert (package.readings, package.checks) == (readings, checks)


class Allocation:
    """Memory as PyCUDA has it: a number that can have attributes."""

    def __int__(self):
        return 256


@pytest.mark.parametrize("memory", [Allocation(), 256, np.int64(256)], ids=["whole", "part", "part by numpy"])
def test_memory_of_pycuda_is_asked_for_whatever_kind_of_number_it_is(monkeypatch, memory):
    answer = PointerQuestion(lambda: 0, ctypes.c_int(3))
    monkeypatch.setattr(packages, "pointer_question", {256: answer}.__getitem__)
    array = SimpleNamespace(gpudata=memory, shape=(4,), dtype=np.dtype("f4"), strides=(4,))
    ((stream, signature), handles) = packages.PycudaPackage().read([array], None)
    assert (stream, signature[1:], handles) == (packages.LEGACY, ((4,), array.dtype, (4,), 3), [256])


def test_other_arrays_and_streams_are_told_apart_from_those_that_are_recognised():
    read = GuardingReader(Tensors(), {}).read
    calls = [((X, Y), None), ((X, Y), None), ((Y, X), None), ((X, Y), 9), ((X, WIDE), None), ((X, X), None)]
    assert [read(*call) for call in calls] == [Tensors().read(*call) for call in calls]


def test_an_output_of_structures_is_allocated_by_pycuda(monkeypatch):
    gpuarray = SimpleNamespace(
        empty=lambda shape, dtype, allocator: SimpleNamespace(dtype=dtype, gpudata=512)
    )
    monkeypatch.setitem(sys.modules, "pycuda.gpuarray", gpuarray)
    make = packages.PycudaPackage().empty(None, (4,), "struct(x:float32,n:int32)")
    made, handle = make(SimpleNamespace(allocator=None))
    assert made.dtype.names == ("x", "n") and handle == 512
