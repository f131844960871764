"""What `autotune new` takes from the constants of a source and from the program that launches its kernel."""

import pytest

from autotune.scaffold import scaffold

HISTOGRAM = """
    constexpr int NUM_BINS = 256;
    __global__ void histogram256(const unsigned char* __restrict__ data, unsigned int* hist, int n)
    {
        __shared__ unsigned int local[COPIES][NUM_BINS];
        int start = blockIdx.x * BLOCK_SIZE * ITEMS_PER_THREAD + threadIdx.x;
        for (int k = 0; k < ITEMS_PER_THREAD; k++)
            if (start + k * BLOCK_SIZE < n)
                atomicAdd(&local[threadIdx.x % COPIES][data[start + k * BLOCK_SIZE]], 1u);
        __syncthreads();
        for (int bin = threadIdx.x; bin < NUM_BINS; bin += BLOCK_SIZE)
            atomicAdd(&hist[bin], local[0][bin]);
    }
"""
MACROS = {
    "BLOCK_SIZE": "256          // threads per block",
    "ITEMS_PER_THREAD": "16     // bytes each thread reads",
    "COPIES": "1                // private histograms per block",
}
FIXED = "".join(f"#define {name} {value}\n" for name, value in MACROS.items()) + HISTOGRAM
OPEN = "".join(f"#ifndef {one}\n#define {one} {what}\n#endif\n" for one, what in MACROS.items()) + HISTOGRAM


def grid(kernel, host=""):
    return scaffold("kernel.cu", "kernel", kernel, host=host).guess.launch.grid


def test_a_grid_has_the_values_of_what_the_source_defines_for_good():
    assert grid(FIXED) == ("ceil_div(n, 256 * 16)",)
    assert grid(OPEN) == ("ceil_div(n, BLOCK_SIZE * ITEMS_PER_THREAD)",)


def test_values_reach_twice_the_default_and_are_marked():
    found = {
        item.name: (item.values, item.remark) for item in scaffold("k.cu", "k", OPEN).guess.launch.parameters
    }
    assert found == {
        "BLOCK_SIZE": ((32, 64, 128, 256, 512, 1024), "values guessed"),
        "ITEMS_PER_THREAD": ((1, 2, 4, 8, 16, 32), "values guessed"),
        "COPIES": ((1, 2, 4), "values guessed"),
    }


def test_a_block_has_no_more_threads_than_a_gpu_takes():
    source = """
        #ifndef BLOCK
        #define BLOCK 2048
        #endif
        __global__ void scale(float *y, const float *x, int n)
        {
            int i = blockIdx.x * BLOCK + threadIdx.x;
            if (i < n) y[i] = 2.0f * x[i];
        }
    """
    guess = scaffold("kernel.cu", "kernel", source).guess
    (block,) = guess.launch.parameters
    assert guess.launch.block == ("BLOCK",) and (max(block.values), block.default) == (1024, 1024)
    assert "no block has more than 1,024 threads, and the source has 2,048" in block.remark


def test_bytes_follow_from_a_shape_that_a_loop_over_a_constant_shows():
    space = scaffold("kernel.cu", "kernel", FIXED).space
    assert "{name: hist, dtype: uint32, shape: [256], role: inout" in space
    assert "work: {bytes: n + 4 * 256}  # from the guessed shapes above" in space


STRIDED = """
    __global__ void scale(float *x, int count)
    {
        for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += blockDim.x * gridDim.x)
            x[i] *= 2.0f;
    }
"""


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        (
            "int per_block = threads * 8; int blocks = (n + per_block - 1) / per_block; "
            "scale<<<blocks, threads, 0, stream>>>(d_x, n);",
            "ceil_div(count, BLOCK_SIZE * 8)",
        ),
        (
            "const int threads = 256, items = 4; scale<<<DIV_UP(n, threads * items), threads>>>(d_x, n);",
            "ceil_div(count, BLOCK_SIZE * 4)",
        ),
        (
            "dim3 block(256); dim3 blocks(cdiv(n, 2 * block.x)); scale<<<blocks, block>>>(d_x, n);",
            "ceil_div(count, 2 * BLOCK_SIZE)",
        ),
        (
            "scale<<<std::min(1024, (n - 1) / threads + 1), threads>>>(d_x, n);",
            "min(1024, ceil_div(count, BLOCK_SIZE))",
        ),
        (
            "int blocks = (n + threads * 4 - 1) / (threads * 4); dim3 block(threads), grid(blocks); "
            "scale<<<grid, block>>>(d_x, n);",
            "ceil_div(count, BLOCK_SIZE * 4)",
        ),
        # Where that leaves out a parameter, or needs what a launch plan does not know: the kernel's own
        ("scale<<<(n + 255) / 256, 256>>>(d_x, n);", "ceil_div(count, BLOCK_SIZE)"),
        ("const int n = 1 << 20; scale<<<4096, threads>>>(d_x, n);", "ceil_div(count, BLOCK_SIZE)"),
        ("int b = n / threads; b += 1; scale<<<b, threads>>>(d_x, n);", "ceil_div(count, BLOCK_SIZE)"),
        ("scale<<<blocks_for(n), threads>>>(d_x, n);", "ceil_div(count, BLOCK_SIZE)"),
        ("scale<<<(v.size() + 7) / 8, threads>>>(d_x, v.size());", "ceil_div(count, BLOCK_SIZE)"),
    ],
)
def test_a_grid_is_what_the_program_launches(host, expected):
    functions = (
        "#define DIV_UP(a, b) (((a) + (b) - 1) / (b))\nint cdiv(int a, int b) { return (a + b - 1) / b; }"
    )
    assert grid(STRIDED, f"{functions}\nvoid run() {{ {host} }}") == (expected,)


TEMPLATE = """
    template <typename T, int BLOCK, int ROWS>
    __global__ void rows_of(T *x, int n)
    {
        for (int r = 0; r < ROWS; r++)
            if ((blockIdx.x * ROWS + r) * BLOCK + threadIdx.x < n)
                x[(blockIdx.x * ROWS + r) * BLOCK + threadIdx.x] += 1;
    }
    template <typename T, int BLOCK = 256, int ROWS = 4>
    void launch(T *x, int n, void *stream = nullptr)
    {
        rows_of<T, BLOCK, ROWS><<<n, BLOCK>>>(x, n);
    }
"""


def test_defaults_of_the_launching_template_are_those_of_the_kernel():
    made = scaffold("k.cuh", "k", TEMPLATE, host=TEMPLATE)
    assert made.kernel.entry == "rows_of<DTYPE, BLOCK, ROWS>"
    assert {item.name: item.default for item in made.guess.launch.parameters} == {"BLOCK": 256, "ROWS": 4}


def test_template_arguments_in_the_grid_of_a_launching_template_are_parameters():
    host = TEMPLATE.replace("<<<n,", "<<<(n - 1) / (BLOCK * ROWS) + 1,")
    made = scaffold("k.cuh", "k", TEMPLATE, host=host)
    assert made.guess.launch.grid == ("ceil_div(n, BLOCK * ROWS)",)


def test_sizes_to_verify_lie_around_the_tiles_of_a_grid_that_has_a_limit():
    host = "void run() { scale<<<std::min((n + threads - 1) / threads, 4), threads>>>(d_x, n); }"
    made = scaffold("kernel.cu", "kernel", STRIDED, host=host).guess
    assert made.launch.grid == ("min(ceil_div(count, BLOCK_SIZE), 4)",)
    assert made.verify_sizes == ((1,), (1023,), (1024,), (1025,))


ROWS = """
    __global__ void rows_of(const float *x, float *y, int rows, int cols, float eps, int shift)
    {
        extern __shared__ float4 room[];
        float *row = (float *)room;
        for (int c = threadIdx.x; c < cols; c += BLOCK) {
            row[c] = x[(size_t)blockIdx.x * cols + c] + shift;
            y[(size_t)blockIdx.x * cols + c] = row[c] * eps;
        }
    }
"""


@pytest.mark.parametrize(
    ("host", "sizes", "shared_bytes", "numbers"),
    [
        (
            "int main(int argc, char **argv) { const int rows = argc > 1 ? atoi(argv[1]) : 8192;"
            "int cols = 2048; if (argc > 2) cols = atoi(argv[2]); const float eps = 1e-5f;"
            "rows_of<<<rows, BLOCK, cols * sizeof(float)>>>(dx, dy, rows, cols, eps, 3); }",
            [8192, 2048],
            ("cols * 4", "as the host passes it"),
            ["2", "3"],
        ),
        (
            "int main(int n, char **words) { int w = 100, shift = 1, bytes; float eps = 0.5f;"
            "if (n == 1) { w = 1 << 12; eps = -2.0f; } else { shift = 7; } bytes = (w + 8) * sizeof(float4);"
            "rows_of<<<9, BLOCK, bytes>>>(dx, dy, 9, w, eps, shift); }",
            [9, 4096],
            ("(cols + 8) * 16", "as the host passes it"),
            ["2", "1"],
        ),
        (  # what a launch plan cannot have: the kernel's own
            "void run(int rows, int cols, float eps) {"
            "rows_of<<<rows, BLOCK, room_for(cols)>>>(dx, dy, rows, cols, 1 / eps, next()); }",
            [4096, 4096],
            ("16 * BLOCK", "an element for each thread?"),
            ["2", "0"],
        ),
    ],
)
def test_shared_memory_and_numbers_are_those_that_a_program_passes_without_words(
    host, sizes, shared_bytes, numbers
):
    made = scaffold("rows.cu", "rows", ROWS, host=ROWS + host).guess
    assert [size for size, _ in made.sizes.values()] == sizes
    assert made.launch.shared_bytes == shared_bytes
    assert [item.value for item in made.arguments[-2:]] == numbers


PRODUCT = """
    #define N 2048
    __global__ void product(const float *a, const float *b, float *c, int m, int n, int k)
    {
        int col = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
        float sum = 0;
        if (row < m && col < n) {
            for (int i = 0; i < k; i++) sum += a[row * k + i] * b[i * n + col];
            c[row * n + col] = sum;
        }
    }
"""


def test_sizes_are_those_that_the_host_passes():
    host = (
        f"{PRODUCT}void run() {{ int m = 1 << 10;"
        "product<<<dim3(N / 16, m / 16), dim3(16, 16)>>>(0, 0, 0, m, N, N / 2); }"
    )
    sizes = scaffold("product.cu", "product", PRODUCT, host=host).guess.sizes
    assert {name: size for name, (size, _) in sizes.items()} == {"m": 1024, "n": 2048, "k": 1024}


def test_the_host_of_a_portable_kernel_shows_sizes_and_blocks_too():
    text = """
    #include "portable.h"
    KERNEL void fill(GLOBAL float* y, int width, int height)
    {
        int x = GLOBAL_INDEX(x), row = GLOBAL_INDEX(y);
        if (x < width && row < height) y[row * width + x] = 1;
    }
    #ifndef __OPENCL_VERSION__
    int main() { int width = 1000, height = 700; fill<<<dim3(16, 100), dim3(64, 7)>>>(0, width, height); }
    #endif
    """
    made = scaffold("fill.cu", "fill", text, host=text).guess
    assert made.launch.source.dialect == "portable" and made.launch.block == ("64", "7", "1")
    assert {name: size for name, (size, _) in made.sizes.items()} == {"width": 1000, "height": 700}


def test_sizes_are_no_larger_than_a_launch_of_a_second_and_the_memory_of_a_device():
    many = ", ".join(f"int n{number}" for number in range(6))
    text = f"""
    __global__ void fill(float *y, {many})
    {{
        int i = blockIdx.x * blockDim.x + threadIdx.x;
        if (i < n0) for (int j = 0; j < n1; j++) for (int k = 0; k < n2; k++)
            y[((((i * n1 + j) * n2 + k) * n3) * n4) * n5] += 1;
    }}
    """
    sizes = scaffold("fill.cu", "fill", text).guess.sizes
    elements = 1
    for size, _ in sizes.values():
        elements *= size
    assert 1 < elements <= 2**31 / 4


def test_a_macro_is_a_block_where_it_multiplies_a_groups_index_and_not_for_its_name():
    text = """
    #ifndef SPAN
    #define SPAN 64
    #endif
    #ifndef BLOCK_SIZE
    #define BLOCK_SIZE 16
    #endif
    __kernel void add(__global float *y, __global const float *x, int n)
    {
        int i = get_group_id(0) * SPAN + get_local_id(0);
        for (int j = 0; j < BLOCK_SIZE; j++)
            if (i < n) y[i] += x[i] * j;
    }
    """
    launch = scaffold("add.cl", "add", text).guess.launch
    assert (launch.block, launch.grid) == (("SPAN",), ("ceil_div(n, SPAN)",))


def test_a_macro_that_nothing_defines_has_the_values_of_what_it_is_used_for():
    text = """
    __global__ void add(float *y, const float *x, int n)
    {
        int first = blockIdx.x * WIDTH + threadIdx.x;
        for (int j = 0; j < REPEATS; j++)
            if (first < n) y[first] += x[first] * FACTOR;
    }
    """
    launch = scaffold("add.cu", "add", text).guess.launch
    values = {item.name: item.values for item in launch.parameters}
    assert launch.block == ("WIDTH",) and values["WIDTH"] == (32, 64, 128, 256, 512)
    assert (values["REPEATS"], values["FACTOR"]) == ((1, 2, 4, 8), (1,))


@pytest.mark.parametrize("end", ["n", "n / 4"])
def test_loops_to_a_part_of_a_size_take_time_on_a_cpu_too(end):
    text = f"""
    __kernel void near(int n, __global const float4 *x, __global float *y) {{
        int i = get_global_id(0);
        if (i >= n) return;
        float sum = 0;
        for (int k = 0; k < {end}; k++)
            for (int j = 0; j < {end}; j++)
                sum += x[k].x * x[j].y;
        y[i] = sum;
    }}
    """
    (_, cpu) = scaffold("near.cl", "near", text).guess.sizes["n"]
    assert 100 < cpu < 1000


ROW_SUMS = """
    #ifndef TX
    #define TX 32
    #endif
    #ifndef TY
    #define TY 4
    #endif
    #define CEIL_DIV(a, b) (((a) + (b) - 1) / (b))
    __global__ void __launch_bounds__(TX * TY) row_sums(const float *A, float *y, int rows, int cols)
    {
        int b = blockIdx.y, row = blockIdx.x * TY + threadIdx.y;
        __shared__ float part[TY][TX];
        float sum = 0;
        if (row < rows)
            for (int c = threadIdx.x; c < cols; c += TX)
                sum += A[((size_t)b * rows + row) * cols + c];
        part[threadIdx.y][threadIdx.x] = sum;
        for (int d = TX / 2; d > 0; d /= 2) {
            __syncthreads();
            if (threadIdx.x < d) part[threadIdx.y][threadIdx.x] += part[threadIdx.y][threadIdx.x + d];
        }
        if (threadIdx.x == 0 && row < rows)
            y[(size_t)b * rows + row] = part[threadIdx.y][0];
    }
"""
NUMBERS = "const int batches = 8, rows = 1024, cols = 512; float *A, *y;"
TAKEN = "const float *A, float *y, int batches, int rows, int cols"
LAUNCHED = "row_sums<<<grid, block>>>(A, y, rows, cols);"


@pytest.mark.parametrize(
    "host",
    [
        "int main(int argc, char **argv) { int batches = argc > 1 ? atoi(argv[1]) : 8, rows = 64, cols = 9; "
        f"float *A, *y; dim3 block(TX, TY); dim3 grid((rows + TY - 1) / TY, batches); {LAUNCHED} }}",
        "int main(int argc, char **argv) { int batches = std::stoi(argv[1]), rows = std::stoi(argv[2]); "
        f"const dim3 block{{TX, TY}}, grid{{(unsigned)(rows + TY - 1) / TY, uint(batches)}}; {LAUNCHED} }}",
        f"int main() {{ {NUMBERS} auto up = [](int a, int b) {{ return (a + b - 1) / b; }}; "
        "row_sums<<<dim3(up(rows, TY), batches), dim3(TX, TY)>>>(A, y, rows, cols); }",
        "unsigned div_up(int a, int b) { int q = a / b; return q * b == a ? q : q + 1; } "
        f"void run({TAKEN}) {{ dim3 block(TX, TY), grid(div_up(rows, TY), batches); {LAUNCHED} }}",
        "template <class T> constexpr T per(T a, T b) { return (a + b - 1) / b; } template <class T> void "
        f"run({TAKEN}) {{ int n = per<int>(rows, TY); dim3 block(TX, TY), grid(n, batches); {LAUNCHED} }}",
        f"void run({TAKEN}, cudaStream_t s) {{ auto grid = dim3(CEIL_DIV(rows, TY), batches); "
        "auto block = dim3(TX, TY); row_sums<<<grid, block, 0, s>>>(A, y, rows, cols); }",
        f"void run({TAKEN}) {{ dim3 grid = {{CEIL_DIV(rows, TY), batches, 1}}; dim3 block = {{TX, TY, 1}}; "
        f"{LAUNCHED} }}",
        f"void run({TAKEN}) {{ dim3 grid, block; block.x = TX; block.y = TY; grid.x = (rows - 1) / TY + 1; "
        f"grid.y = batches; {LAUNCHED} }}",
        "struct Shape { int batches, rows, cols; }; void run(const float *A, float *y, const Shape &s) { "
        "dim3 block(TX, TY), grid(CEIL_DIV(s.rows, TY), s.batches); "
        "row_sums<<<grid, block>>>(A, y, s.rows, s.cols); }",
        "dim3 blocks(int n, int batches) { return dim3(CEIL_DIV(n, TY), batches); } "
        f"int main() {{ {NUMBERS} row_sums<<<blocks(rows, batches), dim3(TX, TY)>>>(A, y, rows, cols); }}",
        f"int main() {{ {NUMBERS} hipLaunchKernelGGL(row_sums, dim3(CEIL_DIV(rows, TY), batches), "
        "dim3(TX, TY), 0, 0, A, y, rows, cols); }",
        f"int main() {{ {NUMBERS} auto run = [&] {{ dim3 grid(ceil((float)rows / TY), batches); "
        "row_sums<<<grid, dim3(TX, TY)>>>(A, y, rows, cols); }; run(); }",
        "class Op { void operator()(const float *A, float *y) { dim3 grid(CEIL_DIV(rows, TY), batches); "
        "row_sums<<<grid, dim3(TX, TY)>>>(A, y, rows, cols); } int batches, rows, cols; };",
        "struct Op { void run(const float *A, float *y); int batches, rows, cols; }; "
        "void Op::run(const float *A, float *y) { dim3 grid(CEIL_DIV(rows, TY), batches); "
        "row_sums<<<grid, dim3(TX, TY)>>>(A, y, rows, cols); }",
        "constexpr int BATCHES = 8; int main() { int rows = 1024, cols = 512; float *A, *y; "
        "row_sums<<<dim3(CEIL_DIV(rows, TY), BATCHES), dim3(TX, TY)>>>(A, y, rows, cols); }",
        "torch::Tensor run(torch::Tensor A, torch::Tensor y) { auto batches = A.size(0), m = A.size(1); "
        "const auto kernel = row_sums; const dim3 grid(at::ceil_div(m, TY), batches), block(TX, TY); "
        "kernel<<<grid, block>>>(A.data_ptr<float>(), y.data_ptr<float>(), m, A.size(2)); return y; }",
        'int main() { int batches, rows, cols; scanf("%d %d %d", &batches, &rows, &cols); float *A, *y; '
        "row_sums<<<dim3(CEIL_DIV(rows, TY), batches), dim3(TX, TY)>>>(A, y, rows, cols); }",
    ],
)
def test_what_only_shapes_the_hosts_grid_is_a_size(host):
    made = scaffold("k.cu", "k", f"{ROW_SUMS}\n{host}").guess
    assert made.launch.doubts == []
    assert (made.launch.grid, made.launch.block[:2]) == (("ceil_div(rows, TY)", "batches"), ("TX", "TY"))
    shapes = {item.argument.name: item.shape for item in made.arguments if item.role is not None}
    assert shapes == {"A": ("batches", "rows", "cols"), "y": ("batches", "rows")}
    is_number = NUMBERS in host or "= 8" in host or ": 8" in host
    assert made.sizes["batches"][0] == (8 if is_number else 256)


def test_a_size_of_the_host_has_a_name_that_the_kernel_does_not_use():
    host = "void run(const float *A, float *y, int b, int m, int n) { int step = b / 2; "
    host += "row_sums<<<dim3(CEIL_DIV(m, TY), min(step, 65535)), dim3(TX, TY)>>>(A, y, m, n); }"
    made = scaffold("k.cu", "k", f"{ROW_SUMS}\n{host}").guess
    assert made.launch.grid == ("ceil_div(rows, TY)", "min(b_count // 2, 65535)")
    assert list(made.sizes) == ["rows", "cols", "b_count"]


@pytest.mark.parametrize(
    ("host", "doubt"),
    [
        (
            "int main() { int rows = 1024, cols = 512, sms; float *A, *y; "
            "cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0); "
            "row_sums<<<dim3(CEIL_DIV(rows, TY), sms), dim3(TX, TY)>>>(A, y, rows, cols); }",
            "the host's grid needs sms, which was not understood: the grid is guessed",
        ),
        (
            f"void run({TAKEN}) {{ dim3 grid(spread(rows), batches), block(TX, TY); {LAUNCHED} }}",
            "the host's grid needs spread(rows), which was not understood: the grid is guessed",
        ),
        (
            f"void run({TAKEN}) {{ row_sums<<<dim3(CEIL_DIV(rows, TY), batches), dim3(TX, high(TY))>>>"
            "(A, y, rows, cols); }",
            "the host's block needs high(TY), which was not understood: the block is guessed",
        ),
        (
            "int main() { float *A, *y; row_sums<<<dim3(256, 8), dim3(TX, TY)>>>(A, y, 1024, 512); }",
            "the host's grid, (256, 8), names no size: the grid is guessed",
        ),
        (
            f"void run({TAKEN}) {{ launch_it(row_sums, batches, A, y, rows, cols); }}",
            "run() names row_sums, but no launch of it was found: the launch is guessed",
        ),
    ],
)
def test_what_of_the_host_is_not_taken_is_said(host, doubt):
    (said,) = scaffold("k.cu", "k", f"{ROW_SUMS}\n{host}").guess.launch.doubts
    assert said == f"{doubt} from the kernel's own text, so check it"


def test_a_block_has_threads_along_an_axis_only_if_kernel_or_host_have_them():
    kernel = """
        __global__ void scale(float *x, int n)
        {
            int i = blockIdx.x * blockDim.x + threadIdx.x;
            if (i < n) x[(size_t)blockIdx.y * n + i] *= 2;
        }
    """
    host = "int main() { int n = 1 << 20, channels = 3; float *x; dim3 b(256); "
    host += "scale<<<dim3((n + 255) / 256, channels), b>>>(x, n); }"
    made = scaffold("k.cu", "k", kernel + host).guess
    assert (made.launch.grid, made.launch.block) == (
        ("ceil_div(n, BLOCK_SIZE)", "channels"),
        ("BLOCK_SIZE", "1"),
    )
    assert {name: extents[0] for name, extents in made.sizes.items()} == {"n": 2**20, "channels": 3}
