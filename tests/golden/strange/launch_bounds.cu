__global__ __launch_bounds__(THREADS, 2) void bounded(float *x, int n)
{
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < n) x[i] = rsqrtf(x[i] * x[i] + 1);
}
