"""What of a source is for the host, and what is left of it."""

from pathlib import Path

import pytest

from autotune.compilers.cuda_headers import find_header
from autotune.compilers.host_code import device_part, needed_part
from autotune.compilers.known_compilers import cuda_compiler
from autotune.compilers.source_text import packaged, read_source
from autotune.errors import CompileError
from autotune.sources.dialects import OPENCL, PORTABLE

KERNELS = sorted(Path(packaged("kernels")).glob("*.cu"))

SOURCE = """
#include <vector>
#define DEVICE __host__ __device__
using namespace std;
struct __align__(8) Pair { int a, b; };
struct Job { std::vector<int> rows; };
std::vector<int> all;
void run(int count, char **texts);
static double random_number();
int rows, columns;
int** walls;
__device__ int later(int x);
typedef int (*later_t)(int);
namespace inner {
DEVICE int twice(int x) { return 2 * x; }
template <class T> void show(T x) { if (x) { cout << "}"; } }
}
__constant__ int table[2] = {1, 2};
extern "C" {
__global__ void kernel(int *x) { x[0] = inner::twice(table[1]); /* { */ }
}
static const char *name = "main() {";
int main(int count, char **texts)
{
#ifdef DEBUG
    puts("}");
#endif
    kernel<<<1, 1>>>(nullptr);
}
"""


def test_functions_and_variables_for_the_host_are_gone_and_lines_stay():
    left = device_part(SOURCE)
    assert left.count("\n") == SOURCE.count("\n")
    for word in (
        "all",
        "run(",
        "random_",
        "columns",
        "walls",
        "show",
        "kernel<<<",
        "puts",
        "int main",
    ):
        assert word not in left, word
    lines = left.split("\n")
    for number, line in enumerate(SOURCE.split("\n")):
        if any(word in line for word in ("#", "Pair", "twice", "table", "name =", "using", "later")):
            assert lines[number] == line


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_a_kernel_whose_signature_macros_write_stays(path):
    source = read_source(path).text
    assert device_part(source) == source


def test_a_kernel_stays_whose_first_word_follows_a_macro_without_a_semicolon():
    text = (
        "#define MAKES(f, type) struct type { };\nMAKES(\n  f, made)\n__global__ void f(int *x) { *x = 1; }\n"
    )
    assert device_part(text) == text


def test_a_source_without_host_code_stays_as_it_is():
    text = SOURCE[SOURCE.index("__constant__") : SOURCE.index("static const")]
    assert device_part(text) == text


@pytest.mark.parametrize(
    ("declared", "is_left"),
    [
        ("static uint *buffer;", False),
        ("uint32_t seed = 3;", False),
        ('extern "C" void run(int *x);', False),
        ('extern "C" void run(int *x) { free(x); }', False),
        ('extern "C" __device__ int later(int x) { return x; }', True),
        ("Node *nodes;", False),
        ("const uint limit = 64;", True),
        ("typedef float *place;", True),
        ("__device__ uint counter;", True),
    ],
)
def test_what_is_the_host_s_is_gone_whatever_its_type(declared, is_left):
    kernel = "__global__ void f(int *x) { x[0] = 1; }"
    left = device_part(f"{declared}\n{kernel}").removesuffix(f"\n{kernel}")
    assert left.strip() == (declared if is_left else "")


HEADER = """
#define API __attribute__((visibility("default"))) extern
#define OLD(function, hint) function __attribute__((deprecated(hint)))
#ifdef __cplusplus
extern "C" {
#endif
enum mode { FIRST, SECOND };
struct pair { int a; pair(int x) : a(x) {} std::string name() const; };
struct job { std::string name; };
OLD(API struct pair * make(
        struct pair * one),
    "use another");
API const char * text(enum mode which);
#ifdef __cplusplus
}
#endif
const float half = 0.5f, whole = 2.0f * half;
__device__ int twice(int x) { return 2 * x; }
__device__ int thrice(int x) { return 3 * x; }
#define TWICE(x) twice(x)
__global__ void kernel(pair *p, float *y) { p->a = TWICE(SECOND); y[0] = whole; }
"""


def test_the_needed_part_has_what_kernels_name_through_macros_types_and_functions():
    left = needed_part(HEADER, ["kernel"])
    assert left.count("\n") == HEADER.count("\n")
    for word in ("enum mode", "struct pair { int a;", "twice(int", "constexpr float half"):
        assert word in left, word
    for word in ("struct job", "make(", "text(", "thrice", "pair(int", "name() const"):
        assert word not in left, word
    assert left.count("{") == left.count("}")


def test_the_needed_part_has_no_kernel_that_is_not_named_and_no_declaration_of_the_host():
    other = "__global__ void other(const __restrict__ float *x) { }"
    declared = "std::ostream &operator<<(std::ostream &to, const job &one);"
    kernel = "__global__ void k(int *x) { x[0] = 1; }"
    text = f"struct job {{ std::string name; }};\n{declared}\n{other}\n{kernel}\n"
    assert [line.strip() for line in needed_part(text, ["k"]).splitlines()] == [";", "", "", kernel]
    assert other in needed_part(text, ())
    assert needed_part(text, ["job", "missing"]) == text


def test_constants_of_a_type_that_the_source_names_anew_are_constants():
    text = """typedef float real;
const real half = 0.5f, whole = half + half;
__global__ void k(real *x) { x[0] = whole; }
"""
    assert needed_part(text, ["k"]) == text.replace("const real", "constexpr real")


def test_what_calls_of_macros_side_by_side_make_of_the_host_goes():
    macro = "#define FOR(T) template void run<T>(T *x);"
    kernel = "__global__ void k(int *x) { x[0] = 1; }"
    left = needed_part(f"{macro}\nFOR(int)\nFOR(float) {kernel}\nFOR(char)\n", ["k"])
    assert [line.strip() for line in left.splitlines()] == [macro, "", kernel, ""]


def test_a_specialisation_is_needed_by_its_own_name_and_not_by_those_of_its_arguments():
    text = "template <> struct made<own::T> {};\n__global__ void k(int *x) { typedef int T; x[0] = T(1); }"
    assert "made" not in needed_part(text, ["k"])
    assert "made" in needed_part(text.replace("T(1)", "sizeof(made<T>)"), ["k"])


def test_a_kernel_with_the_names_of_c_is_needed_and_its_own_error_is_told():
    pytest.importorskip("cuda.bindings.nvrtc")
    text = (
        'int main() {}\nextern "C" __global__ void k(float *y) { __shared__ float t[NUMBER]; y[0] = t[0]; }\n'
    )
    assert needed_part(text, ["k"]) == text.replace("int main() {}", " " * 13)
    with pytest.raises(CompileError, match="greater than zero"):
        cuda_compiler("sm_90").compile(text, ["-DNUMBER=0"], ["k"])


def test_a_kernel_compiles_that_includes_a_header_for_programs():
    pytest.importorskip("cuda.bindings.nvrtc")
    compiler = cuda_compiler("sm_90")
    source = HEADER.replace('extern "C" {', '#include <nowhere/project.h>\nextern "C" {')
    assert compiler.compile(source, (), ("kernel",)).symbols == {"kernel": "_Z6kernelP4pairPf"}
    with pytest.raises(CompileError, match=r"the header nowhere/project\.h is not found"):
        compiler.compile(source.replace("= TWICE(", "= of_project("), (), ("kernel",))


def test_a_lambda_is_for_the_device_where_a_kernel_has_it():
    text = "__global__ void k(int *x) { auto one = [=] __device__ (int i) { x[i] = 1; }; one(0); }"
    assert "[=]            (int i)" in needed_part(text, ["k"])


def test_for_opencl_functions_are_needed_that_kernels_call_and_no_headers_of_programs():
    text = """#include <cmath>
#include <cuda_runtime.h>
#include <project.h>
struct job { std::vector<float> rows; };
const int batches = 20;
using namespace std;
static float half(float x) { return x / 2; }
float sum(const vector<float> &all);
__kernel void k(__global float *y) { float sum = half(y[0]); y[0] = sum; }
float sum(const vector<float> &all) { return 0; }
int main() { k<<<1, 1>>>(nullptr); }
"""
    left = needed_part(text, (), OPENCL).split("\n")
    lines = text.split("\n")
    assert [number for number, line in enumerate(left) if line == lines[number]] == [2, 6, 8, 11]
    assert not "".join(left[:2] + left[3:6] + left[7:8] + left[9:]).strip(" ;")


def test_a_call_needs_its_function_with_the_arguments_of_a_template_or_a_scope_before_its_name():
    text = """template <int N> __device__ float first(const float *x) { return x[N]; }
namespace own { __device__ float twice(float x) { return 2 * x; } }
__global__ void k(const float *x, float *y) { y[0] = first<4>(x) + own::twice(x[0]); }
"""
    assert needed_part(text, (), PORTABLE) == text


def test_a_source_in_which_no_kernel_is_found_stays_as_it_is():
    text = "KERNEL one(int *x) { x[0] = 1; }\nint two(int x) { return x; }\n"
    assert needed_part(text, (), OPENCL) == text


FOR_PROGRAMS = """
#define EXPORTED __attribute__((visibility("default")))
#define PACKED __attribute__((packed))
#if defined(__GNUC__)
EXPORTED void before(
#else
#error "which compiler is this?"
#endif
class EXPORTED Shape { public: enum Kind { FLAT }; Shape(int one); int size() const; };
EXPORTED Shape *shape(int kind);
EXPORTED const char *named(Shape *shape);
#define TABLE(name, count) static __device__ const int name[count] = {
#define END };
TABLE(primes, 3)
    2, 3, 5
END
struct PACKED entry { char kind; int value; };
"""
BRANCHES = """
__device__ float sum(const float *x, int n) {
    float all = 0;
#ifdef __CUDA_ARCH__
    for (int i = 0; i < n; i++) {
#else
    for (int i = 0; i < n; i += 2) {
#endif
        all += x[i];
    }
    return all;
}
int at_home(int x) { return x; }
"""
KERNEL = "__global__ void k(float *x, int n, entry *e) { e->value = primes[n]; x[0] = sum(x, n); }"


def test_what_a_header_says_to_compilers_of_programs_is_not_needed():
    left = needed_part(FOR_PROGRAMS + BRANCHES + KERNEL, ["k"])
    for word in (
        "struct PACKED entry",
        "float sum(",
        "#ifdef __CUDA_ARCH__",
        "TABLE(primes, 3)\n    2, 3, 5",
    ):
        assert word in left, word
    for word in ("class", "shape(int", "named(", "#error", "at_home"):
        assert word not in left, word


def test_what_a_parameter_must_not_be_stays_an_error():
    text = """\
#define COUNT 8
#ifdef _MSC_VER
#else
#error "for another compiler"
#endif
#if COUNT > 4
#error "too many"
#endif
__global__ void k(float *x) { x[0] = COUNT; }
"""
    left = needed_part(text, ["k"])
    assert "another compiler" not in left
    assert "too many" in left


def test_an_error_before_a_name_is_looked_up_is_the_one_that_is_told():
    pytest.importorskip("cuda.bindings.nvrtc")
    text = "template <int N> __global__ void k(float *y) { y[0] = unknown; }"
    with pytest.raises(CompileError, match='identifier "unknown" is undefined'):
        cuda_compiler("sm_90").compile(text, (), ["k<1>"])
    source = FOR_PROGRAMS.replace("EXPORTED void before(", "") + BRANCHES + KERNEL
    assert cuda_compiler("sm_90").compile(source, (), ["k"]).symbols["k"].startswith("_Z1kPfi")


def test_shuffles_are_known_by_their_first_names():
    pytest.importorskip("cuda.bindings.nvrtc")
    text = "__global__ void k(float x, float *y) { y[0] = __shfl_xor(x, 1, 8) + __shfl(x, 1); }"
    assert cuda_compiler("sm_90").compile(text, (), ["k"]).symbols == {"k": "_Z1kfPf"}


def test_what_kernels_call_of_the_runtime_and_headers_for_programs_alone_stop_no_kernel():
    pytest.importorskip("cuda.bindings.nvrtc")
    if not (find_header("cuda_device_runtime_api.h") and find_header("nvtx3/nvToolsExt.h")):
        pytest.skip("no CUDA toolkit")
    text = (
        "#include <nvtx3/nvToolsExt.h>\n#include <nowhere/egl.h>\n"
        "__global__ void k(float *y) { cudaGridDependencySynchronize(); y[0] = 1; }"
    )
    assert cuda_compiler("sm_90").compile(text, (), ["k"]).symbols == {"k": "_Z1kPf"}
    with pytest.raises(CompileError, match=r"wchar|nvtx|egl"):
        cuda_compiler("sm_90").compile(text.replace("= 1", "= of_program"), (), ["k"])


def test_a_number_that_is_constexpr_already_stays():
    text = "constexpr const int one = 1;\nconst int two = 2;\n__global__ void k(int *x) { x[0] = one + two; }"
    assert needed_part(text, ["k"]) == text.replace("const int two", "constexpr int two")


def test_a_kernel_with_a_mistake_is_compiled_twice_at_most_and_its_own_mistake_is_told(monkeypatch):
    nvrtc = pytest.importorskip("autotune.compilers.nvrtc")
    runs, run = [], nvrtc._run
    monkeypatch.setattr(nvrtc, "_run", lambda *args, **more: runs.append(args) or run(*args, **more))
    text = "std::vector<int> rows;\n__global__ void k(float *y) { y[0] = unknown; }"
    with pytest.raises(CompileError, match='identifier "unknown" is undefined'):
        nvrtc.CudaCompiler("sm_90").compile(text, (), ["k"])
    assert len(runs) == 2


def test_a_kernel_stays_whose_namespace_begins_behind_a_macro():
    text = "OWN_PREFIX\nnamespace own {\n__global__ void fill(float *y) { y[0] = 1; }\n}\nOWN_POSTFIX\n"
    assert device_part(text) == text


def test_functions_for_programs_that_headers_of_the_toolkit_bring_are_not_needed():
    program = "#ifdef __CUDA_RUNTIME_H__\ninline void fail() { exit(EXIT_FAILURE); }\n#endif\n"
    assert "exit" not in needed_part(f"{program}__global__ void k(int *y) {{ y[0] = 1; }}", ["k"])
