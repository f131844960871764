/* The product of two matrices on the host: rows of c grow by rows of b, of which a part stays in the cache. */
#define PART_K 64
#define PART_N 512

static long least(long a, long b)
{
    return a < b ? a : b;
}

void matmul(const float *restrict a, const float *restrict b, float *restrict c, long m, long n, long k)
{
#pragma omp parallel for
    for (long i = 0; i < m; i++)
        for (long j = 0; j < n; j++)
            c[i * n + j] = 0;
    for (long q = 0; q < k; q += PART_K)
        for (long r = 0; r < n; r += PART_N) {
            const long q_end = least(q + PART_K, k), r_end = least(r + PART_N, n);
#pragma omp parallel for
            for (long i = 0; i < m; i++)
                for (long p = q; p < q_end; p++) {
                    const float factor = a[i * k + p];
#pragma omp simd
                    for (long j = r; j < r_end; j++)
                        c[i * n + j] += factor * b[p * n + j];
                }
        }
}
