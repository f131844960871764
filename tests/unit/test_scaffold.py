"""First space files: what is read from a source, and that whatever comes out loads, binds and runs."""

import importlib.util
import shutil
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from autotune.errors import InputError
from autotune.scaffold import scaffold
from autotune.scaffold.reading import KernelArgument
from autotune.scaffold.roles import Role, role_of
from autotune.space import bind, load_space, problem_of, require_seen
from autotune.space.lint import lint
from tests.space_example import GPU

ROOT = Path(__file__).parents[2]
SAMPLES = sorted(
    [
        *(ROOT / "kernels").glob("*.cu"),
        *(ROOT / "benchmarks/peers").glob("*.cu"),
        *(ROOT / "tests/golden/new").glob("*.c[lu]"),
    ]
)


def made(text, entry=None):
    return scaffold("sample.cu", "sample", text, entry)


def kernel(body, arguments="const float *x, float *y, int n", before='extern "C" __global__ void'):
    return f"{before} sample({arguments})\n{{\n{body}\n}}\n"


def write(folder, result, text):
    (folder / "sample.cu").write_text(text)
    (folder / "sample.py").write_text(result.reference)
    (folder / "sample.yaml").write_text(result.space)
    return folder / "sample.yaml"


def roles(result):
    return {item.argument.name: item.role for item in result.guess.arguments if item.role is not None}


def values(result):
    return {parameter.name: parameter.values for parameter in result.guess.launch.parameters}


@pytest.mark.parametrize("source", SAMPLES, ids=lambda path: path.stem)
def test_every_kernel_of_the_repository_gets_a_space_with_a_valid_default(tmp_path, source):
    text = source.read_text()
    first = made(text)
    for found in first.source.kernels:
        spec = load_space(write(tmp_path, made(text, found.entry), text))
        space = bind(spec, GPU, problem_of(spec, GPU))
        assert spec.default in space
        assert [step.entry for step in space.launches(spec.default)] == [found.entry]


def test_sizes_that_fill_a_line_are_written_as_yaml(tmp_path):
    names = [f"number_of_elements_{axis}" for axis in "abcdef"]
    bounds = " && ".join(f"threadIdx.x < {name}" for name in names)
    text = kernel(
        f"if ({bounds}) x[threadIdx.x] = 1;", f"float *x, {', '.join(f'int {name}' for name in names)}"
    )
    assert list(load_space(write(tmp_path, made(text), text)).verify_sizes[0]) == names


def test_a_parameter_is_not_called_like_a_macro_that_only_the_host_uses(tmp_path):
    text = "#define BLOCK_SIZE 256\n" + kernel(
        "int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) y[i] = x[i];"
    )
    space = load_space(write(tmp_path, made(text), text))
    require_seen(bind(space, GPU, problem_of(space, GPU)), text)


@pytest.mark.parametrize(
    ("indices", "arguments"),
    [
        ("threadIdx.x", "float *x, int n"),
        ("threadIdx.x + WORK_PER_THREAD", "float *x, int n"),
        ("threadIdx.x + threadIdx.y", "float *x, int n"),
        ("threadIdx.x + threadIdx.y + TILE", "float *x, int M, int N, int K"),
        ("threadIdx.x + threadIdx.y + threadIdx.z", "float *x, int nx, int ny, int nz"),
    ],
)
def test_sizes_to_verify_differ_and_lie_around_the_tiles(tmp_path, indices, arguments):
    text = kernel(f"if ({indices} < 7) x[{indices}] = 1;", arguments)
    result = made(text)
    space = load_space(write(tmp_path, result, text))
    bound = bind(space, GPU, problem_of(space, GPU))
    assert [one for one in lint(bound, text, ()).mistakes if one.kind == "untried_edge"] == []
    assert all(len(set(sizes.values())) == len(sizes) for sizes in space.verify_sizes[1:])


def test_without_a_bounds_check_the_sizes_to_verify_fill_all_blocks():
    text = kernel("x[threadIdx.x + threadIdx.y] = 1;", "float *x, int width, int height")
    assert made(text).guess.verify_sizes == ((128, 32),)


@pytest.mark.parametrize(
    ("body", "arguments", "shape"),
    [
        ("p[(z * ny + y) * nx + x] = 1;", "int nx, int ny, int nz", "nz, ny, nx"),
        ("p[z * ny * nx + y * nx + x] = 1;", "int nx, int ny, int nz", "nz, ny, nx"),
        (
            "const size_t i = ((size_t)z * ny + y) * nx + x; p[i] = p[i - nx] + p[i + nx * ny];",
            "int nx, int ny, int nz",
            "nz, ny, nx",
        ),
        ("int y = blockIdx.y, i = y * nx + x; p[i] = 1;", "int nx, int ny", "ny, nx"),
        ("if (y < m) p[y * k + x] = 1;", "int m, int n, int k", "m, k"),
        ("if (y < n) p[y * n + x] = 1;", "int n", "n, n"),
        ("if (z < n) p[(z * n + y) * n + x] = 1;", "int n", "n, n, n"),
        ("p[y * nx + (from + x) % nx] = 1;", "int nx, int ny", "ny, nx"),
        ("p[y * k + x] = 1;", "int m, int n, int k", "m * n * k"),  # m or n rows?
        ("p[y * nx + x] = p[x * ny + y];", "int nx, int ny", "nx * ny"),  # two layouts
    ],
)
def test_a_shape_follows_from_the_index(body, arguments, shape):
    (found, *_) = made(kernel(body, f"float *p, {arguments}")).guess.arguments
    assert ", ".join(found.shape) == shape and "shape guessed" in found.remark


@pytest.mark.parametrize("name", ["local", "constants", "constant"])
def test_an_array_that_is_called_like_a_memory_is_in_global_memory(name):
    body = f"int i = threadIdx.x; if (i < n) {name}[i] = x[i];"
    found = roles(made(kernel(body, f"const float *x, float *{name}, int n")))
    assert found == {"x": Role.IN, name: Role.OUT}


@pytest.mark.parametrize(
    ("kind", "size_bytes"),
    [("float", 4), ("unsigned long long", 8), ("int64_t", 8), ("float4", 16), ("pair", 8), ("char", 4)],
)
def test_dynamic_shared_memory_has_an_element_for_each_thread(kind, size_bytes):
    body = f"extern __shared__ {kind} room[]; room[threadIdx.x] = {{}};"
    text = f"typedef float2 pair;\n{kernel(body)}"
    assert made(text).guess.launch.shared_bytes[0] == f"{size_bytes} * BLOCK_SIZE"


@pytest.mark.parametrize(
    ("kind", "dtype"), [("__half2", "float16"), ("nv_bfloat162", "bfloat16"), ("__nv_bfloat162", "bfloat16")]
)
def test_two_narrow_numbers_are_two_elements(kind, dtype):
    body = "int i = threadIdx.x; if (i < n) y[i] = x[i];"
    (x, *_) = made(kernel(body, f"const {kind} *x, {kind} *y, int n")).guess.arguments
    assert (x.argument.dtype, x.shape, x.fill) == (dtype, ("2 * n",), "uniform: [-1, 1]")


VECTOR_LOADS = """
    const int row = blockIdx.x;
    const float4 *row_of_a = reinterpret_cast<const float4 *>(a + (size_t)row * cols);
    const float4 *p = (const float4 *)x;
    if (row < rows)
        for (int i = threadIdx.x; i < cols / VEC; i += BLOCK_SIZE) y[row] += dot(row_of_a[i], p[i]);
"""
LOADED_ARGUMENTS = "const float *a, const float *x, const float *z, float *y, int rows, int cols"


def test_an_array_that_is_read_as_vectors_has_their_elements_and_one_without_an_index_asks():
    found = {
        item.argument.name: item for item in made(kernel(VECTOR_LOADS, LOADED_ARGUMENTS)).guess.arguments
    }
    assert found["a"].shape == ("rows", "cols")
    assert "no index was found" in found["z"].remark and "no index was found" not in found["x"].remark


STRIDED = """
    const int x0 = get_group_id(0) * (BLOCK_X * PER), y = get_group_id(1) * BLOCK_Y + get_local_id(1);
    for (int t = 0; t < PER; t++) {
        const int x = x0 + get_local_id(0) + t * BLOCK_X;
        if (x < w && y < h) p[y * w + x] = 1;
    }"""
ASKED = "  # threads: how many along x? the kernel reads their index, and does not show it"


@pytest.mark.parametrize(
    ("body", "block"),
    [
        (STRIDED, "[BLOCK_X, BLOCK_Y]  # threads"),
        (STRIDED.replace("(BLOCK_X * PER)", "PER * BLOCK_X"), "[BLOCK_X, BLOCK_Y]  # threads"),
        (STRIDED.replace("BLOCK_X", "WIDE"), "[WIDE, BLOCK_Y]  # threads"),  # no name says it
        (
            STRIDED.replace("t = 0; t < PER; t++", "t = 0; t < BLOCK_X * PER; t += BLOCK_X").replace(
                "t * BLOCK_X", "t"
            ),
            "[BLOCK_X, BLOCK_Y]  # threads",
        ),
        (STRIDED.replace("t * BLOCK_X", "t * PITCH"), "[BLOCK_X, BLOCK_Y]  # threads"),  # by its name
        (STRIDED.replace("t * BLOCK_X", "t * PITCH").replace("BLOCK_X", "WIDE"), f"[1, BLOCK_Y]{ASKED}"),
    ],
)
def test_the_distance_between_a_thread_s_elements_is_the_block_s_extent(body, block):
    """As in Kernel Tuner's kernels: `block_size_x * tile_size_x` elements of a block, BLOCK_X apart."""
    assert f"    block: {block}\n" in made(kernel(body, "float *p, int w, int h")).space


def test_a_guard_on_a_sum_bounds_it_in_an_index():
    """Of `y * w + x + t * BLOCK_X`, which a condition keeps below `w` but for the row."""
    body = STRIDED.replace("+ t * BLOCK_X", "").replace("(x <", "(x + t * BLOCK_X <")
    found = made(kernel(body.replace("+ x]", "+ x + t * BLOCK_X]"), "float *p, int w, int h"))
    assert [one.shape for one in found.guess.arguments if one.role is not None] == [("h", "w")]


def test_defaults_under_the_ifndef_of_one_of_them_are_parameters():
    together = "#ifndef BLOCK_X\n#define BLOCK_X 16\n#define BLOCK_Y 8\n#define PER 2\n#endif\n"
    text = kernel(STRIDED, "float *p, int w, int h")
    found = made(together + text).guess.launch
    assert found.default == {"BLOCK_X": 16, "BLOCK_Y": 8, "PER": 2}
    assert found.block == ("BLOCK_X", "BLOCK_Y")
    guard = "#ifndef KERNELS\n#define KERNELS 1\n"
    guarded = guard + "#define BLOCK_Y 8\n#define PER 2\n#define BLOCK_X 16\n" + text + "#endif\n"
    assert not {"BLOCK_X", "BLOCK_Y", "PER"} & made(guarded).guess.launch.default.keys()


@pytest.mark.parametrize(
    ("body", "arguments", "grid"),
    [
        (
            "int x = blockIdx.x * blockDim.x + threadIdx.x;"
            "int y = blockIdx.y * BLOCK_Y * WORK_PER_THREAD + threadIdx.y;"
            "if (x < w && y < h) p[y * w + x] = BLOCK_X;",
            "int w, int h",
            ("ceil_div(w, BLOCK_X)", "ceil_div(h, BLOCK_Y * WORK_PER_THREAD)"),
        ),
        (
            "int first = (blockIdx.x * BLOCK_SIZE + threadIdx.x) * ITEMS;if (first + k < n) p[k] = 1;",
            "int n",
            ("ceil_div(n, BLOCK_SIZE * ITEMS)",),
        ),
        (
            "int row = blockIdx.x * (BLOCK_SIZE / LANES); if (row < rows) p[row] = cols;",
            "int rows, int cols",
            ("ceil_div(rows, BLOCK_SIZE // LANES)",),
        ),
        (
            "int i = blockIdx.x * blockDim.x + threadIdx.x; int y = i / w; if (y < h) p[i] = 1;",
            "int w, int h",
            ("ceil_div(h, BLOCK_SIZE)",),
        ),
        (
            "int z0 = get_group_id(2) * Z_PER_THREAD; int z = z0 + k; if (z >= nz) return;"
            "p[get_global_id(0) + get_global_id(1)] = z;",
            "int nz, int nx, int ny",
            ("ceil_div(nx, BLOCK_SIZE_X)", "ceil_div(ny, BLOCK_SIZE_Y)", "ceil_div(nz, Z_PER_THREAD)"),
        ),
        (
            "__shared__ float tile[TY + 2][TX + 2]; const int lx = get_local_id(0), ly = get_local_id(1);"
            "const int x = get_global_id(0), y = get_global_id(1);"
            "if (x < w && y < h) tile[ly + 1][lx + 1] = 1; if (lx == 0) tile[ly + 1][0] = 2;"
            "if (x < w && y < h) p[y * w + x] = tile[ly][lx + k];",
            "int w, int h, int k",
            ("ceil_div(w, TX)", "ceil_div(h, TY)"),
        ),
        (
            "__shared__ float part[128]; const int l = get_local_id(0), i = get_global_id(0); part[l] = i;"
            "for (int s = 64; s > 0; s /= 2) if (l < s) part[l] += part[l + s]; if (i < n) p[i] = part[0];",
            "int n",
            ("ceil_div(n, 128)",),
        ),
        (
            "__shared__ float part[128]; const int l = get_local_id(0), i = get_global_id(0);"
            "if (l < 128) part[l] = i; if (i < n) p[i] = part[0];",  # of any block
            "int n",
            ("ceil_div(n, BLOCK_SIZE)",),
        ),
        (
            "int i = blockIdx.x * BLOCK_SIZE * f(n) + threadIdx.x; if (i < n) p[i] = 1;",  # not for a plan
            "int n",
            ("ceil_div(n, BLOCK_SIZE)",),
        ),
    ],
)
def test_the_grid_follows_from_what_a_block_covers(body, arguments, grid):
    assert made(kernel(body, f"float *p, {arguments}")).guess.launch.grid == grid


@pytest.mark.parametrize(
    ("body", "shape"),
    [
        ("if (row < m) p[row] = 1;", "m"),
        ("for (int c = lane; c < n; c += 32) s += p[c];", "n"),
        ("if (row < m && c < n) p[row + c] = 1;", "m, n"),
        ("if (row < m) p[2 * row] = 1;", "m, n"),
    ],
)
def test_a_vector_is_as_long_as_its_index_may_be(body, shape):
    (found, *_) = made(kernel(body, "float *p, int m, int n")).guess.arguments
    assert ", ".join(found.shape) == shape


def test_the_size_of_a_square_array_is_that_of_one_side():
    text = kernel("if (y < n) p[y * n + x] = 1;", "float *p, int n")
    assert made(text).guess.sizes == {"n": (4096, 512)}


@pytest.mark.parametrize(
    ("body", "shape", "asks"),
    [
        ("atomicAdd(&p[x[i]], 1);", "n", True),
        ("atomicAdd(&p[x[i] % BINS], 1);", "256", False),
        ("int b = x[i]; if (b < BINS) atomicAdd(&p[b], 1);", "256", False),
        ("for (int b = threadIdx.x; b < 64; b += 32) atomicAdd(&p[b], 1);", "64", False),
        ("for (int b = threadIdx.x; b < TILE; b += 32) atomicAdd(&p[b], 1);", "TILE", False),
        ("int b = x[i]; if (b >= 0) atomicAdd(&p[b], 1);", "n", True),
        ("p[i] = x[i];", "n", False),
    ],
)
def test_the_bins_of_a_histogram_are_as_many_as_the_source_says_or_a_question(body, shape, asks):
    text = "#define BINS 256\n" + kernel(body, "unsigned *p, const int *x, int n")
    (found, *_) = made(text).guess.arguments
    assert ", ".join(found.shape) == shape and ("how many elements?" in found.remark) is asks


def test_a_macro_that_alone_gives_the_elements_of_an_input_stays_as_it_is():
    body = "for (int r = -RADIUS; r <= RADIUS; r++) y[x] += w[r + RADIUS]; "
    defaults = "".join(f"#ifndef {name}\n#define {name} 4\n#endif\n" for name in ("RADIUS", "UNROLL"))
    found = made(defaults + kernel(body + "y[x] *= UNROLL;", "float *y, const float *w, int n"))
    assert "UNROLL" in values(found) and "RADIUS" not in values(found)
    assert [item.shape for item in found.guess.arguments[:2]] == [("n",), ("9",)]
    assert "# RADIUS is 4 where nobody defines it; the arrays depend on it" in found.space


@pytest.mark.parametrize(
    ("body", "shape"), [("p[3] = p[7];", "8"), ("p[3] = p[7]; unknown(p);", "n"), ("p[3] = p[x];", "n")]
)
def test_an_array_that_numbers_alone_index_has_as_many_elements_as_they_reach(body, shape):
    (found, *_) = made(kernel(body, "float *p, int n")).guess.arguments
    assert found.shape == (shape,)


@pytest.mark.parametrize(
    ("body", "role"),
    [
        ("y[i] = x[i];", Role.OUT),
        ("y[i] += x[i];", Role.INOUT),
        ("y[i] = y[i] + x[i];", Role.INOUT),
        ("y[i]++;", Role.INOUT),
        ("y[i].x = 1;", Role.INOUT),
        ("x[i] = y[i] == 1;", Role.IN),
        ("x[y[i]] = 1;", Role.IN),
        ("*y = 1;", Role.OUT),
        ("helper(y);", Role.INOUT),
        ("atomicAdd(&y[0], 1);", Role.SUM),
        ("ATOMIC_ADD(y, 1);", Role.SUM),
        ("atomicAdd(&y[0], 1); x[0] = y[1];", Role.INOUT),
        ("", Role.INOUT),
    ],
)
def test_a_role_follows_from_reads_and_writes(body, role):
    argument = KernelArgument("y", "int *y", "int32", 1, is_pointer=True, is_const=False)
    assert role_of(argument, made(kernel(body, "int *y, int *x")).kernel.facts) is role


def test_a_const_pointer_is_always_an_input():
    assert roles(made(kernel("y[0] = helper(x);")))["x"] is Role.IN


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("y[0] = BLOCK_SIZE;", {"BLOCK_SIZE": (32, 64, 128, 256, 512)}),
        ("y[0] = TILE + ITEMS_PER_THREAD;", {"TILE": (8, 16, 32), "ITEMS_PER_THREAD": (1, 2, 4, 8)}),
        ("#if USE_CACHE\n#endif", {"USE_CACHE": (False, True)}),
        ("#ifdef DEBUG\n#endif", {}),
        ("#if ALGORITHM == 0\n#else\n#endif", {"ALGORITHM": (False, True)}),
        ("#if MODE == MODE_FAST\n#elif MODE == MODE_EXACT\n#endif", {"MODE": ("fast", "exact")}),
        ("#if MODE == MODE_FAST\n#else\n#endif", {"MODE": ("fast", "other")}),
        ("#define MODE_FAST 3\n#if MODE == MODE_FAST || MODE == 4\n#endif", {"MODE": (3, 4)}),
        ("#ifndef DEPTH\n#define DEPTH 6\n#endif\ny[0] = DEPTH;", {"DEPTH": (3, 6, 12)}),
        ("#ifndef UNROLL\n#define UNROLL 3\n#endif\ny[0] = UNROLL;", {"UNROLL": (1, 2, 3, 4, 8)}),
        ("#ifndef DEPTH\n#define DEPTH 4\n#endif\ny[0] = DEPTH;", {"DEPTH": (1, 2, 4, 8)}),
        ("#ifndef ROWS\n#define ROWS 1\n#endif\n#if ROWS != 4\n#endif\ny[0] = ROWS;", {"ROWS": (1, 4)}),
        ("#define ITEMS 4\ny[0] = ITEMS + INFINITY + FLT_MAX;", {}),
        ('const int N = n; y[0] = N; // BLOCK_SIZE\nlog("WORDS");', {}),
        ("y[0] = block_size_x;", {"block_size_x": (32, 64, 128, 256, 512)}),
        ("#pragma unroll FACTOR\nfor (;;);", {"FACTOR": (1,)}),
    ],
)
def test_macros_and_their_values_follow_from_name_and_use(text, expected):
    found = values(made(kernel(text)))
    found.pop("BLOCK_SIZE", None) if "BLOCK_SIZE" not in expected else None
    assert found == expected


@pytest.mark.parametrize(
    ("before", "dialect", "block"),
    [
        ("KERNEL KERNEL_BLOCK(A, 2, 1)", "portable", ("A", "2", "1")),
        ("KERNEL", "portable", ("BLOCK_SIZE_X", "BLOCK_SIZE_Y")),
        ("__kernel __attribute__((reqd_work_group_size(A, 1, 1))) void", "opencl", ("A", "1", "1")),
        ("__kernel void __attribute__((vec_type_hint(float)))", "opencl", ("BLOCK_SIZE_X", "BLOCK_SIZE_Y")),
        ("__global__ void __launch_bounds__(A)", "cuda", ("BLOCK_SIZE_X", "BLOCK_SIZE_Y")),
        ("#define MINE KERNEL KERNEL_BLOCK(A, 1, 1)\nMINE", "portable", ("A", "1", "1")),
    ],
)
def test_a_kernel_is_found_in_every_dialect_with_the_block_it_declares(before, dialect, block):
    index = {"portable": "BLOCK_INDEX(y)", "opencl": "get_global_id(1)", "cuda": "blockIdx.y"}[dialect]
    pointer = {"portable": "GLOBAL ", "opencl": "__global ", "cuda": ""}[dialect]
    text = kernel(f"y[{index}] = A;", f"{pointer}float *y, int n", before)
    result = made(text)
    assert (result.source.dialect, result.guess.launch.block) == (dialect, block)


def test_the_entry_is_the_name_in_cpp():
    plain = "__global__ void sample(float *x, int n) { x[0] = n; }"
    for text, entry in {
        plain: "sample",
        f"namespace a {{ namespace {{ namespace b::c {{ {plain} }} }} }}": "a::b::c::sample",
        f"template <class T, int BLOCK_SIZE = 64> {plain}": "sample<DTYPE, BLOCK_SIZE>",
        plain + " __global__ void sample(int x[], int n) { x[0] = n; }": "sample(float *, int)",
        "#if A\n" + plain + "\n#else\n" + plain + "\n#endif\n": "sample",
    }.items():
        assert made(text).kernel.entry == entry


def test_a_structure_is_so_many_elements_of_one_type_or_bytes():
    types = "struct Four { float a, b[2], c; }; struct Mixed { char key; double value; };"
    for kind, expected in {"Four": ("float32", 4), "Mixed": ("uint8", 16)}.items():
        (argument, *_) = made(types + kernel("", f"{kind} *p, int n")).kernel.arguments
        assert (argument.dtype, argument.width) == expected


def test_a_type_that_the_source_does_not_define_is_an_option_of_the_compiler():
    found = made(kernel("", "real4 *p, int n"))
    assert found.kernel.types == {"real4": "float4"} and found.kernel.arguments[0].width == 4
    assert "cuda: {-Dreal4: \"'float4'\"}" in found.space


@pytest.mark.parametrize("default", ["float", "double"])
def test_a_macro_that_is_a_type_says_how_to_choose_another(default):
    kernel = "__global__ void copy(const REAL *x, REAL *y) { y[0] = x[0]; }"
    space = scaffold("copy.cu", "copy", f"#ifndef REAL\n#define REAL {default}\n#endif\n{kernel}").space
    assert f"# REAL is {default} where nobody defines it; a type: -DREAL in `compiler_options`" in space
    assert "dtypes:" not in space


def test_words_of_the_portable_header_are_no_types_that_the_source_lacks():
    arguments = "GLOBAL const float *RESTRICT x, GLOBAL float *RESTRICT y, const int n"
    found = made(kernel("if (i < n) y[i] = x[i];", arguments, '#include "portable.h"\nKERNEL'))
    assert not found.kernel.types and "compiler_options" not in found.space


def test_capitals_that_declare_variables_are_types_and_variables_of_two_words_are_no_macros():
    found = made(kernel("unsigned int W0 = n; const T *first = (const T *)x; y[W0] = first[CN];"))
    assert found.kernel.types == {"T": "float"} and set(values(found)) == {"CN", "BLOCK_SIZE"}


def test_the_parameter_of_a_template_is_no_type_that_the_source_lacks():
    helper = "template <typename T> __device__ T first(const T *x) { T one = x[0]; return one; }\n"
    assert made(helper + kernel("y[threadIdx.x] = first(x);")).kernel.types == {}


@pytest.mark.parametrize(
    "declaration",
    [
        "using P = Pack<float, 4>;",
        "typedef Pack<float, 4> P;",
        "struct alignas(sizeof(float) * 4) P { float v[4]; };",
        "struct P : Pack<float, 4> {};",
        "union P { float v[4]; int bits[4]; };",
    ],
)
def test_a_type_that_the_source_declares_also_in_a_body_is_neither_an_option_nor_a_macro(declaration):
    pack = "template <typename T, int N> struct alignas(sizeof(T) * N) Pack { T v[N]; };\n"
    used = "const P *p = reinterpret_cast<const P *>(x); P one = p[threadIdx.x]; y[0] = one.v[0] * sizeof(P);"
    found = made(pack + kernel(f"{declaration} {used}"))
    assert found.kernel.types == {} and set(values(found)) == {"BLOCK_SIZE"}


def test_a_number_by_which_to_shift_is_no_size_and_a_number_that_bounds_an_index_is_one():
    found = made(
        kernel("if (threadIdx.x < reach) y[threadIdx.x >> bits] = 1;", "float *y, int bits, int reach")
    )
    assert list(found.guess.sizes) == ["reach"]
    found = made(kernel("y[threadIdx.x << (stage - 1)] = 1;", "float *y, int stage"))
    assert list(found.guess.sizes) == ["n"] and found.guess.arguments[1].value == "0"


def test_a_block_that_is_declared_before_the_kernel_is_read():
    before = "__attribute__((reqd_work_group_size(WGS, 2, 1)))\n__kernel void"
    text = "#ifndef WGS\n#define WGS 64\n#endif\n" + kernel("y[0] = 1;", "__global float *y", before)
    assert made(text).guess.launch.block == ("WGS", "2", "1")


@pytest.mark.parametrize(
    ("body", "meaning"),
    [("y[0] = keys[0] >> 3;", "unsigned"), ("Key one = keys[0]; y[0] = one & 7;", "unsigned"), ("", "float")],
)
def test_a_type_whose_variables_are_shifted_or_masked_is_one_of_whole_numbers(body, meaning):
    found = made(kernel(body, "const Key *keys, int *y, int n"))
    assert found.kernel.types == {"Key": meaning}


def test_a_number_of_type_size_t_is_passed_to_opencl_as_an_unsigned_long():
    found = made(kernel("y[0] = n;", "__global float *y, const size_t n", "__kernel void"))
    assert "opencl: {-Dsize_t: \"'ulong'\"}" in found.space and "name: n, dtype: uint64" in found.space


def test_a_call_is_offered_where_results_are_only_written(tmp_path):
    text = kernel("int i = threadIdx.x; if (i < n) y[i] = 2 * x[i];")
    result = made(text)
    assert "\n# call: {inputs: [x], returns: y}  #" in result.space
    path = write(tmp_path, result, text)
    path.write_text(result.space.replace("# call:", "call:"))
    assert load_space(path).call.returns == ("y",)
    assert "# call:" not in made(kernel("y[threadIdx.x] += x[threadIdx.x];")).space


def test_a_formula_becomes_a_reference(tmp_path):
    text = kernel(
        "if (i < n)\n y[i] = a * (x[i] + 1.5f) - sqrtf(x[ i ]) / 2;",
        "const float *x, float *y, float a, int n",
    )
    path = tmp_path / "sample.py"
    path.write_text(made(text).reference)
    specification = importlib.util.spec_from_file_location("sample_reference", path)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    x = np.array([0.25, 4], np.float32)
    assert module.reference({"x": x}, {"n": 2})["y"].tolist() == [2 * 1.75 - 0.25, 2 * 5.5 - 1]


@pytest.mark.parametrize(
    "body",
    [
        "y[i] = x[i - 1] + x[i];",  # elements of two indices
        "y[i] = x[i]; y[j] = 0;",  # two formulas
        "float t = x[i]; y[i] = t;",  # a variable
        "*y = *x;",  # one element
        "for (;;)\n y[i] += x[i];",  # how often?
        "y[i] = x[i] > 0 ? x[i] : 0;",  # a choice
    ],
)
def test_no_reference_is_guessed_without_a_single_formula(body):
    result = made(kernel(body))
    assert result.guess.reference == ()
    assert roles(result)["y"] is Role.INOUT and "return {}" in result.reference


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "float twice(float x) { return 2 * x; }",
            "no kernel found; expected a function that starts with KERNEL",
        ),
        ("\n__global__ void sample(float *x);", "sample.cu:2: a kernel is only declared here; name the file"),
        (
            "template <typename... T> __global__ void sample(T *x) {}",
            "sample.cu:1: sample is a template, and nothing can be guessed for its parameter 'typename... T'",
        ),
        (
            "typedef struct { int n, *k; } P; __kernel void sample(P m) {}",
            "m.k is a pointer in a structure that is passed by value, which OpenCL does not allow; ",
        ),
        ("struct P { int n, **k; }; " + kernel("", "P m"), "sample: int **m.k: autotune passes plain arrays"),
        (
            kernel("", "P<float> x"),
            "x is a structure that autotune cannot make: P<float> is made from a template; ",
        ),
        (kernel("", "float **m"), "float **m: autotune passes plain arrays and numbers only"),
        (kernel("", "cudaTextureObject_t m"), "m is a texture"),
        ("__kernel void sample(ARGS) {}", "nothing defines ARGS, its parameters: write an #include of the"),
        ("__kernel void sample(read_only image2d_t picture) {}", "picture is an image"),
    ],
)
def test_a_kernel_that_cannot_be_launched_is_refused_in_one_line(text, message):
    with pytest.raises(InputError) as error:
        made(text)
    assert message in str(error.value) and "\n" not in str(error.value)


def test_an_unknown_entry_lists_the_known_ones():
    with pytest.raises(InputError, match="no kernel is called 'smaple'; it has sample"):
        made(kernel(""), "smaple")


NAMES = st.sampled_from(
    [
        "n",
        "m",
        "k",
        "width",
        "rows",
        "x",
        "y",
        "in",
        "out",
        "lambda",
        "max",
        "device",
        "dtype",
        "BLOCK",
        "WPT",
    ]
)
TYPES = st.sampled_from(
    [
        "const float *",
        "float *",
        "double *",
        "const unsigned int *",
        "int ",
        "size_t ",
        "float ",
        "const float4 *",
    ]
)
MACROS = st.sampled_from(
    ["BLOCK_SIZE", "BLOCK_SIZE_Y", "WORK_PER_THREAD", "USE_X", "VECTOR", "ANYTHING", "TILE"]
)


@given(
    arguments=st.dictionaries(NAMES, TYPES, min_size=1, max_size=6),
    macros=st.lists(MACROS, unique=True, max_size=5),
    axes=st.sampled_from(["", "threadIdx.y;", "threadIdx.y + blockIdx.z;"]),
    writes=st.booleans(),
)
def test_any_kernel_gets_a_space_that_binds(tmp_path_factory, arguments, macros, axes, writes):
    body = axes + " ".join(f"use({macro});" for macro in macros)
    body += "".join(f"{name}[i] = 1;" for name, kind in arguments.items() if writes and kind.endswith("*"))
    text = kernel(body, ", ".join(kind + name for name, kind in arguments.items()))
    folder = tmp_path_factory.mktemp("any")
    try:
        spec = load_space(write(folder, made(text), text))
        assert spec.default in bind(spec, GPU, problem_of(spec, GPU))
    finally:
        shutil.rmtree(folder)


VECTORS = """
#if USE_CONSTANT == 0
#define POINTS __global const
#elif USE_CONSTANT == 1
#define POINTS __constant
#endif
#ifndef VW
#define VW 1
#endif
#pragma OPENCL EXTENSION cl_khr_byte_addressable_store : enable
#if VW == 1
typedef float vector;
#elif VW == 2
typedef float2 vector;
#elif VW == 4
typedef float4 vector;
#endif
__kernel void field(POINTS vector* xs, __global vector* out, float SIZE_X, int n)
{
    int i = get_global_id(0);
    if (i < n / VW) out[i] = xs[i] * SIZE_X + SIZE_Y;
}
"""


def test_qualifiers_and_vector_types_may_depend_on_parameters():
    found = made(VECTORS)
    assert roles(found)["xs"].value == "in"
    assert values(found)["VW"] == (1, 2, 4) and values(found)["USE_CONSTANT"] == (False, True)
    assert set(values(found)) == {"USE_CONSTANT", "VW", "SIZE_Y", "BLOCK_SIZE"}
    widths = {argument.name: argument.width for argument in found.source.kernels[0].arguments}
    assert widths == {"xs": 1, "out": 1, "SIZE_X": 1, "n": 1}  # as the default has them


def test_a_type_under_conditions_is_that_of_the_branch_that_is_compiled():
    text = "#ifdef SINGLE\n#define REAL float\n#else\n#define REAL double\n#endif\n"
    found = made(
        text
        + kernel("y[0] = a;", "REAL *y, const REAL a", "__kernel void").replace("REAL *", "__global REAL *")
    )
    assert [argument.dtype for argument in found.source.kernels[0].arguments] == ["float64", "float64"]
