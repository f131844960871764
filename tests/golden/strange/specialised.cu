template <typename T> __global__ void negate(T *x, int n);
template <> __global__ void negate<float>(float *x, int n) { int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) x[i] = -x[i]; }
