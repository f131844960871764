/* The sum of two matrices on the host. */
void matadd(const DTYPE *restrict a, const DTYPE *restrict b, DTYPE *restrict c, long rows, long columns)
{
#pragma omp parallel for simd
    for (long i = 0; i < rows * columns; i++)
        c[i] = a[i] + b[i];
}
