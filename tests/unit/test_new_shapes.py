"""What `autotune new` makes of index arithmetic: halos, padding, local memory, alternatives, structures."""

import pytest
import yaml

from autotune.errors import InputError
from autotune.scaffold import scaffold
from autotune.scaffold.verify_sizes import verify_sizes
from autotune.sources.kernel_source import read_kernel_source


def arguments(text, file="kernel.cl"):
    """The arguments of a new space, as its lines have them, without remarks."""
    lines = scaffold(file, "kernel", text).space.splitlines()
    found = (line.partition("  #")[0].strip("- ") for line in lines if line.startswith("  - {name: "))
    return {line[len("{name: ") :].partition(",")[0]: line for line in found}


def test_an_array_with_a_halo_has_room_for_it():
    found = arguments(
        """
        #define R 3
        __kernel __attribute__((reqd_work_group_size(TX, TY, 1)))
        void blur(int width, int height, __global const float *in, __constant float *weights,
            __global float *out)
        {
            const int x = get_global_id(0), y = get_global_id(1);
            float sum = 0;
            for (int k = 0; k < 2 * R + 1; k++)
                sum += weights[k] * in[(y + R) * (width + 2 * R) + x + k];
            if (x < width && y < height)
                out[y * width + x] = sum;
        }
        """
    )
    assert "shape: [7]" in found["weights"]
    assert "shape: [height, width]" in found["out"]
    assert "shape: [height * width + 6 * height + 3 * width + 18]" in found["in"]


CLAMPS = [
    "min(max({0}, 0), {1} - 1)",
    "max(0, min({0}, {1} - 1))",
    "std::min(std::max({0}, 0), {1} - 1)",
    "(int)fminf(fmaxf({0}, 0.0f), {1} - 1.0f)",
    "clamp({0}, 0, {1} - 1)",
    "clamped({0}, {1})",
    "inside({0}, 0, {1} - 1)",
    "MIN(MAX({0}, 0), {1} - 1)",
    "{0} < 0 ? 0 : {0} > {1} - 1 ? {1} - 1 : {0}",
    "{0} >= {1} ? {1} - 1 : ({0} > 0 ? {0} : 0)",
    "max(0, {0} < {1} ? {0} : {1} - 1)",
]


@pytest.mark.parametrize("clamp", CLAMPS)
def test_an_index_that_is_clamped_to_a_size_reaches_no_further_than_it(clamp):
    x, y = (
        clamp.format(index, size) for index, size in (("x0 + tx - 1", "width"), ("y0 + ty - 1", "height"))
    )
    found = arguments(
        f"""
        #define MIN(a, b) ((a) < (b) ? (a) : (b))
        #define MAX(a, b) ((a) > (b) ? (a) : (b))
        __device__ int clamped(int i, int n) {{ return i < 0 ? 0 : i >= n ? n - 1 : i; }}
        __device__ int inside(int i, int low, int high) {{ return min(max(i, low), high); }}
        __global__ void edges(const unsigned char* in, float* out, int width, int height)
        {{
            __shared__ float tile[TILE + 2][TILE + 2];
            const int x0 = blockIdx.x * TILE, y0 = blockIdx.y * TILE;
            for (int i = threadIdx.y * TILE + threadIdx.x; i < (TILE + 2) * (TILE + 2); i += TILE * TILE) {{
                int ty = i / (TILE + 2), tx = i % (TILE + 2);
                int x = {x};
                int y = {y};
                tile[ty][tx] = in[y * width + x];
            }}
            __syncthreads();
            int x = x0 + threadIdx.x, y = y0 + threadIdx.y;
            if (x >= width || y >= height) return;
            out[y * width + x] = tile[threadIdx.y][threadIdx.x + 2] - tile[threadIdx.y + 2][threadIdx.x];
        }}
        """,
        "edges.cu",
    )
    assert "shape: [height, width]" in found["out"] and "shape: [height, width]" in found["in"]


def test_a_number_that_a_threads_index_is_compared_with_is_a_size_beside_those_named_like_one():
    text = """
        __kernel void product(__global const float *a, __global const float *x, __global float *y,
            const int batch, const int m, const int k)
        {
            const int row = get_local_id(0), b = get_group_id(0) * PER_GROUP + get_local_id(1);
            if (b >= batch) return;
            for (int r = row; r < m; r += LANES) {
                float sum = 0;
                for (int c = 0; c < k; c++)
                    sum += a[(b * m + r) * k + c] * x[b * k + c];
                y[b * m + r] = sum;
            }
        }
        """
    found = arguments(text)
    assert "value: batch}" in found["batch"] and "shape: [batch, m]" in found["y"]
    assert "shape: [batch, m, k]" in found["a"]
    assert made(text).launch.grid == ("ceil_div(batch, PER_GROUP)",)


@pytest.mark.parametrize("load", ["__ldg(row + j)", "__ldg(&row[j])", "__ldcs(x + i * 40 + j)", "row[j]"])
def test_a_pointer_that_a_function_loads_or_stores_through_shows_its_index(load):
    text = f"""
        __global__ void sums(const float *x, float *y, int n)
        {{
            int i = blockIdx.x * 64 + threadIdx.x;
            if (i >= n) return;
            const float *row = x + i * 40;
            float sum = 0;
            for (int j = 0; j < 40; j++)
                sum += {load};
            __stcs(y + i, sum);
        }}
        """
    found = arguments(text, "kernel.cu")
    assert "shape: [40 * n], role: in," in found["x"] and "shape: [n], role: inout" in found["y"]


@pytest.mark.parametrize(
    ("load", "store"),
    [
        ("vload4(0, x + i * 4)", "vstore4(one, 0, y + 4 * i)"),
        ("vload4(i, x)", "vstore4(one, i, y)"),
        ("vload4(i, x)", "vstore4(one, 0, &y[4 * i])"),
        ("vload4(i, x)", "vstore_half4_rte(one, i, y)"),
    ],
)
def test_vectors_that_a_function_loads_or_stores_show_their_index(load, store):
    text = f"""
        __kernel void twice(__global float *x, __global float *y, int n)
        {{
            int i = get_global_id(0);
            if (i >= n) return;
            float4 one = 2 * {load};
            {store};
        }}
        """
    found = arguments(text)
    assert "shape: [4 * n], role: in," in found["x"]
    assert "shape: [4 * n], role: inout, fill: {constant: 0}" in found["y"]


def test_an_index_that_is_kept_inside_reaches_no_further():
    found = arguments(
        """
        __kernel void smooth(__global const float *in, __global float *out, const int nx, const int ny)
        {
            const int x = get_global_id(0), y = get_global_id(1);
            const int cx = min(x, nx - 1), cy = min(y, ny - 1);
            float sum = in[cy * nx + cx] + in[min(cy + 1, ny - 1) * nx + cx];
            sum += in[max(cy - 1, 0) * nx + cx] + in[cy * nx + clamp(cx + 1, 0, nx - 1)];
            if (x < nx && y < ny)
                out[y * nx + x] = sum;
        }
        """
    )
    assert "shape: [ny, nx]" in found["in"]


STENCIL = """
    #ifndef BX
    #define BX 32
    #endif
    #ifndef BY
    #define BY 4
    #endif
    #ifndef Z_PER_ITEM
    #define Z_PER_ITEM 1
    #endif
    #define AT(x, y, z) (((z) * ny + (y)) * nx + (x))
    __kernel void heat(__global const float *u, __global float *v, int nx, int ny, int nz)
    {
        const int x = get_group_id(0) * BX + get_local_id(0), y = get_group_id(1) * BY + get_local_id(1);
        if (x >= nx || y >= ny) return;
        const int z0 = get_global_id(2) * Z_PER_ITEM;
        for (int k = 0; k < Z_PER_ITEM; k++) {
            const int z = z0 + k;
            if (z >= nz) return;
            float sum = u[AT(x, y, z)];
            if (x + 1 < nx) sum += u[AT(x + 1, y, z)];
            if (z + 1 < nz) sum += u[AT(x, y, z) + nx * ny];
            v[AT(x, y, z)] = z > 0 && z < nz - 1 ? sum + u[AT(x, y, z) - nx * ny] : sum;
        }
    }
"""


def made(text, file="kernel.cl"):
    """What was guessed for a kernel."""
    return scaffold(file, "kernel", text).guess


def test_neighbours_that_a_condition_keeps_inside_need_no_room():
    found = arguments(STENCIL)
    assert "shape: [nz, ny, nx]" in found["u"] and "shape: [nz, ny, nx]" in found["v"]


ELSE_STENCIL = """
    __kernel void stencil7(__global const float *in, __global float *out, int nx, int ny, int nz,
        float c0, float c1)
    {
        const int x = get_global_id(0), y = get_global_id(1), z = get_global_id(2);
        const int plane = nx * ny, i = z * plane + y * nx + x;
        if (x < nx && y < ny && z < nz) {
            if (x == 0 || y == 0 || z == 0 || x == nx - 1 || y == ny - 1 || z == nz - 1) {
                out[i] = in[i];
            } else {
                float sum = in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx];
                sum += in[i - plane] + in[i + plane];
                out[i] = c0 * in[i] + c1 * sum;
            }
        }
    }
"""


def test_neighbours_behind_a_border_that_is_left_need_no_room():
    text = """
        __kernel void heat(__global const float *u, __global float *v, const int width, const int height)
        {
            const int x = get_global_id(0), y = get_global_id(1);
            if (x >= width || y >= height) return;
            if (x == 0 || y == 0 || x == width - 1 || y == height - 1) {
                v[y * width + x] = u[y * width + x];
                return;
            }
            v[y * width + x] = u[(y - 1) * width + x] + u[(y + 1) * width + x] + u[y * width + x + 1];
        }
    """
    assert "shape: [height, width]" in arguments(text)["u"]


def test_a_sum_that_is_compared_within_an_index_reaches_no_further():
    text = """
        __global__ void gemm(const float *a, const float *b, float *c, int m, int n, int k)
        {
            __shared__ float as[16][16], bs[16][16];
            const int tx = threadIdx.x, ty = threadIdx.y;
            const int row = blockIdx.y * 16 + ty, col = blockIdx.x * 16 + tx;
            float sum = 0;
            for (int t = 0; t < (k + 15) / 16; t++) {
                as[ty][tx] = row < m && t * 16 + threadIdx.x < k ? a[row * k + t * 16 + threadIdx.x] : 0;
                bs[ty][tx] = col < n && t * 16 + threadIdx.y < k ? b[(t * 16 + threadIdx.y) * n + col] : 0;
                __syncthreads();
                for (int i = 0; i < 16; i++) sum += as[ty][i] * bs[i][tx];
                __syncthreads();
            }
            if (row < m && col < n) c[row * n + col] = sum;
        }
    """
    found = arguments(text, "gemm.cu")
    assert "shape: [m, k]" in found["a"] and "shape: [k, n]" in found["b"] and "shape: [m, n]" in found["c"]


def test_two_numbers_without_a_meaning_differ_so_that_a_swap_shows():
    found = {item.argument.name: item for item in made(ELSE_STENCIL).arguments}
    assert (found["c0"].value, found["c1"].value) == ("2", "3")


def test_macros_that_the_indices_show_as_threads_are_the_block():
    found = made(STENCIL)
    assert found.launch.block == ("BX", "BY", "1") and found.launch.grid[2] == "ceil_div(nz, Z_PER_ITEM)"
    assert [item.name for item in found.launch.parameters] == ["BX", "BY", "Z_PER_ITEM"]


def test_a_number_of_elements_is_no_flag():
    found = made(
        "__kernel void f(__global int *x, int n) { for (int k = 0; k < REPEAT; k++) x[k] += ON ? 1 : n; }"
        "\n#ifndef REPEAT\n#define REPEAT 1\n#endif\n#ifndef ON\n#define ON 1\n#endif\n"
    )
    values = {item.name: item.values for item in found.launch.parameters}
    assert values["REPEAT"] == (1, 2, 4) and values["ON"] == (False, True)


@pytest.mark.parametrize("row", ["a[row * cols + c]", "(a + row * cols)[c]"])
def test_a_block_for_each_row_makes_a_grid_of_rows(row):
    found = made(
        f"""
        __kernel void gemv(__global const float *a, __global const float *x, __global float *y,
            int rows, int cols)
        {{
            __local float part[WG];
            const int row = get_group_id(0), lane = get_local_id(0);
            for (int c = lane; c < cols; c += WG)
                part[lane] += {row} * x[c];
            if (lane == 0) y[row] = part[0];
        }}
        """
    )
    assert (found.launch.grid, found.launch.block) == (("rows",), ("WG",))
    assert [item.shape for item in found.arguments[:3]] == [("rows", "cols"), ("cols",), ("rows",)]
    fills = [item.fill for item in found.arguments[:2]]
    assert fills == ["uniform: [-1, 1]"] * 2  # the loop's step reads neither


SOFTMAX = """
    {kernel} void softmax({array} const float *x, {array} float *y, const int rows, const int cols)
    {{
        {shared} float part[WG];
        const int row = {block}, lane = {thread};
        {check}
        for (int c = lane; c < cols; c += WG)
            part[lane] += exp(x[{index}] * 2);
        {barrier};
        const float inverse = 1 / part[0];
        for (int c = lane; c < cols; {step})
            y[row * cols + c] = exp(x[{index}] * 2) * inverse;
    }}
"""
OF_A_ROW = {
    "kernel.cu": {
        **{"kernel": "__global__", "array": "", "shared": "__shared__", "barrier": "__syncthreads()"},
        **{"block": "static_cast<int>(blockIdx.x)", "thread": "threadIdx.x"},
    },
    "kernel.cl": {
        **{"kernel": "__kernel", "array": "__global", "shared": "__local", "barrier": "barrier(1)"},
        **{"block": "get_group_id(0)", "thread": "get_local_id(0)"},
    },
}


@pytest.mark.parametrize("file", OF_A_ROW)
@pytest.mark.parametrize("check", ["", "if (row >= rows) return;"])
@pytest.mark.parametrize(
    ("index", "step"),
    [
        ("row * cols + c", "c += WG"),
        ("(size_t)row * (size_t)cols + c", "c += WG"),
        ("static_cast<std::size_t>(row) * cols + c", "c += WG"),
        ("row * cols + c", "c = c + WG"),
    ],
)
def test_a_block_for_each_row_scales_and_stores_its_elements(file, check, index, step):
    found = made(SOFTMAX.format(**OF_A_ROW[file], check=check, index=index, step=step), file)
    assert (found.launch.grid, found.launch.block) == (("rows",), ("WG",))
    assert [item.shape for item in found.arguments[:2]] == [("rows", "cols")] * 2


def test_a_variable_that_is_set_anew_does_not_mix_its_bounds():
    found = arguments(
        """
        __kernel void transpose(__global float *out, __global const float *in, int width, int height)
        {
            __local float tile[TILE][TILE + 1];
            int x = get_group_id(0) * TILE + get_local_id(0), y = get_group_id(1) * TILE + get_local_id(1);
            if (x < width && y < height) tile[get_local_id(1)][get_local_id(0)] = in[y * width + x];
            barrier(CLK_LOCAL_MEM_FENCE);
            x = get_group_id(1) * TILE + get_local_id(0);
            y = get_group_id(0) * TILE + get_local_id(1);
            if (x < height && y < width) out[y * height + x] = tile[get_local_id(0)][get_local_id(1)];
        }
        """
    )
    assert "shape: [height, width]" in found["in"] and "shape: [width, height]" in found["out"]


def test_variables_of_several_loops_with_one_name_have_bounds_of_their_own():
    source = """
        #define BINS 256
        __kernel void histogram(__global const uchar *data, __global uint *bins, uint n)
        {
            __local uint part[BINS];
            for (uint i = get_local_id(0); i < BINS; i += get_local_size(0)) part[i] = 0;
            uint base = get_group_id(0) * get_local_size(0) * ITEMS + get_local_id(0);
            for (uint k = 0; k < ITEMS; ++k) {
                uint i = base + k * get_local_size(0);
                if (i < n) atomic_inc(&part[data[i]]);
            }
            for (uint i = get_local_id(0); i < BINS; i += get_local_size(0))
                atomic_add(&bins[i], part[i]);
        }
    """
    arguments = scaffold("kernel.cl", "kernel", source).guess.arguments
    shapes = {item.argument.name: item.shape for item in arguments if item.shape}
    assert shapes == {"data": ("n",), "bins": ("256",)}


def test_an_axis_goes_along_the_size_whose_edge_a_stencil_leaves_out():
    found = made(
        """
        __kernel void blur(__global const float *a, __global float *b, int ni, int nj)
        {
            int j = get_global_id(0), i = get_global_id(1);
            if (i < ni - 1 && j < nj - 1 && i > 0 && j > 0)
                b[i * nj + j] = a[(i - 1) * nj + j] + a[(i + 1) * nj + j];
        }
        """,
        "kernel.cl",
    )
    assert found.launch.grid == ("ceil_div(nj, BLOCK_SIZE_X)", "ceil_div(ni, BLOCK_SIZE_Y)")


def test_an_axis_without_blocks_is_not_in_the_grid():
    found = made(
        """
        template <int BLOCK_SIZE, int ROWS_PER_BLOCK>
        __global__ void gemv(const float *a, const float *x, float *y, int rows, int cols)
        {
            int row = blockIdx.x * ROWS_PER_BLOCK + threadIdx.y;
            if (row >= rows) return;
            float sum = 0;
            for (int c = threadIdx.x; c < cols; c += BLOCK_SIZE)
                sum += a[row * cols + c] * x[c];
            if (threadIdx.x == 0) y[row] = sum;
        }
        """,
        "kernel.cu",
    )
    assert found.launch.grid == ("ceil_div(rows, ROWS_PER_BLOCK)",)
    assert found.launch.block == ("BLOCK_SIZE", "ROWS_PER_BLOCK")


def test_what_the_source_defines_for_good_is_named():
    text = STENCIL.replace("#ifndef", "//").replace("#endif", "//")
    switch = "#define PADDED 0\n#if PADDED\n#endif\n"
    (variant,) = made(switch + text).launch.parameters
    assert variant.remark == "to tune PADDED, BX, BY, Z_PER_ITEM, put #ifndef and #endif around each #define"


def test_an_array_without_bounds_checks_holds_whole_tiles():
    found = arguments(
        """
        __kernel void scale(__global float *x, int n)
        {
            const int first = get_group_id(0) * TILE + get_local_id(0);
            for (int k = 0; k < TILE; k += BLOCK_SIZE)
                x[first] *= 2;
        }
        """
    )
    assert 'shape: ["round_up(n, TILE) + BLOCK_SIZE - TILE"]' in found["x"]


def test_rows_that_nothing_guards_hold_whole_tiles_and_are_as_long_as_their_stride():
    text = """
        __global__ void product(
            int rows_of_a, int rows_of_b, int length, const float *a, const float *b, float *c)
        {
            const int m = blockDim.x * blockIdx.x + threadIdx.x, n = blockDim.y * blockIdx.y + threadIdx.y;
            float sum = 0.0f;
            for (int k = 0; k < length; k++)
                sum += a[k * rows_of_a + m] * b[k * rows_of_b + n];
            c[n * rows_of_a + m] = sum;
        }
    """
    space = scaffold("product.cu", "product", text).space
    assert 'grid: ["ceil_div(rows_of_a, BLOCK_SIZE_X)", "ceil_div(rows_of_b, BLOCK_SIZE_Y)"]' in space
    found = arguments(text, "product.cu")
    assert "shape: [length, rows_of_a]" in found["a"] and "shape: [rows_of_b, rows_of_a]" in found["c"]
    extents = [check["rows_of_a"] for check in yaml.safe_load(space)["verify_sizes"]]
    assert len(extents) > 1 and not any(extent % 64 for extent in extents)
    assert "nothing guards the end of a row: multiples of all tiles for rows_of_a and rows_of_b" in space
    guarded = text.replace("c[n *", "if (m < rows_of_a && n < rows_of_b) c[n *")
    assert "nothing guards the end of a row" not in scaffold("product.cu", "product", guarded).space


def test_a_macro_that_only_another_branch_needs_is_a_parameter():
    text = """
        __global__ void twice(float *x, int n)
        {
            const int i = blockIdx.x * BLOCK_SIZE + threadIdx.x;
        #if STAGED == 1
            __shared__ float staged[ROOM];
            staged[threadIdx.x % ROOM] = x[i];
        #endif
            if (i < n) x[i] *= 2.0f;
        }
    """
    assert "  ROOM: [" in scaffold("twice.cu", "twice", text).space


def test_a_load_that_a_condition_keeps_inside_reaches_no_further_than_it():
    found = arguments(
        """
        __global__ void step(const float *u, float *v, int n)
        {
            __shared__ float tile[TILE + 2][TILE + 2];
            const int x = blockIdx.x * TILE + threadIdx.x - 1, y = blockIdx.y * TILE + threadIdx.y - 1;
            tile[threadIdx.y][threadIdx.x] = (x >= 0 && x < n && y >= 0 && y < n) ? u[y * n + x] : 0.0f;
            __syncthreads();
            if (x < n && y < n) v[y * n + x] = tile[threadIdx.y + 1][threadIdx.x];
        }
        """,
        "kernel.cu",
    )
    assert "shape: [n, n]" in found["u"]


def test_a_shape_that_depends_on_what_is_tuned_asks_for_a_check():
    space = scaffold(
        "scale.cl",
        "scale",
        """
        __kernel void scale(__global float *x, __global float *sums, __local float *part, int n)
        {
            const int i = get_group_id(0) * TILE + get_local_id(0);
            part[get_local_id(0)] = x[get_group_id(0) * TILE + get_local_id(0)];
            if (i < n) sums[i] = part[get_local_id(0)];
        }
        """,
    ).space
    asks = {
        line.split()[2]: "a guess to check: it depends on" in line
        for line in space.splitlines()
        if "shape: [" in line
    }
    assert asks == {"x,": True, "sums,": False, "part,": False}, space


def test_local_memory_has_the_shape_that_its_indices_show():
    found = arguments(
        """
        #define AT(y, x) tile[(y) * (BLOCK_SIZE + 1) + (x)]
        inline int flat(int y, int x, int pitch) { return y * pitch + x; }
        __kernel __attribute__((reqd_work_group_size(BLOCK_SIZE, BLOCK_SIZE, 1)))
        void turn(__global float *out, __global const float *in, __local float *tile,
            __local float4 *other, int n)
        {
            const int tx = get_local_id(0), ty = get_local_id(1);
            AT(ty, tx) = in[get_global_id(1) * n + get_global_id(0)];
            other[flat(ty, tx, 16)] = 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            out[get_global_id(0) * n + get_global_id(1)] = AT(tx, ty);
        }
        """
    )
    assert (
        found["tile"]
        == "{name: tile, dtype: float32, shape: [BLOCK_SIZE * BLOCK_SIZE + BLOCK_SIZE - 1], role: local}"
    )
    assert "shape: [4 * (17 * BLOCK_SIZE - 16)], role: local" in found["other"]


def test_of_alternative_arguments_the_one_that_can_be_passed_is_taken():
    text = """
        __kernel void gather(
        #ifdef USE_TEXTURE
            image2d_t x,
        #else
            __global const float *x,
        #endif
            __global const int *index, __global float *y, const int n)
        {
            const int i = get_global_id(0);
            if (i < n)
                y[i] = x[index[i]];
        }
        """
    found = arguments(text)
    assert list(found) == ["x", "index", "y", "n"]
    assert "fill: {constant: 0}" in found["index"] and "fill: {uniform: [-1, 1]}" in found["x"]
    with pytest.raises(InputError, match="x is an image; take a pointer to its elements instead"):
        arguments(text.replace("__global const float *x", "image2d_t x"))


def test_a_structure_by_value_is_passed_field_by_field():
    found = arguments(
        "struct Step { float seconds; int count; };"
        "__global__ void move(float *x, Step step, float3 by, int n)"
        "{ x[threadIdx.x] += step.seconds * by.x; }",
        "kernel.cu",
    )
    assert "fields: {seconds: float32, count: int32}, value: {seconds: 2, count: count}" in found["step"]
    assert "fields: {x: float32, y: float32, z: float32}" in found["by"]


def test_a_kernel_with_local_memory_runs_as_it_is(folder):
    (folder.path / "total.cl").write_text(
        """
        __kernel void total(__global const float *x, __global float *partial, __local float *sums,
            const int n)
        {
            const int thread = get_local_id(0), i = get_global_id(0);
            sums[thread] = i < n ? x[i] : 0;
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int step = get_local_size(0) / 2; step > 0; step >>= 1) {
                if (thread < step)
                    sums[thread] += sums[thread + step];
                barrier(CLK_LOCAL_MEM_FENCE);
            }
            if (thread == 0)
                partial[get_group_id(0)] = sums[0];
        }
        """
    )
    done = folder.run("new", "total.cl")
    assert done.returncode == 0 and "\ngood  the space has 5 valid configurations" in done.stdout
    assert "sums, dtype: float32, shape: [2 * BLOCK_SIZE]" in (folder.path / "total.yaml").read_text()


def test_the_host_says_what_a_template_takes_and_how_large_its_blocks_are():
    program = """
        template <class T, class vecT, int SIZE, bool FIRST>
        __global__ void scan(const T *x, vecT *y, int n) { if (threadIdx.x < n) y[threadIdx.x] = {}; }
        __global__ void fill(float *x) { x[blockIdx.y * 16 * 64 + threadIdx.y * 64 + threadIdx.x] = 0; }
        __global__ void scale(float *x) { x[blockIdx.x * blockDim.x + threadIdx.x] *= 2; }
        int main() {
            dim3 grid(8, 8), block(64, 16);
            scan<double, float4, 96, true><<<grid, dim3(96)>>>(0, 0, 1);
            fill<<<grid, block>>>(0);
            scale<<<8, 256>>>(0);
        }
        """

    def text(entry):
        kernels = program.partition("int main")[0]
        return scaffold("scan.cu", "scan", kernels, entry, host=program).space

    assert 'entry: "scan<DTYPE, float4, SIZE, FIRST>"' in text("scan")
    assert "default: {SIZE: 96, FIRST: true}" in text("scan") and "block: [96, 1, 1]" in text("scan")
    assert "block: [64, 16, 1]" in text("fill")
    assert "block: [BLOCK_SIZE]" in text("scale")  # the kernel takes any


def test_texture_references_are_refused_in_one_line():
    source = "texture<float, 1> image;\n__global__ void copy(float *x) { x[0] = tex1Dfetch(image, 0); }"
    with pytest.raises(InputError, match="texture reference, which CUDA 12 does not know; take a pointer"):
        scaffold("copy.cu", "copy", source)


def test_bytes_that_index_a_histogram_are_random():
    found = arguments(
        """
        __kernel void histogram(__global const unsigned char *data, __global unsigned int *bins, int n)
        {
            const int i = get_global_id(0);
            if (i < n)
                atomic_add(&bins[data[i]], 1u);
        }
        """
    )
    assert "fill: {integers: [0, 255]}" in found["data"]


def test_a_launch_that_swaps_names_gives_its_grid_in_those_of_the_kernel():
    text = """
    __global__ void scale(float *x, int rows, int columns)
    {
        const int i = blockIdx.x * 256 + threadIdx.x;
        if (i < columns && blockIdx.y < rows) x[blockIdx.y * columns + i] *= 2;
    }
    void run(float *x, int rows, int columns)
    {
        scale<<<dim3((rows + 255) / 256, columns), 256>>>(x, columns, rows);
    }
    """
    assert 'grid: ["ceil_div(columns, 256)", "rows"]' in scaffold("scale.cu", "scale", text).space


@pytest.mark.parametrize("before", ["", "template <int BLOCK = 64> int helper() { return BLOCK; }"])
def test_only_the_launching_template_gives_defaults(before):
    launches = read_kernel_source(
        f"""{before}
        template <typename T, int ITEMS = 4> void run(float *x, int n)
        {{
            constexpr int BLOCK = 512;
            add<BLOCK, ITEMS><<<n / 512, 512>>>(x, n);
        }}
        """,
    ).launches
    assert [launch.template for launch in launches] == [("BLOCK", "4")]


IN_THREE_LANGUAGES = """
    {kernel} void scale({array} float *x, {array} float *sums, const int n)
    {{
        float sum = 0;
        for (int i = {block} * {threads} + {thread}; i < n; i += {threads} * {blocks}) sum += x[i];
        sums[{block} * {threads} + {thread}] = sum;
    }}
"""
WORDS = {
    "cuda": {
        **{"kernel": "__global__", "array": "", "block": "blockIdx.x", "threads": "blockDim.x"},
        **{"thread": "threadIdx.x", "blocks": "gridDim.x"},
    },
    "portable": {
        **{"kernel": "KERNEL", "array": "GLOBAL", "block": "BLOCK_INDEX(x)", "threads": "BLOCK_EXTENT(x)"},
        **{"thread": "THREAD_INDEX(x)", "blocks": "GRID_EXTENT(x)"},
    },
    "opencl": {
        **{"kernel": "__kernel", "array": "__global", "block": "get_group_id(0)"},
        **{"threads": "get_local_size(0)", "thread": "get_local_id(0)", "blocks": "get_num_groups(0)"},
    },
}


def test_a_kernel_gets_the_same_shapes_in_every_language():
    in_cuda, *others = [arguments(IN_THREE_LANGUAGES.format(**words)) for words in WORDS.values()]
    assert "round_up(n, BLOCK_SIZE)" in in_cuda["sums"]
    assert others == [in_cuda, in_cuda]


@pytest.mark.parametrize("variable", ["x", "y"])
def test_a_variable_that_is_called_like_an_axis_steers_nothing(variable):
    text = f"""
        __global__ void advance(float *pos, const float *vel, float dt, int n)
        {{
            int i = blockIdx.x * blockDim.x + threadIdx.x, j = blockIdx.y;
            if (i < n) {{
                float {variable} = pos[j * n + i] + dt * vel[j * n + i];
                pos[j * n + i] = {variable};
            }}
        }}
        """
    found = arguments(text, "kernel.cu")
    assert all("fill: {uniform: [-1, 1]}" in found[name] for name in ("pos", "vel"))


def test_numbers_of_which_nothing_is_said_are_so_large_that_arrays_have_elements():
    text = """
    template <int ROWS, int COLS, int WIDE, int PART>
    __global__ void add(const float *x, float *y, int n) {
        constexpr int EACH = WIDE / (PART * 8), STEP = (ROWS * COLS) / (EACH * 16);
        __shared__ float tile[STEP][COLS / 4];
        tile[0][threadIdx.x % (COLS / 4)] = x[threadIdx.x / STEP];
        for (int i = threadIdx.x; i < n; i += STEP)
            y[i] += tile[0][0];
    }
    """
    made = scaffold("add.cu", "add", text)
    number = {item.name: item.default for item in made.guess.launch.parameters}
    each = number["WIDE"] // (number["PART"] * 8)
    assert number["COLS"] >= 4
    assert number["ROWS"] * number["COLS"] >= each * 16 > 0
    assert number["PART"] == 1


def test_no_size_to_verify_is_0_where_whole_rows_are_needed():
    found = verify_sizes(["n", "m"], [], [], {}, checked=True, unguarded=["m"])
    assert all(n > 0 and m > 0 and m % 128 == 0 for n, m in found)
