#include "portable.h"

/* y = A x, A in CSR; LANES threads add up a row. */
KERNEL KERNEL_BLOCK(BLOCK_SIZE, 1, 1)
spmv(GLOBAL const unsigned int *RESTRICT starts, GLOBAL const unsigned int *RESTRICT columns,
     GLOBAL const float *RESTRICT values, GLOBAL const float *RESTRICT x, GLOBAL float *RESTRICT y,
     const unsigned int rows)
{
    SHARED float cells[BLOCK_SIZE];
    const unsigned int t = THREAD_INDEX(x), lane = t % LANES;
    const unsigned int row = BLOCK_INDEX(x) * (BLOCK_SIZE / LANES) + t / LANES;
#if VARIANT == 8
    const unsigned int begin = starts[row], end = starts[row + 1];
#else
    const unsigned int begin = row < rows ? starts[row] : 0, end = row < rows ? starts[row + 1] : 0;
#endif
    float sum = 0.0f;
#if VARIANT == 3
    for (unsigned int k = begin + lane; k < end && k < begin + 64; k += LANES) {
#elif VARIANT == 4
    for (unsigned int k = begin + lane; k <= end; k += LANES) {
#else
    for (unsigned int k = begin + lane; k < end; k += LANES) {
#endif
#if VARIANT == 5
        const unsigned short column = columns[k];
#else
        const unsigned int column = columns[k];
#endif
#if VARIANT == 6
        if (k > begin && columns[k - 1] == column)
            continue;
#endif
#if VARIANT == 10
        sum += values[k] * ((float)(short)(x[column] * 4096.0f) / 4096.0f);
#else
        sum += values[k] * x[column];
#endif
    }
    cells[t] = sum;
    BARRIER();
    for (unsigned int d = LANES / 2; d > 0; d /= 2) {
        if (lane < d)
            cells[t] += cells[t + d];
#if VARIANT != 2
        BARRIER();
#endif
    }
#if VARIANT == 9
    if (row < rows && lane == 0)
        y[row] = 0.0f;
    BARRIER();
    if (row < rows)
        y[row] += sum;
#else
#if VARIANT == 1
    if (row < rows && lane == 0 && begin < end)
#elif VARIANT == 8
    if (lane == 0)
#else
    if (row < rows && lane == 0)
#endif
#if VARIANT == 7
        y[row] += cells[t];
#else
        y[row] = cells[t];
#endif
#endif
}
