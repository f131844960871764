"""What `autotune new` says of a CUDA file whose default does not compile: the cause, and what to do."""

import pytest

from autotune.core.text import first_error
from autotune.drafting import compiled_draft, complaints
from autotune.drafting.compiled_draft import has_nvrtc
from autotune.drafting.missing_definitions import what_helps
from autotune.drafting.space_draft import KernelFile
from autotune.scaffold import scaffold

pytestmark = pytest.mark.skipif(not has_nvrtc(), reason="NVRTC is not installed")
AT = "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n)"


@pytest.fixture
def said(tmp_path, monkeypatch):
    """The line about a source with its headers, on a machine without nvcc."""
    for module in (compiled_draft, complaints):
        monkeypatch.setattr(module, "find_tool", lambda name: None)

    def line(text, **headers):
        for name, header in headers.items():
            (tmp_path / f"{name}.cuh").write_text(header)
        path = tmp_path / "k.cu"
        path.write_text(text)
        return complaints.refused_c(compiled_draft.compiled_scaffold(KernelFile(path, "k", "k.py")), path, ())

    return line


def kernel(value, before=""):
    return f"{before}__global__ void k(float *y, const float *x, int n) {{ {AT} y[i] = {value}; }}\n"


def test_a_warning_about_a_variable_called_error_is_none():
    log = 'k.cu(3): warning #177-D: variable "error" was declared\nk.cu(5): error: expected a ";"\n'
    assert first_error(log) == 'k.cu(5): error: expected a ";"'
    assert first_error('k.cu(5): error: no "warning" is here') == 'k.cu(5): error: no "warning" is here'


def test_an_error_in_a_header_names_the_include_that_leads_there(said):
    line = said(
        "// two lines\n" + kernel("odd(x[i])", '#include "outer.cuh"\n'),
        outer='#pragma once\n#include "inner.cuh"\n',
        inner="#pragma once\n__device__ float odd(float x) { return x % 4; }\n",
    )
    assert line.startswith("inner.cuh(2): error: ")
    assert line.endswith("; k.cu:2 leads there: correct it, or move the kernel into a file that does without")


def test_the_hosts_library_in_a_header_is_the_cause(said):
    header = (
        "#include <vector>\nstruct Sums { std::vector<float> all; __device__ int size() { return 1; } };\n"
    )
    line = said(kernel("x[i] + Sums().size()", '#include "sums.cuh"\n'), sums=header)
    assert line.startswith("sums.cuh(2): error: ")
    assert line.endswith(
        "; k.cu:1 leads there, to the host's library: move the kernel into a file that does without, or "
        "write `compiler: nvcc` into k.yaml if nvcc takes it"
    )


def test_the_hosts_library_in_a_kernel_is_no_mistake_of_its_line(said):
    line = said(kernel("thrust::default_random_engine(n)()", "#include <thrust/sort.h>\n"))
    assert "; kernels do not have all of the host's library: write that line without it, or write" in line


@pytest.mark.parametrize(
    ("check", "guesses"),
    [
        ('static_assert(N > 5000 && N % 3 == 0, "large");', "T=float, N=1 are guesses"),
        ("y[0].total = 1;", "T=float, N=1 are guesses"),
    ],
)
def test_an_instance_that_was_guessed_is_said_to_be_a_guess(said, check, guesses):
    head = "template <typename T, int N> __global__ void k(T *y, const T *x, int n)"
    line = said(f"{head} {{ {check} {AT} y[i] = x[i] + N; }}\n")
    assert line.endswith(f"; {guesses}: give what your program passes, in k.yaml")


def test_a_mistake_of_the_source_is_to_be_corrected_there(said):
    assert said(kernel("x[i] +")) == (
        "k.cu(1): error: expected an expression; correct that line, or write `compiler: nvcc` into k.yaml if "
        "nvcc takes it"
    )


def test_a_call_that_another_file_has_a_function_for_names_that_file(said):
    line = said(
        kernel("make_float2(x[i]).x"), vectors="__device__ float2 make_float2(float x) { return {x, x}; }\n"
    )
    assert line == (
        "k.cu(1): error: too few arguments in function call; vectors.cuh defines make_float2, too: write "
        '#include "vectors.cuh" at the top of k.cu'
    )


def test_a_guessed_type_behind_a_line_of_a_header_is_named(said):
    header = '__device__ REAL sum(REAL x) { return x + 1; }\n__device__ REAL odd(REAL x) { return "text"; }\n'
    line = said(kernel("sum(odd(x[i]))", '#include "real.cuh"\n'), real=header)
    assert line.startswith("real.cuh(2): error: ") and line.endswith(
        "; REAL=float is a guess: give what your program defines, with --define"
    )


def test_concepts_are_compiled_as_the_newer_language(said):
    header = "template <typename T> concept Sum = requires(T a) { a + a; };\n"
    header += "template <Sum T> __device__ T twice(T a) { return a + a; }\n"
    assert said(kernel("twice(x[i])", '#include "sum.cuh"\n'), sum=header) == ""


def test_a_kernel_with_the_name_of_another_function_is_told_by_its_types():
    text = "__device__ void k(float *y) { y[0] = 1; }\n" + kernel("x[i]")
    assert scaffold("k.cu", "k", text).kernel.entry == "k(float *, const float *, int)"


def test_a_function_of_the_host_and_one_of_another_file_are_named(tmp_path):
    path, called = tmp_path / "k.cu", kernel("twice(x[i])")
    path.write_text(called)
    (tmp_path / "other.cu").write_text("__device__ float twice(float x) { return 2 * x; }\n")
    error = 'k.cu(1): error: calling a __host__ function("twice(float)") from a __global__ function("k")'
    assert what_helps(error, path, called, "cuda") == (
        "; kernels cannot call twice: write __device__ before it, or call another function"
    )
    error = "nvlink error   : Undefined reference to '_Z5twicef' in 'kernel.o'"
    assert what_helps(error, path, called, "cuda") == (
        '; other.cu defines twice: write #include "other.cu" at the top of k.cu'
    )
    (tmp_path / "other.cu").unlink()
    part = "struct twice { __device__ twice(float x); };\n"
    assert what_helps(error.replace("_Z5twicef", "_ZN5twiceC1Ef"), path, part + called, "cuda") == (
        "; another file has code of twice: write #include of that at the top of k.cu"
    )
    error = 'k.cu(1): error: identifier "twice" is undefined'
    assert what_helps(error, path, f"float twice(float x) {{ return 2 * x; }}\n{called}", "cuda") == (
        "; twice is a function of the host: write __device__ before it, or leave out what calls it"
    )
    assert what_helps(
        error, path, f"{called}__device__ float twice(float x) {{ return 2 * x; }}\n", "cuda"
    ) == (
        "; twice is defined below that line or in a namespace: declare it above, or write the namespace "
        "before it"
    )
