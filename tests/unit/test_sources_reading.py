"""What the reader of kernel sources says of them, and that it neither fails nor stalls on any text."""

import ast
import string
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from autotune.compilers.source_text import source_of_text
from autotune.errors import InputError
from autotune.sources.bare_code import definitions
from autotune.sources.branches import kernels_of_branches, read_branches, readings_of_branches
from autotune.sources.facts import facts
from autotune.sources.files import decoded, unwrapped
from autotune.sources.kernel_source import read_kernel_source
from autotune.sources.preprocessed import preprocessed
from autotune.sources.preprocessor import compiled_lines

ROOT = Path(__file__).parents[2]
KERNEL = "__global__ void k(float *y, const float *x, int n) {{ {} }}"


def signatures(text, values=None):
    return {
        one.name: [(item.name, item.type, item.pointers) for item in one.parameters]
        for one in read_kernel_source(text, values).kernels
    }


def body_of(text):
    (kernel,) = read_kernel_source(KERNEL.format(text)).kernels
    return kernel.body


def facts_of(body):
    return facts(body_of(body), ("x", "y"))


@pytest.mark.parametrize(
    ("text", "dialect"),
    [
        ("KERNEL k(GLOBAL float *y, const int n) {}", "portable"),
        ("#define API __global__ void\nAPI k(float *__restrict__ y, const int n) {}", "cuda"),
        ('extern "C" __global__ void __launch_bounds__(B, 2) k(float y[], int n = 4) {}', "cuda"),
        ("namespace a { template <class T> __global__ void k(float *y, int n) {} }", "cuda"),
        ("kernel void k(global float *y, const int n) {}", "opencl"),
        (
            "__attribute__((reqd_work_group_size(B, 1, 1))) __kernel void k(__global float *y, int n) {}",
            "opencl",
        ),
        ("#define ARGS(t) t *y, int n\n#define K(t) __global__ void k(ARGS(t))\nK(float) {}", "cuda"),
        ("EXPORT_API __global__ void k(float *y, int n) {}", "cuda"),
    ],
)
def test_kernels_of_every_dialect_have_their_parameters(text, dialect):
    assert signatures(text) == {"k": [("y", "float", 1), ("n", "int", 0)]}
    assert read_kernel_source(text).dialect == dialect


def test_the_branch_that_the_values_of_macros_select_is_read():
    text = """
        #ifndef PRECISION
        #define PRECISION 32
        #endif
        #if PRECISION == 16
        typedef half real;
        #elif PRECISION == 32
        typedef float real;
        #else
        typedef double real;
        #endif
        __kernel void k(__global real *y
        #ifdef WITH_COUNT
            , int n
        #endif
        ) {}
    """
    source = read_kernel_source(text)
    assert source.types.aliases["real"] == "float" and source.code.defaults == {"PRECISION": "32"}
    assert read_kernel_source(text, {"PRECISION": "64"}).types.aliases["real"] == "double"
    assert len(signatures(text)["k"]) == 1 and len(signatures(text, {"WITH_COUNT": "1"})["k"]) == 2


def _kernels_of_branches(text):
    source, branches = read_kernel_source(text), read_branches(text)
    return kernels_of_branches(source, branches, readings_of_branches(source, {}, branches))


def test_kernels_of_branches_that_are_left_out_come_with_what_these_want():
    text = (
        "#if LAYOUT == 2\n__global__ void a(int *x) {}\n"
        "#elif LAYOUT == MIXED\n__global__ void b(int *x) {}\n#endif\n"
    )
    found = _kernels_of_branches(text)
    assert [(one.name, dict(wanted)) for one, wanted in found] == [
        ("a", {"LAYOUT": "2"}),
        ("b", {"LAYOUT": "MIXED"}),
    ]


@pytest.mark.parametrize(
    ("condition", "wanted"),
    [
        ("defined(A) || defined(B)", {"A": ""}),
        ("defined A && (B == 2)", {"A": "", "B": "2"}),
        ("A", {"A": "1"}),
        ("(A == 3 && !defined(C)) || B", {"A": "3"}),
        ("!A", {}),
        ("A > 1", {"A": "2"}),
        ("A >= 4 && B <= 2", {"A": "4"}),
        ("!(A < 3)", {"A": "3"}),
        ("__CUDA_ARCH__ >= 700", {}),
    ],
)
def test_of_several_ways_to_a_kernel_the_first_is_wanted(condition, wanted):
    text = f"#if {condition}\n__global__ void a(int *x) {{}}\n#endif\n"
    found = _kernels_of_branches(text)
    assert [dict(one) for _, one in found] == [wanted]


def test_names_that_nothing_declares_are_the_macros_that_are_left_to_the_user():
    text = """
        #define SIZE (4 * TILE)
        enum { FIRST };
        __constant__ float table[ENTRIES];
        __device__ int helper(int i) { return i * FACTOR; }
        template <int N> __global__ void k(float *y) {
            int i = threadIdx.x; y[i] = SIZE + N + FIRST + helper(i) + table[0] + missing(WORK);
        }
        int main() { return HOST; }
    """
    assert set(read_kernel_source(text).unknown) == {"TILE", "ENTRIES", "FACTOR", "WORK"}


def test_a_macro_is_written_out_as_the_preprocessor_does_it():
    text = (
        "#define CAT(a, b) a##b\n#define F(x, ...) G(x, __VA_ARGS__)\n"
        "#define G(x, y) x + y\n#define S(x) #x\n"
    )
    code = preprocessed(f"{text}#define SELF SELF + 1\nCAT(un, signed) F(\n1, 2) SELF S(a\n b) F\n", {}).text
    assert " ".join(code.split()) == 'unsigned 1 + 2 SELF + 1 "a b" F'


@pytest.mark.parametrize(
    ("body", "index"),
    [
        ("float *p = y + 4 * n; p[n] = 1;", "4 * n + n"),
        ("*(y + n) = 1;", "n"),
        ("float *p = &y[n]; *p = 1;", "n"),
        ("(y + n)[2] = 1;", "n + 2"),
        ("y[(size_t)n] = 1;", "n"),
        ("y[__mul24(n, 2)] = 1;", "n * 2"),
    ],
)
def test_an_access_is_one_of_the_array_that_a_pointer_was_made_from(body, index):
    (access,) = facts_of(body).of("y")
    assert ast.unparse(access.index) == index and access.is_written and not access.is_read


def test_conditions_around_an_access_are_its_guards():
    found = facts_of("int i = threadIdx.x; if (i >= n) return; if (x[i] > 0) y[i] = 1;")
    (access,) = found.of("y")
    assert [ast.unparse(one) for one in access.guards] == ["not i >= n", "x[i] > 0"]
    assert ("i", "n") in [(ast.unparse(one.left), ast.unparse(one.right)) for one in found.compared]


def test_places_in_the_grid_read_alike_in_every_dialect():
    texts = (
        KERNEL.format("y[blockIdx.x * blockDim.x + threadIdx.x] = n;"),
        "__kernel void k(__global float *y, int n) { y[get_global_id(0)] = n; }",
        "KERNEL k(GLOBAL float *y, int n) { y[BLOCK_INDEX(x) * BLOCK_EXTENT(x) + THREAD_INDEX(x)] = n; }",
    )
    (body,) = {"".join(map(ast.unparse, read_kernel_source(text).kernels[0].body)) for text in texts}
    assert body == "y[blockIdx.x * blockDim.x + threadIdx.x] = n"


def test_launches_have_their_extents_template_and_variables():
    text = """
        template <typename T, int B> __global__ void k(T *y, int n) {}
        int main() { int n = 1 << 20; dim3 block(256), grid((n + 255) / 256, 2);
            k<float, 4><<<grid, block>>>(y, n); hipLaunchKernelGGL(k, dim3(n), 64, 0, 0, y, n); }
    """
    first, second = read_kernel_source(text).launches
    assert first.template == ("float", "4") and [*map(ast.unparse, first.grid)] == [
        "(n + 255) / 256",
        "2",
        "1",
    ]
    assert [*map(ast.unparse, first.block)] == ["256", "1", "1"]
    assert [*map(ast.unparse, second.grid)] == ["n", "1", "1"] and ast.unparse(second.arguments[1]) == "n"


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"\xef\xbb\xbfint x;\r\n", "int x;\n"),
        (b"// f\xfcr\nint x;\n", "// f\u00fcr\nint x;\n"),
        ("// für\n".encode(), "// f\u00fcr\n"),
    ],
)
def test_sources_in_latin_1_with_a_mark_and_ends_of_other_systems_are_read(data, text):
    assert decoded(data) == text


def test_a_kernel_in_a_string_over_several_lines_is_read():
    text = 'static const char *k = "\n__kernel void k(__global float *y) {}\n\\n";\n'
    assert list(signatures(unwrapped(text))) == ["k"] and '"' not in unwrapped(text)


def test_kernels_in_raw_strings_of_cpp_are_read_at_their_lines():
    text = (
        '// a\nR"(\n__kernel void k(__global float *y) {}\n)"\n// b\n'
        'R"x(__kernel void q(__global int *z) {})x";\n'
    )
    assert list(signatures(unwrapped(text))) == ["k", "q"]
    assert unwrapped(text).count("\n") == text.count("\n")
    header = '// a\nR"(\n#define N 3\n)"\n'
    assert unwrapped(header).strip() == "#define N 3" and unwrapped(header).count("\n") == 4
    program = 'int n;\nconst char *s = R"(#define N 3)";\n'
    assert unwrapped(program) == program
    own = '__global__ void k(int *x) {}\nconst char *s = R"(__global__ void q(int *x) {})";\n'
    assert unwrapped(own) == own


PIECES = [
    *string.printable,
    *"(){}[]<>#\\\"'",
    "/*",
    "*/",
    "//",
    'R"(',
    "#if ",
    "#define A(x) x A",
    "##",
    "<<<",
    ">>>",
]
WORDS = [
    "__global__ ",
    "void k(",
    "template <",
    "struct ",
    "typedef ",
    "for (",
    "if (",
    "x[i] = ",
    "\n#endif\n",
    "A(",
    "KERNEL ",
]


@settings(deadline=None, max_examples=150)
@given(st.lists(st.sampled_from([*PIECES, *WORDS]), max_size=60))
def test_no_text_brings_the_reader_down(pieces):
    text = KERNEL.format("y[0] = 1;") + "".join(pieces)
    try:
        source = read_kernel_source(unwrapped(text))
    except InputError:
        return
    read_branches(text)
    for function in source.functions:
        facts(function.body, [one.name for one in function.parameters])
    assert source.unknown is not None and source.launches is not None and source.types is not None


LINES = ["/" * 60, "// note ", "/* note */", "/*", '"', "#if", "F(F(", "a<", "((", "*/ ", "{"]


@pytest.mark.parametrize("line", LINES)
def test_five_thousand_hostile_lines_are_read_or_refused_in_one_line(line):
    text = "#define F(x) x x\n" + f"{line}\n" * 5000 + KERNEL.format("y[0] = 1;")
    try:
        read_kernel_source(text)
        read_branches(text)
    except InputError as error:
        assert "\n" not in str(error)


def test_macros_that_grow_without_end_are_an_error_in_one_line():
    text = "#define A0 x x\n" + "".join(f"#define A{n + 1} A{n} A{n}\n" for n in range(40)) + "A40\n"
    with pytest.raises(InputError, match="stand for more text than can be read"):
        read_kernel_source(text)


def test_a_large_generated_source_is_read():
    text = "".join(
        f"__global__ void k{n}(float *y, int n) {{ y[threadIdx.x] = {n} * n; }}\n" for n in range(4000)
    )
    assert len(read_kernel_source(text).kernels) == 4000


@pytest.mark.parametrize(
    ("body", "indices"),
    [
        ("__shared__ float t[2][3][4]; y[0] = t[n][1][(-1)];", ["n", "1", "-1"]),
        ("__shared__ float t[8]; float *p = &t[n]; y[0] = p[2];", ["n + 2"]),
        ("__shared__ float t[8]; float *p = t + n; y[0] = *(p - 2);", ["0 - 2 + n"]),
    ],
)
def test_an_element_behind_a_pointer_or_of_several_dimensions_is_one_of_its_array(body, indices):
    (access,) = facts_of(body).of("t")
    assert [ast.unparse(one) for one in access.indices] == indices


def test_operators_in_words_are_operators():
    text = "#if STAGE == 1 or not defined(WIDE)\nint a;\n#endif\n#if 1 and 0\nint b;\n#endif\n"
    assert set(read_branches(text).tested) == {"STAGE", "WIDE"}
    assert [line.rest for line in compiled_lines(text) if not line.directive] == ["int a;", ""]


def test_the_number_of_steps_to_unroll_is_a_name_in_any_letters():
    found = read_branches("#pragma unroll steps\n#pragma unroll\n#pragma unroll(STEPS)\n#pragma once\n")
    assert found.pragmas == {"steps", "STEPS"}


def test_a_condition_with_a_macro_that_is_called_is_decided():
    text = "#define TWICE(x) (2 * (x))\n#if TWICE(2) == 4\nint a;\n#else\nint b;\n#endif\n"
    lines = {line.rest: line.is_certain for line in compiled_lines(text) if not line.directive}
    assert lines == {"int a;": True, "": True}


def test_a_variable_in_brackets_before_an_and_is_no_type():
    source = (
        "__global__ void k(int *x, int n) { int a = x[0]; if ((a) >= (n) && (a) <= 2 * (n)) x[1] = 1; }\n"
    )
    (kernel,) = read_kernel_source(source).kernels
    tests = [ast.unparse(one.test) for one in kernel.body if isinstance(one, ast.If)]
    assert tests == ["a >= n and a <= 2 * n"]


@pytest.mark.parametrize(
    ("condition", "read"),
    [
        ("(n >= 0 && a < n && b >= 0 && b < n)", "n >= 0 and a < n and b >= 0 and b < n"),
        ("(a<n || b>-1)", "a < n or b > -1"),
        ("(a < n && b > (n))", "a < n and b > n"),
    ],
)
def test_a_smaller_than_before_an_and_begins_no_template(condition, read):
    *_, found = body_of(f"int a, b; if ({condition}) y[0] = 1;")
    assert ast.unparse(found.test).replace("(", "").replace(")", "") == read


def test_a_template_of_the_source_may_take_a_condition():
    source = (
        "template <bool F> __device__ int f(int a) { return a; }\n"
        "__global__ void k(int *x, int n) { x[0] = f<A && B>(n); }\n"
    )
    (kernel,) = read_kernel_source(source).kernels
    (stored,) = (one.value for one in kernel.body if isinstance(one, ast.Assign))
    assert ast.unparse(stored) == "f(n)"


@pytest.mark.parametrize(
    ("body", "guards"),
    [
        ("y[0] = n > 1 ? x[n] : 0;", ["n > 1"]),
        ("y[0] = n > 1 && x[n] > 0;", ["n > 1"]),
        ("y[0] = n > 1 || x[n] > 0;", []),
    ],
)
def test_what_is_read_behind_a_condition_is_guarded_by_it(body, guards):
    (access,) = facts_of(body).of("x")
    assert [*map(ast.unparse, access.guards)] == guards


STARTS = [
    "struct a",
    "typedef a",
    "typedef a half2",
    "template <a, b",
    "} a",
    "a(",
    "a (b)",
    "half2 a(",
    "# define",
]


@pytest.mark.parametrize("line", STARTS)
def test_what_begins_on_each_line_and_ends_nowhere_is_searched_once(line):
    text = f"{line}\n" * 20_000
    began_s = time.thread_time()
    assert definitions(text).isdisjoint("ab")
    source = source_of_text(text, "lines.cu")
    assert not source.template_parameters and source.narrow_types
    assert (
        time.thread_time() - began_s < 4
    )  # of this thread alone: far more than one search of the text takes


def test_comments_between_the_parameters_of_a_template_hide_none():
    text = "template <const int ROWS,  // of a block (all)\n  const bool IS_DOUBLE // twice or not\n  >"
    assert source_of_text(text, "kernel.cu").template_parameters == {"ROWS", "IS_DOUBLE"}
