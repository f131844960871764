/* Multiplies matrices on tensor cores as fast as it goes: `steps` products of 16 x 16 and 16 x 8 in each warp.
 *
 * A warp adds to 16 x COLUMNS sums in float: by mma.sync, 8 columns at a time from registers, or by wgmma, where four
 * warps share the right-hand matrix in shared memory. All rows of the left-hand matrix are `left`, and all columns of
 * the right-hand one `right`, so that all sums are equal, whatever the layout.
 */
#define UNROLL 16 /* products of 16 x 16 and 16 x COLUMNS */
#if DTYPE_FLOAT16
#define TYPE "f16"
#else
#define TYPE "bf16"
#endif
#include "wgmma.h"

#if INSTRUCTION == INSTRUCTION_MMA
#define SHARED_NUMBERS 1

struct Right {
    unsigned int pairs[2];

    __device__ __forceinline__ Right(const DTYPE *right, DTYPE *)
    {
        pairs[0] = ((const unsigned int *)right)[threadIdx.x % 4];
        pairs[1] = ((const unsigned int *)right)[threadIdx.x % 4 + 4];
    }
};

static __device__ __forceinline__ void multiply_add(float (&sums)[COLUMNS / 2], const unsigned int (&left)[4],
                                                    const Right &right)
{
#pragma unroll
    for (int k = 0; k < UNROLL; k++)
#pragma unroll
        for (int i = 0; i < COLUMNS / 2; i += 4)
            asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPE "." TYPE ".f32 {%0, %1, %2, %3}, "
                         "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                         : "+f"(sums[i]), "+f"(sums[i + 1]), "+f"(sums[i + 2]), "+f"(sums[i + 3])
                         : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right.pairs[0]),
                           "r"(right.pairs[1]));
}
#else
#define SHARED_NUMBERS (16 * COLUMNS)

/* The matrix in shared memory in panels of 16 rows and 64 columns, and its description: address and strides. */
struct Right {
    unsigned long long description;

    __device__ __forceinline__ Right(const DTYPE *right, DTYPE *numbers)
    {
        for (int i = threadIdx.x; i < SHARED_NUMBERS; i += BLOCK_SIZE)
            numbers[i] = right[i / 64 % 16];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        __syncthreads();
        const unsigned long long address = __cvta_generic_to_shared(numbers), panel_bytes = 16 * 64 * 2;
        description = address >> 4 | panel_bytes >> 4 << 16 | 1024ull >> 4 << 32 | 1ull << 62;
    }
};

/* The left-hand matrix is in registers; in the right-hand one a column follows the other (1). */
#define MULTIPLY_ADD(columns, count, left_names, right_name)                                                          \
    WGMMA(columns, count, sums, "{" left_names "}, " right_name, "1, 1, 1", "r"(left[0]), "r"(left[1]), "r"(left[2]), \
          "r"(left[3]), "l"(right.description))

static __device__ __forceinline__ void multiply_add(float (&sums)[COLUMNS / 2], const unsigned int (&left)[4],
                                                    const Right &right)
{
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#pragma unroll
    for (int k = 0; k < UNROLL; k++) {
#if COLUMNS == 64
        MULTIPLY_ADD(64, 32, "%32, %33, %34, %35", "%36");
#elif COLUMNS == 128
        MULTIPLY_ADD(128, 64, "%64, %65, %66, %67", "%68");
#else
        MULTIPLY_ADD(256, 128, "%128, %129, %130, %131", "%132");
#endif
    }
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
    asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}
#endif

extern "C" __global__ void __launch_bounds__(BLOCK_SIZE)
    multiply_add_matrices(const DTYPE *__restrict__ left, const DTYPE *__restrict__ right, float *__restrict__ result,
                          const unsigned int steps)
{
    __shared__ __align__(1024) DTYPE numbers[SHARED_NUMBERS];
    const Right columns(right, numbers);
    const unsigned int *pairs = (const unsigned int *)left;
    const unsigned int low = pairs[threadIdx.x % 4], high = pairs[threadIdx.x % 4 + 4];
    const unsigned int rows[4] = {low, low, high, high};
    float sums[COLUMNS / 2] = {};
    for (unsigned int step = 0; step < steps; step += UNROLL * COLUMNS / 8)
        multiply_add(sums, rows, columns);
    bool are_equal = true;
#pragma unroll
    for (int i = 1; i < COLUMNS / 2; i++)
        are_equal &= sums[i] == sums[0];
    result[(size_t)blockIdx.x * BLOCK_SIZE + threadIdx.x] = are_equal ? sums[0] * (COLUMNS / 8) : -1.0f;
}
