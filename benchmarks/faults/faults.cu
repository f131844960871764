// Doubles n numbers PASSES times over, so that TENS and ONES decide the time; or goes wrong in the way of FAULT, and
// then does a tenth of the work, so that it would win if nobody noticed. Where PASSES also says what is hit,
// no two faulty configurations are alike.
#define PASSES (10 * TENS + ONES)
#define HELD 100  // values that are live at a time, more than a block of 1024 threads has registers for

__device__ __noinline__ int deep(int *y, int n)
{
    volatile int frame[64];
    frame[(n + PASSES) % 64] = n;
    return n < 0 ? 0 : deep(y, n + 1) + frame[0];
}

extern "C" __global__ void double_all(int *x, int *y, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
#if FAULT == FAULT_ILLEGAL_ACCESS
    *(volatile int *)(size_t)(16 * PASSES + i * 4) = 1;
#elif FAULT == FAULT_MISALIGNED
    *(volatile long long *)((char *)y + PASSES * 16 + 4 + i) = 1;
#elif FAULT == FAULT_ENDLESS
    while (*(volatile int *)x != 123456789 + PASSES) {}
#elif FAULT == FAULT_STACK_OVERFLOW
    y[0] = deep(y, n);
#elif FAULT == FAULT_CHANGE_INPUT
    if (i == PASSES) x[i] += 1;
#elif FAULT == FAULT_TOO_MANY_REGISTERS
    int held[HELD];
#pragma unroll
    for (int k = 0; k < HELD; ++k) held[k] = ((volatile int *)x)[i + k * PASSES];
#pragma unroll
    for (int k = HELD - 1; k >= 0; --k) ((volatile int *)y)[i + k] = held[k];
#endif
    for (int pass = 0; pass < (FAULT == FAULT_NONE ? PASSES : PASSES / 10); ++pass)
        for (int j = i; j < n; j += gridDim.x * blockDim.x)
            ((volatile int *)y)[j] = 2 * ((volatile int *)x)[j];
}
