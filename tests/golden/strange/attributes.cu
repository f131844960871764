[[maybe_unused]] static __global__ void __launch_bounds__(256, 2) saxpy([[maybe_unused]] const float a, const float *x, float *y, const unsigned n)
{
    for (unsigned i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) y[i] = fmaf(a, x[i], y[i]);
}
