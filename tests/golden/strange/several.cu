__device__ float square(float x) { return x * x; }
__global__ void first(float *x, int n) { int i = threadIdx.x; if (i < n) x[i] = square(x[i]); }
__global__ void second(float *x, float *sum, int n) { atomicAdd(sum, x[threadIdx.x % n]); }
__global__ void third(int *flags) { flags[threadIdx.x] = 1; }
