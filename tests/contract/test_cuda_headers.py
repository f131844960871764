"""Sources as they are, with the headers that they include, under NVRTC."""

from pathlib import Path

import pytest

from autotune.compilers import cuda_headers
from autotune.compilers.cuda_headers import find_header
from autotune.compilers.known_compilers import cuda_compiler
from autotune.errors import CompileError

pytest.importorskip("cuda.bindings.nvrtc")
from autotune.compilers import nvrtc

PROGRAM = """
#include <iostream>
#include <vector>
#include "cuda_runtime.h"
#include "helper_cuda.h"
__global__ void kernel(float *x, uint32_t n) { if (threadIdx.x < n) x[threadIdx.x] = INFINITY * FLT_MAX; }
int main() { std::vector<float> x(4); kernel<<<1, 4>>>(x.data(), 4); std::cout << x[0] << std::endl; }
"""
LIBRARIES = {
    "cub/cub.cuh": "typedef cub::BlockReduce<int, 128> Reduce; __shared__ typename Reduce::TempStorage room; "
    "int sum = Reduce(room).Sum(x[threadIdx.x]); if (threadIdx.x == 0) x[0] = sum;",
    "thrust/functional.h": "x[0] = thrust::plus<int>()(x[0], x[1]);",
    "cuda/std/limits": "x[0] = cuda::std::numeric_limits<int>::max();",
    "cuda_bf16.h": "x[0] = (int)(float)__float2bfloat16(1.5f);",
    "mma.h": "nvcuda::wmma::fragment<nvcuda::wmma::accumulator, 16, 16, 16, float> sums; "
    "nvcuda::wmma::fill_fragment(sums, 1.0f); x[0] = (int)sums.x[0];",
}


def test_a_whole_program_compiles_and_only_its_kernel_counts():
    binary = cuda_compiler("sm_90").compile(PROGRAM, (), ("kernel",))
    assert binary.symbols == {"kernel": "_Z6kernelPfj"}


def test_a_storage_class_that_nvcc_passes_over_compiles():
    text = "__global__ void kernel(int *x) { register int first = x[0]; x[1] = first; }"
    assert cuda_compiler("sm_90").compile(text, (), ("kernel",)).registers > 0


@pytest.mark.parametrize("header", LIBRARIES)
def test_headers_of_the_toolkit_are_found_by_themselves_and_a_source_with_cub_is_compiled_once(
    header, monkeypatch
):
    if find_header(header) is None:
        pytest.skip(f"{header} is not installed")
    flags = []
    run = nvrtc._run

    def noted(source, own, *rest, **options):
        flags.append(own)
        return run(source, own, *rest, **options)

    monkeypatch.setattr(nvrtc, "_run", noted)
    source = f"#include <{header}>\n__global__ void kernel(int *x) {{ {LIBRARIES[header]} }}\n"
    assert cuda_compiler("sm_90").compile(source, (), ("kernel",)).registers > 0
    assert ("--minimal" in flags[0]) is (not header.startswith("cub/"))
    assert len(flags) == 1 or "--minimal" in flags[0]


@pytest.mark.parametrize(
    ("header", "is_installed", "advice"),
    [
        ("curand_gone.h", False, "pip install nvidia-curand"),
        ("curand_gone.h", True, "name its folder in include_dirs"),
        ("mine/gone.h", False, "name its folder in include_dirs"),
    ],
)
def test_a_missing_header_that_a_kernel_needs_says_what_to_do(header, is_installed, advice, monkeypatch):
    found = Path("curand.h") if is_installed else None
    monkeypatch.setattr(cuda_headers, "find_header", {"curand.h": found}.get)
    with pytest.raises(CompileError) as error:
        cuda_compiler("sm_90").compile(f"#include <{header}>\n__global__ void kernel() {{ gone(); }}\n", ())
    assert str(error.value).startswith(f"the header {header} is not found: {advice}")


def test_types_of_curand_are_its_own_where_it_is_installed(tmp_path, monkeypatch):
    (tmp_path / "curand.h").write_text("typedef int curandMethod_t;\n")
    monkeypatch.setattr(cuda_headers, "include_dirs", lambda: (tmp_path,))
    monkeypatch.setattr(cuda_headers, "stand_ins", cuda_headers.stand_ins.__wrapped__)
    source = "#include <curand.h>\n__global__ void kernel(curandMethod_t *x) { x[0] = 1; }\n"
    assert cuda_compiler("sm_90").compile(source, (), ("kernel",)).registers > 0


def test_an_error_of_the_source_is_told_before_those_of_headers_for_programs():
    if find_header("thrust/remove.h") is None:
        pytest.skip("Thrust is not installed")
    source = "#include <thrust/remove.h>\n__global__ void kernel(int *x) { x[0] = gone; }\n"
    with pytest.raises(CompileError, match=r'^kernel.cu\(2\): error: identifier "gone" is undefined'):
        cuda_compiler("sm_90").compile(source, (), ("kernel",))
