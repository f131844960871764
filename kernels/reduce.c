/* The sum of n elements on the host, in their own type. */
void reduce(const DTYPE *x, DTYPE *sum, long n)
{
    DTYPE total = 0;
#pragma omp parallel for simd reduction(+ : total)
    for (long i = 0; i < n; i++)
        total += x[i];
    *sum = total;
}
