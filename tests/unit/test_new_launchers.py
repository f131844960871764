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
    "COPIES": "1                // private histograms per block (1, 2, 4, 8)",
}
FIXED = "".join(f"#define {name} {value}\n" for name, value in MACROS.items()) + HISTOGRAM
OPEN = "".join(f"#ifndef {one}\n#define {one} {what}\n#endif\n" for one, what in MACROS.items()) + HISTOGRAM


def grid(kernel, host=""):
    return scaffold("kernel.cu", "kernel", kernel, "", host=host).guess.grid


def test_a_grid_has_the_values_of_what_the_source_defines_for_good():
    assert grid(FIXED) == ("ceil_div(n, 256 * 16)",)
    assert grid(OPEN) == ("ceil_div(n, BLOCK_SIZE * ITEMS_PER_THREAD)",)


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
            "min(1024, (count - 1) // BLOCK_SIZE + 1)",
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
