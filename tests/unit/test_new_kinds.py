"""What `autotune new` makes of kinds of source that other projects have."""

import re
from math import prod

import pytest

from autotune.compilers.cuda_headers import find_header
from autotune.compilers.nvidia_tools import find_tool
from autotune.compilers.nvrtc import CudaCompiler
from autotune.compilers.source_text import read_source, render
from autotune.core.c_types import struct_dtype
from autotune.devices.element_types import numpy_dtype
from autotune.devices.listing import find_devices
from autotune.drafting.compiled_draft import KernelFile, compiled_scaffold, has_nvrtc, plain_scaffold
from autotune.drafting.draft_steps import compiled
from autotune.errors import InputError
from autotune.scaffold import Assumptions, scaffold
from autotune.scaffold.roles import Role


def made(text, host="", **options):
    return scaffold("kernel.cu", "kernel", text, None, Assumptions(**options), host=host)


def chosen(text, **options):
    """The default and the values of every parameter."""
    return {item.name: (item.default, item.values) for item in made(text, **options).guess.launch.parameters}


KERNEL = "__global__ void fill(float *y) { y[threadIdx.x] = 1; }"


@pytest.mark.parametrize(
    ("before", "after", "default"),
    [
        ("#if LAYOUT == 1", "#endif", True),
        ("#if LAYOUT == 3 || LAYOUT == 4", "#else\n#endif", 3),
        ("#if LAYOUT == 2\n#elif LAYOUT == 5", "#endif", 5),
        ("#if LAYOUT", "#endif", True),
        ("#if !LAYOUT", "#endif", False),
        ("#if LAYOUT == 1\n#else", "#endif", False),
        ("#if LAYOUT == 1\n#endif", "", False),
        ("#if defined(LAYOUT)\n#elif defined(OTHER)\n#else\n#error none\n#endif", "", True),
        ("#if !defined(LAYOUT) && !defined(OTHER)\n#error none\n#endif", "", True),
    ],
)
def test_the_default_is_the_value_for_which_the_kernel_is_compiled(before, after, default):
    assert chosen(f"{before}\n{KERNEL}\n{after}\n")["LAYOUT"][0] == default


@pytest.mark.parametrize(
    ("launch", "named", "given"),
    [
        ("fill<float, own::Place::LOCAL><<<1, 1>>>(y)", "own::Place::GLOBAL", "own::Place::LOCAL"),
        ("", "own::Place::GLOBAL", "own::Place::GLOBAL"),
        ("", "(own::Place)4", "(own::Place)0"),
    ],
)
def test_an_enumeration_that_a_template_takes_has_a_value_that_the_source_names(
    tmp_path, launch, named, given
):
    pytest.importorskip("cuda.bindings.nvrtc")
    text = f"""
        namespace own {{ enum class Place {{ SHARED, GLOBAL = 4, LOCAL }}; }}
        template <typename T, own::Place p> __global__ void fill(T *y) {{ y[threadIdx.x] = p == {named}; }}
        void run(float *y) {{ {launch}; }}
        """
    (tmp_path / "fill.cu").write_text(text)
    found = compiled_scaffold(KernelFile(tmp_path / "fill.cu", "fill", "fill.py"))
    assert found.kernel.entry == f"fill<DTYPE, {given}>" and found.complaint == ""


def test_an_enumeration_with_a_name_of_c_is_no_number():
    text = """
        typedef enum { LOWER = 'L', UPPER = 'U' } part_t;
        template <part_t part> __global__ void fill(float *y) { y[threadIdx.x] = part == UPPER; }
        """
    assert made(text).kernel.entry == "fill<(part_t)0>"


def test_a_type_that_is_called_like_an_index_is_whole():
    text = """
        template <typename value_t, typename IndexType>
        __global__ void fill(value_t *y, IndexType n) { if (threadIdx.x < n) y[threadIdx.x] = 1; }
        """
    assert made(text).kernel.entry == "fill<DTYPE, int>"
    assert "{name: n, dtype: int32, value: n}" in made(text).space
    assert made(text, generic="int").kernel.entry == "fill<int, int>"


@pytest.mark.parametrize(
    ("body", "entry", "complaint"),
    [
        ("y[threadIdx.x] ^= 1;", "mask<int>", ""),
        ("y[threadIdx.x] ^= 1; int *z = y[0];", "mask<DTYPE>", "expression must have integral"),
    ],
    ids=["fit", "do not fit either"],
)
def test_a_template_that_no_floating_point_type_fits_gets_whole_numbers_where_they_fit(
    tmp_path, body, entry, complaint
):
    pytest.importorskip("cuda.bindings.nvrtc")
    (tmp_path / "mask.cu").write_text(f"template <class T> __global__ void mask(T *y) {{ {body} }}")
    draft = compiled_scaffold(KernelFile(tmp_path / "mask.cu", "mask", "mask.py"))
    assert draft.kernel.entry == entry
    assert complaint in draft.complaint and bool(draft.complaint) is bool(complaint)


def test_names_in_capitals_that_the_source_sets_are_no_macros():
    text = """
        __global__ void price(float *y, real S) {
            float CND1, CND2;
            CND1 = S + ORDER;
            CND2 = 2 * CND1;
            y[threadIdx.x] = CND2 >= CND1 ? CND1 : CND2;
        }
        """
    assert set(chosen(text)) == {"ORDER", "BLOCK_SIZE"}


def test_a_structure_of_types_that_the_source_leaves_to_its_user_is_an_array():
    text = """
        typedef struct { real strike; real price; } Option;
        __global__ void value(const Option *options, real *y) { y[blockIdx.x] = options[blockIdx.x].price; }
        """
    found = made(text).kernel.arguments
    assert (found[0].dtype, found[0].width) == ("float32", 2)


@pytest.mark.parametrize(
    ("fields", "cuda", "opencl"),
    [
        ("float x, y;", ("float32", 2), ("float32", 2)),
        ("float4 place; float mass;", ("float32", 8), ("float32", 8)),
        ("float mass; float3 place;", ("float32", 4), ("float32", 8)),
        ("char kind; double2 place; bool flag;", ("uint8", 48), ("uint8", 48)),
        ("double4 place; int id;", ("uint8", 48), ("uint8", 64)),
        ("float x; bool a, b, c;", ("uint8", 8), ("uint8", 8)),
    ],
)
def test_a_structure_has_the_size_that_the_compiler_gives_it(fields, cuda, opencl):
    """In OpenCL vectors are aligned to their whole size, and a vector of three is one of four."""
    for introducer, expected in (("__global__ void", cuda), ("__kernel void", opencl)):
        text = f"struct Part {{ {fields} }};\n{introducer} fill(struct Part *p, int n) {{ p[0] = p[n]; }}"
        (part, _) = made(text).kernel.arguments
        assert (part.dtype, part.width) == expected


def test_kernels_of_opencl_in_any_order_of_words_and_with_pointers_in_macros():
    text = """
        #define IN __global const float * restrict
        void kernel init(IN x, __global float3 *y, int n);
        void kernel init(IN x, __global float3 *y, int n) { y[0].x += x[n]; }
        """
    found = made(text)
    x, y, _ = found.kernel.arguments
    assert (found.kernel.name, x.is_const, x.is_pointer, y.width) == ("init", True, True, 4)
    (line,) = (line for line in found.space.splitlines() if "name: y" in line)
    assert "shape: [4 * " in line and "role: inout" in line


@pytest.mark.parametrize("written", ["private const int", "__private int", "const int"])
def test_words_beside_a_type_do_not_change_it(written):
    text = f"__kernel void fill(__global float *y, {written} n) {{ y[get_global_id(0)] = n; }}"
    found = scaffold("kernel.cl", "kernel", text, None, Assumptions())
    assert [(item.name, item.dtype) for item in found.kernel.arguments] == [("y", "float32"), ("n", "int32")]


def test_a_kernel_that_cannot_be_tuned_as_it_is_does_not_stand_in_the_way_of_others():
    text = """
        __kernel void draw(write_only image2d_t picture, int n) { }
        __kernel void fill(__global float *y, int n) { if (get_global_id(0) < n) y[get_global_id(0)] = n; }
        """
    found = made(text)
    refusal = "kernel.cu:2: draw: picture is an image; take a pointer to its elements instead, for autotune "
    assert found.kernel.name == "fill"
    assert f"# cannot be tuned as it is: {refusal}" in found.space
    with pytest.raises(InputError, match=refusal):
        scaffold("kernel.cu", "kernel", text, "draw")
    with pytest.raises(InputError, match="no kernel is called 'dra'; it has fill"):
        scaffold("kernel.cu", "kernel", text, "dra")
    with pytest.raises(InputError, match=refusal):
        made(text.partition("__kernel void fill")[0])


def test_a_kernel_that_writes_a_number_gets_no_reference_for_a_number_has_no_shape():
    found = made("__global__ void clear(float *y, int n) { int i = threadIdx.x; if (i < n) y[i] = 0; }")
    assert found.guess.reference == ()


@pytest.mark.parametrize(
    ("declared", "layout"),
    [
        ("typedef struct { float x; char kind; } __attribute__((packed)) cell;", ("uint8", 5)),
        ("struct __attribute__((aligned(16))) cell { float x, y, z; };", ("float32", 4)),
        ("struct __align__(8) cell { int first; };", ("int32", 2)),
        ("typedef union { float f; unsigned int bits[3]; } cell;", ("uint8", 12)),
        ("typedef union { uint2 x; uint words[64 / sizeof(uint)]; } cell;", ("uint32", 16)),
        ("class cell { public: float x; float y; };", ("float32", 2)),
        ("typedef struct { union { int n; int at; }; int x; } cell;", ("int32", 2)),
        ("struct cell { float x; struct { char kind; int n; } inner[2]; };", ("uint8", 20)),
        ("typedef struct { int x; union { struct { int a, b; }; float f; }; } cell;", ("uint8", 12)),
    ],
    ids=[
        "packed",
        "aligned",
        "aligned in CUDA",
        "union",
        "sizeof",
        "class",
        "nameless",
        "inside",
        "twice inside",
    ],
)
def test_structures_with_attributes_unions_and_classes_have_their_size(declared, layout):
    text = f"{declared} __kernel void fill(__global cell *y) {{ y[get_global_id(0)].x = 1; }}"
    argument = scaffold("kernel.cl", "kernel", text).kernel.arguments[0]
    assert (argument.dtype, argument.width) == layout


KERNEL_OF_P = "__global__ void fill(float *y, P p) { y[threadIdx.x] = 1; }"


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ("int n; float w[2];", "fields: {n: int32, w_0: float32, w_1: float32}"),
        ("float2 at; float mass;", ""),  # padded at its end
        ("float3 at; float mass;", "fields: {at_x: float32, at_y: float32, at_z: float32, mass: float32}"),
        ("float mass; float2 at;", ""),
        ("Pair at; float mass;", "fields: {at_x: float32, at_y: float32, mass: float32}"),
        ("struct { int at, to; } part; int n;", "fields: {part_at: int32, part_to: int32, n: int32}"),
        ("union { int at; int to; }; int n;", "fields: {at: int32, n: int32}"),
    ],
)
def test_arrays_and_vectors_in_a_structure_that_is_passed_by_value_are_numbers(fields, found):
    text = f"struct Pair {{ float x, y; }}; struct P {{ {fields} }}; " + KERNEL_OF_P
    if found:
        assert found in made(text).space
    else:
        with pytest.raises(InputError, match="p is a structure that autotune cannot make: "):
            made(text)


NESTED = "struct Inner { int n; float w; }; struct Outer { char kind; Inner inner; };"


def test_a_structure_in_another_one_begins_at_a_multiple_of_its_widest_field():
    text = f"{NESTED} __global__ void fill(Outer *y) {{ y[threadIdx.x].kind = 1; }}"
    argument = made(text).kernel.arguments[0]
    assert (argument.dtype, argument.width) == ("uint8", 12)
    aligned = text.replace("struct Inner", "struct __align__(16) Inner")
    assert made(aligned).kernel.arguments[0].width == 32
    packed = text.replace("struct Inner", "struct __attribute__((packed)) Inner")
    assert made(packed).kernel.arguments[0].width == 9


def test_a_structure_of_several_types_in_another_one_is_passed_by_value():
    text = f"{NESTED} __global__ void fill(float *y, Outer p) {{ y[threadIdx.x] = p.inner.n; }}"
    assert "fields: {kind: int8, inner_n: int32, inner_w: float32}" in made(text).space


MATRICES = """
typedef struct { int width, height; float *elements; } Matrix;
__device__ float at(Matrix M, int row, int col) { return M.elements[row * M.width + col]; }
__global__ void product(const Matrix A, const Matrix B, Matrix C)
{
    int row = blockIdx.y * blockDim.y + threadIdx.y, col = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int e = 0; e < A.width; ++e)
        sum += at(A, row, e) * at(B, e, col);
    if (row < C.height && col < C.width)
        C.elements[row * C.width + col] = sum;
}
"""


def test_the_arrays_and_sizes_of_structures_are_found_where_the_kernel_uses_them():
    found = made(MATRICES)
    fields = "fields: {width: int32, height: int32, elements: pointer}"
    assert f"{{name: A, {fields}, value: {{width: A_width, height: 1, elements: A_elements}}}}" in found.space
    assert "arguments: [A, B, C]" in found.space
    assert {*found.guess.sizes} == {"A_width", "C_width", "C_height"}
    roles = {item.argument.name: item.role for item in found.guess.arguments if item.role}
    assert roles == {"A_elements": Role.IN, "B_elements": Role.IN, "C_elements": Role.INOUT}
    shapes = {item.argument.name: item.shape for item in found.guess.arguments if item.role}
    assert shapes["A_elements"] == ("C_height", "A_width")
    assert shapes["C_elements"] == ("C_height", "C_width")


def test_parts_of_structures_have_names_of_their_own():
    text = """
        struct Grid { float *f; int n; };
        struct All { Grid now; double f_n; };
        __global__ void k(All a, Grid now, int i) { int n = now.n; if (i < n) a.now.f[i] = now.f[i]; }
        """
    found = made(text)
    names = [item.name for item in found.kernel.arguments]
    assert names == ["a_now_f", "a_now_n", "f_n", "f", "now_n", "i"]


def test_a_structure_that_is_passed_on_may_be_written_wherever_it_points():
    text = """
        struct Params { const float *a; float *b, *c; int n; };
        __device__ void store(Params p, int i, float x) { p.b[i] = x; }
        __global__ void k(Params p) { int i = threadIdx.x; if (i < p.n) store(p, i, p.a[i] + p.c[i]); }
        """
    roles = {item.argument.name: item.role for item in made(text).guess.arguments if item.role}
    assert roles == {"a": Role.IN, "b": Role.INOUT, "c": Role.INOUT}


@pytest.mark.parametrize(
    ("kernel", "entry", "fields"),
    [
        ("void k(Box<float, 2> p)", "k", "at: pointer, size_0: int32, size_1: int32, w: float32"),
        ("void k(own::Box<double> p)", "k", "at: pointer, size_0: int32, w: float64"),
        ("void k(Box<Pair> p)", "k", "at: pointer, size_0: int32, w_x: int16, w_y: int16"),
    ],
)
def test_a_structure_may_be_made_from_a_template(kernel, entry, fields):
    text = f"""
        struct Pair {{ short x, y; }};
        namespace own {{ template <typename T, int N = 1> struct Box {{ const T *at; int size[N]; T w; }}; }}
        __global__ {kernel} {{ int i = threadIdx.x; }}
        """
    found = made(text)
    assert found.kernel.entry == entry and f"fields: {{{fields}}}" in found.space


def test_a_number_of_a_templates_type_in_a_structure_fixes_that_type():
    text = """
        template <class T> struct Line { T *y; T factor; };
        template <class T> __global__ void k(Line<T> p, int n) { if (threadIdx.x < n) p.y[n] = p.factor; }
        """
    found = made(text)
    assert found.kernel.entry == "k<float>" and "fields: {y: pointer, factor: float32}" in found.space


def test_a_structure_without_data_is_passed_as_the_byte_that_it_takes():
    text = """
        struct Twice { __device__ float operator()(float x) const { return 2 * x; } };
        template <class F> __global__ void k(float *y, F f, int n) { if (threadIdx.x < n) y[n] = f(y[n]); }
        """
    found = made(text)
    assert found.kernel.entry == "k<Twice>" and "{name: f, dtype: uint8, value: 1}" in found.space


def test_a_function_with_data_that_a_template_makes_is_passed_with_it():
    text = """
        template <class T> struct Scale { T by; __device__ T operator()(T x) const { return by * x; } };
        template <class T, class F> __global__ void k(T *y, F f, int n) { if (n > 0) y[n] = f(y[n]); }
        """
    found = made(text)
    assert found.kernel.entry == "k<float, Scale<float>>"
    assert "{name: f, fields: {by: float32}, value: {by: 2}}" in found.space


@pytest.mark.skipif(not has_nvrtc(), reason="NVRTC is not installed")
@pytest.mark.parametrize(
    "fields",
    [
        "float *a; const int *b; int n;",
        "char kind; double *a; short s; float3 at; Inner inner; unsigned long long m;",
        "struct { int n; float *a; } one; int2 v; int *c[2]; bool is;",
    ],
)
def test_structures_lie_as_the_compiler_has_them(fields):
    compiler = CudaCompiler("sm_90")
    text = f"struct Inner {{ char c; float w[2]; }}; struct P {{ {fields} }}; {KERNEL_OF_P}"
    structure = made(text).kernel.structures["p"]
    layout = numpy_dtype(struct_dtype((name, kind, 0) for name, kind in structure.fields))
    places = [place for _, place in layout.fields.values()]
    paths = [path.removeprefix("p.") for path in structure.members]
    asserted = [f"sizeof(P) == {layout.itemsize}"]
    asserted += [f"__builtin_offsetof(P, {path}) == {at}" for path, at in zip(paths, places, strict=True)]
    compiler.compile(text + "".join(f'static_assert({one}, "");' for one in asserted), ())


def test_an_enumeration_is_a_whole_number_whether_or_not_the_source_declares_it():
    text = """
        enum class Side : unsigned char { LEFT, RIGHT };
        typedef enum { NEAR, FAR } range_t;
        __global__ void fill(float *y, Side side, range_t range, enum pool op) { y[threadIdx.x] = 1; }
        """
    assert [item.dtype for item in made(text).kernel.arguments] == ["float32", "uint8", "int32", "int32"]


def test_macros_that_stand_for_others_are_written_out_in_names_and_types():
    text = """
        #define PASTE_(a, b) a##b
        #define PASTE(a, b) PASTE_(a, b)
        #define KERNEL(name) __kernel __attribute__((reqd_work_group_size(64, 1, 1))) void PASTE(name, _of)
        #define WIDTH 4
        typedef PASTE(float, WIDTH) vec;
        KERNEL(scale)(__global vec *x, __global PASTE(int, WIDTH) *y) { x[get_global_id(0)] *= 2; }
        """
    found = made(text).kernel
    assert (found.entry, found.block) == ("scale_of", ("64", "1", "1"))
    assert [(item.dtype, item.width) for item in found.arguments] == [("float32", 4), ("int32", 4)]


def test_a_macro_that_the_source_demands_is_a_parameter_whatever_its_name():
    text = "#ifndef IMAGE_WIDTH\n#error define IMAGE_WIDTH\n#endif\n" + KERNEL.replace("= 1", "= IMAGE_WIDTH")
    assert "IMAGE_WIDTH" in chosen(text)
    text = "#ifdef USE_IMAGE\n#endif\n" + KERNEL
    assert set(chosen(text)) == {"BLOCK_SIZE"}


def test_an_undefined_word_before_the_type_of_a_function_stands_for_nothing():
    text = """
        INLINE_FUNC REAL twice(const REAL x) { return M_INV_4PI * x * M_PI; }
        __kernel void fill(__global REAL *y) { y[get_global_id(0)] = twice(1); }
        """
    found = scaffold("kernel.cl", "kernel", text)
    assert found.kernel.types == {"REAL": "float", "INLINE_FUNC": ""}
    assert "opencl: {-DREAL: \"'float'\", -DINLINE_FUNC: \"''\"}" in found.space
    assert {item.name for item in found.guess.launch.parameters} == {"M_INV_4PI", "BLOCK_SIZE"}


def test_an_undefined_type_that_indexes_is_whole():
    text = "__kernel void gather(__global REAL *y, __global PLACE* at) { y[0] = y[at[get_global_id(0)]]; }"
    assert made(text).kernel.types == {"REAL": "float", "PLACE": "unsigned"}


def test_types_and_macros_are_also_read_from_the_headers_of_a_source(tmp_path):
    (tmp_path / "own.h").write_text(
        "#define EDGE 16\n#define HELPER(x) (x * DEPTH)\n#ifndef ROWS\n#define ROWS 4\n#endif\n"
        "typedef struct { float x, y, z; } Vec3;\n"
        "__kernel void other(__global float *y) { y[get_global_id(0)] = 1; }\n"
    )
    (tmp_path / "fill.cl").write_text(
        '#include "own.h"\n__kernel void fill(__global Vec3 *y) { y[get_global_id(0)].x = EDGE * ROWS; }\n'
    )
    draft = compiled_scaffold(KernelFile(tmp_path / "fill.cl", "fill", "fill.py"))
    assert (draft.kernel.name, draft.complaint) == ("fill", "")
    assert draft.kernel.arguments[0].width == 3
    assert {item.name for item in draft.guess.launch.parameters} == {"ROWS", "BLOCK_SIZE"}


def test_what_only_conditions_of_headers_ask_for_is_left_to_these(tmp_path):
    (tmp_path / "own.h").write_text(
        "#if __has_cpp_attribute(clang::fallthrough)\n#endif\n#if LEVEL > 1 && WIDTH == 2\n#endif\n"
    )
    (tmp_path / "fill.cu").write_text(f'#include "own.h"\n#if WIDTH == 2\n#endif\n{KERNEL}')
    draft = plain_scaffold(KernelFile(tmp_path / "fill.cu", "fill", "fill.py"), Assumptions())
    assert {item.name for item in draft.guess.launch.parameters} == {"WIDTH", "BLOCK_SIZE"}


@pytest.mark.parametrize("header", ["cooperative_groups.h", "limits"])
def test_halves_that_a_header_of_the_toolkit_brings_are_not_defined_again(tmp_path, header):
    pytest.importorskip("cuda.bindings.nvrtc")
    text = f"#include <{header}>\n__global__ void copy(half *y, __nv_bfloat16 *x) {{ y[1] = y[0]; }}"
    (tmp_path / "copy.cu").write_text(text)
    assert compiled_scaffold(KernelFile(tmp_path / "copy.cu", "copy", "copy.py")).complaint == ""


def test_a_loop_bounds_the_indices_in_it_whatever_another_loop_uses_its_name_for():
    text = """
        __kernel void sum(int n, __local float *own, __global float *y) {
            int i, first = get_global_id(0) * n;
            float total = 0;
            for (i = first; i < first + n; i++) total += i;
            own[get_local_id(0)] = total;
            for (i = 0; i < get_local_size(0); i++) total += own[i];
            y[get_group_id(0)] = total;
        }
        """
    assert "{name: own, dtype: float32, shape: [BLOCK_SIZE], role: local}" in made(text).space


def test_an_index_that_is_put_together_step_by_step_gives_the_shape():
    text = """
        __global__ void scale(const float *x, float *y, int n) {
            const int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n) return;
            for (int plane = 0; plane < 3; plane++) {
                int from = 4, to = 0;
                to += plane * n;
                to = to + i;
                from += to;
                y[to] = 2 * x[from];
            }
        }
        """
    space = made(text).space
    assert "{name: y, dtype: float32, shape: [3 * n]" in space
    assert "{name: x, dtype: float32, shape: [3 * n + 4]" in space


def test_a_word_that_is_used_before_its_default_is_left_to_the_user():
    text = """
        __device__ int early() { return LENGTH; }
        #ifndef LENGTH
        #define LENGTH salt->length
        #endif
        __global__ void fill(int *y) { y[threadIdx.x] = LENGTH; }
        """
    assert "LENGTH" not in chosen(text)
    assert chosen(text, undefined=("LENGTH",))["LENGTH"] == (1, (1,))


def test_an_array_of_a_block_gets_more_room_where_its_indices_do_not_show_how_much():
    text = """
        __kernel void f(__local float *own, __global float *y) {
            own[(int)y[get_global_id(0)]] = 1;
            y[1] = own[1];
        }
        """
    assert "{name: own, dtype: float32, shape: [max(2, 2048)], role: local}" in (
        made(text, is_roomy=True).space.replace('"', "")
    )


def test_a_macro_that_the_source_takes_back_before_it_asks_for_it_is_no_parameter():
    text = f"#undef WIDE\n#if WIDE\n#elif HIGH\n#endif\n{KERNEL}\n#undef HIGH\n"
    assert "WIDE" not in chosen(text) and "HIGH" in chosen(text)


def test_templates_of_one_name_are_told_apart_by_the_types_that_their_instances_take(tmp_path):
    pytest.importorskip("cuda.bindings.nvrtc")
    (tmp_path / "fill.cu").write_text(
        """
        template <typename T> __global__ void fill(T *y, const T *x) { y[threadIdx.x] = x[threadIdx.x]; }
        template <typename T> __global__ void fill(T *y, int n) { y[threadIdx.x] = n; }
        """
    )
    found = compiled_scaffold(KernelFile(tmp_path / "fill.cu", "fill", "fill.py"))
    assert found.kernel.entry == "fill<DTYPE>(DTYPE *, const DTYPE *)" and found.complaint == ""


def test_an_index_that_each_turn_raises_is_bounded_by_its_comparison_only():
    """It begins anew in some turns only."""
    text = """
        __global__ void ring(const float *x, float *y, int n, int depth) {
            const int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i >= n) return;
            int head = 0;
            for (int turn = 0; turn < depth; turn++) {
                if (head == 16) head = 0;
                y[head] = x[turn * n + i];
                head += 1;
            }
        }
        """
    (line,) = [line for line in made(text).space.splitlines() if "{name: y," in line]
    assert "shape: [depth, n]" in line and "shape guessed" in line


def test_a_step_that_a_condition_leaves_out_lowers_no_bound():
    text = """
        __global__ void put(float *y, int is_low) {
            int at = 100, to = 0;
            if (is_low) at += -50;
            if (to < 1) to = 7;
            to += 2;
            y[at] = y[to];
        }
        """
    assert "{name: y, dtype: float32, shape: [101]" in made(text).space


APPLY = """
    struct Plain { float x; };
    template <typename T> struct Relu { __device__ T operator()(T x) const { return x > 0 ? x : 0; } };
    struct Half { float by; __device__ float operator()(float x) const { return x * by; } };
    struct Scaled { static __device__ float apply(float x) { return x; } };
    """


@pytest.mark.parametrize(
    ("arguments", "store", "entry", "passed"),
    [
        ("Op op", "op(y[0])", "apply<DTYPE, Relu<DTYPE>>", "{name: op, dtype: uint8, value: 1}"),
        ("const Op op, int n", "op(y[n])", "apply<DTYPE, Relu<DTYPE>>", "{name: op, dtype: uint8, value: 1}"),
        ("int n", "Op()(y[n])", "apply<DTYPE, Relu<DTYPE>>", "[y, n]"),
        ("int n", "Op::apply(y[n])", "apply<DTYPE, Scaled>", "[y, n]"),
        ("Op a", "T(0) + Op(1) + a", "apply<DTYPE, DTYPE>", "{name: a, dtype: DTYPE, value: 2}"),
    ],
)
def test_a_type_whose_values_are_called_is_a_structure_of_the_source(arguments, store, entry, passed):
    kernel = f"template <typename T, class Op> __global__ void apply(T *y, {arguments}) {{ y[0] = {store}; }}"
    found = made(APPLY + kernel)
    assert found.kernel.entry == entry
    assert passed in found.space and not found.guess.reference


@pytest.mark.parametrize("launched", ["apply<float, Half><<<1, 32>>>(y, h)", "apply<<<1, 32>>>(y, Half{2})"])
def test_the_structure_is_the_one_that_the_host_launches(launched):
    kernel = "template <typename T, class Op> __global__ void apply(T *y, Op op) { y[0] = op(y[0]); }"
    found = made(APPLY + kernel, host=f"void go(float *y, Half h) {{ {launched}; }}")
    assert found.kernel.entry == "apply<DTYPE, Half>"


def test_a_macro_in_a_declared_block_is_a_number_of_threads():
    text = """
        #if MDIMC == MDIMA
        #endif
        __kernel __attribute__((reqd_work_group_size(MDIMC, NDIMC, 1)))
        void fill(__global float *y) { y[get_global_id(1)] = get_local_id(0) + MDIMC * get_local_id(1); }
        """
    assert chosen(text)["MDIMC"] == chosen(text)["NDIMC"] == (16, (8, 16, 32))


@pytest.mark.parametrize(
    ("use", "kind"),
    [
        ("y[0].x = y[1].w;", "float4"),
        ("y[0].x = y[1].y;", "float2"),
        ("y[0].s9 = 1;", "float16"),
        ("", "float"),
    ],
)
def test_an_undefined_type_whose_members_are_used_is_a_vector(use, kind):
    assert made(f"__kernel void fill(__global point *y) {{ {use} }}").kernel.types == {"point": kind}


@pytest.mark.parametrize("place", ["${real}", "{{ real }}", "{% if real %} float {% endif %}"])
def test_what_a_template_language_fills_in_is_asked_for_as_a_macro(place):
    with pytest.raises(
        InputError, match=r"is of a template language, .* write what it stands for in its place"
    ):
        made(f"__kernel void fill(__global {place} *y) {{ y[0] = 1; }}")


@pytest.mark.parametrize("value", ["{{0}}", "{{ 1.f }}", "{{x}}"])
def test_braces_in_braces_after_an_equals_sign_are_of_c(value):
    text = f"__kernel void fill(__global float *y, int x) {{ int a[1][1] = {value}; y[0] = x; }}"
    assert made(text).kernel.name == "fill"


@pytest.mark.parametrize("kind", ["image1d_buffer_t", "image2d_array_t", "image3d_t"])
def test_images_of_all_kinds_are_refused(kind):
    with pytest.raises(InputError, match="picture is an image; take a pointer"):
        made(f"__kernel void draw(read_only {kind} picture) {{ }}")


def test_a_pipe_is_refused():
    with pytest.raises(InputError, match="numbers is a pipe; take a pointer"):
        made("__kernel void draw(__write_only pipe float2 numbers) { reserve_id_t id; }")


def test_an_array_may_be_called_as_a_pipe_is():
    text = "__global__ void copy(float *y, const float *x, const float* pipe) { y[0] = x[0] + pipe[0]; }"
    assert [item.name for item in made(text).kernel.arguments] == ["y", "x", "pipe"]


def test_a_type_that_only_some_compilers_know_gets_its_meaning():
    """nvcc knows `uint` from the headers of the host's C library, NVRTC does not."""
    text = "__global__ void fill(uint *y, uint n) { if (threadIdx.x < n) y[threadIdx.x] = n; }"
    found = made(text, undefined=("uint",))
    assert found.kernel.types == {"uint": "unsigned int"}
    assert [item.dtype for item in found.kernel.arguments] == ["uint32", "uint32"]
    assert made(text).kernel.types == {}


def test_pairs_of_halves_need_the_header_of_the_toolkit_whatever_the_source_includes(tmp_path):
    pytest.importorskip("cuda.bindings.nvrtc")
    body = "y[threadIdx.x] = __hadd2(y[threadIdx.x], y[threadIdx.x]);"
    (tmp_path / "twice.cu").write_text(f"__global__ void twice(half2 *y) {{ {body} }}")
    draft = compiled_scaffold(KernelFile(tmp_path / "twice.cu", "twice", "twice.py"))
    assert (draft.complaint, draft.kernel.types) == ("", {})


@pytest.mark.parametrize(
    "kind", ["struct half2 { short x, y; };", "typedef short2 half2;", "#define half2 short2"]
)
def test_a_half2_of_the_source_is_its_own(tmp_path, kind):
    pytest.importorskip("cuda.bindings.nvrtc")
    body = "half2 one = y[0]; y[threadIdx.x] = one;"
    (tmp_path / "copy.cu").write_text(f"{kind}\n__global__ void copy(half2 *y) {{ {body} }}")
    assert compiled_scaffold(KernelFile(tmp_path / "copy.cu", "copy", "copy.py")).complaint == ""


def test_pairs_of_halves_need_no_header_in_opencl(tmp_path):
    (tmp_path / "copy.cl").write_text(
        "__kernel void copy(__global half2 *y) { half2 one = y[0]; y[1] = one; }"
    )
    text = render(read_source(tmp_path / "copy.cl"), {})
    assert text.index("#ifndef __OPENCL_VERSION__") < text.index("cuda_fp16.h") < text.index("#endif")
    assert (
        "cuda_fp16.h" not in compiled_scaffold(KernelFile(tmp_path / "copy.cl", "copy", "copy.py")).complaint
    )


def test_a_comment_on_pairs_of_halves_needs_no_header_of_the_toolkit(tmp_path):
    (tmp_path / "copy.cu").write_text("// half2 loads\n__global__ void copy(half *y) { y[1] = y[0]; }")
    assert "#include <cuda_fp16.h>" not in render(read_source(tmp_path / "copy.cu"), {})


def test_a_structure_of_the_source_may_be_in_a_namespace():
    text = """
        namespace own { struct pair { int a; float b; }; }
        template <typename T> __global__ void k(own::pair p, T *y) { y[p.a] = p.b; }
        """
    assert made(text).kernel.structures["p"].fields == (("a", "int32"), ("b", "float32"))


def test_names_that_belong_to_the_compiler_are_no_macros():
    text = """
        #if _MSC_VER > 1900
        #define API __declspec(dllexport)
        #endif
        __global__ void fill(float *y) { y[threadIdx.x] = 1; }
        """
    assert set(chosen(text)) == {"BLOCK_SIZE"}


def test_checks_have_room_in_memory_however_many_sizes_there_are():
    names = [f"ne{number}" for number in range(8)]
    text = f"__kernel void k(__global float *y, {', '.join(f'int {name}' for name in names)}) {{"
    text += " ".join(f"if (get_global_id(0) >= {name}) return;" for name in names)
    guess = made(f"{text} y[{' * '.join(names)} - 1] = 1; }}").guess
    assert max(prod(extents) for extents in guess.verify_sizes) <= 2**26


def test_a_structure_that_is_passed_is_no_size_and_an_unknown_type_before_brackets_is_a_type():
    text = """
        typedef struct { kind_t extents[2]; kind_t offset; } shape;
        __kernel void k(__global float *y, shape s, int n) {
            if (get_global_id(0) < n) y[s.offset] = (VALUE8)(1).s7;
        }
        """
    found = made(text)
    assert list(found.guess.sizes) == ["n"]
    assert [kind for _, kind in found.kernel.structures["s"].fields] == ["int32"] * 3
    assert "value: {extents_0: 1, extents_1: 1, offset: 0}" in found.space
    assert found.kernel.types["VALUE8"] == "float8"


def test_a_function_object_that_a_template_has_by_default_is_left_to_the_compiler():
    text = """
        namespace own {
        template <typename T> struct Add { __device__ T operator()(T a, T b) const { return a + b; } };
        template <typename T, int BLOCK = 256, typename Op = Add<T>>
        __global__ void fold(T *y) { Op op; y[threadIdx.x] = op(y[threadIdx.x], y[BLOCK]); }
        }
        """
    assert made(text).kernel.entry == "own::fold<DTYPE, BLOCK>"


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ("union { float *at; int n; };", "at is a pointer"),
        ("float (*f)(float);", "it has a base, bit fields or parts that cannot be read"),
        ("int n : 3;", "it has a base, bit fields or parts that cannot be read"),
        ("Box<int> in;", "the type Box<int> of in is not known"),
        ("struct { Box<int> in; } own;", "the type Box<int> of in is not known"),
        ("int v[(LENGTH + 3) / 4];", "the extent of v is not known (--define LENGTH=NUMBER gives it)"),
    ],
)
def test_a_structure_that_cannot_be_made_is_refused_with_the_field_that_is_the_cause(fields, why):
    text = f"struct Inner {{ int n; float *at; }}; struct P {{ {fields} }}; {KERNEL_OF_P}"
    with pytest.raises(InputError, match=f"autotune cannot make: {re.escape(why)}; pass"):
        made(text)


@pytest.mark.parametrize(
    "declared",
    [
        "struct P { float *a; const float *b; int n; union { float f; int i; } u; };",
        "struct E { }; struct P { float a; E e; };",
        "typedef float* fp; struct P { fp a; const float *b; int n; };",
        "typedef float row[4]; struct P { row a; int n; };",
        "struct P { float (*a)[4]; const float *b; int n; };",
        "struct P { float *a; float s; alignas(16) float n0; int n; };",
        "struct P { float *a; float s; __align__(16) float n0; int n; };",
        "struct P { float *a; float s; float n0 __attribute__((aligned(16))); int n; };",
        "struct P { float *a; int n; virtual __device__ int size() { return n; } };",
        "template<int N> struct A { A<N-1> a; float x; }; template<> struct A<0> { }; struct P { A<3> a; };",
        "template<class T> struct Q {T x;}; template<> struct Q<int> { int y; }; struct P { Q< int > a; };",
        "namespace A { struct P { float *a; int n; }; } namespace B { struct P { double *a; long m; }; }",
        "struct P { float *a; float w_0; float w[1]; };",
    ],
)
def test_a_structure_whose_parts_have_no_sure_place_or_name_is_refused(declared):
    kind = "B::P" if "namespace" in declared else "P"
    with pytest.raises(InputError, match="p is a structure that autotune cannot make"):
        made(f"{declared} __global__ void fill(float *y, {kind} p) {{ y[threadIdx.x] = 1; }}")


def test_a_type_that_a_template_takes_by_default_may_be_another_that_it_takes():
    text = "template <class T, class U = T> struct Pair { T x; U y; }; " + KERNEL_OF_P.replace(
        "P p", "Pair<double> p"
    )
    assert made(text).kernel.structures["p"].fields == (("x", "float64"), ("y", "float64"))


def test_a_structure_that_points_to_its_like_is_refused_in_one_line():
    text = """
    struct Node { struct Node *next; int value; };
    __global__ void follow(Node *first, int *y, int n) { y[threadIdx.x] = first[n].next->value; }
    """
    with pytest.raises(
        InputError, match="first is a structure that autotune cannot make: next is a pointer;"
    ):
        scaffold("follow.cu", "follow", text)


@pytest.mark.parametrize(("used", "given"), [("x[i].w", "float4"), ("x[i].y", "float2"), ("x[i]", "DTYPE")])
def test_a_type_of_a_template_is_a_vector_if_members_of_it_are_used(used, given):
    text = f"template <typename T2> __global__ void k(const T2 *x, float *y, int i) {{ y[i] = {used}; }}"
    assert scaffold("k.cu", "k", text).kernel.entry == f"k<{given}>"


def test_the_widths_of_portable_vectors_are_those_that_there_are():
    text = """
        #include "portable.h"
        #ifndef VEC
        #define VEC 4
        #endif
        KERNEL KERNEL_BLOCK(64, 1, 1) twice(GLOBAL const float *x, GLOBAL float *y)
        {
            const int i = (BLOCK_INDEX(x) * 64 + THREAD_INDEX(x)) * VEC;
            VECTOR(float, VEC) value = *(GLOBAL const VECTOR(float, VEC) *)(x + i);
            *(GLOBAL VECTOR(float, VEC) *)(y + i) = value + value;
        }
        """
    assert "compiler_options" not in made(text).space and chosen(text)["VEC"] == (4, (1, 2, 4))


def test_a_word_that_a_macro_makes_a_vector_of_is_a_type():
    text = """
        #define PASTE(type, count) type##count
        #define VECTOR(type, count) PASTE(type, count)
        #define REAL4 VECTOR(REAL, 4)
        __kernel void twice(__global float *y) {
            REAL4 value = vload4(get_global_id(0), y);
            vstore4(value + value, get_global_id(0), y);
        }
        """
    assert made(text).kernel.types["REAL"] == "float" and "REAL" not in chosen(text)


@pytest.mark.parametrize(
    "body",
    [
        "int end = (blockIdx.x + 1) * n; float sum = 0; for (int i = 0; i < end; i++) sum += i; y[0] = sum;",
        "int count = gridDim.x * blockDim.x; for (int i = 0; i < count; i++) y[threadIdx.x] += y[i];",
    ],
)
def test_a_size_is_small_if_each_thread_takes_as_many_turns(body):
    text = f"__global__ void sum(float *y, int n) {{ {body} }}"
    assert made(text).guess.sizes["n"] == (262_144, 8_192)


def test_a_size_is_small_if_each_thread_takes_a_thousand_turns():
    body = "for (int i = 0; i < 1000; i++) y[blockIdx.x * blockDim.x + threadIdx.x] += x;"
    assert made(f"__global__ void sum(float *y, float x) {{ {body} }}").guess.sizes["n"] == (
        16_777_216,
        131_072,
    )


def test_what_only_another_kernel_needs_is_no_parameter():
    body = "const int SIZE = 3, EDGE = 4; y[SIZE * EDGE] = 1;"
    other = f"#ifdef MORE\n__global__ void other(float *y) {{ {body} }}\n#endif"
    assert chosen(f"{KERNEL}\n{other}").keys() == {"BLOCK_SIZE"}
    assert chosen(f"{other}\n{KERNEL}").keys() == {"MORE", "BLOCK_SIZE"}


@pytest.mark.parametrize("between", ["#endif\n{}", "#else\n{}\n#endif"])
def test_a_type_that_a_source_only_names_anew_is_one_that_it_leaves_to_its_user(between):
    text = f"""
        #ifndef INDEX_TYPE
        #error give INDEX_TYPE
        {between.format("typedef INDEX_TYPE index_t;")}
        __kernel void fill(__global float *y, __global const index_t *at) {{ y[at[get_global_id(0)]] = 1; }}
        """
    draft = scaffold("fill.cl", "fill", text)
    assert """{-DINDEX_TYPE: "'unsigned'"}""" in draft.space
    assert [one.name for one in draft.guess.launch.parameters] == ["BLOCK_SIZE"]


@pytest.mark.skipif(not find_devices(["opencl"]), reason="no OpenCL device")
def test_a_table_that_only_a_branch_of_the_source_has_is_there_by_that_branch(tmp_path):
    (tmp_path / "fill.cl").write_text("""
        #ifdef LATIN
        __constant ushort table[] = { 7, 8 };
        #endif
        __kernel void fill(__global ushort *y) { y[get_global_id(0)] = table[1]; }
        """)
    draft = compiled_scaffold(KernelFile(tmp_path / "fill.cl", "fill", "fill.py"))
    assert draft.complaint == "" and """-DLATIN: "'1'\"""" in draft.space


def test_a_block_that_is_declared_as_a_part_of_a_macro_has_that_many_threads():
    text = "__kernel __attribute__((reqd_work_group_size(LIMIT / 2, 1, 1))) void fill(__global float *y) {}"
    assert scaffold("fill.cl", "fill", text).guess.launch.block == ("LIMIT // 2", "1", "1")


def test_template_numbers_are_so_large_that_arrays_have_elements_and_assertions_hold():
    text = """
        template <typename T, int TILE, int DEPTH>
        __global__ void k(T *y) {
            constexpr int LOADS{TILE * DEPTH / 4};
            static_assert(TILE % (sizeof(float4) / sizeof(T)) == 0);
            float own[LOADS];
            for (int i = 0; i < DEPTH; i++) y[i] = own[i % LOADS];
        }
        """
    guessed = {name: default for name, (default, _) in chosen(text).items()}
    assert guessed["TILE"] % 4 == 0 and guessed["TILE"] * guessed["DEPTH"] >= 4


def test_a_template_number_of_which_only_the_compiler_knows_is_16(tmp_path):
    pytest.importorskip("cuda.bindings.nvrtc")
    text = """
        template <int BYTES> __device__ void store(float *y);
        template <> __device__ void store<16>(float *y) { y[0] = 16; }
        template <int BYTES> __global__ void fill(float *y) { store<BYTES>(y); }
        """
    (tmp_path / "fill.cu").write_text(text)
    found = compiled_scaffold(KernelFile(tmp_path / "fill.cu", "fill", "fill.py"))
    assert not found.complaint and found.guess.launch.default["BYTES"] == 16


@pytest.mark.skipif(find_tool("nvcc") is None, reason="nvcc is not installed")
def test_what_only_nvcc_compiles_gets_a_space_for_it(tmp_path):
    text = """
        #include <vector>
        struct Host { std::vector<int> sizes; };
        __global__ void inner(float *y) { y[threadIdx.x] = 1; }
        __global__ void outer(float *y) { inner<<<1, 32>>>(y); }
        """
    (tmp_path / "outer.cu").write_text(text)
    kernel = KernelFile(tmp_path / "outer.cu", "outer", "outer.py", entry="outer")
    draft = compiled(kernel, "", tmp_path / "front.cu", 60.0)
    assert "\ncompiler: nvcc" in draft.space and not draft.complaint


def test_a_type_that_only_the_host_names_is_that_of_an_instance():
    host = "int main() { typedef long long word; chase<word><<<1, 64>>>(y, n); }"
    text = "template <typename T> __global__ void chase(T *y, int n) { y[threadIdx.x] = n; }"
    assert made(text, host).kernel.entry == "chase<long long>"


def test_a_structure_in_constant_memory_with_a_pointer_is_refused():
    text = f"struct P {{ int n; float *at; }}; __constant__ P all; {KERNEL.replace('1', 'all.n')}"
    with pytest.raises(InputError, match=r"all is a structure in constant memory .*: at is a pointer; pass"):
        made(text)


def test_a_variable_in_constant_memory_that_a_header_declares_is_filled_once():
    text = f"extern __constant__ int all[4]; __constant__ int all[4]; {KERNEL.replace('= 1', '= all[0]')}"
    assert [item.argument.name for item in made(text).guess.arguments] == ["y", "all"]


def test_states_of_curand_are_arrays_of_their_bytes():
    text = """
        __global__ void draw(curandState *s, curandStatePhilox4_32_10_t *t, float *y) {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            y[i] = curand_uniform(&s[i]) + curand_uniform(&t[i]);
        }
        """
    arrays = {item.argument.name: item.argument for item in made(text).guess.arguments}
    assert [(arrays[name].dtype, arrays[name].width) for name in "st"] == [("uint32", 12), ("uint32", 16)]


def test_a_name_that_a_source_declares_becomes_no_macro(tmp_path):
    pytest.importorskip("cuda.bindings.nvrtc")
    text = """
        template <typename T, int N> union ROOM(4) pair { T x[N]; };
        __global__ void fill(float *y, int n) {
            pair<float, 2> own = *(pair<float, 2> *)y;
            if (threadIdx.x < n) y[threadIdx.x] = own.x[0];
        }
        """
    path = tmp_path / "fill.cu"
    path.write_text(text)
    made = compiled_scaffold(KernelFile(path, "fill", "fill.py"))
    assert "own" not in {item.name for item in made.guess.launch.parameters}


def test_a_type_that_the_toolkit_has_is_not_said_to_be_undefined(tmp_path):
    if find_header("cuda_fp8.h") is None:
        pytest.skip("the headers of CUDA are not installed")
    text = """
        #include <cuda_fp8.h>
        __global__ void fill(float *y) {
            __nv_fp8x2_e5m2 two;
            two.__x = 0;
            y[threadIdx.x] = gone(two);
        }
        """
    (tmp_path / "fill.cu").write_text(text)
    kernel = KernelFile(tmp_path / "fill.cu", "fill", "fill.py")
    complaint = compiled(kernel, "", tmp_path / "fill_front.cu", 60.0).complaint
    assert complaint.startswith('fill.cu(6): error: identifier "gone" is undefined')


def test_nvcc_gets_a_source_without_what_nvrtc_made_of_its_words(tmp_path):
    pytest.importorskip("cuda.bindings.nvrtc")
    if find_tool("nvcc") is None:
        pytest.skip("nvcc is not installed")
    text = """
        #include <cstdio>
        struct Cell {
            float x;
            __host__ __device__ void show() { fprintf(stderr, "%f", x); }
        };
        __global__ void fill(Cell *y, int n) { if (threadIdx.x < n) y[threadIdx.x].x = 1; }
        """
    (tmp_path / "fill.cu").write_text(text)
    kernel = KernelFile(tmp_path / "fill.cu", "fill", "fill.py")
    draft = compiled(kernel, "", tmp_path / "fill_front.cu", 60.0)
    assert draft.complaint == "" and "compiler: nvcc" in draft.space and "stderr" not in draft.space
