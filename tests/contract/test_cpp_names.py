"""Kernels by their names in C++: plain, overloaded, in namespaces, instances of templates."""

import shutil

import pytest

from autotune.compilers.binary_cache import BinaryCache, CachedCompiler
from autotune.compilers.known_compilers import cuda_compiler
from autotune.compilers.resource_usage import read_resources
from autotune.errors import CompileError

pytest.importorskip("cuda.bindings.nvrtc")

SOURCE = """
#define WIDTH 4
extern "C" __global__ void plain_c(float *x) { x[0] = 1; }
__global__ void plain(float *x) { x[0] = 1; }
__global__ void scale(float *x) { x[0] *= 2; }
__global__ void scale(int *x, int by) { x[0] *= by; }
template <class T, int N> __global__ void fill(T *x) { x[0] = N; }
namespace outer {
namespace {
__global__ void hidden(float *x) { x[0] = 2; }
}
__constant__ float filter[4];
static __global__ void local(float *x) { x[0] = filter[0]; }
}
"""
NAMES = (
    "plain_c",
    "plain",
    "scale(float *)",
    "scale(int *, int)",
    "fill<float, WIDTH>",
    "fill<double, 8>",
    "outer::hidden",
    "outer::local",
)


def compiler_of(kind):
    if kind == "nvcc" and shutil.which("nvcc") is None:
        pytest.skip("no nvcc on the PATH")
    return cuda_compiler("sm_90", kind)


@pytest.mark.parametrize("kind", ["nvrtc", "nvcc"])
def test_every_name_is_that_of_another_kernel_in_the_binary(kind):
    binary = compiler_of(kind).compile(SOURCE, (), (*NAMES, "outer::filter"))
    symbols = [binary.symbol(name) for name in NAMES]
    assert len(set(symbols)) == len(NAMES)
    assert set(symbols) == read_resources(binary.data).keys()
    assert binary.symbol("plain_c") == "plain_c"
    assert binary.symbol("outer::filter").startswith("_ZN5outer6filter")


def test_a_kept_binary_tells_the_same_names(tmp_path):
    compiler = CachedCompiler(cuda_compiler("sm_90"), BinaryCache(tmp_path))
    made = compiler.compile(SOURCE, (), NAMES[:2])
    found = compiler.compile(SOURCE, (), NAMES[:2])
    assert found.cached and found.symbols == made.symbols == {"plain": "_Z5plainPf"}
    assert not compiler.compile(SOURCE, (), NAMES[2:4]).cached


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "nothing",
            'no such kernel or variable: nothing (identifier "nothing" is undefined); '
            "the source has plain_c, plain, scale, fill, hidden, local",
        ),
        ("scale", "scale is overloaded: write its argument types behind it, such as scale(float *, int)"),
    ],
)
def test_a_name_that_cannot_be_looked_up_says_why(name, message):
    with pytest.raises(CompileError) as error:
        cuda_compiler("sm_90").compile(SOURCE, (), (name,))
    assert str(error.value) == message
