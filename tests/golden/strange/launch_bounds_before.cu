template <int N>
__launch_bounds__(N) __global__ void early(float *x, int n) { if (threadIdx.x < n) x[threadIdx.x] = N; }
